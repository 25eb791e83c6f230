//! Scripts of what happens to deletions and orphans, and what is left of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::Release;
use plimsoll_api::progress::{Deletion, DeletionState, Orphan, ReleaseProgressStatus};
use plimsoll_api::{GroupKind, ObjectKey, Reason};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::Context;
use serde_json::json;

use super::{InheritedObjects, Removals};
use crate::plan::mode::Mode;
use crate::plan::{Action, DELETE, GroupVersionKind, Plan, plan};
use crate::progress::{
    Deleted, Event, Mark, Progress, Scope, StepOutcome, Trace, Transience, TryError, World,
};
use crate::removal::{Prune, Terminating};

/// The cluster profile that the manifests of these tests are included in.
const PROFILE: &str = "here";

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// A ConfigMap called `name`; a Secret if the name begins with `secret`.
fn key(name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: if name.starts_with("secret") { "Secret" } else { "ConfigMap" }.to_owned(),
        namespace: "pier".to_owned(),
        name: name.to_owned(),
    }
}

fn manifest(name: &str, is_deleted: bool) -> Manifest {
    let key = key(name);
    let mut annotations = json!({ format!("include.release.openshift.io/{PROFILE}"): "true" });
    if is_deleted {
        annotations[DELETE] = "true".into();
    }
    let object = json!({
        "apiVersion": "v1", "kind": key.kind,
        "metadata": { "name": name, "namespace": key.namespace, "annotations": annotations },
    });
    Manifest::read(format!("{name}.yaml").into(), 0, &object).expect("a manifest")
}

/// A plan of release `version`: names of what it applies, those after `-` deleted.
fn planned(version: &str, names: &str) -> Plan {
    let manifest = |name: &str| match name.strip_prefix('-') {
        Some(name) => manifest(name, true),
        None => manifest(name, false),
    };
    let manifests: Vec<Manifest> = names.split_whitespace().map(manifest).collect();
    let release = Release { version: version.to_owned(), ..Release::default() };
    let context = Context::new(PROFILE, "");
    plan(&manifests, &context, release, Mode::Updating)
}

fn orphan(name: &str) -> Orphan {
    Orphan::new(&key(name), "v1", &format!("{name}.yaml"), "1.0.0", "not in release 1.1.0", at(0))
}

fn deletion(name: &str, state: DeletionState) -> Deletion {
    let file = format!("orphan of 1.0.0: {name}.yaml");
    Deletion { state, ..Deletion::new(&key(name), &file, "1.1.0", at(0)) }
}

fn mark(trace: Trace) -> Mark {
    Mark::new(1, trace)
}

/// Orphans, what of the annotation remains if it is stale, and unfinished deletions.
fn describe(removals: &Removals) -> String {
    let orphans: Vec<&str> =
        removals.orphans().iter().map(|orphan| orphan.object.name.as_str()).collect();
    let unfinished: Vec<&str> =
        removals.tracker().unfinished().map(|object| object.name.as_str()).collect();
    let stale = match removals.stale_annotation() {
        None => "current".to_owned(),
        Some((_, Prune::None)) => "nothing remains".to_owned(),
        Some((_, remaining)) => remaining.annotation().unwrap_or_default(),
    };
    format!("[{}] [{}] {stale}", orphans.join(" "), unfinished.join(" "))
}

