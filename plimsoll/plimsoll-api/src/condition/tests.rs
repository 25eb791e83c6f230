//! How transition times are kept.

use jiff::Timestamp;

use super::{Condition, ConditionStatus, merge_conditions};

fn condition(type_: &str, status: ConditionStatus, second: i64, reason: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status,
        last_transition_time: Timestamp::from_second(second).expect("a small number"),
        reason: reason.to_owned(),
        message: String::new(),
    }
}

#[test]
fn a_transition_time_moves_with_the_status_only() {
    use ConditionStatus::{False, True};
    let current = [
        condition("Kept", True, 1, "Old"),
        condition("Turned", True, 1, "Old"),
        condition("Gone", True, 1, "Old"),
    ];
    let desired = vec![
        condition("New", False, 5, "New"),
        condition("Kept", True, 5, "New"),
        condition("Turned", False, 5, "New"),
    ];
    assert_eq!(
        merge_conditions(&current, desired),
        [
            condition("New", False, 5, "New"),
            condition("Kept", True, 1, "New"),
            condition("Turned", False, 5, "New"),
        ]
    );
}
