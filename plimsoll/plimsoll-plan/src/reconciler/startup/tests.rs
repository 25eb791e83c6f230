//! How a process starts, by what an earlier one left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::config::{ClusterVersionStatus, Release, UpdateHistory, UpdateState};
use plimsoll_api::progress::{
    CapabilitiesProgress, ClusterVersionRecord, ImpliedCapability, Orphan, ReleaseProgressStatus,
    UpdateProgress,
};
use plimsoll_api::{GroupKind, ObjectKey};

use super::{Startup, done_of_begun, enabled_before, is_other_release, starting_status};
use crate::plan::mode::Mode;
use crate::progress::parse_ranges;
use crate::progress::pause::Pause;
use crate::reconciler::desired::record;
use crate::reconciler::removals::InheritedObjects;
use crate::reconciler::testing::{at, desired, image, names, payload, requesting};

fn history(entries: &str) -> Vec<UpdateHistory> {
    let entry = |entry: &str| {
        let (version, is_completed) = match entry.strip_suffix('+') {
            Some(version) => (version, true),
            None => (entry, false),
        };
        UpdateHistory {
            state: if is_completed { UpdateState::Completed } else { UpdateState::Partial },
            started_time: at(0),
            completion_time: None,
            version: version.to_owned(),
            image: image(version),
            verified: false,
            accepted_risks: String::new(),
        }
    };
    entries.split_whitespace().map(entry).collect()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "x".to_owned(),
        name: name.to_owned(),
    }
}

/// What an earlier process recorded of release `version`: its mode, and its plan if it had the
/// same manifests `a b c`.
fn recorded(version: &str, mode: &str, has_same_plan: bool, done: &str) -> ReleaseProgressStatus {
    let words = if has_same_plan { "a b c" } else { "other" };
    let plan = desired(payload(version, words), requesting(""), "").plan(Mode::Updating);
    ReleaseProgressStatus {
        version: version.to_owned(),
        image: image(version),
        plan_hash: plan.hash,
        mode: mode.to_owned(),
        done_steps: done.to_owned(),
        ..ReleaseProgressStatus::default()
    }
}

/// Starts release 2.0.0 of `a b c`; mode, done steps, whether an inventory is needed.
#[track_caller]
fn check(entries: &str, recorded: &ReleaseProgressStatus, expected: &str) {
    let desired = desired(payload("2.0.0", "a b c"), requesting(""), "");
    let startup = Startup::new(&desired, &history(entries), recorded);
    let inventory = if startup.needs_inventory() { " inventory" } else { "" };
    let start = startup.finish(None, None, None, at(0));
    let shown = format!("{} {:?}{inventory}", start.plan.mode, start.done);
    assert_eq!(shown, expected, "{entries}");
}

#[test]
fn a_cluster_version_made_again_continues_from_what_is_recorded() {
    let record = ClusterVersionRecord {
        desired: Release { version: "2.0.0".to_owned(), ..Release::default() },
        history: history("2.0.0 1.0.0+"),
        enabled_capabilities: vec!["Console".to_owned()],
        ..ClusterVersionRecord::default()
    };
    let recorded = |history: &str| ReleaseProgressStatus {
        cluster_version: Some(ClusterVersionRecord {
            history: self::history(history),
            ..record.clone()
        }),
        ..ReleaseProgressStatus::default()
    };
    let blank = ClusterVersionStatus { observed_generation: 1, ..Default::default() };
    let (restored, is_restored) = starting_status(blank.clone(), &recorded("2.0.0 1.0.0+"));
    assert!(is_restored);
    assert_eq!(restored.desired.version, "2.0.0");
    assert_eq!(restored.history, record.history);
    assert_eq!(restored.capabilities.enabled_capabilities, ["Console"]);
    // One that has a history is the truth, and nothing is made up.
    let other = ClusterVersionStatus { history: history("1.0.0+"), ..blank.clone() };
    assert_eq!(starting_status(other.clone(), &recorded("2.0.0 1.0.0+")), (other, false));
    assert_eq!(starting_status(blank.clone(), &recorded("")), (blank.clone(), false));
    let nothing = ReleaseProgressStatus::default();
    assert_eq!(starting_status(blank.clone(), &nothing), (blank, false));
}

