//! An index of roles and bindings by subject.
//!
//! The index is built for the first request and then follows the event log, as a watch does: each
//! request costs the writes to roles and bindings since the last one.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use super::rule::Rule;
use crate::semantics::registry::RBAC_GROUP;
use crate::storage::{ObjectKey, StorageId, Store, Stored};
use crate::user::UserInfo;

/// The resources in the index, and whether they are roles.
const STORAGES: [(&str, bool); 4] = [
    ("clusterroles", true),
    ("roles", true),
    ("clusterrolebindings", false),
    ("rolebindings", false),
];

/// Authorizes requests by the roles and bindings of a cluster.
#[derive(Debug)]
pub(crate) struct Authorizer {
    index: RwLock<RoleIndex>,
    allows_everything: bool,
}

/// The roles and bindings at one revision.
#[derive(Debug, Default)]
pub(super) struct RoleIndex {
    /// The revision up to which it is complete; none before it is built.
    revision: Option<u64>,
    /// The rules of the roles; the namespace of ClusterRoles is empty.
    roles: BTreeMap<ObjectKey, Arc<[Rule]>>,
    bindings: BTreeMap<ObjectKey, Binding>,
    /// The names of the bindings of each subject in each namespace.
    by_subject: BTreeMap<(Subject, Box<str>), BTreeSet<Box<str>>>,
}

/// A binding of subjects to a role.
#[derive(Clone, Debug, Default)]
pub(super) struct Binding {
    key: ObjectKey,
    role_kind: String,
    role_name: String,
    subjects: Vec<BoundSubject>,
}

/// A subject as a binding names it.
#[derive(Clone, Debug)]
pub(super) struct BoundSubject {
    kind: String,
    name: String,
    namespace: String,
}

/// A subject that requests can have; service accounts are users.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    User(String),
    Group(String),
}

impl Authorizer {
    /// An authorizer by roles and bindings, or one that allows everything.
    pub(crate) fn new(allows_everything: bool) -> Self {
        Self { index: RwLock::default(), allows_everything }
    }

    /// Whether every request is allowed.
    pub(crate) fn allows_everything(&self) -> bool {
        self.allows_everything
    }

    /// Calls `look` with the index of the present state of `store`.
    pub(super) fn with<T>(&self, store: &Store, look: impl FnOnce(&RoleIndex) -> T) -> T {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        if index.revision == Some(store.revision()) {
            return look(&index);
        }
        drop(index);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.follow(store);
        look(&index)
    }
}

impl RoleIndex {
    /// Applies the writes since the last revision, or reads everything if they were compacted.
    fn follow(&mut self, store: &Store) {
        let followed = self.revision.is_some_and(|seen| self.follow_log(store, seen));
        if !followed {
            *self = Self::default();
            for (plural, is_role) in STORAGES {
                for stored in store.list(&StorageId::new(RBAC_GROUP, plural), None) {
                    self.put(is_role, stored);
                }
            }
        }
        self.revision = Some(store.revision());
    }

    fn follow_log(&mut self, store: &Store, seen: u64) -> bool {
        if store.revision() < seen {
            return false;
        }
        for (plural, is_role) in STORAGES {
            let storage = StorageId::new(RBAC_GROUP, plural);
            match store.events_after(&storage, seen) {
                Ok(news) => {
                    for event in news.events {
                        self.forget(is_role, &event.object.key);
                        if let Some(stored) = store.find(&storage, &event.object.key) {
                            self.put(is_role, stored);
                        }
                    }
                }
                // There never was such an object.
                Err(crate::storage::HistoryError::Gone) => {}
                Err(crate::storage::HistoryError::Compacted { .. }) => return false,
            }
        }
        true
    }

    fn put(&mut self, is_role: bool, stored: &Stored) {
        let object = stored.decode();
        if is_role {
            self.roles.insert(stored.key.clone(), Rule::all_of(&object).into());
            return;
        }
        let binding = Binding::read(stored.key.clone(), &object);
        for subject in binding.subjects.iter().filter_map(|subject| binding.resolve(subject)) {
            let place = (subject, binding.key.namespace.clone());
            self.by_subject.entry(place).or_default().insert(binding.key.name.clone());
        }
        self.bindings.insert(stored.key.clone(), binding);
    }