#[test]
fn the_record_of_an_earlier_process_is_resumed() {
    #[track_caller]
    fn check(orphans: &[&str], deletions: &[(&str, DeletionState)], prune: &str, expected: &str) {
        let recorded = ReleaseProgressStatus {
            orphans: orphans.iter().map(|name| orphan(name)).collect(),
            deletions: deletions.iter().map(|(name, state)| deletion(name, *state)).collect(),
            ..ReleaseProgressStatus::default()
        };
        let annotation = match prune {
            "" | "all" => Some(prune.to_owned()).filter(|it| !it.is_empty()),
            names => Some(
                names.split(' ').map(|name| key(name).to_string()).collect::<Vec<_>>().join(","),
            ),
        };
        assert_eq!(describe(&Removals::recorded(&recorded, annotation)), expected);
    }
    use DeletionState::{Completed, Reappeared, Refused, Requested};
    check(&[], &[], "", "[] [] current");
    check(&["a", "b"], &[], "", "[a b] [] current");
    check(&["a"], &[], "all", "[a] [] current");
    check(&["a"], &[("a", Requested)], "a", "[a] [a] current");
    check(&["a"], &[("a", Refused)], "a", "[a] [a] current");
    check(&[], &[("a", Completed)], "a", "[] [] nothing remains");
    check(&[], &[("a", Reappeared)], "a", "[] [] current");
    check(&[], &[("a", Completed)], "all", "[] [] current");
    check(&["b"], &[("a", Completed)], "a b", &format!("[b] [] {}", key("b")));
    let many = format!("x,{}", ",".repeat(250_000));
    let recorded = ReleaseProgressStatus { orphans: vec![orphan("a")], ..Default::default() };
    assert_eq!(describe(&Removals::recorded(&recorded, Some(many))), "[a] [] current");
    let nameless = Orphan { object: ObjectKey { name: String::new(), ..key("a") }, ..orphan("a") };
    let recorded = ReleaseProgressStatus { orphans: vec![nameless], ..Default::default() };
    assert_eq!(describe(&Removals::recorded(&recorded, None)), "[] [] current");
}

#[test]
fn a_process_finds_the_orphans_of_another_plan() {
    #[track_caller]
    fn check(
        recorded: (&[&str], &[(&str, DeletionState)]),
        ours: &str,
        plan: &str,
        expected: &str,
    ) {
        let recorded = ReleaseProgressStatus {
            orphans: recorded.0.iter().map(|name| orphan(name)).collect(),
            deletions: recorded.1.iter().map(|(name, state)| deletion(name, *state)).collect(),
            ..ReleaseProgressStatus::default()
        };
        let mut removals = Removals::recorded(&recorded, None);
        let inherited = InheritedObjects {
            version: "1.0.0".to_owned(),
            ours: ours.split_whitespace().map(|it| (key(it), "v1".to_owned())).collect(),
            cluster_kinds: BTreeSet::new(),
        };
        let inherited = (ours != "same plan").then_some(&inherited);
        removals.started(&planned("1.1.0", plan), inherited, at(9));
        assert_eq!(describe(&removals), expected, "{ours}");
    }
    use DeletionState::{Completed, Requested};
    check((&["a", "b"], &[]), "same plan", "a", "[b] [] current");
    check((&[], &[]), "a b c", "a", "[b c] [] current");
    check((&["b"], &[]), "a b", "a", "[b] [] current");
    check((&[], &[("b", Requested)]), "a b", "a", "[] [b] current");
    check((&[], &[("b", Completed)]), "a b", "a", "[b] [] current");
    check((&[], &[]), "", "a", "[] [] current");
}

