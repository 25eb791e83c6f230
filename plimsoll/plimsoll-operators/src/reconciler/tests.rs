//! Courses of events, and what the reconciler requests. What becomes of Operators on a cluster, in any order
//! of events and with processes that end, is played in the simulation.

mod certificates;
mod change_sets;
mod cluster_operators;
mod conflicts;
mod conversions;
mod definition;
mod deletion;
mod held;
mod held_revisions;
mod live_definitions;
mod orphans;
mod readiness;

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::olm::{
    BundleProperty, BundleReference, CertificateProvider, DELETION_FINALIZER, OperatorHistory,
};
use plimsoll_plan::progress::{Mark, StepOutcome, Trace};
use serde_json::{Value, json};

use super::revision::{KeptRevision, RevisionContent, RevisionDraft, normalize};
use super::*;
use crate::ready_when::annotate;
use crate::revision_key::Provenance;
use crate::tests::{FIXTURE, NoExpressions, catalogs, inputs, operators, part};

mod unreadable;
mod unserved;
mod way_back;

const NAMESPACE: [&str; 2] = ["", "Namespace"];
/// The key of the controller.
const KEY: RevisionKey = RevisionKey::new([7; RevisionKey::LENGTH]);

/// A reconciler, and the effects that were not answered yet.
struct Course {
    reconciler: OperatorReconciler,
    catalogs: Vec<CatalogPart>,
    seconds: u64,
    resource_version: u64,
    /// The Operators as they were shown last, by name.
    shown: BTreeMap<String, Value>,
    unanswered: Vec<OperatorEffect>,
}

impl Course {
    /// Begins with the fixture as the catalog `main`, and no Operator.
    fn begin() -> Self {
        let kind = |[group, kind]: [&str; 2], scope| {
            let (group, kind) = (group.to_owned(), kind.to_owned());
            (GroupVersionKind { group, version: "v1".to_owned(), kind }, scope)
        };
        let served = [
            kind(NAMESPACE, Scope::Cluster),
            kind(["", "ConfigMap"], Scope::Namespaced),
            kind(["", "Service"], Scope::Namespaced),
            kind(["", "PersistentVolumeClaim"], Scope::Namespaced),
            kind(["apiextensions.k8s.io", "CustomResourceDefinition"], Scope::Cluster),
        ];
        let reconciler = OperatorReconciler::new(served, KEY);
        let catalogs = catalogs(FIXTURE);
        let (seconds, resource_version) = (0, 0);
        let (shown, unanswered) = (BTreeMap::new(), Vec::new());
        let mut course =
            Self { reconciler, catalogs, seconds, resource_version, shown, unanswered };
        course.handle(OperatorEvent::Facts(Box::default()));
        let catalog = json!({ "metadata": { "name": "main", "uid": "main" } });
        course.shown(OperatorKind::Catalog, "main", Some(catalog));
        for kind in [OperatorKind::Operator, OperatorKind::Revision, OperatorKind::Catalog] {
            course.handle(OperatorEvent::ConfigurationListed(kind));
        }
        course.answer();
        course
    }

    fn shown(&mut self, kind: OperatorKind, name: &str, object: Option<Value>) -> Vec<String> {
        if kind == OperatorKind::Operator {
            self.shown.insert(name.to_owned(), object.clone().unwrap_or_default());
        }
        let (name, object) = (name.to_owned(), object.map(Box::new));
        self.handle(OperatorEvent::Configuration { kind, name, object })
    }

    /// Shows an Operator with a uid and a version, and with the finalizer if it has one.
    fn operator(
        &mut self,
        name: &str,
        uid: &str,
        version: &str,
        has_finalizer: bool,
    ) -> Vec<String> {
        self.resource_version += 1;
        let finalizers = if has_finalizer { json!([DELETION_FINALIZER]) } else { json!([]) };
        let object = json!({
            "metadata": {
                "name": name, "uid": uid, "generation": 1, "finalizers": finalizers,
                "resourceVersion": self.resource_version.to_string(),
            },
            "spec": { "version": version },
        });
        self.shown(OperatorKind::Operator, name, Some(object))
    }

