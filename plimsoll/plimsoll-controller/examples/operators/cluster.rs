//! A cluster that does at once what the reconciler says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::olm::{
    BundleProperty, BundleReference, CertificateProvider, DELETION_FINALIZER, OPERATOR_LABEL,
};
use plimsoll_api::{GroupKind, ObjectKey, Verdict};
use plimsoll_content::catalog::{CatalogIndex, IndexedCatalog};
use plimsoll_content::expressions::Cel;
use plimsoll_operators::reconciler::{
    CatalogContent, Findings, Moment, ObservedObject, OperatorEffect, OperatorEvent, OperatorKind,
    OperatorReconciler, RevisionContent, WatchedChange, WrittenPart,
};
use plimsoll_operators::revision_key::RevisionKey;
use plimsoll_plan::plan::{GroupVersionKind, Plan};
use plimsoll_plan::progress::{Mark, NamespaceState, Scope, StepOutcome, Trace};
use plimsoll_plan::reconciler::Uptime;
use plimsoll_resolve::{Catalog as _, CatalogName, CatalogPart, ClusterFacts};
use plimsoll_source::catalog::Bytes;
use serde_json::{Value, json};

/// Properties of a definition, so that it is as large as those of others are.
const PROPERTIES: usize = 150;
/// The catalog whose content changes.
const FIRST_CATALOG: &str = "catalog-0";

/// A reconciler with what it acts on.
pub(crate) struct MeasuredCluster {
    reconciler: OperatorReconciler,
    catalogs: Vec<Arc<CatalogIndex<Bytes>>>,
    events: VecDeque<OperatorEvent>,
    /// Bundles to read: a few are read at a time.
    reads: VecDeque<OperatorEffect>,
    /// The Operators as JSON: what a server keeps is not the memory of this process.
    operators: BTreeMap<String, String>,
    /// The objects that were applied, each with its Operator and its revision: what is applied again does
    /// not change.
    applied: BTreeMap<ObjectKey, (String, u64)>,
    watched: BTreeSet<GroupKind>,
    defined: BTreeMap<(String, String), Vec<(GroupVersionKind, Scope)>>,
    revision: u64,
    seconds: i64,
    decided: usize,
    /// The ticket of the last read of the first catalog.
    first_read: u64,
}

fn kind(group: &str, kind: &str, scope: Scope) -> (GroupVersionKind, Scope) {
    let (group, kind) = (group.to_owned(), kind.to_owned());
    (GroupVersionKind { group, version: "v1".to_owned(), kind }, scope)
}

impl MeasuredCluster {
    /// A cluster with new Operators.
    pub(crate) fn new(catalogs: Vec<Arc<CatalogIndex<Bytes>>>, names: &[String]) -> Self {
        let rbac = "rbac.authorization.k8s.io";
        let served = [
            kind("", "Namespace", Scope::Cluster),
            kind("", "ServiceAccount", Scope::Namespaced),
            kind("", "ConfigMap", Scope::Namespaced),
            kind("", "Service", Scope::Namespaced),
            kind("apps", "Deployment", Scope::Namespaced),
            kind(rbac, "Role", Scope::Namespaced),
            kind(rbac, "RoleBinding", Scope::Namespaced),
            kind(rbac, "ClusterRole", Scope::Cluster),
            kind(rbac, "ClusterRoleBinding", Scope::Cluster),
            kind("apiextensions.k8s.io", "CustomResourceDefinition", Scope::Cluster),
        ];
        let mut cluster = Self {
            reconciler: OperatorReconciler::new(served, RevisionKey::new([0; RevisionKey::LENGTH])),
            events: VecDeque::new(),
            reads: VecDeque::new(),
            operators: BTreeMap::new(),
            applied: BTreeMap::new(),
            watched: BTreeSet::new(),
            defined: BTreeMap::new(),
            revision: 1,
            seconds: 0,
            decided: 0,
            first_read: 0,
            catalogs,
        };
        cluster.events.push_back(OperatorEvent::Facts(Box::default()));
        for at in 0..cluster.catalogs.len() {
            let name = format!("catalog-{at}");
            let object = json!({
                "metadata": { "name": name, "uid": name, "resourceVersion": "1" },
                "spec": { "source": { "type": "Directory", "path": "/" }, "weight": at },
            });
            cluster.configuration(OperatorKind::Catalog, &name, object);
        }
        for name in names {
            let object = json!({
                "metadata": {
                    "name": name, "uid": name, "generation": 1, "resourceVersion": "1",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {},
            });
            cluster.operators.insert(name.clone(), object.to_string());
            cluster.configuration(OperatorKind::Operator, name, object);
        }
        for kind in [OperatorKind::Catalog, OperatorKind::Operator, OperatorKind::Revision] {
            cluster.events.push_back(OperatorEvent::ConfigurationListed(kind));
        }
        cluster
    }

    fn configuration(&mut self, kind: OperatorKind, name: &str, object: Value) {
        let (name, object) = (name.to_owned(), Some(Box::new(object)));
        self.events.push_back(OperatorEvent::Configuration { kind, name, object });
    }

    fn moment(&self) -> Moment {
        let time = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000_000 + self.seconds);
        let uptime = Uptime::from_start(Duration::from_secs(self.seconds.unsigned_abs()));
        Moment { time, steady: time, uptime }
    }

