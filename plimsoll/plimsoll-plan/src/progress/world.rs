//! What is known of the cluster beyond the plan's own objects: kinds that it serves, namespaces.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{GroupKind, Reason};
pub use plimsoll_content::definition::Scope;

use crate::plan::{GroupVersionKind, Plan, Step};

/// State of a namespace that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceState {
    /// Takes new objects.
    Active,
    /// Is being deleted.
    Terminating,
}

/// Why a step cannot even be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepBlocker {
    /// The API server does not serve its kind.
    KindNotServed(GroupVersionKind),
    /// Its namespace does not exist.
    NamespaceMissing(String),
    /// Its namespace is being deleted.
    NamespaceTerminating(String),
}

impl StepBlocker {
    /// The reason as conditions name it.
    pub fn reason(&self) -> Reason {
        match self {
            Self::KindNotServed(_) => Reason::UpdatePayloadResourceTypeMissing,
            Self::NamespaceMissing(_) => Reason::NamespaceMissing,
            Self::NamespaceTerminating(_) => Reason::NamespaceTerminating,
        }
    }

    /// What is missing and what would bring it.
    pub fn message(&self) -> String {
        match self {
            Self::KindNotServed(kind) => format!(
                "the server does not recognize this resource ({kind}), check extension API servers"
            ),
            Self::NamespaceMissing(namespace) => format!(
                "namespace \"{namespace}\" does not exist yet and no manifest creates it; it is \
                 applied as soon as the namespace appears"
            ),
            Self::NamespaceTerminating(namespace) => format!(
                "namespace \"{namespace}\" is being deleted; it is applied once the namespace is \
                 gone and created anew"
            ),
        }
    }
}

/// What is known of a cluster.
#[derive(Debug, Clone, Default)]
pub struct World {
    kinds: BTreeMap<GroupVersionKind, Scope>,
    namespaces: BTreeMap<String, NamespaceState>,
    /// What namespaces there are has been asked, and is not answered yet.
    awaiting_namespaces: bool,
}

impl World {
    /// Records that a kind is served.
    pub fn serve(&mut self, kind: GroupVersionKind, scope: Scope) {
        self.kinds.insert(kind, scope);
    }

    /// Records the state of a namespace; `None` when it does not exist.
    pub fn set_namespace(&mut self, name: &str, state: Option<NamespaceState>) {
        match state {
            Some(state) => self.namespaces.insert(name.to_owned(), state),
            None => self.namespaces.remove(name),
        };
    }

    /// Records that the namespaces are not known yet, but will be soon.
    pub fn await_namespaces(&mut self) {
        self.awaiting_namespaces = true;
    }

    /// Records that all existing namespaces have been listed.
    pub fn namespaces_listed(&mut self) {
        self.awaiting_namespaces = false;
    }

    /// Whether it will only be known soon if a step can be tried.
    pub fn is_unsure(&self, step: &Step) -> bool {
        self.awaiting_namespaces
            && matches!(self.blocker(step), Some(StepBlocker::NamespaceMissing(_)))
    }

    /// Records that a kind is not served, or no longer.
    pub fn withdraw(&mut self, kind: &GroupVersionKind) {
        self.kinds.remove(kind);
    }

    /// Whether a kind is served in any version.
    pub fn serves(&self, kind: &GroupKind) -> bool {
        self.kinds.keys().any(|it| it.group == kind.group && it.kind == kind.kind)
    }

    /// A kind in this version if that is served, else in one that is, if any.
    pub fn served_version(&self, kind: GroupVersionKind) -> GroupVersionKind {
        let is_same = |it: &&GroupVersionKind| it.group == kind.group && it.kind == kind.kind;
        let served =
            if self.kinds.contains_key(&kind) { None } else { self.kinds.keys().find(is_same) };
        served.cloned().unwrap_or(kind)
    }

    /// Whether a kind is served, and how.
    pub fn scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.kinds.get(kind).copied()
    }

    /// The kinds that are served and have no namespaces.
    pub fn cluster_kinds(&self) -> BTreeSet<GroupKind> {
        let kinds = self.kinds.iter().filter(|(_, scope)| **scope == Scope::Cluster);
        kinds.map(|(kind, _)| GroupKind::new(&kind.group, &kind.kind)).collect()
    }

    /// A plan with its objects as the server identifies them.
    #[must_use]
    pub fn normalized(&self, mut plan: Plan) -> Plan {
        plan.normalize_keys(&self.cluster_kinds());
        plan
    }

    /// What keeps a step from being tried, if anything.
    pub fn blocker(&self, step: &Step) -> Option<StepBlocker> {
        let kind = step.kind();
        let Some(scope) = self.scope(&kind) else {
            return Some(StepBlocker::KindNotServed(kind));
        };
        let namespace = &step.manifest.key.namespace;
        if scope == Scope::Cluster || namespace.is_empty() {
            return None;
        }
        match self.namespaces.get(namespace) {
            Some(NamespaceState::Active) => None,
            Some(NamespaceState::Terminating) => {
                Some(StepBlocker::NamespaceTerminating(namespace.clone()))
            }
            None => Some(StepBlocker::NamespaceMissing(namespace.clone())),
        }
    }
}