    /// Handles an event, and decides until nothing is undecided. Returns the effects as texts.
    fn handle(&mut self, event: OperatorEvent) -> Vec<String> {
        let moment = self.moment();
        let mut effects = self.reconciler.handle(event, moment);
        loop {
            let names = self.reconciler.undecided();
            if names.is_empty() {
                break;
            }
            let offered = |names: &BTreeSet<String>| part(&self.catalogs, names);
            effects.extend(self.reconciler.decide(&names, &offered, &NoExpressions, moment));
        }
        assert!(self.reconciler.is_indexed(moment), "the indexes agree with the state");
        let texts = effects.iter().map(text).collect();
        self.unanswered.extend(effects);
        texts
    }

    /// Answers all requests with success. Returns the effects that follow, as texts.
    fn answer(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        for effect in std::mem::take(&mut self.unanswered) {
            if let OperatorEffect::WriteStatus {
                kind: OperatorKind::Operator, name, status, ..
            } = &effect
                && let Some(shown) = self.shown.get(name)
            {
                let mut object = shown.clone();
                self.resource_version += 1;
                object["metadata"]["resourceVersion"] = json!(self.resource_version.to_string());
                object["status"] = status.clone();
                texts.extend(self.shown(OperatorKind::Operator, name, Some(object)));
            }
            texts.extend(answer(effect).into_iter().flat_map(|event| self.handle(event)));
        }
        texts
    }

    fn moment(&self) -> Moment {
        let since = Duration::from_secs(self.seconds);
        let time = Timestamp::UNIX_EPOCH + since;
        Moment { time, steady: time, uptime: Uptime::from_start(since) }
    }
}

/// Returns an effect as text.
fn text(effect: &OperatorEffect) -> String {
    match effect {
        OperatorEffect::ReadCatalog { name, .. } => format!("read catalog {name}"),
        OperatorEffect::ReadBundle { bundle, .. } => format!("read {}", bundle.name),
        OperatorEffect::InspectObjects { objects, .. } => {
            format!("inspect {} objects", objects.len())
        }
        OperatorEffect::WriteRevision { revisions, .. } => {
            let names: Vec<&str> = revisions.iter().map(|(name, _)| name.as_str()).collect();
            format!("write {}", names.join(" "))
        }
        OperatorEffect::DeleteRevision { name, .. } => format!("delete {name}"),
        OperatorEffect::ReleaseRevision { name, .. } => format!("release {name}"),
        OperatorEffect::SetFinalizer { operator, is_added, .. } => {
            format!("{} the finalizer of {operator}", if *is_added { "add" } else { "remove" })
        }
        OperatorEffect::WriteStatus { name, resource_version, .. } => {
            format!("write the status of {name} at {resource_version}")
        }
        OperatorEffect::Execute { plan, step, .. } => {
            format!("apply {}", plan.steps[*step].manifest.key)
        }
        OperatorEffect::Watch(kind, _) => format!("watch {}", kind.kind),
        OperatorEffect::WatchOperands(definition) => format!("watch objects of {definition}"),
        OperatorEffect::UnwatchOperands(definition) => format!("unwatch objects of {definition}"),
        OperatorEffect::Delete { object, .. } => format!("delete {}", object.key),
        OperatorEffect::RemoveConversion { definition, service, .. } => {
            format!("remove {service} from {}", definition.key)
        }
        OperatorEffect::ReadNamespace { namespace, .. } => format!("read namespace {namespace}"),
        OperatorEffect::FindKinds { operator } => format!("find the kinds of {operator}"),
        OperatorEffect::ReadDefinition { .. } => "read the definition".to_owned(),
        OperatorEffect::ReadRelease { operator } => format!("read the release for {operator}"),
        OperatorEffect::Emit { draft, .. } => format!("emit {}", draft.reason),
    }
}

