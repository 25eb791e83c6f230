//! Changes that may have been sent, and what the API server has.

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ChangeOperation, ChangeState, PlannedChange};

use super::{Arrival, FoundObject, arrival, contradiction, mark, record};

const ACTION: &str = "a1";

fn change(operation: ChangeOperation) -> PlannedChange {
    let is_release =
        matches!(operation, ChangeOperation::UpdateRelease | ChangeOperation::EnableCapability);
    PlannedChange {
        operator: if is_release { String::new() } else { "foo".into() },
        operation,
        uid: if operation == ChangeOperation::Create { String::new() } else { "u1".into() },
        requested_before: "1.0.0".into(),
        requested: "2.0.0".into(),
        capability: match operation {
            ChangeOperation::EnableCapability => "Console".into(),
            _ => String::new(),
        },
        state: ChangeState::Writing,
        ..PlannedChange::default()
    }
}

/// Reads an object: `UID REQUESTED CREATED-BY MARK`, `-` for nothing; `gone` for none.
fn found(text: &str) -> Option<FoundObject> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [uid, requested, created_by, mark] = words[..] else { return None };
    let text = |word: &str| if word == "-" { String::new() } else { word.to_owned() };
    let capabilities = match requested {
        "Console" => vec!["Console".to_owned()],
        _ => Vec::new(),
    };
    Some(FoundObject {
        uid: uid.trim_end_matches('!').into(),
        is_deleting: uid.ends_with('!'),
        created_by: text(created_by),
        mark: text(mark),
        requested: text(requested),
        capabilities,
    })
}

#[test]
fn a_change_that_may_have_been_sent_is_looked_up() {
    use ChangeOperation::{Create, Delete, EnableCapability, Update, UpdateRelease};
    let check = |operation, there: &str, expected: &str| {
        let arrival = arrival(ACTION, 1, &change(operation), found(there).as_ref());
        let text = match arrival {
            Arrival::Arrived => "arrived".to_owned(),
            Arrival::Absent => "absent".to_owned(),
            Arrival::Superseded(why) => format!("superseded: {why}"),
            Arrival::Unknown(why) => format!("unknown: {why}"),
        };
        assert_eq!(text, expected, "{operation:?} {there}");
    };
    check(Create, "gone", "absent");
    check(Create, "u7 - a1 -", "arrived");
    check(Create, "u7! - a1 -", "arrived");
    check(Create, "u7 - a2 -", "superseded: another client created foo");
    check(Create, "u7 - - -", "superseded: another client created foo");
    check(Delete, "gone", "arrived");
    check(Delete, "u1! - - -", "arrived");
    check(Delete, "u2 - - -", "arrived");
    check(Delete, "u1 - - -", "absent");
    check(Update, "u1 1.0.0 - -", "absent");
    check(Update, "u1 2.0.0 - -", "arrived");
    check(Update, "u1 2.0.0 - a1/1", "arrived");
    // Another client has reverted it, or requested something else since.
    check(Update, "u1 1.0.0 - a1/1", "arrived");
    check(Update, "u1 3.0.0 - a1/1", "arrived");
    check(Update, "u1 3.0.0 - -", "superseded: \"3.0.0\" was requested of foo");
    // These marks are of another Action, and of an earlier change of the same one.
    check(Update, "u1 1.0.0 - a2/1", "absent");
    check(Update, "u1 1.0.0 - a12/1", "absent");
    check(Update, "u1 1.0.0 - a1/0", "absent");
    check(Update, "u1 1.0.0 - a1/2", "arrived");
    let gone = "foo was deleted, and whether it had been changed before is not known";
    check(Update, "gone", &format!("unknown: {gone}"));
    check(Update, "u2 1.0.0 - -", &format!("unknown: {gone}"));
    check(UpdateRelease, "u1 1.0.0 - a1/1", "arrived");
    check(UpdateRelease, "u1 1.0.0 - -", "absent");
    check(UpdateRelease, "u1 3.0.0 - -", "superseded: release \"3.0.0\" was requested");
    check(EnableCapability, "u1 - - -", "absent");
    check(EnableCapability, "u1 Console - -", "arrived");
    check(EnableCapability, "u1 - - a1/1", "arrived");
    assert_eq!(mark(ACTION, 1), "a1/1");
}

#[test]
fn a_change_that_was_not_sent_is_not_unknown() {
    let planned = PlannedChange { state: ChangeState::Planned, ..change(ChangeOperation::Update) };
    let superseded = Arrival::Superseded("foo was deleted".to_owned());
    assert_eq!(arrival(ACTION, 0, &planned, None), superseded);
}

#[test]
fn what_became_of_a_change_is_recorded() {
    let check = |arrival: Arrival, expected: (ChangeState, &str)| {
        let mut change = change(ChangeOperation::Update);
        record(&mut change, arrival);
        assert_eq!((change.state, change.reason.as_str()), expected);
    };
    check(Arrival::Arrived, (ChangeState::Written, ""));
    check(Arrival::Absent, (ChangeState::Planned, ""));
    check(Arrival::Superseded("why".into()), (ChangeState::Planned, ""));
    let unknown = (ChangeState::Writing, Reason::OutcomeUnknown.as_str());
    check(Arrival::Unknown("why".into()), unknown);
}

#[test]
fn objects_that_went_back_in_time_contradict_what_was_written() {
    use ChangeOperation::{Await, Create, Delete, EnableCapability, Update, UpdateRelease};
    let check = |operation, state, there: &str, expected: Option<&str>| {
        let change = PlannedChange { state, ..change(operation) };
        let how = contradiction(ACTION, 0, &change, found(there).as_ref());
        let end = ": another client undid it, or the cluster was restored to an earlier state";
        assert_eq!(how, expected.map(|it| format!("{it}{end}")), "{operation:?} {there}");
    };
    use ChangeState::{Completed, Planned, Written};
    check(Create, Written, "gone", Some("foo is not there any more"));
    check(Create, Planned, "gone", None);
    check(Create, Written, "u7 - a1 -", None);
    check(Delete, Written, "u1 - - -", Some("foo is there again"));
    check(Delete, Written, "u1! - - -", None);
    check(Delete, Written, "gone", None);
    check(Update, Written, "u1 1.0.0 - -", Some("foo requests \"1.0.0\" again"));
    check(Update, Written, "u1 1.0.0 - a1/0", None);
    check(Update, Written, "gone", None);
    check(UpdateRelease, Written, "u1 1.0.0 - -", Some("release requests \"1.0.0\" again"));
    check(EnableCapability, Written, "u1 - - -", Some("Console is not requested any more"));
    check(Await, Written, "gone", None);
    // A user may do so later.
    check(Create, Completed, "gone", None);
    check(Update, Completed, "u1 1.0.0 - -", None);
    check(UpdateRelease, Completed, "u1 1.0.0 - -", None);
    check(EnableCapability, Completed, "u1 - - -", None);
    check(Delete, Completed, "u2 - - -", None);
    // No user can: another object has another uid.
    check(Delete, Completed, "u1 - - -", Some("foo is there again"));
}
