//! Approvals of plan `sha256:ab` of an Action of `alice`.

use plimsoll_api::olm::action::ActionSpec;
use plimsoll_api::olm::policy::PolicyRules;
use serde_json::{Value, json};

use super::{ApprovalRule, ApprovalState};

/// Returns the state as the word for it, and the reason and message.
#[track_caller]
fn state(rules: Value, approvals: &Value) -> String {
    let rules: PolicyRules = serde_json::from_value(rules).unwrap();
    let rule = ApprovalRule::of(&rules).expect("an approval is demanded");
    let spec = json!({
        "actionClass": "operator-delete", "requester": { "username": "alice" }, "approvals": approvals,
    });
    let spec: ActionSpec = serde_json::from_value(spec).unwrap();
    match rule.state(&spec, "sha256:ab") {
        ApprovalState::Approved => "approved".to_owned(),
        ApprovalState::Missing(failure) | ApprovalState::Rejected(failure) => {
            format!("{}: {}", failure.reason, failure.message)
        }
    }
}

fn by(approver: &str, groups: &[&str]) -> Value {
    json!({ "approver": approver, "groups": groups, "plan": "sha256:ab" })
}

fn rejected_by(approver: &str, reason: &str) -> Value {
    let mut rejection = by(approver, &[]);
    rejection["decision"] = "Rejected".into();
    rejection["reason"] = reason.into();
    rejection
}

#[test]
fn one_approval_of_the_plan_is_enough_unless_more_are_demanded() {
    let check = |approvals: Value, expected: &str| {
        assert_eq!(state(json!({ "requiresApproval": true }), &approvals), expected);
    };
    check(json!([]), "ApprovalRequired: plan sha256:ab needs an approval");
    check(json!([by("carol", &[])]), "approved");
    check(
        json!([{ "approver": "carol", "plan": "sha256:cd" }]),
        "PlanChanged: carol approved plan sha256:cd, and now it is sha256:ab: approve that one",
    );
    check(json!([{ "approver": "carol", "plan": "sha256:cd" }, by("dora", &[])]), "approved");
}

#[test]
fn the_requester_never_approves() {
    let check = |rules: Value, expected: &str| {
        assert_eq!(state(rules, &json!([by("alice", &["sre"])])), expected);
    };
    let says = "ApprovalRequired: plan sha256:ab needs an approval; that of alice does not count";
    check(json!({ "requiresApproval": true }), says);
    let says = "ApprovalRequired: plan sha256:ab needs an approval of group sre or user alice; that of \
                alice does not count";
    let subjects = json!([{ "kind": "Group", "name": "sre" }, { "kind": "User", "name": "alice" }]);
    check(json!({ "approvers": subjects }), says);
}

#[test]
fn approvals_of_those_who_are_named_count_once_each() {
    let rules = json!({
        "approvalCount": 2,
        "approvers": [
            { "kind": "Group", "name": "sre" },
            { "kind": "ServiceAccount", "name": "gate", "namespace": "ci" },
        ],
    });
    let check = |approvals: Value, expected: &str| {
        assert_eq!(state(rules.clone(), &approvals), expected);
    };
    let needs = "ApprovalRequired: plan sha256:ab needs 2 approvals of group sre or service account \
                 ci/gate";
    check(json!([]), needs);
    let one = format!("{needs}, and has that of carol");
    check(json!([by("carol", &["sre"])]), &one);
    check(json!([by("carol", &["sre"]), by("carol", &["sre"])]), &one);
    let other = format!("{one}; that of dora does not count");
    check(json!([by("carol", &["sre"]), by("dora", &["dev"])]), &other);
    let gate = by("system:serviceaccount:ci:gate", &[]);
    check(json!([by("carol", &["sre"]), gate]), "approved");
    check(json!([by("carol", &["sre"]), by("dora", &["dev", "sre"])]), "approved");
}

#[test]
fn a_rejection_of_one_who_could_approve_ends_it() {
    let rules = json!({ "approvers": [{ "kind": "User", "name": "carol" }] });
    let check = |approvals: Value, expected: &str| {
        assert_eq!(state(rules.clone(), &approvals), expected);
    };
    check(
        json!([rejected_by("carol", "not before Monday")]),
        "PlanRejected: carol rejected plan sha256:ab: not before Monday",
    );
    check(json!([rejected_by("carol", "")]), "PlanRejected: carol rejected plan sha256:ab");
    check(
        json!([rejected_by("dora", "")]),
        "ApprovalRequired: plan sha256:ab needs an approval of user carol; that of dora does not count",
    );
    let mut other_plan = rejected_by("carol", "");
    other_plan["plan"] = "sha256:cd".into();
    check(json!([other_plan]), "ApprovalRequired: plan sha256:ab needs an approval of user carol");
}