/// Returns the answer of a cluster in which everything succeeds and nothing exists; `None` for effects
/// without one.
fn answer(effect: OperatorEffect) -> Option<OperatorEvent> {
    Some(match effect {
        OperatorEffect::ReadCatalog { name, ticket, .. } => {
            let content = Ok(Some(CatalogContent::default()));
            OperatorEvent::CatalogRead { name, ticket, content }
        }
        OperatorEffect::ReadBundle { operator, ticket, bundle, spec, .. } => {
            let (certificates, ready_when) = (spec.certificates, spec.ready_when);
            let mut content =
                RevisionContent { certificates, ready_when, ..content(&operator, bundle) };
            let annotated = annotate(&mut content.objects, &content.ready_when);
            let content = annotated.map(|()| Box::new(content));
            OperatorEvent::BundleRead { operator, ticket, content }
        }
        OperatorEffect::InspectObjects { operator, ticket, .. } => {
            OperatorEvent::ObjectsInspected { operator, ticket, findings: Ok(Findings::default()) }
        }
        OperatorEffect::WriteRevision { operator, ticket, .. } => {
            OperatorEvent::RevisionWritten { operator, ticket, result: Ok(()) }
        }
        OperatorEffect::WriteStatus { kind, name, .. } => {
            OperatorEvent::Written { kind, name, what: WrittenPart::Status, is_written: true }
        }
        OperatorEffect::Execute { operator, run, step, .. } => {
            let trace = Trace::Ours(1);
            let outcome = StepOutcome::Applied(Mark::new(1, trace));
            OperatorEvent::Executed { operator, run, step, outcome }
        }
        OperatorEffect::Watch(kind, _) => {
            let kind = GroupKind::new(kind.group, kind.kind);
            OperatorEvent::Watched(kind, WatchedChange::Listed)
        }
        OperatorEffect::ReadNamespace { operator, namespace } => {
            OperatorEvent::NamespaceRead { operator, namespace, objects: Ok(Vec::new()) }
        }
        OperatorEffect::FindKinds { operator } => {
            OperatorEvent::KindsFound { operator, kinds: Ok(BTreeMap::new()) }
        }
        OperatorEffect::ReadDefinition { operator } => definition::read(&operator, Ok(None)),
        OperatorEffect::ReadRelease { operator } => {
            OperatorEvent::ReleaseRead { operator, objects: Ok(BTreeSet::new()) }
        }
        _ => return None,
    })
}

/// Returns the content of a bundle: a namespace and a ConfigMap with the name of the Operator.
fn content(operator: &str, bundle: BundleReference) -> RevisionContent {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": operator } });
    let metadata = json!({ "name": operator, "namespace": operator });
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    let value = json!({ "packageName": operator, "version": bundle.version });
    let property = BundleProperty { type_: "olm.package".to_owned(), value };
    RevisionContent {
        bundle,
        properties: vec![property],
        namespace: operator.to_owned(),
        config: None,
        certificates: CertificateProvider::default(),
        ready_when: Vec::new(),
        objects: vec![namespace, config],
    }
}

#[test]
fn an_operator_is_installed_one_request_after_the_other() {
    let mut course = Course::begin();
    // The status waits for the finalizer: written at once, it would conflict with it.
    assert_eq!(
        course.operator("bar", "1", "1.2.5", false),
        ["add the finalizer of bar", "read bar.v1.2.5"]
    );
    assert_eq!(course.operator("bar", "1", "1.2.5", true), ["write the status of bar at 2"]);
    assert_eq!(course.answer(), ["inspect 2 objects"]);
    assert_eq!(course.answer(), ["write bar-1"]);
    let watched = ["watch Namespace", "watch CustomResourceDefinition"];
    // A process that takes over continues with what the status names, so that it is written first.
    assert_eq!(course.answer(), [&watched[..], &["write the status of bar at 3"]].concat());
    assert_eq!(course.answer(), ["apply namespace \"bar\""]);
    assert_eq!(course.answer(), ["apply configmap \"bar/bar\""]);
    assert_eq!(course.answer()[1], "emit InstallationSucceeded");
}

#[test]
fn a_deletion_waits_for_what_is_being_applied() {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    while !course.unanswered.iter().any(|it| text(it).starts_with("apply configmap")) {
        course.answer();
    }
    let applied = course.unanswered.pop().and_then(answer).expect("it is answered");
    assert!(matches!(applied, OperatorEvent::Executed { .. }), "{applied:?}");
    let metadata = json!({
        "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
        "resourceVersion": "9", "deletionTimestamp": "1970-01-01T00:00:00Z",
    });
    let object = json!({ "metadata": metadata, "spec": { "version": "1.2.5" } });
    course.shown(OperatorKind::Operator, "bar", Some(object));
    course.answer();
    course.answer();
    assert!(!course.unanswered.iter().any(|it| text(it).starts_with("inspect")));
    assert_eq!(course.handle(applied)[0], "inspect 2 objects");
    // A watch may show later that the object was applied.
    let asked = std::mem::take(&mut course.unanswered).into_iter();
    let mut asked = asked.filter(|it| matches!(it, OperatorEffect::InspectObjects { .. }));
    let Some(OperatorEffect::InspectObjects { operator, ticket, objects, .. }) = asked.next()
    else {
        panic!("it is inspected")
    };
    let found = FoundObject {
        key: objects[0].0.clone(),
        operator: "bar".to_owned(),
        is_ours: true,
        controller: None,
        managers: BTreeSet::new(),
        is_terminating: false,
    };
    let findings = Ok(Findings { objects: vec![found], ..Findings::default() });
    let none: Vec<String> = Vec::new();
    assert_eq!(course.handle(OperatorEvent::ObjectsInspected { operator, ticket, findings }), none);
    course.seconds += 10;
    let effects = course.reconciler.handle_timeout(course.moment());
    assert_eq!(text(&effects[0]), "inspect 2 objects");
    course.unanswered = effects;
    assert_eq!(course.answer()[0], "remove the finalizer of bar");
}