    fn forget(&mut self, is_role: bool, key: &ObjectKey) {
        if is_role {
            self.roles.remove(key);
            return;
        }
        let Some(binding) = self.bindings.remove(key) else { return };
        for subject in binding.subjects.iter().filter_map(|subject| binding.resolve(subject)) {
            let place = (subject, key.namespace.clone());
            if let Some(names) = self.by_subject.get_mut(&place) {
                names.remove(&key.name);
                if names.is_empty() {
                    self.by_subject.remove(&place);
                }
            }
        }
    }

    /// The bindings of a user, each with the first of its subjects that matches:
    /// ClusterRoleBindings by name, then the RoleBindings of a namespace by name.
    pub(super) fn bindings<'a>(
        &'a self,
        user: &UserInfo,
        namespace: &str,
    ) -> Vec<(&'a Binding, &'a BoundSubject)> {
        let mut subjects = vec![Subject::User(user.username.clone())];
        subjects.extend(user.groups.iter().cloned().map(Subject::Group));
        let mut keys = BTreeSet::new();
        for subject in &subjects {
            let places = ["", namespace];
            let places = if namespace.is_empty() { &places[..1] } else { &places[..] };
            for place in places {
                let place = (subject.clone(), Box::from(*place));
                let names = self.by_subject.get(&place).into_iter().flatten();
                keys.extend(names.map(|name| (place.1.clone(), name)));
            }
        }
        keys.into_iter()
            .filter_map(|(namespace, name)| {
                let binding = self.bindings.get(&ObjectKey::new(&namespace, name))?;
                let subject = binding.subjects.iter().find(|subject| {
                    binding.resolve(subject).is_some_and(|found| subjects.contains(&found))
                })?;
                Some((binding, subject))
            })
            .collect()
    }

    /// The rules of the role that a binding refers to.
    ///
    /// # Errors
    /// When there is no such role.
    pub(super) fn rules(&self, binding: &Binding) -> Result<&[Rule], String> {
        let (namespace, noun) = match binding.role_kind.as_str() {
            "Role" if !binding.key.namespace.is_empty() => (&*binding.key.namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            other => return Err(format!("unsupported role reference kind: {other:?}")),
        };
        let name = &binding.role_name;
        self.roles
            .get(&ObjectKey::new(namespace, name))
            .map(|rules| &**rules)
            .ok_or_else(|| format!("{noun}.{RBAC_GROUP} {name:?} not found"))
    }
}

impl Binding {
    /// A binding to a role without subjects.
    pub(super) fn to(role_kind: &str, role_name: &str, namespace: &str) -> Self {
        Self {
            key: ObjectKey::new(namespace, ""),
            role_kind: role_kind.to_owned(),
            role_name: role_name.to_owned(),
            subjects: Vec::new(),
        }
    }

    fn read(key: ObjectKey, object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let subjects = object["subjects"].as_array().into_iter().flatten();
        Self {
            key,
            role_kind: text(&object["roleRef"]["kind"]),
            role_name: text(&object["roleRef"]["name"]),
            subjects: subjects
                .map(|subject| BoundSubject {
                    kind: text(&subject["kind"]),
                    name: text(&subject["name"]),
                    namespace: text(&subject["namespace"]),
                })
                .collect(),
        }
    }

    /// The user or group of a subject; an account without a namespace is in that of the binding.
    fn resolve(&self, subject: &BoundSubject) -> Option<Subject> {
        match subject.kind.as_str() {
            "User" => Some(Subject::User(subject.name.clone())),
            "Group" => Some(Subject::Group(subject.name.clone())),
            "ServiceAccount" => {
                let namespace = self.namespace_of(subject);
                (!namespace.is_empty()).then(|| {
                    Subject::User(format!("system:serviceaccount:{namespace}:{}", subject.name))
                })
            }
            _ => None,
        }
    }

    fn namespace_of<'a>(&'a self, subject: &'a BoundSubject) -> &'a str {
        if subject.namespace.is_empty() { &self.key.namespace } else { &subject.namespace }
    }

    /// The binding in the message of access reviews.
    ///
    /// Upstream: k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go: describeSubject
    pub(super) fn describe(&self, subject: &BoundSubject) -> String {
        let name = &self.key.name;
        let (kind, name) = if self.key.namespace.is_empty() {
            ("ClusterRoleBinding", name.to_string())
        } else {
            ("RoleBinding", format!("{name}/{}", self.key.namespace))
        };
        let whom = if subject.kind == "ServiceAccount" {
            format!("{}/{}", subject.name, self.namespace_of(subject))
        } else {
            subject.name.clone()
        };
        format!(
            "{kind} {name:?} of {} {:?} to {} {whom:?}",
            self.role_kind, self.role_name, subject.kind
        )
    }
}
