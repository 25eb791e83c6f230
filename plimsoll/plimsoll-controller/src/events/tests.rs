//! Tests of what becomes of occurrences, on a time of their own.

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::Reason;

use super::correlator::{BURST, EventCorrelator, REFILL, SERIES_ENDS_AFTER, SERIES_REFRESH, Write};
use super::{
    CLUSTER_VERSION, CLUSTER_VERSION_NAME, Occurrence, Severity, cluster_scoped, truncated,
};

fn reported(note: &str) -> Occurrence {
    Occurrence {
        severity: Severity::Normal,
        reason: Reason::PayloadLoaded,
        action: "Update",
        note: note.to_owned(),
        regarding: cluster_scoped(CLUSTER_VERSION, CLUSTER_VERSION_NAME, "uid"),
        related: None,
    }
}

/// Occurrences by second and note; what is written, as `+note` for an Event and `note xN` for a
/// count; `~` has the correlator tidied.
#[track_caller]
fn check(occurrences: &[(SignedDuration, &str)], expected: &[&str]) {
    let mut correlator = EventCorrelator::default();
    let mut written = Vec::new();
    for (at, note) in occurrences {
        let now = Timestamp::UNIX_EPOCH + *at;
        let writes = match *note {
            "~" => correlator.tidy(now),
            note => correlator.note(reported(note), now).into_iter().collect(),
        };
        written.extend(writes.into_iter().map(|write| match write {
            Write::Create(entry) => format!("+{}", entry.occurrence.note),
            Write::Count(entry) => format!("{} x{}", entry.occurrence.note, entry.count),
        }));
    }
    assert_eq!(written, expected);
}

const fn s(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

#[test]
fn what_is_repeated_is_one_event_with_a_count() {
    check(&[(s(0), "a"), (s(1), "b")], &["+a", "+b"]);
    check(&[(s(0), "a"), (s(1), "a"), (s(2), "a")], &["+a", "a x2"]);
    let ended = s(2) + SERIES_ENDS_AFTER;
    check(&[(s(0), "a"), (s(1), "a"), (s(2), "a"), (ended, "~")], &["+a", "a x2", "a x3"]);
    check(&[(s(0), "a"), (s(1), "a"), (s(1) + SERIES_ENDS_AFTER, "~")], &["+a", "a x2"]);
    check(&[(s(0), "a"), (SERIES_ENDS_AFTER, "a")], &["+a", "+a"]);
}

#[test]
fn a_series_that_goes_on_is_refreshed() {
    let mut occurrences: Vec<_> = (0..31).map(|minute| (s(minute * 60), "a")).collect();
    occurrences.push((SERIES_REFRESH, "~"));
    occurrences.push((SERIES_REFRESH + s(60), "a"));
    // The second occurrence was written a minute in: half an hour later the count is due.
    occurrences.push((SERIES_REFRESH + s(60), "~"));
    occurrences.push((SERIES_REFRESH + s(61), "~"));
    check(&occurrences, &["+a", "a x2", "a x32"]);
}

#[test]
fn one_object_has_a_burst_and_then_one_event_at_a_time() {
    let notes: Vec<String> = (0..=BURST + 1).map(|number| number.to_string()).collect();
    let burst = usize::try_from(BURST).expect("a small number");
    let mut occurrences: Vec<_> = notes[..=burst].iter().map(|it| (s(0), it.as_str())).collect();
    occurrences.push((REFILL, &notes[burst + 1]));
    occurrences.push((REFILL, "one more"));
    let mut expected: Vec<String> = notes[..burst].iter().map(|it| format!("+{it}")).collect();
    expected.push(format!("+{}", notes[burst + 1]));
    check(&occurrences, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn long_texts_end_between_characters() {
    assert_eq!(truncated("plan", 8), "plan");
    assert_eq!(truncated("plan", 2), "pl");
    assert_eq!(truncated("süß", 2), "s");
}