/// Runs a script on a cluster that is updated to a release which deletes `a` and leaves behind the
/// orphan `o`; compares what `describe` shows at the end, and the reasons of all deletion_events.
///
/// `requested|gone|absent|refused|timeout NAME` (a delete request of the plan's step), `seen`,
/// `going`, `vanished NAME` (a watch), `listed KIND`, `withdrawn`, `prune NAME+NAME…`, `wait SECONDS`.
#[track_caller]
fn check(script: &str, expected: &str, deletion_events: &str) {
    let recorded =
        ReleaseProgressStatus { orphans: vec![orphan("o")], ..ReleaseProgressStatus::default() };
    let mut removals = Removals::recorded(&recorded, None);
    let release = planned("1.1.0", "keep -a");
    removals.started(&release, None, at(0));
    let mut progress = Progress::new(Arc::new(release), World::default(), at(0));
    let mut reasons: Vec<Reason> = Vec::new();
    let mut now = 0;
    for line in script.split("; ") {
        let (verb, name) = line.split_once(' ').unwrap_or((line, ""));
        let steps = &progress.plan().steps;
        let step = steps.iter().position(|step| step.manifest.key.name == name);
        let outcome = match verb {
            "requested" => Some(StepOutcome::Deleted(Deleted::Going)),
            "gone" => Some(StepOutcome::Deleted(Deleted::Gone)),
            "absent" => Some(StepOutcome::Deleted(Deleted::Absent)),
            "applied" => Some(StepOutcome::Applied(mark(Trace::Ours(1)))),
            "refused" | "timeout" => Some(StepOutcome::Failed(TryError {
                reason: Reason::UpdatePayloadResourceForbidden,
                cause: "no".to_owned(),
                transience: match verb {
                    "refused" => Transience::Lasting,
                    _ => Transience::Transient,
                },
                retry_after: None,
            })),
            _ => None,
        };
        if let Some(outcome) = outcome {
            removals.executed(&progress, step.expect("a step"), &outcome, at(now));
        }
        let terminating =
            Terminating { since: at(now), finalizers: Vec::new(), remaining: Vec::new() };
        match verb {
            "seen" => removals.observed(&key(name), mark(Trace::Ours(1)), None, at(now)),
            "going" => {
                removals.observed(&key(name), mark(Trace::Ours(1)), Some(&terminating), at(now));
            }
            "vanished" => {
                let mark = Mark::new(9, Trace::Gone);
                removals.observed(&key(name), mark, None, at(now));
                progress.handle(Event::Observed { key: key(name), mark }, at(now));
            }
            "listed" => removals.listed(&GroupKind::new("", name), at(now)),
            "withdrawn" => removals.discovered(|_| false, at(now)),
            "prune" => {
                let names: Vec<String> = match name {
                    "all" => vec![name.to_owned()],
                    names => names.split('+').map(|name| key(name).to_string()).collect(),
                };
                let annotation = names.join(",");
                removals.prune_requested(Some(annotation), &progress.plan().clone());
            }
            "wait" => now += name.parse::<i64>().expect("seconds"),
            _ => assert!(step.is_some(), "no such verb: {verb}"),
        }
        reasons.extend(removals.deletion_events(at(now)).iter().map(|event| event.reason));
    }
    assert_eq!(describe(&removals), expected, "{script}");
    let reasons: Vec<String> = reasons
        .iter()
        .map(|it| it.as_str().trim_start_matches("ResourceDeletion").to_owned())
        .collect();
    assert_eq!(reasons.join(" "), deletion_events, "{script}");
}

#[test]
fn a_deletion_is_followed_to_its_end() {
    check("requested a", "[o] [a] current", "Requested");
    check("requested a; going a; vanished a", "[o] [] current", "Requested Ongoing Completed");
    check("gone a", "[o] [] current", "Requested Completed");
    check("absent a", "[o] [] current", "");
    check("requested a; withdrawn", "[o] [] current", "Requested Completed");
    check("requested a; listed ConfigMap", "[] [] current", "Requested Completed");
    check("requested a; going a; wait 60", "[o] [a] current", "Requested Ongoing Stuck");
}

#[test]
fn a_watch_may_be_faster_than_the_response() {
    check("going a; requested a", "[o] [a] current", "Requested Ongoing");
    check("going a; vanished a; requested a", "[o] [] current", "Requested Completed");
    check("going a; seen a; requested a", "[o] [a] current", "Requested");
}

#[test]
fn only_a_lasting_refusal_is_recorded() {
    check("refused a", "[o] [a] current", "Refused");
    check("timeout a", "[o] [] current", "");
    check("refused a; refused a", "[o] [a] current", "Refused");
    check("refused a; requested a; vanished a", "[o] [] current", "Refused Requested Completed");
}

#[test]
fn a_step_that_deletes_nothing_changes_nothing() {
    check("applied keep", "[o] [] current", "");
}

