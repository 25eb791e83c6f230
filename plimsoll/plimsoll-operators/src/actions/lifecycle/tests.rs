//! The status of an Action after its plan was decided on.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ACTION_FINALIZER, ActionApproval, ActionSpec, ActionState, ActionStatus, ChangeOperation,
    PlannedChange,
};
use plimsoll_content::hash::text_sha256;
use serde_json::{Value, json};

use super::{
    ActionDecision, DirectPermissions, NextStep, PlanDecision, explained, give_up, next_step,
};
use crate::actions::ActionFailure;
use crate::actions::check::effective;
use crate::actions::plan::ActionPlan;
use crate::actions::report::ActionObject;
use crate::actions::tests::{CURATED, POLICIES, alice, at, class, read_policies};
use plimsoll_plan::windows::MaintenanceWindows;

/// Returns the status of an Action by `alice` of group `dev` after its plan was decided on.
fn decided(
    policies: &str,
    action: Value,
    plan: Result<ActionPlan, ActionFailure>,
    may_directly: bool,
) -> ActionStatus {
    let policies = read_policies(policies);
    let mut spec: ActionSpec = serde_json::from_value(action).unwrap();
    spec.requester = Some(alice());
    let class = class(&spec.action_class);
    let action = ActionObject { namespace: "tea".into(), spec, ..ActionObject::default() };
    let [create, patch, list] = [may_directly; 3];
    let by_hand = DirectPermissions { create, patch, list, ..DirectPermissions::default() };
    let now = at("2026-01-01T00:00:00Z");
    let decision = ActionDecision {
        action: &action,
        class: &class,
        policies: &policies,
        windows: &MaintenanceWindows::default(),
        active: 0,
        created: &BTreeSet::new(),
        labels: &BTreeMap::new(),
        by_hand,
        now,
    };
    let attributes = decision.admit().unwrap();
    match decision.decide(&attributes, plan, |_| None) {
        PlanDecision::Report(report) => action.reported(*report, now),
        again @ PlanDecision::PlanAgain(_) => panic!("{again:?}"),
    }
}

#[test]
fn a_range_of_a_policy_holds_after_the_action() {
    use ChangeOperation::{Await, Create, Update};
    let change = |operation, before: &str, requested: &str, version: &str| PlannedChange {
        operator: "foo".into(),
        operation,
        requested_before: before.into(),
        requested: requested.into(),
        version: version.into(),
        manifest: (operation == Create).then(|| json!({ "spec": { "version": requested } })),
        ..PlannedChange::default()
    };
    let check = |by_hand: bool, change: PlannedChange, expected: Result<&str, &str>| {
        let spec = json!({"actionClass": "operator-install", "package": "foo", "version": "^1"});
        let plan = ActionPlan { changes: vec![change], ..ActionPlan::default() };
        let decided = decided(POLICIES, spec, Ok(plan), by_hand);
        let condition = &decided.conditions[0];
        match expected {
            Ok(requested) => {
                assert_eq!(decided.state, ActionState::Running, "{}", condition.message);
                let change = &decided.plan[0];
                assert_eq!(change.requested, requested);
                if let Some(manifest) = &change.manifest {
                    assert_eq!(manifest["spec"]["version"], requested);
                }
            }
            Err(message) => assert_eq!(condition.message, message),
        }
    };
    check(false, change(Create, "", "^1", "1.4.0"), Ok("1.4.0"));
    check(false, change(Create, "", "=1.4.0", "1.4.0"), Ok("=1.4.0"));
    check(false, change(Update, "1.2.0", "^1", "1.4.0"), Ok("1.4.0"));
    // These do not change what is requested.
    check(false, change(Update, "^1", "^1", "1.4.0"), Ok("^1"));
    check(false, change(Await, "^1", "^1", "1.4.0"), Ok("^1"));
    check(true, change(Create, "", "^1", "1.4.0"), Ok("^1"));
    let unknown = "ActionPolicy dev: which version of foo is installed is not known, allowed: <2 (attributes[version].range)";
    check(false, change(Create, "", "^1", ""), Err(unknown));
}

