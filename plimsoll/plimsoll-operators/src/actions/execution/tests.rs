//! The progress of plans, as Operators report it.

use std::time::Duration;

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ActionSpec, ActionStatus, ChangeOperation, ChangeState, PlannedChange,
};
use serde_json::json;

use super::{is_untouched, next_write, observe, outcome};
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
