//! The statuses for reports.

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ActionSpec, ActionState, ActionStatus, ChangeOperation, ChangeState, FailureDetails,
    PartContent, PlannedChange,
};
use serde_json::json;

use super::{ActionObject, Report};
use crate::actions::ActionFailure;
use crate::actions::lifecycle::give_up;
use crate::actions::parts::reference;
use crate::actions::tests::at;

/// Returns an Action that installs foo and its dependencies.
fn action(status: ActionStatus) -> ActionObject {
    let spec: ActionSpec = serde_json::from_value(json!({
        "actionClass": "operator-install", "package": "foo", "version": "^1.2.x",
        "installDependencies": true,
    }))
    .unwrap();
    ActionObject { name: "install".into(), spec, status, ..ActionObject::default() }
}

/// Returns a plan that creates bar and foo, as far as it is.
fn plan(bar: ChangeState, foo: ChangeState) -> Vec<PlannedChange> {
    let change = |operator: &str, state: ChangeState| PlannedChange {
        operator: operator.into(),
        operation: ChangeOperation::Create,
        version: "1.2.5".into(),
        dependency: operator == "bar",
        state,
        message: match state {
            ChangeState::Completed => format!("{operator}@1.2.5 was successfully installed"),
            _ => String::new(),
        },
        ..PlannedChange::default()
    };
    vec![change("bar", bar), change("foo", foo)]
}

/// Returns the type, reason and message of each condition.
fn conditions(status: &ActionStatus) -> Vec<[&str; 3]> {
    let conditions = status.conditions.iter();
    conditions.map(|it| [it.type_.as_str(), it.reason.as_str(), it.message.as_str()]).collect()
}

#[test]
fn an_installation_reports_what_was_installed() {
    use ChangeState::{Completed, Written};
    let now = at("2026-01-01T00:00:00Z");
    let status = ActionStatus { plan: plan(Completed, Written), ..ActionStatus::default() };
    let running = action(ActionStatus::default()).reported(Report::running(status), now);
    let bar = ["ConstraintSatisfied", "DependencyCreated", "bar@1.2.5 was successfully installed"];
    assert_eq!(
        conditions(&running),
        [["ActionSucceeded", "ActionRunning", "the plan is executed"], bar]
    );
    assert_eq!(
        (running.plan_summary.as_str(), running.outcome.as_str()),
        ("2 to create", "RUNNING")
    );
    let ended = ActionStatus { plan: plan(Completed, Completed), ..running.clone() };
    let later = at("2026-01-01T00:05:00Z");
    let report = Report::succeeded(ended, "all changes were made");
    let succeeded = action(running).reported(report, later);
    let foo = ["ActionSucceeded", "ActionSucceeded", "foo@1.2.5 was successfully installed"];
    assert_eq!(conditions(&succeeded), [foo, bar]);
    let times: Vec<_> = succeeded.conditions.iter().map(|it| it.last_transition_time).collect();
    assert_eq!(times, [later, now]);
    assert_eq!(succeeded.dependencies.len(), 1);
    assert_eq!((succeeded.outcome.as_str(), succeeded.failure), ("SUCCEEDED", None));
}

#[test]
fn the_condition_of_an_action_is_that_of_its_success() {
    assert_eq!(action(ActionStatus::default()).condition(), None);
    let plan = plan(ChangeState::Completed, ChangeState::Written);
    let status = ActionStatus { plan, ..ActionStatus::default() };
    let now = at("2026-01-01T00:00:00Z");
    let mut status = action(ActionStatus::default()).reported(Report::running(status), now);
    status.conditions.reverse();
    assert_eq!(action(status).condition().unwrap().reason, "ActionRunning");
}

#[test]
fn other_messages_stay() {
    let check = |report: Report, expected: [&str; 2]| {
        let now = at("2026-01-01T00:00:00Z");
        let status = action(ActionStatus::default()).reported(report, now);
        assert_eq!(conditions(&status)[0][1..], expected);
    };
    let plan = plan(ChangeState::Completed, ChangeState::Planned);
    let status = ActionStatus { plan, ..ActionStatus::default() };
    let done = Report::succeeded(status.clone(), "all changes were made");
    check(done.clone(), ["ActionSucceeded", "all changes were made"]);
    check(Report { reason: Reason::DryRun, ..done }, ["DryRun", "all changes were made"]);
    check(Report::cancelled(status, "enough"), ["ActionCancelled", "enough"]);
}