#[test]
fn catalogs_of_a_policy_are_those_of_the_whole_plan() {
    use ChangeOperation::{Await, Create, Update};
    let change = |operator: &str, operation, catalog: &str| PlannedChange {
        operator: operator.into(),
        operation,
        requested: "1.0.0".into(),
        version: "1.0.0".into(),
        catalog: catalog.into(),
        manifest: (operation == Create).then(|| json!({ "spec": {} })),
        ..PlannedChange::default()
    };
    let check = |changes: Vec<PlannedChange>, expected: Result<&[&str], &str>| {
        let spec = json!({"actionClass": "operator-install", "package": "foo"});
        let plan = ActionPlan { changes, ..ActionPlan::default() };
        let decided = decided(CURATED, spec, Ok(plan), false);
        match expected {
            Ok(repositories) => {
                let named = decided.plan.iter().map(|it| match &it.manifest {
                    Some(manifest) => manifest["spec"]["repository"].as_str().unwrap(),
                    None => it.repository.as_str(),
                });
                assert_eq!(named.collect::<Vec<_>>(), repositories);
            }
            Err(message) => assert_eq!(decided.conditions[0].message, message),
        }
    };
    let sound = vec![
        change("bar", Create, "team-a"),
        change("baz", Await, "curated"),
        change("foo", Update, "curated"),
    ];
    check(sound, Ok(&["team-a", "", "curated"]));
    let other = "ActionPolicy curated: bar is of catalog community, which is not among curated and team-* (catalogs)";
    let plan = vec![change("bar", Create, "community"), change("foo", Create, "curated")];
    check(plan, Err(other));
    let unknown = "ActionPolicy curated: which catalog has foo is not known, allowed: curated and team-* (catalogs)";
    check(vec![change("foo", Create, "")], Err(unknown));
}

#[test]
fn an_answer_is_in_the_result_and_says_if_it_is_cut_off() {
    let check = |plan: Result<ActionPlan, ActionFailure>, state: ActionState, text: &str| {
        let spec = json!({"actionClass": "resolution", "package": "foo"});
        let decided = decided("", spec, plan, true);
        assert_eq!((decided.state, &decided.result_digest), (state, &text_sha256(text)));
        decided
    };
    let failure = ActionFailure::new(Reason::ConstraintsUnmet, "foo requires bar");
    let failed = check(Err(failure), ActionState::Failed, "foo requires bar");
    assert_eq!(failed.result, "foo requires bar");
    let long = "é".repeat(40_000);
    let plan = ActionPlan { result: long.clone(), ..ActionPlan::default() };
    let cut = check(Ok(plan), ActionState::Succeeded, &long);
    assert!(cut.result.len() <= 64 * 1024 && cut.result.len() > 64 * 1024 - 2);
    assert!(cut.result.ends_with("é\n(cut off: it has 80000 bytes)"));
    let failure = ActionFailure::new(Reason::ConstraintsUnmet, long.clone());
    let failed = check(Err(failure), ActionState::Failed, &long);
    assert!(failed.conditions[0].message.len() <= 4 * 1024);
    assert!(failed.conditions[0].message.ends_with("(cut off: it has 80000 bytes)"));
}

#[test]
fn a_plan_that_violates_preconditions_fails_with_the_first() {
    let spec = json!({
        "actionClass": "operator-install", "package": "foo",
        "preconditions": {"consistent": true, "noOrphans": true},
    });
    let plan = ActionPlan {
        unsatisfied: vec!["bar requires foo <2".into()],
        orphans: vec!["baz".into()],
        ..ActionPlan::default()
    };
    let status = decided("", spec, Ok(plan), true);
    let expected =
        "consistent: bar requires foo <2; noOrphans: nothing would depend on baz any more";
    assert_eq!(status.conditions[0].message, expected);
    let failure = status.failure.unwrap();
    assert_eq!((failure.precondition.as_str(), failure.item.as_str()), ("consistent", "bar"));
    assert_eq!(failure.command, "kubectl operator install foo --no-dependencies");
}

