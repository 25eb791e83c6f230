//! An in-memory cluster that carries out the effects of the reconciler.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::olm::{DELETION_FINALIZER, OPERATOR_LABEL, OperatorStatus};
use plimsoll_api::{ObjectKey, Verdict};
use plimsoll_content::Manifest;
use plimsoll_content::hash::manifest_hash;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::progress::{Mark, StepOutcome, Trace};
use plimsoll_plan::removal::Terminating;

use super::super::revision::manifests;
use super::*;
use crate::deletion::LiveObject;
use crate::tests::{FIXTURE, NoExpressions, catalogs, part};

/// The maximum number of rounds until nothing is left to do.
const ROUNDS_MAX: usize = 4000;

/// An object of the cluster.
#[derive(Debug, Clone)]
struct FakeObject {
    operator: String,
    revision: u64,
    uid: String,
    terminating_since: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct FakeCluster {
    seed: u64,
    reconciler: OperatorReconciler,
    seconds: i64,
    revision: u64,
    operators: BTreeMap<String, Value>,
    revisions: BTreeMap<String, Value>,
    objects: BTreeMap<ObjectKey, FakeObject>,
    /// The operands, by definition and name.
    operands: BTreeMap<(String, String), String>,
    watched: BTreeSet<GroupKind>,
    watched_operands: BTreeSet<String>,
    /// The events for the reconciler; events of one source keep their order.
    pending: Vec<(&'static str, OperatorEvent)>,
    catalogs: Vec<CatalogPart>,
    is_restarting: bool,
    facts: ClusterFacts,
    /// Whether objects that need the capability Console exist once nothing is left to do.
    has_console: bool,
    /// The reason that namespaces cannot be read; `None` if they can.
    pub(super) unreadable: Option<String>,
    /// The object that has a finalizer, by name; `None` if there is none.
    pub(super) stuck: Option<String>,
    /// Whether the garbage collector runs.
    pub(super) collects_garbage: bool,
    pub(super) writes: usize,
    pub(super) events: Vec<String>,
    pub(super) log: Vec<String>,
}

fn definition(package: &str) -> String {
    format!("{package}s.example.com")
}

/// An object of the bundles of baz that needs the capability Console.
const CONSOLE: &str = "for-the-console";

/// Returns the objects of a bundle: those that every version has, and one of its own.
fn objects(package: &str, version: &str, namespace: &str) -> Vec<Value> {
    let labels = json!({ OPERATOR_LABEL: package });
    let object = |api_version: &str, kind: &str, name: &str, namespace: Option<&str>| {
        let mut metadata = json!({ "name": name, "labels": labels });
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata })
    };
    let mut crd =
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &definition(package), None);
    crd["spec"] = json!({
        "group": "example.com", "scope": "Namespaced",
        "names": { "kind": package, "plural": format!("{package}s") },
        "versions": [{ "name": "v1", "served": true, "storage": true }],
    });
    let name = namespace;
    let namespace = Some(name);
    let mut console = object("v1", "ConfigMap", CONSOLE, namespace);
    console["metadata"]["annotations"] = json!({ "capability.openshift.io/name": "Console" });
    let mut objects = vec![
        object("v1", "Namespace", name, None),
        object("v1", "ServiceAccount", package, namespace),
        crd,
        object("v1", "ConfigMap", &format!("{package}-{version}"), namespace),
        object("apps/v1", "Deployment", package, namespace),
    ];
    if package == "baz" {
        objects.push(console);
    }
    objects
}

/// Returns the namespace of the objects of an Operator: the shared one if it is requested, otherwise its own.
fn namespace_of<'a>(package: &'a str, requested: &'a str) -> &'a str {
    if requested == "shared" { requested } else { package }
}

fn served() -> Vec<(GroupVersionKind, Scope)> {
    let kind = |group: &str, kind: &str, scope| {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        (GroupVersionKind { group, version: "v1".to_owned(), kind }, scope)
    };
    vec![
        kind("", "Namespace", Scope::Cluster),
        kind("", "ServiceAccount", Scope::Namespaced),
        kind("", "ConfigMap", Scope::Namespaced),
        kind("apps", "Deployment", Scope::Namespaced),
        kind("apiextensions.k8s.io", "CustomResourceDefinition", Scope::Cluster),
    ]
}