    /// Goes on until nothing is left to do within a minute.
    pub(crate) fn run_until_idle(&mut self) {
        let end = self.seconds + 55;
        while self.seconds < end {
            let moment = self.moment();
            while let Some(version) = self.reconciler.next_discovery(moment) {
                let found = self.defined.get(&version).cloned().unwrap_or_default();
                self.events.push_back(OperatorEvent::Discovered(version, found));
            }
            while let Some(event) = self.events.pop_front() {
                let effects = self.reconciler.handle(event, moment);
                self.carry_out(effects);
            }
            self.decide();
            if let Some(read) = self.reads.pop_front() {
                self.carry_out_one(read);
            } else if self.events.is_empty() {
                self.seconds += 1;
                let effects = self.reconciler.handle_timeout(self.moment());
                self.carry_out(effects);
            }
        }
    }

    fn decide(&mut self) {
        let names = self.reconciler.undecided();
        if names.is_empty() {
            return;
        }
        self.decided += names.len();
        let catalogs = self.catalogs.clone();
        let offered = |names: &BTreeSet<String>| -> Vec<CatalogPart> {
            let part = |(at, index): (usize, &Arc<CatalogIndex<Bytes>>)| {
                let catalog = IndexedCatalog::new(index);
                CatalogPart {
                    name: CatalogName { namespace: String::new(), name: format!("catalog-{at}") },
                    weight: i64::try_from(at).unwrap_or_default(),
                    packages: names.iter().filter_map(|name| catalog.package(name)).collect(),
                }
            };
            catalogs.iter().enumerate().map(part).collect()
        };
        let moment = self.moment();
        let effects = self.reconciler.decide(&names, &offered, &Cel, moment);
        self.carry_out(effects);
    }

    fn read(unchanged: BTreeSet<String>) -> CatalogContent {
        CatalogContent { digest: "1".to_owned(), unchanged, ..CatalogContent::default() }
    }

    /// A package of the first catalog changes; how many Operators are decided.
    pub(crate) fn change_package(&mut self, name: &str) -> usize {
        let before = self.decided;
        let unchanged = self.operators.keys().filter(|it| *it != name).cloned();
        let content = Ok(Some(Self::read(unchanged.collect())));
        let (name, ticket) = (FIRST_CATALOG.to_owned(), self.first_read);
        let event = OperatorEvent::CatalogRead { name, ticket, content };
        let effects = self.reconciler.handle(event, self.moment());
        self.carry_out(effects);
        self.decide();
        self.decided - before
    }

    /// All Operators are decided anew.
    pub(crate) fn change_facts(&mut self) {
        let facts = ClusterFacts { apis: Some(Vec::new()), ..ClusterFacts::default() };
        let event = OperatorEvent::Facts(Box::new(facts));
        let effects = self.reconciler.handle(event, self.moment());
        self.carry_out(effects);
        self.decide();
    }