#[test]
fn the_next_step_of_an_action_that_is_cancelled_or_deleted() {
    use ActionState::{Pending, Running, Succeeded, WaitingForApproval};
    // The marks: c for cancelled, d for deleted, f for our finalizer.
    let check = |state: ActionState, marks: &str, class_name: &str, expected: &str| {
        let finalizers = marks.contains('f').then(|| ACTION_FINALIZER.to_owned());
        let action = ActionObject {
            is_deleting: marks.contains('d'),
            finalizers: finalizers.into_iter().collect(),
            spec: ActionSpec {
                action_class: class_name.into(),
                cancelled: marks.contains('c'),
                requester: Some(alice()),
                ..ActionSpec::default()
            },
            status: ActionStatus { state, ..ActionStatus::default() },
            ..ActionObject::default()
        };
        let mut foreign = class("operator-update");
        foreign.spec.controller = "example.com/other".into();
        let classes = [class("operator-install"), foreign];
        let step = match next_step(&action, &classes) {
            NextStep::Nothing => "nothing",
            NextStep::Report(report) if report.state == ActionState::Cancelled => "cancelled",
            NextStep::Report(_) => "report",
            NextStep::Decide(_) => "decide",
            NextStep::Execute(_) => "execute",
            NextStep::Stop => "stop",
            NextStep::Release => "release",
        };
        assert_eq!(step, expected, "{state:?} {marks} {class_name}");
    };
    let install = "operator-install";
    check(Pending, "", install, "decide");
    check(Pending, "c", install, "cancelled");
    check(Pending, "d", install, "nothing");
    check(Pending, "df", install, "release");
    check(WaitingForApproval, "df", install, "release");
    check(Running, "", install, "execute");
    check(Running, "f", install, "execute");
    check(Running, "cf", install, "stop");
    check(Running, "df", install, "stop");
    check(Running, "c", install, "stop");
    check(Succeeded, "", install, "nothing");
    check(Succeeded, "f", install, "release");
    check(Succeeded, "df", install, "release");
    // The class was deleted.
    check(Running, "f", "operator-delete", "nothing");
    check(Running, "cf", "operator-delete", "stop");
    check(Running, "df", "operator-delete", "stop");
    check(Running, "df", "operator-deletion", "stop");
    check(Running, "d", "operator-delete", "nothing");
    // There never was such a class of ours: another client wrote the status.
    check(Running, "f", "gone", "nothing");
    check(Running, "cf", "gone", "nothing");
    check(Running, "df", "gone", "release");
    check(Running, "d", "gone", "nothing");
    check(Pending, "", "gone", "report");
    // Another controller serves the class.
    check(Running, "cdf", "operator-update", "nothing");
    check(Pending, "d", "operator-update", "nothing");
}

#[test]
fn an_action_whose_spec_is_too_long_fails_unless_it_has_begun() {
    use Reason::InvalidAction;
    let check = |state: ActionState, length: usize, expected: Option<&str>| {
        let mut spec = ActionSpec { requester: Some(alice()), ..ActionSpec::default() };
        spec.action_class = "operator-install".into();
        spec.parameters = Some(json!({ "packages": ["x".repeat(length)] }));
        let status = ActionStatus { state, ..ActionStatus::default() };
        let action = ActionObject { spec, status, ..ActionObject::default() };
        let classes = [class("operator-install")];
        let found = match next_step(&action, &classes) {
            NextStep::Report(report) => {
                assert_eq!((report.state, report.reason), (ActionState::Failed, InvalidAction));
                let status = action.reported(*report, at("2026-01-01T00:00:00Z"));
                assert_eq!(status.failure.unwrap().command, "", "it would be as long");
                Some(status.conditions[0].message.clone())
            }
            _ => None,
        };
        assert_eq!(found.as_deref(), expected, "{state:?} {length}");
    };
    check(ActionState::Pending, 200 * 1024, None);
    check(ActionState::Pending, 256 * 1024, Some("spec is longer than 256 KiB"));
    check(ActionState::Running, 256 * 1024, None);
}

#[test]
fn a_long_explanation_ends_with_the_number_of_lines_that_are_left_out() {
    let check = |count: usize, length: usize, expected: usize, last: &str| {
        let shown = explained(&vec!["x".repeat(length); count]);
        assert_eq!(shown.len(), expected, "{count} {length}");
        assert!(shown.last().unwrap().ends_with(last), "{count} {length}: {:?}", shown.last());
    };
    check(1000, 20, 1000, "x");
    check(2, 5000, 2, "x…");
    check(70, 1024, 65, "and 6 more lines");
}

#[test]
fn a_deletion_that_sets_fields_before_needs_both_permissions() {
    let check = |delete: bool, patch: bool, spec_fields: Option<Value>, expected: bool| {
        let by_hand = DirectPermissions { delete, patch, ..DirectPermissions::default() };
        let change = PlannedChange {
            operator: "foo".into(),
            operation: ChangeOperation::Delete,
            spec_fields: spec_fields.clone(),
            ..PlannedChange::default()
        };
        let plan = ActionPlan { changes: vec![change], ..ActionPlan::default() };
        for class in ["operator-delete", "autoremove"] {
            let may = by_hand.may(class, Some(&plan));
            assert_eq!(may, expected, "{class} {by_hand:?} {spec_fields:?}");
        }
    };
    let keeps = || Some(json!({ "deletion": { "crds": "Orphan" } }));
    check(true, false, None, true);
    check(true, false, keeps(), false);
    check(true, true, keeps(), true);
    check(false, true, keeps(), false);
}