#[test]
fn an_orphan_that_is_gone_is_forgotten() {
    check("vanished o", "[] [] current", "");
    check("listed ConfigMap", "[] [] current", "");
    check("listed Secret", "[o] [] current", "");
    check("seen o; listed ConfigMap", "[o] [] current", "");
    check("seen x; listed ConfigMap", "[] [] current", "");
}

#[test]
fn a_name_in_the_annotation_is_carried_out_once() {
    check("prune o", "[o] [] current", "");
    check("prune o; vanished o", "[] [] nothing remains", "");
    check("prune x; vanished o", "[] [] current", "");
    check("prune all; vanished o", "[] [] current", "");
    check("prune o; vanished o; prune o", "[] [] nothing remains", "");
    check("prune o; vanished o; prune x", "[] [] current", "");
    // What is left of the annotation is written when `x` is gone, and seen when `o` is gone too.
    check("prune o+x; vanished o; prune o", "[] [] nothing remains", "");
}

#[test]
fn a_prune_request_changes_the_plan_only_if_it_selects_an_orphan() {
    #[track_caller]
    fn check(annotation: Option<&str>, expected: bool) {
        let recorded = ReleaseProgressStatus { orphans: vec![orphan("o")], ..Default::default() };
        let mut removals = Removals::recorded(&recorded, None);
        let release = planned("1.1.0", "keep");
        let annotation = annotation.map(|it| match it {
            "all" => it.to_owned(),
            name => key(name).to_string(),
        });
        assert_eq!(removals.prune_requested(annotation.clone(), &release), expected);
        assert_eq!(removals.is_pruning_due(), expected);
        let pruning = removals.and_prune(release);
        assert_eq!(pruning.steps.len(), 1 + usize::from(expected));
        assert!(!removals.prune_requested(annotation, &pruning), "it is planned now");
    }
    check(None, false);
    check(Some("x"), false);
    check(Some("o"), true);
    check(Some("all"), true);
}

#[test]
fn what_a_plan_no_longer_mentions_is_left_behind() {
    #[track_caller]
    fn check(before: &str, next: &str, expected: &str) {
        let mut removals = Removals::default();
        let next = removals.replanned(&planned("1.0.0", before), planned("1.1.0", next), at(5));
        assert_eq!(describe(&removals), expected, "{before} then {}", next.release.version);
    }
    check("a b", "a b", "[] [] current");
    check("a b", "a", "[b] [] current");
    check("a b", "", "[a b] [] current");
    check("a -b", "a", "[] [] current");
    check("a b", "a -b", "[] [] current");
    check("", "a", "[] [] current");
}

#[test]
fn a_finished_deletion_is_forgotten_once_no_plan_asks_for_it() {
    #[track_caller]
    fn check(state: DeletionState, next: &str, kept: usize) {
        let recorded = ReleaseProgressStatus {
            deletions: vec![deletion("a", state)],
            ..ReleaseProgressStatus::default()
        };
        let mut removals = Removals::recorded(&recorded, None);
        removals.replanned(&planned("1.0.0", "keep"), planned("1.1.0", next), at(5));
        assert_eq!(removals.tracker().deletions().count(), kept, "{state:?} {next}");
    }
    check(DeletionState::Completed, "keep", 0);
    check(DeletionState::Completed, "keep -a", 1);
    check(DeletionState::Requested, "keep", 1);
    check(DeletionState::Refused, "keep", 1);
}

#[test]
fn inherited_objects_carry_the_version_that_left_them() {
    let mut removals = Removals::default();
    let ours = BTreeMap::from([(key("b"), "v1".to_owned())]);
    let inherited =
        InheritedObjects { version: "1.0.0".to_owned(), ours, cluster_kinds: BTreeSet::new() };
    removals.started(&planned("1.1.0", "a"), Some(&inherited), at(9));
    let orphan = &removals.orphans()[0];
    assert_eq!((orphan.version.as_str(), orphan.api_version.as_str()), ("1.0.0", "v1"));
}

