//! Which events are emitted, each once.

use plimsoll_api::config::{ClusterVersionSpec, ComponentOverride};
use plimsoll_api::{Condition, ConditionStatus, ObjectKey, Reason};

use super::{EventDraft, ReportedEvents, Severity};
use crate::plan::mode::Mode;
use crate::progress::pause::Pause;
use crate::reconciler::execution::Drift;
use crate::reconciler::testing::{apply, at, desired, execution, payload, requesting};
use crate::removal::DeletionEvent;
use crate::spec::overrides::Overrides;
use crate::update::acceptance::{LoadStatus, LoadStep};

fn reported() -> ReportedEvents {
    ReportedEvents::recorded(&[], &[])
}

/// Reasons, warnings with `!`.
fn shown(drafts: impl IntoIterator<Item = EventDraft>) -> String {
    let reasons = drafts.into_iter().map(|draft| {
        let mark = if draft.severity == Severity::Warning { "!" } else { "" };
        format!("{}{mark}", draft.reason)
    });
    reasons.collect::<Vec<_>>().join(" ")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "x".to_owned(),
        name: name.to_owned(),
    }
}

fn load(step: LoadStep, failed: bool) -> LoadStatus {
    LoadStatus {
        step,
        version: "1.1.0".to_owned(),
        image: "image".to_owned(),
        architecture: String::new(),
        failure: failed.then(|| "WHY".to_owned()),
    }
}

#[test]
fn each_step_of_a_requested_release_is_reported_once() {
    #[track_caller]
    fn check(steps: &[(LoadStep, bool)], expected: &str) {
        let mut reported = reported();
        let drafts: Vec<EventDraft> = steps
            .iter()
            .filter_map(|(step, failed)| reported.load(&load(*step, *failed)))
            .collect();
        assert_eq!(shown(drafts), expected, "{steps:?}");
    }
    use LoadStep::{Load, Loaded, Preconditions, Retrieve, Window};
    check(&[], "");
    check(&[(Loaded, false)], "");
    check(&[(Retrieve, false)], "RetrievePayload");
    check(&[(Loaded, false), (Retrieve, false)], "RetrievePayload");
    check(&[(Retrieve, false), (Retrieve, false)], "RetrievePayload");
    check(&[(Retrieve, false), (Retrieve, true)], "RetrievePayload RetrievePayload!");
    check(&[(Retrieve, true), (Retrieve, true)], "RetrievePayload!");
    check(
        &[(Retrieve, false), (Load, false), (Preconditions, true), (Loaded, false)],
        "RetrievePayload LoadPayload PreconditionChecks! PayloadLoaded",
    );
    check(
        &[(Retrieve, false), (Preconditions, true), (Window, true), (Loaded, false)],
        "RetrievePayload PreconditionChecks! MaintenanceWindowClosed PayloadLoaded",
    );
}

#[test]
fn the_end_of_an_update_is_reported_once_and_that_of_a_reconciliation_is_not() {
    #[track_caller]
    fn check(mode: Mode, applied: &str, is_completed: bool, expected: &str) {
        let desired = desired(payload("1.1.0", "a b"), requesting(""), "");
        let execution = execution(&desired, mode, applied);
        let mut reported = reported();
        let (completed, draft) = reported.completed(execution.progress());
        assert_eq!((completed, shown(draft)), (is_completed, expected.to_owned()));
        assert_eq!(reported.completed(execution.progress()), (false, None), "once");
        reported.plan_changed();
        assert_eq!(reported.completed(execution.progress()).0, is_completed, "another plan");
    }
    check(Mode::Updating, "a", false, "");
    check(Mode::Updating, "a b", true, "UpdateCompleted");
    check(Mode::Initializing, "a b", true, "UpdateCompleted");
    check(Mode::Reconciling, "a b", true, "");
}

#[test]
fn a_pause_and_its_end_are_reported_once() {
    let desired = desired(payload("1.1.0", "a b@60"), requesting(""), "");
    let mut execution = execution(&desired, Mode::Updating, "");
    let mut reported = reported();
    assert_eq!(shown(reported.resumed("1.1.0")), "", "it was not paused");
    execution.set_pause(Some(Pause::Before(60)), at(0));
    assert_eq!(shown(reported.paused(execution.progress())), "", "not there yet");
    apply(&mut execution, "a");
    assert_eq!(shown(reported.paused(execution.progress())), "UpdatePaused");
    assert_eq!(shown(reported.paused(execution.progress())), "");
    assert_eq!(shown(reported.resumed("1.1.0")), "UpdateResumed");
    assert_eq!(shown(reported.resumed("1.1.0")), "");
    assert_eq!(shown(reported.paused(execution.progress())), "UpdatePaused");
}

