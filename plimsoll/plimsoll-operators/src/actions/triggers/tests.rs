//! The Actions of schedules and of changes.

use std::collections::BTreeMap;

use plimsoll_api::olm::action::{
    ActionState, ConcurrencyPolicy, CronActionSpec, EventActionSpec, EventActionStatus,
};

use super::{MadeAction, cron, event, selector_problem};
use crate::actions::tests::at;

fn made(name: &str, state: ActionState, minute: u32) -> MadeAction {
    let time = at(&format!("2026-01-01T00:{minute:02}:00Z"));
    let ended = Some(time).filter(|_| state.is_final());
    MadeAction { name: name.into(), state, created: time, ended }
}

#[test]
fn a_schedule_makes_each_action_once() {
    let created = at("2026-01-01T00:00:00Z");
    let hourly = CronActionSpec { schedule: "0 * * * *".into(), ..CronActionSpec::default() };
    let decide = |spec: &CronActionSpec, status: &_, made: &[MadeAction], now: &str| {
        cron("nightly", created, spec, status, made, at(now))
    };
    let early = decide(&hourly, &Default::default(), &[], "2026-01-01T00:30:00Z");
    assert_eq!((early.make, early.wake_at), (None, Some(at("2026-01-01T01:00:00Z"))));
    // Three times passed without a controller: the latest one counts.
    let due = decide(&hourly, &Default::default(), &[], "2026-01-01T03:10:00Z");
    let name = due.make.clone().unwrap();
    assert_eq!(name, format!("nightly-{}", at("2026-01-01T03:00:00Z").as_second() / 60));
    assert_eq!(due.status.last_schedule_time, Some(at("2026-01-01T03:00:00Z")));
    // The decision is the same until it is recorded, and empty afterwards.
    let again = decide(&hourly, &Default::default(), &[], "2026-01-01T03:11:00Z");
    assert_eq!(again.make, Some(name));
    assert_eq!(decide(&hourly, &due.status, &[], "2026-01-01T03:12:00Z").make, None);
    let suspended = CronActionSpec { suspend: true, ..hourly.clone() };
    let nothing = decide(&suspended, &Default::default(), &[], "2026-01-01T03:10:00Z");
    assert_eq!((nothing.make, nothing.wake_at), (None, None));
    let strict = CronActionSpec { starting_deadline_seconds: Some(60), ..hourly.clone() };
    let late = decide(&strict, &Default::default(), &[], "2026-01-01T03:10:00Z");
    assert_eq!((late.make, late.status.last_schedule_time), (None, due.status.last_schedule_time));
    let running = [made("a", ActionState::Running, 1)];
    let forbids =
        CronActionSpec { concurrency_policy: ConcurrencyPolicy::Forbid, ..hourly.clone() };
    assert_eq!(decide(&forbids, &Default::default(), &running, "2026-01-01T03:10:00Z").make, None);
    let replaces =
        CronActionSpec { concurrency_policy: ConcurrencyPolicy::Replace, ..hourly.clone() };
    let replaced = decide(&replaces, &Default::default(), &running, "2026-01-01T03:10:00Z");
    assert!(replaced.make.is_some());
    assert_eq!(replaced.cancel, ["a"]);
    let broken = CronActionSpec { schedule: "never".into(), ..hourly };
    let message = decide(&broken, &Default::default(), &[], "2026-01-01T03:10:00Z").status.message;
    assert!(message.contains("is no schedule"), "{message}");
}

#[test]
fn a_selector_that_no_object_can_have_is_named() {
    let check = |key: &str, value: &str, expected: Option<&str>| {
        let selector = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let found = selector_problem(&selector);
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        if let Some((found, expected)) = found.zip(expected) {
            let begin = "spec.on.object.selector is invalid: ";
            assert!(found.starts_with(&format!("{begin}{expected}: ")), "{found}");
        }
    };
    check("tier", "web", None);
    check("example.com/tier", "", None);
    check("tier", "a b", Some("`tier: a b`"));
    check("tier!", "web", Some("`tier!: web`"));
    // API servers would read two labels.
    check("tier,other", "web", Some("`tier,other: web`"));
    assert_eq!(selector_problem(&BTreeMap::new()), None);
}

#[test]
fn histories_are_limited_oldest_first() {
    let spec = CronActionSpec {
        schedule: "0 0 1 1 *".into(),
        successful_actions_history_limit: Some(1),
        ..CronActionSpec::default()
    };
    let history = [
        made("new", ActionState::Succeeded, 5),
        made("old", ActionState::Succeeded, 1),
        made("mid", ActionState::Succeeded, 3),
        made("failed", ActionState::Failed, 4),
        made("cancelled", ActionState::Cancelled, 2),
        made("running", ActionState::Running, 0),
    ];
    let created = at("2026-01-01T00:00:00Z");
    let decision = cron("c", created, &spec, &Default::default(), &history, created);
    assert_eq!(decision.delete, ["old", "cancelled", "mid"]);
}

