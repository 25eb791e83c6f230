//! How transition times are kept, and messages are cut.

use jiff::Timestamp;

use super::{Condition, ConditionStatus, MESSAGE_LENGTH_MAX, limited_message, merge_conditions};

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

#[test]
fn a_message_that_is_too_long_is_cut_and_says_how_much() {
    // The limit is one of characters, whatever their size.
    for character in ["a", "ß", "🦀"] {
        let fits = character.repeat(MESSAGE_LENGTH_MAX);
        assert_eq!(limited_message(fits.clone()), fits);
        let cut = limited_message(format!("{fits}{fits}"));
        assert!(cut.chars().count() <= MESSAGE_LENGTH_MAX, "{}", cut.chars().count());
        let end = format!("{character} ... and 32816 more characters");
        assert!(cut.ends_with(&end));
    }
    let mut long = condition("Long", ConditionStatus::True, 1, "New");
    long.message = "a".repeat(MESSAGE_LENGTH_MAX + 1);
    let merged = merge_conditions(&[], vec![long]);
    assert!(merged[0].message.len() <= MESSAGE_LENGTH_MAX);
}