#[test]
fn conditions_are_reported_when_they_change() {
    let failing = |status: ConditionStatus| Condition {
        type_: "Failing".to_owned(),
        status,
        last_transition_time: at(0),
        reason: "ClusterOperatorDegraded".to_owned(),
        message: "dns".to_owned(),
    };
    #[track_caller]
    fn check(recorded: &[Condition], conditions: &[Condition], expected: usize) {
        let mut reported = ReportedEvents::recorded(recorded, &[]);
        assert_eq!(reported.conditions(conditions).len(), expected);
        assert_eq!(reported.conditions(conditions).len(), 0, "once");
    }
    let (on, off) = (failing(ConditionStatus::True), failing(ConditionStatus::False));
    check(&[], &[], 0);
    let (on, off) = (std::slice::from_ref(&on), std::slice::from_ref(&off));
    check(on, on, 0);
    check(on, off, 1);
    check(off, off, 0);
    check(&[], on, 1);
}

#[test]
fn overrides_are_reported_when_they_come_into_force_expire_and_go() {
    let overrides = |names: &[&str]| {
        let entry = |name: &&str| ComponentOverride {
            kind: "ConfigMap".to_owned(),
            group: String::new(),
            namespace: "x".to_owned(),
            name: (*name).to_owned(),
            unmanaged: true,
        };
        let terms = r#"[{"kind": "ConfigMap", "namespace": "x", "name": "a",
            "expires": "1970-01-01T00:01:00Z"}]"#;
        let spec = ClusterVersionSpec {
            overrides: names.iter().map(entry).collect(),
            ..ClusterVersionSpec::default()
        };
        Overrides::parse(&spec.overrides, names.contains(&"a").then_some(terms))
    };
    #[track_caller]
    fn check(steps: &[(Overrides, i64)], expected: &str) {
        let mut reported = reported();
        let drafts = steps.iter().filter_map(|(it, now)| reported.overrides(it, at(*now)));
        assert_eq!(shown(drafts.flatten()), expected);
    }
    check(&[(overrides(&[]), 0)], "");
    check(&[(overrides(&["b"]), 0), (overrides(&["b"]), 9)], "OverrideInForce");
    check(&[(overrides(&["b"]), 0), (overrides(&[]), 9)], "OverrideInForce OverrideRemoved");
    check(&[(overrides(&["a"]), 0), (overrides(&["a"]), 60)], "OverrideInForce OverrideExpired");
    let wrong = Overrides::parse(&[], Some("no list"));
    let mut reported = reported();
    let drafts = reported.override_problems(&wrong).unwrap_or_default();
    assert_eq!(shown(drafts), "OverrideTermsInvalid!");
    assert_eq!(reported.override_problems(&wrong), None, "once");
    assert_eq!(reported.override_problems(&Overrides::default()), Some(Vec::new()));
}

#[test]
fn events_name_what_happened_to_what() {
    #[track_caller]
    fn check(draft: &EventDraft, expected: &str) {
        let related = draft.related.as_ref().map_or(String::new(), |it| format!(" [{}]", it.name));
        assert_eq!(format!("{} {}: {}{related}", draft.reason, draft.action, draft.note), expected);
    }
    check(
        &super::definition_newer("things.plimsoll.io"),
        "DefinitionNewer InstallDefinition: CustomResourceDefinition things.plimsoll.io was installed by a \
         newer version of Plimsoll and is left as it is",
    );
    check(&super::leader_elected("host-1"), "LeaderElected Lead: host-1 became leader");
    check(
        &super::update_started("1.0.0", "1.1.0", ""),
        "UpdateStarted Update: Working towards 1.1.0, from 1.0.0",
    );
    check(
        &super::update_started("1.0.0", "1.1.0", "none verified"),
        "UpdateStarted Update: Working towards 1.1.0, from 1.0.0; accepted risks: none verified",
    );
    let drift = |is_deleted| super::drift_repaired(&Drift { key: key("a"), is_deleted });
    let object = key("a").to_string();
    check(
        &drift(false),
        &format!(
            "DriftRepaired Repair: {object} was changed by another client and is reverted [a]"
        ),
    );
    check(
        &drift(true),
        &format!(
            "DriftRepaired Repair: {object} was deleted by another client and is reverted [a]"
        ),
    );
    let event = DeletionEvent {
        key: key("a"),
        reason: Reason::ResourceDeletionStuck,
        is_warning: true,
        message: "M".to_owned(),
    };
    assert_eq!(super::removal(event.clone()).severity, Severity::Warning);
    check(&super::removal(event), "ResourceDeletionStuck Delete: M [a]");
    check(
        &super::capability_enabled("Console"),
        "CapabilityEnabled Update: Capability Console is enabled, as the ClusterVersion requests",
    );
}