/// A manifest of the object `a` of a cluster-scoped kind, built-in or custom, which names a namespace.
fn cluster_scoped(kind: &str, namespace: &str, is_deleted: bool) -> Manifest {
    let group = if kind == "Lamp" { "example.com" } else { "rbac.authorization.k8s.io" };
    let mut object = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind,
        "metadata": {
            "name": "a",
            "annotations": { format!("include.release.openshift.io/{PROFILE}"): "true" },
        },
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    if is_deleted {
        object["metadata"]["annotations"][DELETE] = "true".into();
    }
    let file = format!("{namespace}{is_deleted}.yaml");
    Manifest::read(file.into(), 0, &object).expect("a manifest")
}

fn planned_with(version: &str, manifests: &[Manifest]) -> Plan {
    let release = Release { version: version.to_owned(), ..Release::default() };
    plan(manifests, &Context::new(PROFILE, ""), release, Mode::Updating)
}

/// A cluster where lamps have no namespaces.
fn lit() -> World {
    let mut world = World::default();
    let (group, version, kind) = ("example.com".to_owned(), "v1".to_owned(), "Lamp".to_owned());
    world.serve(GroupVersionKind { group, version, kind }, Scope::Cluster);
    world
}

#[test]
fn a_namespace_that_a_kind_does_not_have_leaves_no_object_behind() {
    for kind in ["ClusterRoleBinding", "Lamp"] {
        for (before, next) in [("foo", ""), ("", "foo"), ("foo", "bar")] {
            let planned = |version: &str, namespace: &str| {
                planned_with(version, &[cluster_scoped(kind, namespace, false)])
            };
            let (outgoing, next_plan) = (planned("1.0.0", before), planned("1.1.0", next));
            let mut removals = Removals::recorded(&ReleaseProgressStatus::default(), None);
            let (normalized, world) = (lit().normalized(outgoing.clone()), lit());
            removals.replanned(&normalized, world.normalized(next_plan.clone()), at(5));
            assert_eq!(describe(&removals), "[] [] current", "{kind}: {before} then {next}");
            if kind == "Lamp" && next == "bar" {
                continue;
            }
            // Nothing is known of the kind, as while it is not served.
            let mut removals = Removals::default();
            removals.replanned(&outgoing, next_plan, at(5));
            assert_eq!(describe(&removals), "[] [] current", "{kind}: {before} then {next}");
        }
    }
}

#[test]
fn an_orphan_that_an_earlier_process_recorded_wrongly_is_not_pruned() {
    for kind in ["ClusterRoleBinding", "Lamp"] {
        for namespace in ["", "bar"] {
            let applied = cluster_scoped(kind, namespace, false);
            let object = ObjectKey { namespace: "foo".to_owned(), ..applied.key.clone() };
            let orphan = Orphan::new(&object, "v1", "a.yaml", "1.0.0", "", at(0));
            let recorded =
                ReleaseProgressStatus { orphans: vec![orphan], ..ReleaseProgressStatus::default() };
            let mut removals = Removals::recorded(&recorded, Some("all".to_owned()));
            let release = lit().normalized(planned_with("1.1.0", &[applied]));
            assert_eq!(removals.and_prune(release.clone()).steps.len(), 1, "{kind} {namespace}");
            removals.started(&release, None, at(0));
            assert_eq!(describe(&removals), "[] [] current", "{kind} {namespace}");
        }
    }
}

#[test]
fn an_object_is_not_deleted_under_a_namespace_that_its_kind_does_not_have() {
    for kind in ["ClusterRoleBinding", "Lamp"] {
        let manifests = [cluster_scoped(kind, "foo", true), cluster_scoped(kind, "", false)];
        let plan = lit().normalized(planned_with("1.1.0", &manifests));
        let expected = "is not deleted, since false.yaml applies it";
        let action = &plan.steps[0].action;
        assert!(
            matches!(action, Action::Refuse(message) if message.contains(expected)),
            "{action:?}"
        );
        assert_eq!(plan.steps[1].action, Action::Apply);
    }
}