#[test]
fn the_mode_follows_from_the_history() {
    let none = ReleaseProgressStatus::default();
    check("", &none, "Initializing []");
    check("2.0.0", &none, "Initializing []");
    check("2.0.0+", &none, "Reconciling []");
    check("2.0.0 1.0.0+", &none, "Updating []");
    check("1.0.0+", &none, "Updating []");
}

#[test]
fn an_update_of_the_same_release_is_finished() {
    check("2.0.0+", &recorded("2.0.0", "Updating", true, ""), "Updating []");
    check("2.0.0+", &recorded("2.0.0", "Reconciling", true, "0-2"), "Reconciling []");
    check("2.0.0+", &recorded("1.0.0", "Updating", true, ""), "Reconciling []");
}

#[test]
fn done_steps_of_the_same_plan_stay_done() {
    check("2.0.0", &recorded("2.0.0", "Initializing", true, "0-1"), "Initializing [0, 1]");
    check("2.0.0 1.0.0+", &recorded("2.0.0", "Updating", true, "0,2"), "Updating [0, 2]");
    check("2.0.0 1.0.0+", &recorded("2.0.0", "Updating", false, "0"), "Updating [] inventory");
    check("2.0.0 1.0.0+", &recorded("1.0.0", "Updating", true, "0"), "Updating []");
    check("2.0.0 1.0.0+", &recorded("1.0.0", "Reconciling", false, "0"), "Updating [] inventory");
}

#[test]
fn a_job_on_record_is_done_also_while_reconciling() {
    let desired = desired(payload("2.0.0", "a b! c!"), requesting(""), "");
    let check = |plan_hash: &str, done: &str, expected: &[usize]| {
        let recorded = ReleaseProgressStatus {
            plan_hash: plan_hash.to_owned(),
            ..recorded("2.0.0", "Reconciling", true, done)
        };
        let startup = Startup::new(&desired, &history("2.0.0+"), &recorded);
        let start = startup.finish(None, None, None, at(0));
        assert_eq!((start.plan.mode, &*start.done), (Mode::Reconciling, expected));
    };
    let hash = desired.plan(Mode::Updating).hash;
    check(&hash, "0-1", &[1]);
    check(&hash, "0-2", &[1, 2]);
    check(&hash, "", &[]);
    check("other", "0-2", &[]);
}

#[test]
fn done_steps_count_by_their_manifests_when_a_plan_has_others() {
    #[track_caller]
    fn check(before: &str, now: &str, done: &str, expected: &str) {
        let payload = payload("2.0.0", "a b:Console c d");
        let before = desired(Arc::clone(&payload), requesting(before), "");
        let record = ClusterVersionRecord {
            spec: before.spec().clone(),
            enabled_capabilities: before.capabilities().enabled.iter().cloned().collect(),
            ..ClusterVersionRecord::default()
        };
        let recorded = ReleaseProgressStatus {
            version: "2.0.0".to_owned(),
            image: image("2.0.0"),
            plan_hash: before.plan(Mode::Updating).hash,
            mode: "Updating".to_owned(),
            done_steps: done.to_owned(),
            cluster_version: Some(record),
            ..ReleaseProgressStatus::default()
        };
        let desired = desired(payload, requesting(now), "");
        let startup = Startup::new(&desired, &history("2.0.0 1.0.0+"), &recorded);
        let start = startup.finish(None, None, None, at(0));
        let name = |step: &usize| start.plan.steps[*step].manifest.key.name.clone();
        let names: Vec<String> = start.done.iter().map(name).collect();
        assert_eq!(names.join(" "), expected);
        // A record that does not fit what it says of its plan is no use.
        let other = ReleaseProgressStatus { plan_hash: "other".to_owned(), ..recorded };
        let startup = Startup::new(&desired, &history("2.0.0 1.0.0+"), &other);
        assert!(startup.finish(None, None, None, at(0)).done.is_empty());
    }
    check("", "Console", "0-1", "a c");
    check("", "Console", "0-2", "a c d");
    check("", "Console", "2", "d");
    check("Console", "", "1-2", "c");
}