#[test]
fn a_revision_that_cannot_be_read_is_named_and_its_number_not_used_again() {
    let mut course = Course::begin();
    let spec = json!({ "operator": "bar", "revision": "four" });
    let metadata = json!({
        "name": "bar-4", "labels": { "olm.io/operator": "bar" },
        "annotations": { "olm.io/signature": KEY.signature("bar-4", "1", &spec) },
        "ownerReferences": [{ "controller": true, "uid": "1" }],
    });
    let revision = json!({ "metadata": metadata, "spec": spec });
    course.shown(OperatorKind::Revision, "bar-4", Some(revision));
    course.operator("bar", "1", "1.2.5", true);
    let status = course.unanswered.iter().find_map(|it| match it {
        OperatorEffect::WriteStatus { name, status, .. } if name == "bar" => Some(status.clone()),
        _ => None,
    });
    let conditions = status.expect("a status")["conditions"].take();
    let conditions = conditions.as_array().expect("conditions");
    let invalid = conditions.iter().find(|it| it["type"] == "Invalid").expect("it is named");
    let expected = "OperatorRevisions are not used: bar-4: spec.revision: invalid type: string \
                    \"four\", expected u32";
    assert_eq!(invalid["message"], expected);
    course.answer();
    assert_eq!(course.answer(), ["write bar-5"]);
}

#[test]
fn revisions_of_a_deleted_operator_are_not_those_of_its_successor() {
    let mut course = Course::begin();
    let draft = RevisionDraft::read(content("bar", BundleReference::default())).expect("objects");
    let (_, revisions) = draft.numbered("bar", "1", 1, Some(&KEY));
    for (name, object) in revisions {
        course.shown(OperatorKind::Revision, &name, Some(object));
    }
    course.operator("bar", "2", "1.2.5", true);
    assert_eq!(course.reconciler.operators["bar"].revisions.len(), 0);
    course.answer();
    // The name of the other Operator's revision is not used again, although nothing else is known of it.
    assert_eq!(course.answer(), ["write bar-2"]);
}

#[test]
fn only_those_are_decided_again_that_a_change_reaches() {
    let of = catalogs(
        "main 0 app/stable
           1.0.0 provides App, requires db >=1.0.0
         main 0 caller/stable
           1.0.0 provides Caller, requires Db
         main 0 db/stable
           1.0.0 provides Db, requires disk >=1.0.0
         main 0 disk/stable
           1.0.0 provides Disk
         main 0 waiting/stable
           1.0.0 requires db >=9.0.0
         main 0 other/stable
           1.0.0 provides Other, requires disk >=1.0.0",
    );
    let requested = operators(
        &of,
        "app: at 1.0.0
         caller: at 1.0.0
         db: at 1.0.0
         disk: at 1.0.0; set x/2
         other: at 1.0.0; set x/2
         second: owns Disk; set y/2
         waiting: install Enforce",
    );
    let cases = [
        ("app", "db"),
        ("db", "app caller disk waiting"),
        ("disk", "db other second"),
        ("other", "disk"),
        ("second", "disk"),
        ("waiting", "db"),
    ];
    for (changed, expected) in cases {
        let mut reconciler =
            OperatorReconciler { requested: requested.clone(), ..OperatorReconciler::default() };
        let inputs = inputs(&requested);
        let names: BTreeSet<String> = requested.keys().cloned().collect();
        for (name, decision) in crate::decide(inputs, &names, &|names| part(&of, names)) {
            let decision = Some(decision);
            let operator = TrackedOperator { decision, ..TrackedOperator::default() };
            reconciler.operators.insert(name.clone(), operator);
            reconciler.decision_changed(&name);
        }
        reconciler.mark_affected_undecided(changed);
        reconciler.output.undecided.remove(changed);
        let undecided: Vec<&str> = reconciler.output.undecided.iter().map(String::as_str).collect();
        assert_eq!(undecided.join(" "), expected, "of a change of {changed}");
    }
}