impl FakeCluster {
    pub(super) fn new(seed: u64) -> Self {
        let mut cluster = Self {
            seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            reconciler: OperatorReconciler::default(),
            seconds: 0,
            revision: 1,
            operators: BTreeMap::new(),
            revisions: BTreeMap::new(),
            objects: BTreeMap::new(),
            operands: BTreeMap::new(),
            watched: BTreeSet::new(),
            watched_operands: BTreeSet::new(),
            pending: Vec::new(),
            catalogs: catalogs(FIXTURE),
            is_restarting: seed > 0,
            facts: ClusterFacts::default(),
            has_console: true,
            unreadable: None,
            stuck: None,
            collects_garbage: true,
            writes: 0,
            events: Vec::new(),
            log: Vec::new(),
        };
        cluster.restart();
        cluster
    }

    fn random(&mut self, below: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        usize::try_from(self.seed >> 33).expect("31 bits") % below.max(1)
    }

    fn moment(&self) -> Moment {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000_000 + self.seconds);
        let elapsed = std::time::Duration::from_secs(self.seconds.unsigned_abs());
        Moment { time: at, steady: at, uptime: Uptime::from_start(elapsed) }
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, seconds: i64) {
        self.seconds += seconds;
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// Replaces the process by a new one, which starts with what the cluster has.
    pub(super) fn restart(&mut self) {
        self.log.push("restart".to_owned());
        let mut kinds = served();
        let definitions = self.objects.keys().filter(|it| it.kind == "CustomResourceDefinition");
        kinds.extend(definitions.map(|it| defined(&it.name)));
        self.reconciler = OperatorReconciler::new(kinds);
        self.watched.clear();
        self.watched_operands.clear();
        self.pending.clear();
        let configuration = |kind, name: &str, object: Value| OperatorEvent::Configuration {
            kind,
            name: name.to_owned(),
            object: Some(Box::new(object)),
        };
        let catalog = json!({
            "metadata": { "name": "main", "uid": "main" },
            "spec": { "source": { "type": "Directory", "path": "/main" } },
        });
        let mut shown = vec![
            ("catalogs", configuration(OperatorKind::Catalog, "main", catalog)),
            ("catalogs", OperatorEvent::ConfigurationListed(OperatorKind::Catalog)),
            ("facts", OperatorEvent::Facts(Box::new(self.facts.clone()))),
        ];
        for (name, object) in &self.operators {
            shown.push(("operators", configuration(OperatorKind::Operator, name, object.clone())));
        }
        shown.push(("operators", OperatorEvent::ConfigurationListed(OperatorKind::Operator)));
        for (name, object) in &self.revisions {
            shown.push(("revisions", configuration(OperatorKind::Revision, name, object.clone())));
        }
        shown.push(("revisions", OperatorEvent::ConfigurationListed(OperatorKind::Revision)));
        self.pending = shown;
    }

    /// Delivers all events, one after the other, until nothing is left to do.
    pub(super) fn run_until_idle(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            if self.is_restarting && self.random(40) == 0 {
                self.restart();
            }
            if self.step() {
                continue;
            }
            // Without events, time passes until the next wake time, unless that is only polling.
            let moment = self.moment();
            let due = self.reconciler.wake_at();
            let soon = moment.uptime + std::time::Duration::from_secs(59);
            match due.filter(|at| *at < soon) {
                None => return self.check_decisions(),
                Some(at) => {
                    let seconds = at.since_start().as_secs_f64().ceil() as i64;
                    self.seconds = self.seconds.max(seconds);
                    let moment = self.moment();
                    let effects = self.reconciler.handle_timeout(moment);
                    self.carry_out(effects);
                }
            }
        }
        Err(format!("it does not become idle\n{}", self.log.join("\n")))
    }

    /// Checks that decisions made one after another are the same as decisions on all Operators at once.
    fn check_decisions(&self) -> Result<(), String> {
        let Some(facts) = &self.reconciler.facts else { return Ok(()) };
        let inputs = OperatorInputs {
            operators: &self.reconciler.requested,
            unavailable: &BTreeMap::new(),
            facts,
            expressions: &NoExpressions,
        };
        if self.reconciler.installed != OperatorIndex::of(&self.reconciler.requested) {
            return Err(format!("the index differs\n{}", self.log.join("\n")));
        }
        let names = self.reconciler.operators.keys().cloned().collect();
        let all = crate::decide(inputs, &names, &|names| part(&self.catalogs, names));
        for (name, decision) in all {
            let mut operator = self.reconciler.operators[&name].clone();
            let known = operator.decision.take();
            operator.decided(&name, decision);
            if operator.decision != known {
                let (now, log) = (operator.decision, self.log.join("\n"));
                return Err(format!("{name}: {known:?} was decided, and is {now:?}\n{log}"));
            }
        }
        Ok(())
    }

    /// Lets some seconds pass, with everything that is due in them.
    pub(super) fn run_for(&mut self, seconds: i64) -> Result<(), String> {
        let end = self.seconds + seconds;
        while self.seconds < end {
            for _ in 0..ROUNDS_MAX {
                if !self.step() {
                    break;
                }
            }
            self.seconds += 1;
            let effects = self.reconciler.handle_timeout(self.moment());
            self.carry_out(effects);
        }
        match self.pending.len() {
            0..ROUNDS_MAX => Ok(()),
            _ => Err(format!("it does not become idle\n{}", self.log.join("\n"))),
        }
    }

    /// Returns the message of a condition.
    pub(super) fn condition(&self, name: &str, type_: &str) -> String {
        let status: OperatorStatus =
            serde_json::from_value(self.operators[name]["status"].clone()).unwrap_or_default();
        let found = status.conditions.into_iter().find(|it| it.type_ == type_);
        found.map(|it| it.message).unwrap_or_default()
    }

    /// Adds the definition of an Operator to the revision of another one, as another client may do.
    pub(super) fn share_definition(&mut self, of: &str, with: &str) {
        let shared = objects(of, "", of).remove(2);
        for revision in self.revisions.values_mut() {
            let spec = &mut revision["spec"];
            if spec["operator"] != with {
                continue;
            }
            let objects = spec["objects"].as_array_mut().expect("it is a list");
            objects.push(json!({ "object": shared }));
            let manifests = manifests(with, objects.iter().map(|it| &it["object"]));
            let manifests = manifests.expect("they are objects");
            spec["digest"] = manifest_hash(manifests.iter().map(|it| &it.raw)).into();
        }
        self.restart();
    }

    /// Returns whether an operand of the definition exists.
    pub(super) fn has_operand(&self, of: &str) -> bool {
        self.operands.keys().any(|(it, _)| *it == definition(of))
    }

    /// Returns the existing namespaces.
    pub(super) fn namespaces(&self) -> Vec<&str> {
        let namespaces = self.objects.keys().filter(|it| it.kind == "Namespace");
        namespaces.map(|it| it.name.as_str()).collect()
    }

    /// Delivers one event; returns false if there is none.
    fn step(&mut self) -> bool {
        let moment = self.moment();
        assert!(self.reconciler.is_indexed(moment), "{}", self.log.join("\n"));
        while let Some(version) = self.reconciler.next_discovery(moment) {
            let found = self.objects.keys().filter(|it| it.kind == "CustomResourceDefinition");
            let found =
                found.map(|it| defined(&it.name)).filter(|(kind, _)| kind.group == version.0);
            let event = OperatorEvent::Discovered(version.clone(), found.collect());
            self.pending.push(("discovery", event));
        }
        let names = self.reconciler.undecided();
        if !names.is_empty() {
            let offered = |names: &BTreeSet<String>| part(&self.catalogs, names);
            let effects = self.reconciler.decide(&names, &offered, &NoExpressions, moment);
            self.carry_out(effects);
            return true;
        }
        if self.pending.is_empty() {
            if let Some(at) = self.reconciler.discover_at()
                && at > moment.uptime
            {
                self.seconds += 1;
                return true;
            }
            return false;
        }
        // The first event of a random source.
        let sources: BTreeSet<&'static str> =
            self.pending.iter().map(|(source, _)| *source).collect();
        let chosen = self.random(sources.len());
        let source = sources.into_iter().nth(chosen).expect("there is one");
        let at = self.pending.iter().position(|(it, _)| *it == source).expect("there is one");
        let (_, event) = self.pending.remove(at);
        let effects = self.reconciler.handle(event, moment);
        self.carry_out(effects);
        true
    }

    fn show_operator(&mut self, name: &str) {
        let object = self.operators.get(name).cloned().map(Box::new);
        let name = name.to_owned();
        let event = OperatorEvent::Configuration { kind: OperatorKind::Operator, name, object };
        self.pending.push(("operators", event));
    }

    fn change_operator(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let revision = self.next_revision();
        let Some(object) = self.operators.get_mut(name) else { return };
        change(object);
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let is_over = object["metadata"]["deletionTimestamp"].is_string()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_over {
            self.operators.remove(name);
        }
        self.show_operator(name);
        if is_over && self.collects_garbage {
            self.collect_garbage();
        }
    }

    /// Deletes the OperatorRevisions of deleted Operators, as the garbage collector does.
    pub(super) fn collect_garbage(&mut self) {
        let uid = |it: &Value| it["metadata"]["uid"].clone();
        let uids: Vec<Value> = self.operators.values().map(uid).collect();
        let is_garbage = |it: &Value| !uids.contains(&it["metadata"]["ownerReferences"][0]["uid"]);
        let garbage = self.revisions.iter().filter(|(_, it)| is_garbage(it));
        let garbage: Vec<String> = garbage.map(|(name, _)| name.clone()).collect();
        for revision in garbage {
            self.delete_revision(&revision);
        }
    }

    fn delete_revision(&mut self, name: &str) {
        if self.revisions.remove(name).is_some() {
            let (kind, name) = (OperatorKind::Revision, name.to_owned());
            let event = OperatorEvent::Configuration { kind, name, object: None };
            self.pending.push(("revisions", event));
        }
    }

    fn show(&mut self, key: &ObjectKey) {
        let kind = key.group_kind();
        if !self.watched.contains(&kind) {
            return;
        }
        let change = match self.objects.get(key) {
            Some(object) => WatchedChange::Present(Box::new(observed(key, object))),
            None => WatchedChange::Gone { key: key.clone(), revision: self.revision },
        };
        if kind.kind == "Namespace" {
            let state = self.objects.contains_key(key).then_some(NamespaceState::Active);
            self.pending.push(("namespaces", OperatorEvent::Namespace(key.name.clone(), state)));
        }
        if kind.kind == "CustomResourceDefinition"
            && let Some((plural, group)) = key.name.split_once('.')
        {
            let event = OperatorEvent::Definition(group.to_owned(), plural.to_owned());
            self.pending.push(("definitions", event));
        }
        self.pending.push((source(&kind), OperatorEvent::Watched(kind, change)));
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.revision += 1;
        self.objects.remove(key);
        if key.kind == "CustomResourceDefinition" {
            self.operands.retain(|(definition, _), _| *definition != key.name);
        }
        if key.kind == "Namespace" {
            let inside: Vec<ObjectKey> =
                self.objects.keys().filter(|it| it.namespace == key.name).cloned().collect();
            for key in inside {
                self.remove(&key);
            }
        }
        self.show(key);
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each effect")]
    fn carry_out(&mut self, effects: Vec<OperatorEffect>) {
        for effect in effects {
            match effect {
                OperatorEffect::ReadCatalog { name, .. } => {
                    let content =
                        CatalogContent { digest: "1".into(), ..CatalogContent::default() };
                    let content = Ok(Some(content));
                    self.pending.push(("reads", OperatorEvent::CatalogRead { name, content }));
                }
                OperatorEffect::ReadBundle { operator, ticket, bundle, spec, .. } => {
                    self.log.push(format!("read bundle {}", bundle.name));
                    let packages = self.catalogs.iter().flat_map(|it| &it.packages);
                    let mut bundles = packages.flat_map(|it| &it.bundles);
                    let found = bundles.find(|it| it.name == bundle.name).expect("it is offered");
                    let content = RevisionContent {
                        objects: objects(
                            &operator,
                            &found.version.to_string(),
                            namespace_of(&operator, &spec.namespace),
                        ),
                        properties: properties(&operator, found),
                        // Each bundle suggests a namespace of its own.
                        namespace: match spec.namespace.as_str() {
                            "" => format!("{operator}-{}", found.version),
                            requested => requested.to_owned(),
                        },
                        config: None,
                        bundle,
                    };
                    let content = Ok(Box::new(content));
                    let event = OperatorEvent::BundleRead { operator, ticket, content };
                    self.pending.push(("reads", event));
                }
                OperatorEffect::InspectObjects { operator, ticket, objects, .. } => {
                    let exists = objects.iter().filter_map(|(key, _)| {
                        let object = self.objects.get(key)?;
                        Some(FoundObject {
                            key: key.clone(),
                            operator: object.operator.clone(),
                            is_ours: true,
                            controller: None,
                            is_terminating: object.terminating_since.is_some(),
                        })
                    });
                    let objects = exists.collect();
                    let findings = Ok(Findings { objects, unsafe_definitions: Vec::new() });
                    let event = OperatorEvent::ObjectsInspected { operator, ticket, findings };
                    self.pending.push(("inspections", event));
                }
                OperatorEffect::WriteRevision { operator, ticket, revisions } => {
                    self.writes += 1;
                    let mut result = Ok(());
                    for (name, object) in revisions {
                        self.log.push(format!("write revision {name}"));
                        if let Some(there) = self.revisions.get(&name) {
                            let is_same = *there == object;
                            result = if is_same { result } else { Err(format!("there is {name}")) };
                            continue;
                        }
                        self.revisions.insert(name.clone(), object.clone());
                        let object = Some(Box::new(object));
                        let kind = OperatorKind::Revision;
                        let event = OperatorEvent::Configuration { kind, name, object };
                        self.pending.push(("revisions", event));
                    }
                    let event = OperatorEvent::RevisionWritten { operator, ticket, result };
                    self.pending.push(("writes", event));
                }
                OperatorEffect::DeleteRevision(name) => self.delete_revision(&name),
                OperatorEffect::SetFinalizer { operator, is_added, .. } => {
                    self.writes += 1;
                    self.log.push(format!("finalizer {operator} {is_added}"));
                    self.change_operator(&operator, |object| {
                        object["metadata"]["finalizers"] = match is_added {
                            true => json!([DELETION_FINALIZER]),
                            false => json!([]),
                        };
                    });
                    self.written(operator, WrittenPart::Finalizer, true);
                }
                OperatorEffect::WriteStatus { kind: OperatorKind::Catalog, name, .. } => {
                    let (kind, what) = (OperatorKind::Catalog, WrittenPart::Status);
                    let event = OperatorEvent::Written { kind, name, what, is_written: true };
                    self.pending.push(("writes", event));
                }
                OperatorEffect::WriteStatus {
                    name, status, resource_version: revision, ..
                } => {
                    let live = self.operators.get(&name);
                    let is_current = live
                        .is_some_and(|it| it["metadata"]["resourceVersion"] == revision.as_str());
                    let version = &status["resolvedVersion"];
                    self.log.push(format!("status of {name}: {version}, written: {is_current}"));
                    if is_current {
                        self.writes += 1;
                        self.change_operator(&name, |object| object["status"] = status);
                    }
                    self.written(name, WrittenPart::Status, is_current);
                }
                OperatorEffect::Execute { operator, run, plan, step } => {
                    self.execute(operator, run, &plan, step);
                }
                OperatorEffect::Watch(kind, _) => {
                    let kind = GroupKind::new(&kind.group, &kind.kind);
                    self.watched.insert(kind.clone());
                    let keys: Vec<ObjectKey> =
                        self.objects.keys().filter(|it| it.group_kind() == kind).cloned().collect();
                    for key in keys {
                        self.show(&key);
                    }
                    let source = source(&kind);
                    let event = OperatorEvent::Watched(kind, WatchedChange::Listed);
                    self.pending.push((source, event));
                }
                OperatorEffect::WatchOperands(name) => {
                    self.watched_operands.insert(name.clone());
                    let there: Vec<_> =
                        self.operands.iter().filter(|((it, _), _)| *it == name).collect();
                    let mut shown: Vec<OperatorEvent> = Vec::new();
                    for ((definition, object), uid) in there {
                        let change = WatchedChange::Present(Box::new(operand(object, uid)));
                        shown.push(OperatorEvent::OperandWatched(definition.clone(), change));
                    }
                    shown.push(OperatorEvent::OperandWatched(name, WatchedChange::Listed));
                    self.pending.extend(shown.into_iter().map(|it| ("operands", it)));
                }
                OperatorEffect::UnwatchOperands(name) => {
                    self.watched_operands.remove(&name);
                }
                OperatorEffect::Delete { operator, object } => {
                    self.writes += 1;
                    self.log.push(format!("delete {} of {operator}", object.key));
                    self.delete_object(&object);
                    let (uid, result) = (object.uid, Ok(()));
                    let event = OperatorEvent::DeletionAnswered { operator, uid, result };
                    self.pending.push(("writes", event));
                }
                OperatorEffect::ReadNamespace { operator, namespace } => {
                    let inside = self.objects.keys().filter(|it| it.namespace == namespace);
                    let objects = match &self.unreadable {
                        Some(why) => Err(why.clone()),
                        None => Ok(inside.cloned().collect()),
                    };
                    let event = OperatorEvent::NamespaceRead { operator, namespace, objects };
                    self.pending.push(("reads", event));
                }
                OperatorEffect::Emit { draft, .. } => self.events.push(draft.reason.to_string()),
            }
        }
    }

    fn written(&mut self, name: String, what: WrittenPart, is_written: bool) {
        let kind = OperatorKind::Operator;
        let event = OperatorEvent::Written { kind, name, what, is_written };
        self.pending.push(("writes", event));
    }

    fn execute(&mut self, operator: String, run: u64, plan: &Plan, step: usize) {
        let manifest: &Manifest = &plan.steps[step].manifest;
        let key = manifest.key.clone();
        self.log.push(format!("apply {key} of {operator} {}", plan.release.version));
        let revision = self.next_revision();
        // An unchanged apply does not change the object.
        let known = self.objects.get(&key);
        let is_same = known.is_some_and(|it| it.operator == operator);
        if !is_same {
            self.writes += 1;
            let uid = known.map_or_else(|| format!("uid-{revision}"), |it| it.uid.clone());
            let object =
                FakeObject { operator: operator.clone(), revision, uid, terminating_since: None };
            self.objects.insert(key.clone(), object);
            self.show(&key);
        }
        let mark = observed(&key, &self.objects[&key]).mark;
        let outcome = StepOutcome::Applied(mark);
        let event = OperatorEvent::Executed { operator, run, step, outcome };
        self.pending.push(("executions", event));
    }

    fn delete_object(&mut self, object: &LiveObject) {
        let operand =
            self.operands.iter().find(|(_, uid)| **uid == object.uid).map(|(id, _)| id.clone());
        if let Some((definition, name)) = operand {
            let package = definition.split('s').next().unwrap_or_default().to_owned();
            // Only its operator removes the finalizer.
            let runs = self.objects.keys().any(|it| it.kind == "Deployment" && it.name == package);
            if runs {
                self.operands.remove(&(definition.clone(), name.clone()));
                let key = operand_key(&name);
                self.revision += 1;
                let change = WatchedChange::Gone { key, revision: self.revision };
                self.pending.push(("operands", OperatorEvent::OperandWatched(definition, change)));
            }
            return;
        }
        let (now, revision) = (self.moment().time, self.next_revision());
        let Some(there) = self.objects.get_mut(&object.key) else { return };
        if there.uid != object.uid {
            return;
        }
        if self.stuck.as_ref() == Some(&object.key.name) {
            there.terminating_since.get_or_insert(now);
            there.revision = revision;
            self.show(&object.key);
        } else {
            self.remove(&object.key);
        }
    }

    /// Applies an Operator: `NAME: FIELD VALUE; …`; `set ID/MEMBERS` is its change set.
    pub(super) fn apply(&mut self, text: &str) {
        let (name, fields) = text.split_once(": ").unwrap_or((text, ""));
        let mut spec = json!({});
        let mut annotations = json!({});
        for field in fields.split("; ") {
            let (field, value) = field.split_once(' ').unwrap_or((field, ""));
            match field {
                "set" => annotations[plimsoll_api::olm::CHANGE_SET_ANNOTATION] = json!(value),
                "revision" => spec[field] = json!(value.parse::<u32>().expect("a number")),
                _ => spec[field] = json!(value),
            }
        }
        let revision = self.next_revision();
        let object = self.operators.entry(name.to_owned()).or_insert_with(|| {
            json!({ "metadata": { "name": name, "uid": format!("operator-{revision}"), "generation": 0 } })
        });
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        object["metadata"]["generation"] = json!(generation + 1);
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        object["metadata"]["annotations"] = annotations;
        object["spec"] = spec;
        self.log.push(format!("person: apply {text}"));
        self.show_operator(name);
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.log.push(format!("person: delete {name}"));
        let time = self.moment().time.to_string();
        self.change_operator(name, |object| object["metadata"]["deletionTimestamp"] = time.into());
    }

    /// Enables these capabilities, and no others, in the ClusterVersion.
    pub(super) fn enable(&mut self, capabilities: &str) {
        let names: Vec<String> =
            capabilities.split(' ').filter(|it| *it != "-").map(str::to_owned).collect();
        let is_there = self.objects.keys().any(|it| it.name == CONSOLE);
        self.has_console = is_there || names.iter().any(|it| it == "Console");
        self.facts.capabilities = Some(names);
        self.pending.retain(|(source, _)| *source != "facts");
        self.pending.push(("facts", OperatorEvent::Facts(Box::new(self.facts.clone()))));
    }

    fn key(&self, text: &str) -> ObjectKey {
        let (kind, name) = text.split_once(' ').expect("a kind and a name");
        let found = self.objects.keys().find(|it| it.kind == kind && it.name == name);
        found.cloned().unwrap_or_else(|| unreachable!("there is no {text}"))
    }

    pub(super) fn remove_label(&mut self, text: &str) {
        let key = self.key(text);
        let revision = self.next_revision();
        if let Some(object) = self.objects.get_mut(&key) {
            object.operator = String::new();
            object.revision = revision;
        }
        self.show(&key);
    }

    pub(super) fn remove_object(&mut self, text: &str) {
        let key = self.key(text);
        self.remove(&key);
    }

    pub(super) fn add_operand(&mut self, package: &str) {
        let uid = format!("operand-{}", self.next_revision());
        self.operands.insert((definition(package), format!("an-{package}")), uid);
    }

    /// Returns the version that an Operator reports; `-` if it is deleted, empty if nothing is installed.
    pub(super) fn installed(&self, name: &str) -> String {
        let Some(object) = self.operators.get(name) else { return "-".to_owned() };
        let status: OperatorStatus =
            serde_json::from_value(object["status"].clone()).unwrap_or_default();
        status.bundle.map(|it| it.version).unwrap_or_default()
    }

    /// Returns whether the revision that an Operator reports belongs to it, and not to a deleted one of that
    /// name.
    pub(super) fn owns_its_revision(&self, name: &str) -> bool {
        let operator = &self.operators[name];
        let number = &operator["status"]["revision"];
        let mut revisions = self.revisions.values().filter(|it| it["spec"]["operator"] == name);
        let owner = |it: &Value| it["metadata"]["ownerReferences"][0]["uid"].clone();
        revisions
            .any(|it| it["spec"]["revision"] == *number && owner(it) == operator["metadata"]["uid"])
    }

    /// Checks that exactly the objects of a version and the definitions of an Operator exist.
    pub(super) fn check_objects(&self, name: &str, version: &str) -> Result<(), String> {
        let of_operator = self.objects.iter().filter(|(_, it)| it.operator == name);
        let found: BTreeSet<String> = of_operator.map(|(key, _)| key.to_string()).collect();
        let is_installed = !matches!(version, "-" | "");
        let namespace = self.operators.get(name).and_then(|it| it["spec"]["namespace"].as_str());
        let namespace = namespace_of(name, namespace.unwrap_or_default());
        let expected = if is_installed { objects(name, version, namespace) } else { Vec::new() };
        let expected =
            expected.iter().filter(|it| self.has_console || it["metadata"]["name"] != CONSOLE);
        let manifests = expected.map(|it| Manifest::read("".into(), 0, it).expect("one"));
        let mut expected: BTreeSet<String> = manifests.map(|it| it.key.to_string()).collect();
        // The label of a shared namespace is that of the Operator that it was created for.
        let mut found = found;
        for keys in [&mut found, &mut expected] {
            keys.retain(|it| !it.starts_with("namespace \"shared"));
        }
        if version == "-" && self.operands.keys().any(|(it, _)| *it == definition(name)) {
            return Err(format!("objects of {name} are left\n{}", self.log.join("\n")));
        }
        match found == expected {
            true => Ok(()),
            false => {
                Err(format!("{name} has {found:?} and not {expected:?}\n{}", self.log.join("\n")))
            }
        }
    }
}

