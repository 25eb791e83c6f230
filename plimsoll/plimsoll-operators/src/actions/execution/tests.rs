//! The progress of plans, as Operators report it.

use std::time::Duration;

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ActionSpec, ActionState, ActionStatus, ChangeOperation, ChangeState, PlannedChange,
};
use serde_json::json;

use super::arrival::{Arrival, record};
use super::{
    ending_sets, is_untouched, left_set, may_be_in_set, next_write, observe, outcome, stopped,
};
use crate::actions::ActionFailure;
use crate::actions::lifecycle::give_up;
use crate::actions::report::ActionObject;
use crate::actions::tests::at;
use crate::observed::ObservedOperator;

fn operator(installed: &str, conditions: &[(&str, &str, &str)]) -> ObservedOperator {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(type_, status, reason)| {
            json!({ "type": type_, "status": status, "reason": reason, "message": "reported",
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        })
        .collect();
    let bundle = (!installed.is_empty()).then(|| json!({ "name": "b", "version": installed }));
    ObservedOperator::read(&json!({
        "metadata": { "uid": "u1", "generation": 1 },
        "spec": { "version": "1.0.0" },
        "status": { "observedGeneration": 1, "bundle": bundle, "conditions": conditions },
    }))
}

#[test]
fn a_plan_is_followed_by_what_operators_report() {
    let change = |operation, state| PlannedChange {
        operator: "foo".into(),
        operation,
        uid: "u1".into(),
        version: "1.0.0".into(),
        state,
        ..PlannedChange::default()
    };
    let check = |operation, there: Option<ObservedOperator>, expected: (ChangeState, Reason)| {
        let mut plan = vec![change(operation, ChangeState::Written)];
        let operators = there.map(|it| ("foo".to_owned(), it)).into_iter().collect();
        observe(&mut plan, &operators, None);
        assert_eq!((plan[0].state, plan[0].reason.as_str()), (expected.0, expected.1.as_str()));
    };
    use ChangeOperation::{Delete, Update};
    let idle = [("Installed", "True", "AsExpected"), ("Progressing", "False", "AsExpected")];
    let done = (ChangeState::Completed, Reason::InstallationSucceeded);
    check(Update, Some(operator("1.0.0", &idle)), done);
    let other = (ChangeState::Written, Reason::AsExpected);
    check(Update, Some(operator("0.9.0", &idle)), other);
    let broken = [("Installed", "False", "UnpackFailed"), ("Progressing", "True", "RollingOut")];
    let failed = (ChangeState::Failed, Reason::UnpackFailed);
    check(Update, Some(operator("", &broken)), failed);
    check(Update, None, (ChangeState::Failed, Reason::Deleting));
    check(Delete, None, (ChangeState::Completed, Reason::OperatorDeleted));
    // A watch shows the deletion later than the response to the request.
    let unseen = (ChangeState::Written, Reason::Deleting);
    check(Delete, Some(operator("1.0.0", &idle)), unseen);
    let recreated = ObservedOperator { uid: "u2".into(), ..operator("1.0.0", &idle) };
    check(Delete, Some(recreated), (ChangeState::Completed, Reason::OperatorDeleted));
}

#[test]
fn what_an_operator_reports_at_length_is_cut_off() {
    let mut there = operator("", &[("Progressing", "True", "RollingOut")]);
    there.status.conditions[0].message = "x".repeat(30_000);
    let mut plan = vec![PlannedChange {
        operator: "foo".into(),
        operation: ChangeOperation::Update,
        uid: "u1".into(),
        version: "1.0.0".into(),
        state: ChangeState::Written,
        ..PlannedChange::default()
    }];
    let operators = [("foo".to_owned(), there)].into_iter().collect();
    observe(&mut plan, &operators, None);
    let message = &plan[0].message;
    assert!(message.len() <= 4096 && message.ends_with("(cut off: it has 30000 bytes)"));
}

#[test]
fn an_action_ends_when_all_of_its_plan_has() {
    let change = |operation, state| PlannedChange { operation, state, ..PlannedChange::default() };
    let start = at("2026-01-01T00:00:00Z");
    let spec = ActionSpec { deadline: "10m".into(), ..ActionSpec::default() };
    let status = |states: &[ChangeState]| ActionStatus {
        plan: states.iter().map(|it| change(ChangeOperation::Create, *it)).collect(),
        start_time: Some(start),
        ..ActionStatus::default()
    };
    use ChangeState::{Completed, Failed, Planned, Written};
    let after = |minutes: u64| start + Duration::from_secs(60 * minutes);
    let open = status(&[Completed, Written, Planned]);
    assert_eq!(next_write(&open), Some(2));
    assert_eq!(outcome(&spec, &open, after(1)), None);
    let late = outcome(&spec, &open, after(10)).unwrap().unwrap_err();
    assert_eq!(late.reason, Reason::DeadlineExceeded);
    assert_eq!(outcome(&spec, &status(&[Completed, Completed]), after(1)), Some(Ok(())));
    // Written changes end first, and no other change starts.
    let failing = status(&[Failed, Written, Planned]);
    assert_eq!((next_write(&failing), outcome(&spec, &failing, after(1))), (None, None));
    assert!(outcome(&spec, &status(&[Failed, Completed, Planned]), after(1)).unwrap().is_err());
    assert!(is_untouched(&status(&[Planned, Planned])));
    assert!(!is_untouched(&open));
}

#[test]
fn a_change_that_is_being_written_is_written_next() {
    use ChangeState::{Completed, Failed, Planned, Writing, Written};
    let check = |states: &[ChangeState], expected: (Option<usize>, bool)| {
        let change = |state: &ChangeState| PlannedChange {
            operation: ChangeOperation::Create,
            state: *state,
            ..PlannedChange::default()
        };
        let plan = states.iter().map(change).collect();
        let status = ActionStatus { plan, ..ActionStatus::default() };
        assert_eq!((next_write(&status), is_untouched(&status)), expected, "{states:?}");
    };
    check(&[Planned, Planned], (Some(0), true));
    check(&[Writing, Planned], (Some(0), false));
    check(&[Written, Writing, Planned], (Some(1), false));
    check(&[Completed, Planned], (Some(1), false));
    check(&[Completed, Written], (None, false));
    check(&[Failed, Writing], (None, false));
}

#[test]
fn operators_are_deleted_one_after_another() {
    use ChangeOperation::{Await, Create, Delete};
    use ChangeState::{Completed, Failed, Planned, Writing, Written};
    let check = |changes: &[(ChangeOperation, ChangeState)], expected: Option<usize>| {
        let change = |(operation, state): &(ChangeOperation, ChangeState)| PlannedChange {
            operation: *operation,
            state: *state,
            ..PlannedChange::default()
        };
        let plan = changes.iter().map(change).collect();
        let status = ActionStatus { plan, ..ActionStatus::default() };
        assert_eq!(next_write(&status), expected, "{changes:?}");
    };
    check(&[(Delete, Planned), (Delete, Planned)], Some(0));
    check(&[(Delete, Writing), (Delete, Planned)], Some(0));
    check(&[(Delete, Written), (Delete, Planned)], None);
    check(&[(Delete, Failed), (Delete, Planned)], None);
    check(&[(Delete, Completed), (Delete, Planned)], Some(1));
    check(&[(Delete, Completed), (Delete, Completed), (Delete, Writing)], Some(2));
    check(&[(Delete, Completed), (Delete, Written), (Delete, Planned)], None);
    // Other changes do not wait.
    check(&[(Create, Written), (Create, Planned)], Some(1));
    check(&[(Create, Written), (Delete, Planned)], Some(1));
    check(&[(Await, Planned), (Delete, Planned)], Some(1));
}

#[test]
fn an_operator_leaves_a_change_set_that_it_may_be_in() {
    use ChangeOperation::{Await, Update};
    use ChangeState::{Completed, Failed, Planned, Writing, Written};
    let check = |operation, state: ChangeState, unwritten: bool, expected: bool| {
        let change = PlannedChange {
            operation,
            state,
            unwritten,
            change_set: "update-1/2".into(),
            leaves_change_set: "update-2/2".into(),
            ..PlannedChange::default()
        };
        assert_eq!(may_be_in_set(&change), expected, "{operation:?} {state:?} {unwritten}");
        if operation == Update {
            assert_eq!(left_set(&change), expected.then_some("update-2/2"), "{state:?}");
        }
        let of_user = PlannedChange { leaves_change_set: "mine".into(), ..change.clone() };
        assert_eq!(left_set(&of_user), None);
        assert!(!may_be_in_set(&PlannedChange { change_set: String::new(), ..change }));
    };
    check(Update, Planned, false, false);
    check(Update, Writing, false, true);
    check(Update, Written, false, true);
    check(Update, Completed, false, true);
    check(Update, Failed, false, true);
    check(Update, Failed, true, false);
    // An earlier update has put it there, and it still moves or did not.
    check(Await, Planned, false, false);
    check(Await, Written, false, false);
    check(Await, Failed, false, false);
    check(Await, Completed, false, true);
}

#[test]
fn a_change_set_ends_once_with_all_of_its_operators() {
    use ChangeState::{Completed, Planned};
    let change = |state: ChangeState, joins: &str, leaves: &str| PlannedChange {
        operation: ChangeOperation::Update,
        state,
        change_set: joins.into(),
        leaves_change_set: leaves.into(),
        ..PlannedChange::default()
    };
    let check = |plan: &[PlannedChange], expected: &[&str]| {
        assert_eq!(ending_sets(plan).into_iter().collect::<Vec<_>>(), expected);
    };
    check(&[change(Completed, "", "")], &[]);
    let plan = [
        change(Completed, "update-2/2", "update-1/2"),
        change(Completed, "update-2/2", "mine"),
        change(Completed, "", "update-1/2"),
        change(Planned, "update-3/1", "update-0/1"),
    ];
    check(&plan, &["update-1/2", "update-2/2"]);
}

#[test]
fn a_rejected_change_is_not_given_up_if_an_earlier_request_for_it_has_arrived() {
    use ChangeState::{Failed, Planned, Writing, Written};
    let check = |arrival: Arrival, expected: [ChangeState; 2], failed: Option<(&str, Reason)>| {
        let mut status = updates(&[("bar", Writing), ("foo", Planned)]);
        record(&mut status.plan[0], arrival);
        let failure = ActionFailure::new(Reason::InstallationFailed, "bar: denied").on("bar");
        give_up(&mut status, &failure);
        let states: Vec<ChangeState> = status.plan.iter().map(|it| it.state).collect();
        assert_eq!(states, expected);
        let ended = outcome(&ActionSpec::default(), &status, at("2026-01-01T00:00:00Z"));
        let failure = ended.map(|it| it.unwrap_err());
        let found = failure.as_ref().map(|it| (it.item.as_deref().unwrap(), it.reason));
        assert_eq!(found, failed);
    };
    let rejected = Some(("bar", Reason::InstallationFailed));
    check(Arrival::Absent, [Failed, Failed], rejected);
    check(Arrival::Superseded("why".into()), [Failed, Failed], rejected);
    // It is under way, and the Action ends after it.
    check(Arrival::Arrived, [Written, Failed], None);
    let unknown = Some(("bar", Reason::OutcomeUnknown));
    check(Arrival::Unknown("why".into()), [Writing, Failed], unknown);
}

#[test]
fn an_action_of_which_a_change_is_unknown_fails_and_names_it() {
    let check = |state: ChangeState, expected: Option<Reason>| {
        let unknown = PlannedChange {
            operator: "foo".into(),
            operation: ChangeOperation::Update,
            state,
            reason: Reason::OutcomeUnknown.to_string(),
            ..PlannedChange::default()
        };
        let status = ActionStatus { plan: vec![unknown], ..ActionStatus::default() };
        let ended = outcome(&ActionSpec::default(), &status, at("2026-01-01T00:00:00Z"));
        let failure = ended.map(|it| it.unwrap_err());
        assert_eq!(failure.as_ref().map(|it| it.reason), expected);
        assert!(failure.is_none_or(|it| it.item.as_deref() == Some("foo")));
    };
    check(ChangeState::Writing, Some(Reason::OutcomeUnknown));
    check(ChangeState::Failed, Some(Reason::OutcomeUnknown));
    check(ChangeState::Written, None);
}

/// Returns changes of Operators: each the name and the state.
fn updates(states: &[(&str, ChangeState)]) -> ActionStatus {
    let change = |(name, state): &(&str, ChangeState)| PlannedChange {
        operator: (*name).into(),
        operation: ChangeOperation::Update,
        state: *state,
        ..PlannedChange::default()
    };
    ActionStatus { plan: states.iter().map(change).collect(), ..ActionStatus::default() }
}

#[test]
fn a_deadline_that_has_passed_says_what_is_left() {
    use ChangeState::{Completed, Planned, Written};
    let check = |states: &[(&str, ChangeState)], expected: &str| {
        let start = at("2026-01-01T00:00:00Z");
        let status = ActionStatus { start_time: Some(start), ..updates(states) };
        let late = start + Duration::from_secs(60 * 60);
        let failure = outcome(&ActionSpec::default(), &status, late).unwrap().unwrap_err();
        assert_eq!((failure.message.as_str(), failure.item.as_deref()), (expected, Some("bar")));
    };
    check(&[("foo", Completed), ("bar", Written)], "bar is not there in time");
    check(
        &[("bar", Written), ("baz", Planned), ("foo", Planned)],
        "bar is not there in time; left as they were: baz and foo",
    );
}

#[test]
fn an_action_that_is_stopped_says_what_was_written() {
    use ChangeState::{Completed, Planned, Written};
    let check = |states: &[(&str, ChangeState)], is_deleting: bool, expected: (Reason, &str)| {
        let status = updates(states);
        let action = ActionObject { is_deleting, status, ..ActionObject::default() };
        let report = stopped(&action, at("2026-01-01T00:00:00Z"));
        assert_eq!((report.reason, report.message.as_str()), expected);
        let is_done = report.reason == Reason::ActionSucceeded;
        let state = if is_done { ActionState::Succeeded } else { ActionState::Cancelled };
        assert_eq!(report.state, state);
    };
    let cancelled = |message| (Reason::ActionCancelled, message);
    let all = [("bar", Planned), ("baz", Planned)];
    check(&all, false, cancelled("it was cancelled before a change was written"));
    let one = [("bar", Completed), ("baz", Planned), ("foo", Planned)];
    check(&one, false, cancelled("it was cancelled after 1 of 3 changes was written"));
    let two = [("bar", Completed), ("baz", Written), ("foo", Planned)];
    check(&two, false, cancelled("it was cancelled after 2 of 3 changes were written"));
    let message = "it was deleted after 2 of 3 changes were written; written: bar and baz; left as \
                   they were: foo";
    check(&two, true, (Reason::ActionDeleted, message));
    let message = "it was deleted before a change was written; left as they were: bar and baz";
    check(&all, true, (Reason::ActionDeleted, message));
    // Nothing was left to do.
    let done = [("bar", Completed)];
    check(&done, false, (Reason::ActionSucceeded, "all changes were made"));
}

#[test]
fn a_request_for_a_release_stays_and_a_cancellation_says_so() {
    let release = PlannedChange {
        operation: ChangeOperation::UpdateRelease,
        requested: "4.2.0".into(),
        state: ChangeState::Written,
        ..PlannedChange::default()
    };
    let status = ActionStatus { plan: vec![release], ..ActionStatus::default() };
    let action = ActionObject { status, ..ActionObject::default() };
    let expected = "it was cancelled after 1 of 1 changes was written; the request for release 4.2.0 \
                    is not taken back";
    assert_eq!(stopped(&action, at("2026-01-01T00:00:00Z")).message, expected);
}