    fn change_operator(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        self.revision += 1;
        let Some(text) = self.operators.get_mut(name) else { return };
        let mut object: Value = serde_json::from_str(text).unwrap_or_default();
        change(&mut object);
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        *text = object.to_string();
        self.configuration(OperatorKind::Operator, name, object);
    }

    fn written(&mut self, kind: OperatorKind, name: String, what: WrittenPart) {
        self.events.push_back(OperatorEvent::Written { kind, name, what, is_written: true });
    }

    fn carry_out(&mut self, effects: Vec<OperatorEffect>) {
        for effect in effects {
            match effect {
                OperatorEffect::ReadBundle { .. } => self.reads.push_back(effect),
                _ => self.carry_out_one(effect),
            }
        }
    }

    fn carry_out_one(&mut self, effect: OperatorEffect) {
        match effect {
            OperatorEffect::ReadCatalog { name, ticket, .. } => {
                if name == FIRST_CATALOG {
                    self.first_read = ticket;
                }
                let content = Ok(Some(Self::read(BTreeSet::new())));
                self.events.push_back(OperatorEvent::CatalogRead { name, ticket, content });
            }
            OperatorEffect::ReadBundle { operator, ticket, bundle, .. } => {
                self.read_bundle(operator, ticket, bundle);
            }
            OperatorEffect::InspectObjects { operator, ticket, .. } => {
                let findings = Ok(Findings::default());
                self.events.push_back(OperatorEvent::ObjectsInspected {
                    operator,
                    ticket,
                    findings,
                });
            }
            OperatorEffect::WriteRevision { operator, ticket, revisions } => {
                for (name, object) in revisions {
                    self.configuration(OperatorKind::Revision, &name, object);
                }
                let result = Ok(());
                self.events.push_back(OperatorEvent::RevisionWritten { operator, ticket, result });
            }
            OperatorEffect::SetFinalizer { operator, .. } => {
                self.change_operator(&operator, |object| {
                    object["metadata"]["finalizers"] = json!([DELETION_FINALIZER]);
                });
                self.written(OperatorKind::Operator, operator, WrittenPart::Finalizer);
            }
            OperatorEffect::WriteStatus { kind, name, status, .. } => {
                if kind == OperatorKind::Operator {
                    self.change_operator(&name, |object| object["status"] = status);
                }
                self.written(kind, name, WrittenPart::Status);
            }
            OperatorEffect::Execute { operator, run, plan, step, .. } => {
                self.execute(operator, run, &plan, step);
            }
            OperatorEffect::Watch(kind, _) => self.watch(&kind),
            OperatorEffect::ReadRelease { operator } => {
                let objects = Ok(BTreeSet::new());
                self.events.push_back(OperatorEvent::ReleaseRead { operator, objects });
            }
            OperatorEffect::WatchOperands(_)
            | OperatorEffect::UnwatchOperands(_)
            | OperatorEffect::Delete { .. }
            | OperatorEffect::RemoveConversion { .. }
            | OperatorEffect::ReadNamespace { .. }
            | OperatorEffect::FindKinds { .. }
            | OperatorEffect::ReadDefinition { .. }
            | OperatorEffect::DeleteRevision { .. }
            | OperatorEffect::ReleaseRevision { .. }
            | OperatorEffect::Emit { .. } => {}
        }
    }

    fn read_bundle(&mut self, operator: String, ticket: u64, bundle: BundleReference) {
        let catalog = IndexedCatalog::new(&self.catalogs[0]);
        let properties = catalog.properties(&operator, &bundle.name).unwrap_or_default();
        let property =
            |it: plimsoll_resolve::Property| BundleProperty { type_: it.kind, value: it.value };
        let content = RevisionContent {
            objects: objects(&operator),
            properties: properties.into_iter().map(property).collect(),
            namespace: operator.clone(),
            config: None,
            certificates: CertificateProvider::default(),
            ready_when: Vec::new(),
            bundle,
        };
        let content = Ok(Box::new(content));
        self.events.push_back(OperatorEvent::BundleRead { operator, ticket, content });
    }