#[test]
fn a_change_makes_one_action_however_often_it_is_shown() {
    let spec = EventActionSpec::default();
    let content = |digest: &str| BTreeMap::from([("community".to_owned(), digest.to_owned())]);
    let now = at("2026-01-01T00:00:00Z");
    // Long after any change before.
    let decide = |status: &EventActionStatus, digest: &str| {
        let hour = std::time::Duration::from_secs(60 * 60);
        let now = status.last_event_time.map_or(now, |it| it + hour);
        event("refresh", "9e5b", &spec, status, Ok(&content(digest)), &[], now)
    };
    let first = decide(&EventActionStatus::default(), "sha256:a");
    assert_eq!(first.status.pending, "", "what was there before is no change");
    assert_eq!(decide(&first.status, "sha256:a").status, first.status);
    let changed = decide(&first.status, "sha256:b");
    let pending = changed.status.pending.as_str();
    assert_eq!((changed.make, pending.is_empty()), (None, false), "it is recorded first");
    let made = decide(&changed.status, "sha256:c");
    assert_eq!(made.make.as_deref(), Some(pending), "whatever else changes meanwhile");
    assert_eq!(
        (made.status.pending.as_str(), &made.status.observed[0].content[..]),
        ("", "sha256:b")
    );
    let message = "no quota".to_owned();
    let refused = EventActionStatus { message, ..changed.status.clone() };
    assert_eq!(decide(&refused, "sha256:c"), made, "it is made although it was refused before");
    assert_eq!(decide(&made.status, "sha256:b").status, made.status);
    let back = decide(&made.status, "sha256:a").status;
    let forth = decide(&decide(&back, "sha256:a").status, "sha256:b").status;
    assert!(!back.pending.is_empty());
    assert_ne!(forth.pending, back.pending);
    assert_ne!(forth.pending, pending, "the same content, but another change");
    let other = EventActionSpec { suspend: true, ..spec.clone() };
    let suspended = event("refresh", "9e5b", &other, &first.status, Ok(&content("c")), &[], now);
    assert_eq!(suspended.status.pending, "");
    assert_eq!(suspended.status.observed[0].content, "c");
    let mut others = spec;
    others.on.names = vec!["community".to_owned()];
    let anew = event("refresh", "9e5b", &others, &first.status, Ok(&content("d")), &[], now);
    assert_eq!(anew.status.pending, "", "another condition is no change of objects");
}

#[test]
fn changes_one_right_after_the_other_make_one_action_after_a_pause() {
    let spec = EventActionSpec::default();
    let content = |digest: &str| BTreeMap::from([("community".to_owned(), digest.to_owned())]);
    let decide = |status: &EventActionStatus, digest: &str, second: u32| {
        let now = at(&format!("2026-01-01T00:00:{second:02}Z"));
        event("refresh", "9e5b", &spec, status, Ok(&content(digest)), &[], now)
    };
    let first = decide(&EventActionStatus::default(), "a", 0);
    let changed = decide(&first.status, "b", 10);
    let made = decide(&changed.status, "b", 10);
    assert!(made.make.is_some());
    let due = at("2026-01-01T00:00:15Z");
    for (digest, second) in [("c", 11), ("d", 14)] {
        let early = decide(&made.status, digest, second);
        assert_eq!((early.wake_at, &early.status), (Some(due), &made.status), "{digest}");
    }
    let late = decide(&made.status, "d", 15);
    assert_eq!((late.wake_at, late.status.pending.is_empty()), (None, false));
    assert_eq!(late.status.last_event_time, Some(due));
    // What is as it was does not wait for anything, nor does a change after the clock was set back.
    assert_eq!(decide(&made.status, "b", 11).wake_at, None);
    assert!(!decide(&made.status, "c", 9).status.pending.is_empty());
}

#[test]
fn schedules_with_long_names_make_actions_of_different_names() {
    let created = at("2026-01-01T00:00:00Z");
    let hourly = CronActionSpec { schedule: "0 * * * *".into(), ..CronActionSpec::default() };
    let made = |name: &str, now: &str| {
        let made = cron(name, created, &hourly, &Default::default(), &[], at(now)).make;
        made.expect("it is due")
    };
    let long = "update-of-all-operators-of-the-team-that-runs-the-databases";
    let mut names = BTreeMap::new();
    for name in [format!("{long}-one"), format!("{long}-two")] {
        for now in ["2026-01-01T01:10:00Z", "2026-01-01T02:10:00Z"] {
            let action = made(&name, now);
            assert!(action.len() <= 63, "{action}");
            assert_eq!(names.insert(action, (name.clone(), now)), None);
        }
    }
}

#[test]
fn the_documentation_quotes_a_field_that_kubectl_reads_as_true() {
    let text = include_str!("../../../../../docs/actions.md");
    let unquoted = text.lines().find(|it| it.trim_start().starts_with("on:"));
    assert_eq!(unquoted, None);
}

#[test]
fn objects_that_cannot_be_read_are_unchanged() {
    let now = at("2026-01-01T00:00:00Z");
    let decide = |spec: &EventActionSpec,
                  status: &EventActionStatus,
                  content: Result<_, String>| {
        event("refresh", "9e5b", spec, status, content.as_ref().map_err(String::clone), &[], now)
    };
    let many = |count| -> Result<BTreeMap<String, String>, String> {
        Ok((0..count).map(|it| (format!("object-{it}"), "1".to_owned())).collect())
    };
    let spec = EventActionSpec::default();
    let first = decide(&spec, &EventActionStatus::default(), many(500));
    assert_eq!((first.status.observed.len(), first.status.message.as_str()), (500, ""));
    let forbidden = decide(&spec, &first.status, Err("not yours".to_owned()));
    let said = (forbidden.status.pending.as_str(), forbidden.status.message.as_str());
    assert_eq!(said, ("", "not yours"));
    assert_eq!(forbidden.status.observed, first.status.observed);
    assert_eq!(decide(&spec, &forbidden.status, many(500)).status, first.status);
    let crowded = decide(&spec, &first.status, many(501));
    let message = "501 objects are selected, of at most 500: select fewer of them";
    assert_eq!((crowded.make, crowded.status.message.as_str()), (None, message));
    let mut named = spec.clone();
    named.on.names = vec!["object-500".to_owned()];
    let chosen = decide(&named, &EventActionStatus::default(), many(501));
    assert_eq!(chosen.status.message, "");
}