#[test]
fn a_failure_says_what_is_left_and_how_to_go_on() {
    use ChangeState::{Completed, Planned};
    let now = at("2026-01-01T00:00:00Z");
    let mut status = ActionStatus { plan: plan(Completed, Planned), ..ActionStatus::default() };
    let failure = ActionFailure {
        precondition: Some("noOrphans"),
        ..ActionFailure::new(Reason::PreconditionFailed, "no").on("foo")
    };
    give_up(&mut status, &failure);
    let expected = FailureDetails {
        item: "foo".into(),
        precondition: "noOrphans".into(),
        done: vec!["create bar v1.2.5".into()],
        left: vec!["create foo v1.2.5".into()],
        unknown: Vec::new(),
        command: "kubectl operator install foo --version-range '^1.2.x'".into(),
    };
    let failed = action(ActionStatus::default()).reported(Report::failed(status, failure), now);
    assert_eq!(failed.failure, Some(expected));
    // The same holds without an item, and is gone once it is planned again.
    let bare = Report {
        status: ActionStatus { plan: plan(Planned, Planned), ..ActionStatus::default() },
        state: ActionState::Cancelled,
        reason: Reason::ActionCancelled,
        message: "enough".to_owned(),
    };
    let cancelled = action(ActionStatus::default()).reported(bare, now).failure.unwrap();
    assert_eq!((cancelled.item.as_str(), cancelled.left.len()), ("", 2));
    let report = Report::pending(failed.clone(), Reason::WaitingForAction, "waits");
    assert_eq!(action(failed).reported(report, now).failure, None);
}

#[test]
fn a_command_that_is_too_long_for_a_status_is_left_out() {
    let check = |command: String, is_kept: bool| {
        let details = FailureDetails { command, ..FailureDetails::default() };
        let status = ActionStatus { failure: Some(details), ..ActionStatus::default() };
        let now = at("2026-01-01T00:00:00Z");
        let report = Report::cancelled(status, "enough");
        let failure = action(ActionStatus::default()).reported(report, now).failure.unwrap();
        assert_eq!(!failure.command.is_empty(), is_kept);
    };
    check("x".repeat(4096), true);
    check("x".repeat(4097), false);
}

#[test]
fn the_least_status_says_how_an_action_ended_and_what_was_begun() {
    use ChangeState::{Completed, Failed, Planned};
    let now = at("2026-01-01T00:00:00Z");
    let check = |report: Report, condition: [&str; 2], states: &[ChangeState], left: usize| {
        let object = action(ActionStatus::default());
        let least = object.least(&object.reported(report, now), "too large", now);
        assert_eq!(least.state, ActionState::Failed);
        assert_eq!(least.completion_time, Some(now));
        assert_eq!(conditions(&least), [["ActionSucceeded", condition[0], condition[1]]]);
        let found: Vec<ChangeState> = least.plan.iter().map(|it| it.state).collect();
        assert_eq!(found, states);
        assert!(least.plan.iter().all(|it| it.manifest.is_none()) && least.explanation.is_empty());
        assert_eq!(least.failure.map_or(0, |it| it.left.len()), left);
    };
    let status = |bar: ChangeState, foo: ChangeState| {
        let mut plan = plan(bar, foo);
        plan.iter_mut().for_each(|it| it.manifest = Some(json!({ "kind": "Operator" })));
        let explanation = vec!["foo requires bar".into()];
        ActionStatus { plan, explanation, ..ActionStatus::default() }
    };
    // What has not ended has failed, and nothing of it was written.
    let begins = Report::running(status(Planned, Planned));
    let refused = "its status cannot be written: too large";
    check(begins, ["InvalidAction", refused], &[], 0);
    let mut ended = status(Completed, Failed);
    ended.plan[1].unwritten = true;
    let failure = ActionFailure::new(Reason::PolicyDenied, "no policy grants it");
    let ends = Report::failed(ended, failure);
    check(ends, ["PolicyDenied", "no policy grants it"], &[Completed, Failed], 1);
}

#[test]
fn a_plan_in_parts_keeps_its_summary() {
    let check = |content: PartContent, expected: &str| {
        let status = ActionStatus {
            plan_summary: "900 to create".into(),
            parts: Some(reference("install", content, "[]")),
            ..ActionStatus::default()
        };
        let now = at("2026-01-01T00:00:00Z");
        let running = action(ActionStatus::default()).reported(Report::running(status), now);
        assert_eq!(running.plan_summary, expected);
    };
    check(PartContent::Plan, "900 to create");
    check(PartContent::Result, "");
}