    /// Applies the object of a step, and reports what follows from it.
    fn execute(&mut self, operator: String, run: u64, plan: &Plan, step: usize) {
        let work = &plan.steps[step];
        let key = work.manifest.key.clone();
        if let Some((_, revision)) = self.applied.get(&key) {
            let outcome = StepOutcome::Applied(observed(&operator, key, *revision).mark);
            self.events.push_back(OperatorEvent::Executed { operator, run, step, outcome });
            return;
        }
        if let Some(defined) = work.serves.first() {
            let version = (defined.group.clone(), defined.version.clone());
            let kinds = work.serves.iter().cloned().map(|it| (it, Scope::Namespaced));
            self.defined.entry(version).or_default().extend(kinds);
            let plural = key.name.split('.').next().unwrap_or_default().to_owned();
            self.events.push_back(OperatorEvent::Definition(defined.group.clone(), plural));
        }
        if key.kind == "Namespace" {
            let state = Some(NamespaceState::Active);
            self.events.push_back(OperatorEvent::Namespace(key.name.clone(), state));
        }
        self.revision += 1;
        self.applied.insert(key.clone(), (operator.clone(), self.revision));
        let object = observed(&operator, key, self.revision);
        let outcome = StepOutcome::Applied(object.mark);
        let kind = object.key.group_kind();
        if self.watched.contains(&kind) {
            let change = WatchedChange::Present(Box::new(object));
            self.events.push_back(OperatorEvent::Watched(kind, change));
        }
        self.events.push_back(OperatorEvent::Executed { operator, run, step, outcome });
    }

    /// Reports the objects of a kind, and those that are applied from now on.
    fn watch(&mut self, kind: &GroupVersionKind) {
        let kind = GroupKind::new(&kind.group, &kind.kind);
        self.watched.insert(kind.clone());
        let there = self.applied.iter().filter(|(key, _)| key.group_kind() == kind);
        for (key, (operator, revision)) in there {
            let object = Box::new(observed(operator, key.clone(), *revision));
            let change = WatchedChange::Present(object);
            self.events.push_back(OperatorEvent::Watched(kind.clone(), change));
        }
        self.events.push_back(OperatorEvent::Watched(kind, WatchedChange::Listed));
    }
}

fn observed(operator: &str, key: ObjectKey, revision: u64) -> ObservedObject {
    ObservedObject {
        operator: operator.to_owned(),
        uid: format!("0000-{revision}"),
        owners: BTreeSet::new(),
        mark: Mark::new(revision, Trace::Ours(7)),
        health: Some(Verdict::Ready),
        terminating: None,
        whole: None,
        key,
    }
}

/// The fifteen objects of an Operator.
fn objects(name: &str) -> Vec<Value> {
    let labels = json!({ OPERATOR_LABEL: name });
    let object = |api_version: &str, kind: &str, name: &str, namespace: Option<&str>| {
        let mut metadata = json!({ "name": name, "labels": labels });
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata })
    };
    let property = |at: usize| {
        let description = "What it is for, and which values it may have beside the default one.";
        (format!("property{at}"), json!({ "type": "string", "description": description }))
    };
    let properties: serde_json::Map<String, Value> = (0..PROPERTIES).map(property).collect();
    let definition = |plural: &str| {
        let group = format!("{name}.example.com");
        let (api, kind) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let mut object = object(api, kind, &format!("{plural}.{group}"), None);
        object["spec"] = json!({
            "group": group, "scope": "Namespaced",
            "names": { "kind": plural, "plural": plural },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
            }],
        });
        object
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    let namespace = Some(name);
    vec![
        object("v1", "Namespace", name, None),
        object("v1", "ServiceAccount", name, namespace),
        object("v1", "ServiceAccount", "metrics", namespace),
        object("v1", "ConfigMap", "settings", namespace),
        object("v1", "ConfigMap", "dashboard", namespace),
        definition("ones"),
        definition("others"),
        object(rbac, "ClusterRole", &format!("{name}.one"), None),
        object(rbac, "ClusterRole", &format!("{name}.other"), None),
        object(rbac, "ClusterRoleBinding", &format!("{name}.one"), None),
        object(rbac, "Role", name, namespace),
        object(rbac, "RoleBinding", name, namespace),
        object("v1", "Service", "metrics", namespace),
        object("v1", "Service", "webhook", namespace),
        object("apps/v1", "Deployment", name, namespace),
    ]
}