#[test]
fn a_recorded_number_is_never_the_deletion_of_an_orphan() {
    let orphan = |name: &str| Orphan::new(&key(name), "v1", "a.yaml", "1.0.0", "", at(0));
    // The first of two orphans was deleted, at the number that the other one has now.
    let recorded = ReleaseProgressStatus {
        orphans: vec![orphan("left")],
        ..recorded("2.0.0", "Updating", true, "0-3")
    };
    let desired = desired(payload("2.0.0", "a b c"), requesting(""), "");
    let startup = Startup::new(&desired, &history("2.0.0+"), &recorded);
    let start = startup.finish(None, Some("all".to_owned()), None, at(0));
    assert_eq!((start.plan.steps.len(), start.plan.release_steps), (4, 3));
    assert_eq!(start.done, [0, 1, 2]);
}

#[test]
fn what_was_done_of_an_update_that_is_accepted_again_counts() {
    #[track_caller]
    fn check(left: &ReleaseProgressStatus, expected: &[usize]) {
        let before = desired(payload("1.0.0", "a b d"), requesting(""), "");
        let startup = Startup::new(&before, &history("1.0.0+"), left);
        let start = startup.finish(None, None, None, at(0));
        let next = desired(payload("2.0.0", "a b c"), requesting(""), "").plan(Mode::Updating);
        let done = start.begun.as_ref().map(|begun| done_of_begun(begun, &next, &start.plan));
        // A process that ends before it accepts the update again hands it on.
        let handed_on = ReleaseProgressStatus {
            begun_plan: start.begun.clone(),
            plan_hash: start.plan.hash.clone(),
            ..recorded("1.0.0", "Reconciling", false, "")
        };
        let again = Startup::new(&before, &history("1.0.0+"), &handed_on);
        assert_eq!(again.finish(None, None, None, at(0)).begun, start.begun);
        // The ClusterVersion may name the update by then.
        let named = desired(payload("2.0.0", "a b c"), requesting(""), "");
        let late = Startup::new(&named, &history("2.0.0 1.0.0+"), &handed_on);
        let late = late.finish(None, None, None, at(0));
        if done.as_ref().is_some_and(|done| !done.is_empty()) {
            let begun = start.begun.as_ref().expect("it was begun");
            assert_eq!(late.done, parse_ranges(&begun.done_steps, 3));
            assert_eq!(late.begun, None);
        }
        assert_eq!(done.unwrap_or_default(), expected);
    }
    check(&recorded("2.0.0", "Updating", true, "0-1"), &[0, 1]);
    // Nothing that is not as before can have been done.
    check(&recorded("2.0.0", "Updating", true, "0-2"), &[0, 1]);
    check(&recorded("2.0.0", "Updating", false, "0-1"), &[]);
    check(&recorded("2.0.0", "Reconciling", true, "0-1"), &[]);
    check(&recorded("3.0.0", "Updating", true, "0-1"), &[]);
}

#[test]
fn a_pause_before_the_next_level_means_what_it_meant_before() {
    #[track_caller]
    fn check(annotation: Option<&str>, level: Option<u32>, is_same: bool, expected: Option<Pause>) {
        let update = UpdateProgress { paused_before: level, ..UpdateProgress::default() };
        let recorded = ReleaseProgressStatus {
            update: Some(update),
            ..recorded("2.0.0", "Updating", is_same, "")
        };
        let desired = desired(payload("2.0.0", "a b c"), requesting(""), "");
        let startup = Startup::new(&desired, &history("2.0.0 1.0.0+"), &recorded);
        assert_eq!(startup.finish(None, None, annotation, at(0)).pause, expected);
    }
    check(None, None, true, None);
    check(None, Some(40), true, None);
    check(Some("40"), None, true, Some(Pause::Before(40)));
    check(Some("next"), None, true, Some(Pause::Next));
    check(Some("next"), Some(30), true, Some(Pause::Before(30)));
    check(Some("40"), Some(30), true, Some(Pause::Before(40)));
    check(Some("next"), Some(30), false, Some(Pause::Next));
}