fn properties(
    package: &str,
    bundle: &plimsoll_resolve::Bundle,
) -> Vec<plimsoll_api::olm::BundleProperty> {
    let property = |type_: &str, value: Value| {
        serde_json::from_value(json!({ "type": type_, "value": value })).expect("a property")
    };
    let version = bundle.version.to_string();
    let mut properties = vec![
        property("olm.package", json!({ "packageName": package, "version": version })),
        property("olm.gvk", json!({ "group": "example.com", "kind": package, "version": "v1" })),
    ];
    for requirement in &bundle.requires {
        if let plimsoll_resolve::Constraint::Package { name, range } = &requirement.constraint {
            let value = json!({ "packageName": name, "versionRange": range });
            properties.push(property("olm.package.required", value));
        }
    }
    properties
}

fn defined(definition: &str) -> (GroupVersionKind, Scope) {
    let (plural, group) = definition.split_once('.').unwrap_or((definition, ""));
    let kind = plural.trim_end_matches('s').to_owned();
    let (group, version) = (group.to_owned(), "v1".to_owned());
    (GroupVersionKind { group, version, kind }, Scope::Namespaced)
}

/// Returns the watch that shows objects of a kind.
fn source(kind: &GroupKind) -> &'static str {
    match kind.kind.as_str() {
        "Namespace" => "namespaces",
        "ConfigMap" => "configmaps",
        "Deployment" => "deployments",
        "ServiceAccount" => "accounts",
        _ => "definitions",
    }
}

fn operand_key(name: &str) -> ObjectKey {
    ObjectKey {
        group: "example.com".to_owned(),
        kind: name.trim_start_matches("an-").to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn operand(name: &str, uid: &str) -> ObservedObject {
    ObservedObject {
        key: operand_key(name),
        operator: String::new(),
        uid: uid.to_owned(),
        owners: BTreeSet::new(),
        mark: Mark::new(1, Trace::Foreign),
        health: None,
        terminating: None,
        whole: None,
    }
}

fn observed(key: &ObjectKey, object: &FakeObject) -> ObservedObject {
    let trace = Trace::Ours(if object.operator.is_empty() { 0 } else { 7 });
    ObservedObject {
        key: key.clone(),
        operator: object.operator.clone(),
        uid: object.uid.clone(),
        owners: BTreeSet::new(),
        mark: Mark::new(object.revision, trace),
        health: (key.kind == "Deployment").then_some(Verdict::Ready),
        terminating: object.terminating_since.map(|since| Terminating {
            since,
            finalizers: vec!["example.com/kept".to_owned()],
            remaining: Vec::new(),
        }),
        whole: None,
    }
}
