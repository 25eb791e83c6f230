//! The words of objections (CV-18.4).

use plimsoll_api::{ConditionStatus, Reason};
use serde_json::json;

use super::{NotUpgradeable, conditions, objection_of};

fn operator(name: &str) -> NotUpgradeable {
    NotUpgradeable {
        operator: name.to_owned(),
        reason: "OldNodes".to_owned(),
        message: format!("{name} has old nodes"),
    }
}

/// Types with their reasons, in order.
fn check(overrides: bool, in_progress: bool, operators: &[&str], expected: &[(&str, &str)]) {
    let operators: Vec<NotUpgradeable> = operators.iter().map(|name| operator(name)).collect();
    let objections = conditions(overrides.then_some(""), in_progress, &operators, None, &[], &[]);
    let shown: Vec<(&str, &str)> =
        objections.iter().map(|it| (it.type_, it.reason.as_str())).collect();
    assert_eq!(shown, expected);
}

#[test]
fn one_objection_is_reported_and_several_are_summed_up() {
    check(false, false, &[], &[]);
    check(true, false, &[], &[("Upgradeable", "ClusterVersionOverridesSet")]);
    check(false, true, &[], &[("Upgradeable", "UpdateInProgress")]);
    check(false, false, &["a"], &[("Upgradeable", "OldNodes")]);
    check(false, false, &["b", "a"], &[("Upgradeable", "ClusterOperatorsNotUpgradeable")]);
    check(
        true,
        true,
        &["a"],
        &[
            ("Upgradeable", "MultipleReasons"),
            ("UpgradeableClusterOperators", "OldNodes"),
            ("UpgradeableClusterVersionOverrides", "ClusterVersionOverridesSet"),
            ("UpgradeableUpgradeInProgress", "UpdateInProgress"),
        ],
    );
}

#[test]
fn the_sum_lists_reasons_and_messages() {
    let summed = conditions(None, true, &[operator("b"), operator("a")], None, &[], &[]).remove(0);
    assert_eq!(summed.status, ConditionStatus::False);
    assert_eq!(
        summed.message,
        "Cluster should not be upgraded between minor or major versions for multiple reasons: \
         ClusterOperatorsNotUpgradeable,UpdateInProgress\n\
         * Multiple cluster operators should not be upgraded between minor or major versions:\n\
         * Cluster operator a should not be upgraded between minor or major versions: \
         OldNodes: a has old nodes\n\
         * Cluster operator b should not be upgraded between minor or major versions: \
         OldNodes: b has old nodes\n\
         * An update is already in progress and the details are in the Progressing condition."
    );
}

#[test]
fn only_an_explicit_false_is_an_objection() {
    // CVS-48.
    let live = |status: &str| {
        json!({
            "metadata": {"name": "a"},
            "status": {"conditions": [{
                "type": "Upgradeable",
                "status": status,
                "reason": "OldNodes",
                "message": "a has old nodes",
            }]},
        })
    };
    assert_eq!(objection_of(&live("False")), Some(operator("a")));
    assert_eq!(objection_of(&live("Unknown")), None);
    assert_eq!(objection_of(&live("True")), None);
    assert_eq!(objection_of(&json!({"metadata": {"name": "a"}})), None);
}

#[test]
fn what_is_to_be_acknowledged_objects_like_the_rest() {
    let ack = (Reason::AdminAckRequired, "Read the notes.".to_owned());
    let alone = conditions(None, false, &[], Some(&ack), &[], &[]).remove(0);
    assert_eq!((alone.type_, alone.message.as_str()), ("Upgradeable", "Read the notes."));
    let types: Vec<&str> = conditions(Some(""), false, &[operator("a")], Some(&ack), &[], &[])
        .iter()
        .map(|objection| objection.type_)
        .collect();
    assert_eq!(
        types,
        [
            "Upgradeable",
            "UpgradeableClusterOperators",
            "UpgradeableAdminAckRequired",
            "UpgradeableClusterVersionOverrides"
        ]
    );
}