#[test]
fn orphans_of_another_plan_are_found_and_pruned_on_request() {
    #[track_caller]
    fn check(prune: Option<&str>, expected: &str) {
        let recorded = recorded("2.0.0", "Reconciling", false, "");
        let desired = desired(payload("2.0.0", "a b c"), requesting(""), "");
        let startup = Startup::new(&desired, &history("2.0.0+"), &recorded);
        assert!(startup.needs_inventory());
        let ours = BTreeMap::from(["a", "left"].map(|name| (key(name), "v1".to_owned())));
        let cluster_kinds: BTreeSet<GroupKind> = BTreeSet::new();
        let inherited = InheritedObjects { version: "2.0.0".to_owned(), ours, cluster_kinds };
        let prune = prune.map(|it| if it == "all" { it.to_owned() } else { key(it).to_string() });
        let start = startup.finish(Some(&inherited), prune, None, at(0));
        let orphans: Vec<&str> =
            start.removals.orphans().iter().map(|it| it.object.name.as_str()).collect();
        let shown = format!("{} {} {}", start.plan.mode, start.plan.steps.len(), orphans.join(" "));
        assert_eq!(shown, expected);
    }
    check(None, "Reconciling 3 left");
    check(Some("x"), "Reconciling 3 left");
    check(Some("left"), "Updating 4 left");
    check(Some("all"), "Updating 4 left");
}

#[test]
fn a_recorded_orphan_that_the_release_applies_is_none() {
    let orphan = |name: &str| Orphan::new(&key(name), "v1", "a.yaml", "1.0.0", "", at(0));
    let recorded = ReleaseProgressStatus {
        orphans: vec![orphan("a"), orphan("left")],
        ..ReleaseProgressStatus::default()
    };
    let desired = desired(payload("2.0.0", "a b c"), requesting(""), "");
    let start = Startup::new(&desired, &[], &recorded).finish(None, None, None, at(0));
    let orphans: Vec<&str> =
        start.removals.orphans().iter().map(|it| it.object.name.as_str()).collect();
    assert_eq!(orphans, ["left"]);
}

#[test]
fn capabilities_stay_enabled_wherever_they_are_recorded() {
    #[track_caller]
    fn check(named: &str, withheld: &str, implied: &str, expected: &str) {
        let mut status = ClusterVersionStatus::default();
        status.capabilities.enabled_capabilities = names(named).into_iter().collect();
        let implied: Vec<ImpliedCapability> = names(implied)
            .into_iter()
            .map(|capability| ImpliedCapability {
                capability,
                ..record(&implied_by_update(), at(0))
            })
            .collect();
        let capabilities = CapabilitiesProgress {
            implied,
            withheld: names(withheld).into_iter().collect(),
            ..CapabilitiesProgress::default()
        };
        let recorded = ReleaseProgressStatus { capabilities, ..ReleaseProgressStatus::default() };
        assert_eq!(enabled_before(&status, &recorded), names(expected));
    }
    fn implied_by_update() -> crate::capabilities::Implied {
        let mut desired = desired(payload("1.0.0", "a"), requesting(""), "");
        desired.imply(&payload("2.0.0", "a:Console"), at(0)).remove(0)
    }
    check("", "", "", "");
    check("A", "", "", "A");
    check("", "B", "", "B");
    check("", "", "C", "C");
    check("A B", "B", "C A", "A B C");
}

#[test]
fn another_release_is_recognised_by_its_image() {
    let check = |recorded: &str, image: &str, expected: bool| {
        let recorded = ReleaseProgressStatus { image: recorded.to_owned(), ..Default::default() };
        assert_eq!(is_other_release(&recorded, image), expected);
    };
    check("", "b", false);
    check("a", "a", false);
    check("a", "b", true);
}
