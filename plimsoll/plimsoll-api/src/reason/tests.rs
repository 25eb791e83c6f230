//! The list of reasons and its documentation.

use std::collections::BTreeSet;

use super::Reason;

#[test]
fn every_reason_is_documented_and_nothing_else() {
    let table = include_str!("../../../../docs/reasons.md");
    let documented: BTreeSet<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let listed: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(documented, listed);
}

#[test]
fn a_reason_is_a_word_that_the_api_accepts() {
    for reason in Reason::ALL {
        let name = reason.as_str();
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
        assert!(name.starts_with(|first: char| first.is_ascii_uppercase()), "{name}");
    }
}