#[test]
fn revisions_are_cut_into_parts_that_an_api_server_accepts_and_read_again() {
    let large = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("part-{number}") },
            "data": { "x": "y".repeat(300 << 10) },
        })
    };
    let content = RevisionContent {
        bundle: BundleReference { name: "foo.v1.0.0".into(), ..BundleReference::default() },
        properties: Vec::new(),
        namespace: "foo".into(),
        config: None,
        certificates: CertificateProvider::default(),
        ready_when: Vec::new(),
        objects: (0..10).map(large).collect(),
    };
    let draft = RevisionDraft::read(content.clone()).expect("it has objects");
    let (made, parts) = draft.numbered("foo", "uid", 7, Some(&KEY));
    let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["foo-7-1", "foo-7-2", "foo-7-3", "foo-7-4", "foo-7-5"]);
    let mut read: Option<KeptRevision> = None;
    for (name, object) in &parts {
        assert_eq!(KEY.provenance(name, object), Provenance::Of("uid".to_owned()), "{name}");
        assert!(object.to_string().len() < 1 << 20, "{name} is too large");
        assert!(!read.as_ref().is_some_and(KeptRevision::is_complete));
        let spec = serde_json::from_value(object["spec"].clone()).expect("a spec");
        let part = KeptRevision::read(name, &spec).expect("a part");
        match &mut read {
            Some(read) => read.merge(part),
            None => read = Some(part),
        }
    }
    let read = read.expect("there are parts");
    assert!(read.is_complete());
    assert_eq!(format!("{made:?}"), format!("{read:?}"), "what is kept is what is read again");
    let objects: Vec<Value> = read.manifests().map(plimsoll_content::Manifest::object).collect();
    assert_eq!(objects, content.objects);

    let mut changed = parts[0].1["spec"].clone();
    changed["objects"][0]["object"]["data"]["x"] = "another".into();
    let spec = serde_json::from_value(changed).expect("a spec");
    assert!(KeptRevision::read("foo-7-1", &spec).expect_err("refused").contains("their digest is"));
}

#[test]
fn numbers_are_as_they_come_back_from_an_api_server() {
    let mut value = json!({ "a": [1.0, 1.5, -3.0, 1e300], "b": { "c": 0.0 } });
    normalize(&mut value);
    assert_eq!(value, json!({ "a": [1, 1.5, -3, 1e300], "b": { "c": 0 } }));
}

#[test]
fn a_bundle_is_not_tried_again_after_it_was_rolled_back() {
    let entry = |state: &str, bundle: &str| -> OperatorHistory {
        serde_json::from_value(json!({
            "state": state, "bundle": bundle, "version": "1.0.0", "revision": 1,
            "startedTime": "2026-01-01T00:00:00Z", "completionTime": null,
        }))
        .expect("an entry")
    };
    let good = || entry("Completed", "good");
    let table = [
        (vec![good(), entry("Partial", "bad"), good()], true),
        (vec![entry("Partial", "bad"), good()], false),
        (vec![good()], false),
        (vec![entry("Completed", "bad"), good(), entry("Partial", "bad")], true),
        // A change of the spec is rolled out with the bundle that was returned to.
        (vec![entry("Partial", "good"), good(), entry("Partial", "bad")], true),
        (vec![entry("Partial", "bad"), good(), entry("Partial", "bad")], false),
        (vec![entry("Partial", "good"), entry("Partial", "bad"), good()], false),
    ];
    for (history, expected) in table {
        let mut operator = TrackedOperator { history, ..TrackedOperator::default() };
        operator.object.spec.rollback = plimsoll_api::olm::RollbackPolicy::Automatic;
        assert_eq!(operator.was_rolled_back("bad"), expected, "{:?}", operator.history);
        operator.object.spec.rollback = plimsoll_api::olm::RollbackPolicy::Manual;
        assert!(!operator.was_rolled_back("bad"));
    }
}
