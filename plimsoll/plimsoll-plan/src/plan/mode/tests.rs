//! The mode for each shape of history.

use jiff::Timestamp;
use plimsoll_api::config::{UpdateHistory, UpdateState};

use super::{Mode, choose};

fn check(entries: &[(UpdateState, &str)], image: &str, expected: Mode) {
    let history: Vec<UpdateHistory> = entries
        .iter()
        .map(|(state, image)| UpdateHistory {
            state: *state,
            started_time: Timestamp::UNIX_EPOCH,
            completion_time: None,
            version: String::new(),
            image: (*image).to_owned(),
            verified: false,
            accepted_risks: String::new(),
        })
        .collect();
    assert_eq!(choose(&history, image), expected, "{entries:?} with {image}");
}

#[test]
fn the_mode_follows_from_history_and_image() {
    use UpdateState::{Completed, Partial};
    check(&[], "a", Mode::Initializing);
    check(&[(Partial, "a")], "a", Mode::Initializing);
    check(&[(Partial, "b"), (Partial, "a")], "b", Mode::Initializing);
    check(&[(Completed, "a")], "a", Mode::Reconciling);
    check(&[(Completed, "a")], "b", Mode::Updating);
    check(&[(Partial, "b"), (Completed, "a")], "b", Mode::Updating);
    check(&[(Partial, "b"), (Completed, "a")], "a", Mode::Updating);
    check(&[(Completed, "b"), (Completed, "a")], "a", Mode::Updating);
}