#[test]
fn an_action_that_is_not_planned_again_keeps_how_often_it_began() {
    let check = |policies: &str, attempts: u32, is_granted: bool| {
        let spec = ActionSpec {
            action_class: "operator-install".into(),
            package: "foo".into(),
            version: "^1".into(),
            requester: Some(alice()),
            ..ActionSpec::default()
        };
        let status = ActionStatus { attempts, ..ActionStatus::default() };
        let action =
            ActionObject { namespace: "tea".into(), spec, status, ..ActionObject::default() };
        let decision = ActionDecision {
            action: &action,
            class: &class("operator-install"),
            policies: &read_policies(policies),
            windows: &MaintenanceWindows::default(),
            active: 0,
            created: &BTreeSet::new(),
            labels: &BTreeMap::new(),
            by_hand: DirectPermissions::default(),
            now: at("2026-01-01T00:00:00Z"),
        };
        let refused = decision.admit().map_err(|it| it.status.attempts);
        assert_eq!(refused.map(|_| ()), if is_granted { Ok(()) } else { Err(attempts) });
        assert_eq!(decision.unplanned().attempts, attempts);
    };
    check("", 0, false);
    check("", 2, false);
    check(POLICIES, 2, true);
}

#[test]
fn what_is_left_of_a_plan_needs_the_approval_that_policies_require_by_now() {
    let policy = |name: &str, rules: &str| {
        format!(
            "apiVersion: olm.io/v1\nkind: ActionPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
             subjects: [{{kind: User, name: alice}}]\n  classes: [operator-install]\n  \
             enforce: {rules}\n"
        )
    };
    let asking = policy("asking", "{requiresApproval: true}");
    let plain = policy("plain", "{maxActive: 1}");
    let both = format!("{asking}---\n{plain}");
    let fixed = policy("fixed", "{attributes: [{name: installDependencies, fixed: true}]}");
    let ranged = policy("ranged", "{attributes: [{name: version, range: <2}]}");
    let check = |policies: &str, approved: Option<&str>, expected: Result<(), Reason>| {
        let approvals = approved.map(|plan| ActionApproval {
            approver: "carol".into(),
            plan: plan.into(),
            ..ActionApproval::default()
        });
        let change = PlannedChange {
            operator: "foo".into(),
            operation: ChangeOperation::Update,
            requested: "^1".into(),
            version: "1.0.0".into(),
            ..PlannedChange::default()
        };
        let spec = ActionSpec {
            action_class: "operator-install".into(),
            package: "foo".into(),
            requester: Some(alice()),
            approvals: Vec::from_iter(approvals),
            ..ActionSpec::default()
        };
        let class = class("operator-install");
        let action = ActionObject {
            status: ActionStatus {
                state: ActionState::Running,
                plan: vec![change],
                plan_digest: "planned".into(),
                effective_spec: effective(&spec, &class, None).unwrap().listed(),
                ..ActionStatus::default()
            },
            spec,
            ..ActionObject::default()
        };
        let decision = ActionDecision {
            action: &action,
            class: &class,
            policies: &read_policies(policies),
            windows: &MaintenanceWindows::default(),
            active: 5,
            created: &BTreeSet::new(),
            labels: &BTreeMap::new(),
            by_hand: DirectPermissions::default(),
            now: at("2026-01-01T00:00:00Z"),
        };
        let found = decision.admit_further().map_err(|it| it.reason);
        assert_eq!(found, expected, "{policies} {approved:?}");
    };
    check("", None, Err(Reason::PolicyDenied));
    check(&plain, None, Ok(()));
    check(&asking, None, Err(Reason::ApprovalRequired));
    check(&asking, Some("other"), Err(Reason::PlanChanged));
    check(&asking, Some("planned"), Ok(()));
    // One policy that grants it is enough, unless it grants another plan.
    check(&both, None, Ok(()));
    check(&fixed, None, Err(Reason::PlanChanged));
    check(&ranged, None, Err(Reason::PlanChanged));
    // Nor does one count that asks for another plan if there is one that grants this one, whatever their order.
    let strict =
        policy("curated", "{catalogs: [curated], preconditions: {noNewClusterPermissions: true}}");
    check(&strict, None, Err(Reason::PolicyDenied));
    check(&format!("{ranged}---\n{strict}---\n{plain}"), None, Ok(()));
    check(&format!("{fixed}---\n{asking}"), Some("planned"), Ok(()));
}

#[test]
fn a_change_that_is_given_up_has_the_beginning_of_the_reason() {
    let check = |message: &str, expected: &str| {
        let change = PlannedChange {
            operator: "foo".into(),
            operation: ChangeOperation::Create,
            ..PlannedChange::default()
        };
        let mut status = ActionStatus { plan: vec![change], ..ActionStatus::default() };
        give_up(&mut status, &ActionFailure::new(Reason::PolicyDenied, message));
        let given_up = &status.plan[0].message;
        assert!(given_up.len() <= 1024 && given_up.ends_with(expected), "{given_up}");
    };
    check("no policy grants it", "no policy grants it");
    check(&"é".repeat(4_000), "é\n(cut off: it has 8000 bytes)");
}
