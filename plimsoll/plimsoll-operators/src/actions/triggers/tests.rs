//! The Actions of schedules.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::action::{ActionState, ConcurrencyPolicy, CronActionSpec, CronActionStatus};

use super::{CronDecision, CronObject, MadeAction, cron};
use crate::actions::tests::{at, read_windows};
use plimsoll_plan::windows::MaintenanceWindows;
use plimsoll_plan::windows::schedule::Schedule;

fn made(name: &str, state: ActionState, minute: u32) -> MadeAction {
    let time = at(&format!("2026-01-01T00:{minute:02}:00Z"));
    let ended = Some(time).filter(|_| state.is_final());
    MadeAction { name: name.into(), state, created: time, ended }
}

/// Returns a decision on a CronAction in a cluster without MaintenanceWindows.
fn of_cron(
    name: &str,
    created: jiff::Timestamp,
    spec: &CronActionSpec,
    status: &CronActionStatus,
    made: &[MadeAction],
    now: jiff::Timestamp,
) -> CronDecision {
    let object = CronObject { name, uid: "9e5b", created, spec, status };
    cron(&object, made, &MaintenanceWindows::default(), now)
}

#[test]
fn a_schedule_makes_each_action_once() {
    let created = at("2026-01-01T00:00:00Z");
    let hourly = CronActionSpec { schedule: "0 * * * *".into(), ..CronActionSpec::default() };
    let decide = |spec: &CronActionSpec, status: &_, made: &[MadeAction], now: &str| {
        of_cron("nightly", created, spec, status, made, at(now))
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

/// Returns a decision on a CronAction `c` that was created at midnight.
fn decide(
    spec: &CronActionSpec,
    status: &CronActionStatus,
    made: &[MadeAction],
    now: &str,
) -> CronDecision {
    of_cron("c", at("2026-01-01T00:00:00Z"), spec, status, made, at(now))
}

#[test]
fn times_without_an_action_are_in_the_status() {
    let hourly = CronActionSpec { schedule: "0 * * * *".into(), ..CronActionSpec::default() };
    let check = |decision: &CronDecision, expected: Option<(&str, u32, &str, &str)>| {
        let found = decision.status.missed.as_ref().map(|it| {
            let time = |time: jiff::Timestamp| time.strftime("%H:%M").to_string();
            (it.reason.clone(), it.count, time(it.first_time), time(it.last_time))
        });
        let expected = expected
            .map(|(reason, count, first, last)| (reason.into(), count, first.into(), last.into()));
        assert_eq!(found, expected);
    };
    let none = CronActionStatus::default();
    let in_time = decide(&hourly, &none, &[], "2026-01-01T01:00:05Z");
    check(&in_time, None);
    // No controller acted on two more of them.
    let late = decide(&hourly, &in_time.status, &[], "2026-01-01T04:00:05Z");
    assert!(late.make.is_some());
    check(&late, Some(("ScheduleMissed", 2, "02:00", "03:00")));
    let next = decide(&hourly, &late.status, &[], "2026-01-01T05:00:05Z");
    check(&next, Some(("ScheduleMissed", 2, "02:00", "03:00")));
    let strict = CronActionSpec { starting_deadline_seconds: Some(60), ..hourly.clone() };
    let over = decide(&strict, &next.status, &[], "2026-01-01T07:01:01Z");
    assert_eq!(over.make, None);
    check(&over, Some(("StartingDeadlineExceeded", 2, "06:00", "07:00")));
    assert_eq!(over.status.missed.unwrap().message, "no Action could be made within 60s of it");
    let one = CronActionSpec { concurrency_policy: ConcurrencyPolicy::Forbid, ..hourly.clone() };
    let running = [made("c-1", ActionState::Running, 1)];
    let first = decide(&one, &next.status, &running, "2026-01-01T06:00:00Z");
    check(&first, Some(("ActionAlreadyActive", 1, "06:00", "06:00")));
    let message = "c-1 had not ended, and concurrencyPolicy is Forbid";
    assert_eq!(first.status.missed.as_ref().unwrap().message, message);
    // One after another for the same reason are counted together.
    let second = decide(&one, &first.status, &running, "2026-01-01T07:00:00Z");
    check(&second, Some(("ActionAlreadyActive", 2, "06:00", "07:00")));
    let then = decide(&one, &second.status, &[], "2026-01-01T08:00:00Z");
    assert!(then.make.is_some());
    check(&then, Some(("ActionAlreadyActive", 2, "06:00", "07:00")));
    let again = decide(&one, &then.status, &running, "2026-01-01T09:00:00Z");
    check(&again, Some(("ActionAlreadyActive", 1, "09:00", "09:00")));
    // An Action that was made before this could be recorded is no other one, and its time is not missed.
    let minutes = |time: &str| at(time).as_second() / 60;
    let own = format!("c-{}", minutes("2026-01-01T10:00:00Z"));
    let own = [made(&own, ActionState::Running, 1)];
    let once_more = decide(&one, &again.status, &own, "2026-01-01T10:00:30Z");
    assert_eq!(once_more.make.as_ref(), Some(&own[0].name));
    assert_eq!(once_more.status.missed, again.status.missed);
    let replaces =
        CronActionSpec { concurrency_policy: ConcurrencyPolicy::Replace, ..hourly.clone() };
    assert!(decide(&replaces, &again.status, &own, "2026-01-01T10:00:30Z").cancel.is_empty());
    let taken_over = decide(&hourly, &again.status, &own, "2026-01-01T12:00:30Z");
    check(&taken_over, Some(("ScheduleMissed", 1, "11:00", "11:00")));
    // What is suspended makes one Action at its end.
    let suspended = CronActionSpec { suspend: true, ..hourly.clone() };
    assert_eq!(decide(&suspended, &none, &[], "2026-01-01T05:30:00Z").status, none);
    let minutely = CronActionSpec { schedule: "* * * * *".into(), ..CronActionSpec::default() };
    let (begin, end) = (at("2025-01-01T00:00:00Z"), at("2026-01-01T03:07:00Z"));
    let year = of_cron("c", begin, &minutely, &none, &[], end);
    check(&year, Some(("ScheduleMissed", 100, "00:01", "03:06")));
}

#[test]
fn every_time_of_a_schedule_makes_an_action_or_is_counted() {
    let created = at("2026-01-01T00:00:00Z");
    let spec = |deadline, policy| CronActionSpec {
        schedule: "*/7 * * * *".into(),
        starting_deadline_seconds: deadline,
        concurrency_policy: policy,
        ..CronActionSpec::default()
    };
    for (deadline, policy) in [
        (None, ConcurrencyPolicy::Allow),
        (None, ConcurrencyPolicy::Forbid),
        (Some(90), ConcurrencyPolicy::Allow),
        (Some(30), ConcurrencyPolicy::Replace),
        (Some(200), ConcurrencyPolicy::Forbid),
    ] {
        let spec = spec(deadline, policy);
        let (mut status, mut names, mut counted) = (CronActionStatus::default(), Vec::new(), 0);
        let mut now = created;
        for turn in 0..400_i64 {
            // Sometimes no controller runs, for up to an hour.
            now += jiff::SignedDuration::from_secs(match turn % 11 {
                3 => 3_600,
                7 => 700,
                other => 20 + other * 13,
            });
            let running = made("running", ActionState::Running, 0);
            let active = if turn % 5 < 2 { vec![running] } else { Vec::new() };
            let decision = of_cron("c", created, &spec, &status, &active, now);
            let of = |status: &CronActionStatus| status.missed.clone().unwrap_or_default();
            let (before, after) = (of(&status), of(&decision.status));
            if before != after {
                let continues = before.first_time == after.first_time;
                counted += after.count - if continues { before.count } else { 0 };
            }
            names.extend(decision.make.clone());
            status = decision.status;
            let again = of_cron("c", created, &spec, &status, &active, now);
            assert_eq!((again.make, &again.status), (None, &status), "{policy:?} {now}");
        }
        let schedule = Schedule::parse(&spec.schedule, "").unwrap();
        let times = std::iter::successors(schedule.after(created), |it| schedule.after(*it));
        let passed = times.take_while(|it| *it <= now).count();
        assert_eq!(names.len() + counted as usize, passed, "{deadline:?} {policy:?}");
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{deadline:?} {policy:?}");
    }
}

#[test]
fn a_clock_that_was_ahead_silences_no_schedule() {
    let hourly = CronActionSpec { schedule: "0 * * * *".into(), ..CronActionSpec::default() };
    let acted = |time: &str| CronActionStatus {
        last_schedule_time: Some(at(time)),
        ..CronActionStatus::default()
    };
    // Another controller whose clock is a little ahead acted on the next time.
    let status = acted("2026-01-01T05:00:00Z");
    let early = decide(&hourly, &status, &[], "2026-01-01T04:59:58Z");
    assert_eq!((early.make, &early.status), (None, &status));
    assert_eq!(early.wake_at, status.last_schedule_time);
    assert_eq!(decide(&hourly, &status, &[], "2026-01-01T05:00:00Z").make, None);
    // So may that of the API server be that created it, right before a time.
    let none = CronActionStatus::default();
    let minutely = CronActionSpec { schedule: "* * * * *".into(), ..CronActionSpec::default() };
    let created = decide(&minutely, &none, &[], "2025-12-31T23:58:30Z");
    assert_eq!((created.make, created.status), (None, none));
    // It was years ahead.
    let status = acted("2030-01-01T05:00:00Z");
    let back = decide(&hourly, &status, &[], "2026-01-01T04:30:00Z");
    assert_eq!((back.make, back.wake_at), (None, Some(at("2026-01-01T05:00:00Z"))));
    let missed = back.status.missed.clone().unwrap();
    let message = "the clock was set back from 2030-01-01T05:00:00Z";
    assert_eq!((missed.reason.as_str(), missed.message.as_str()), ("ClockSetBack", message));
    assert_eq!(decide(&hourly, &back.status, &[], "2026-01-01T04:45:00Z").status, back.status);
    assert!(decide(&hourly, &back.status, &[], "2026-01-01T05:00:00Z").make.is_some());
}

#[test]
fn times_at_which_the_window_is_closed_make_no_action() {
    let windows = read_windows(
        r"
apiVersion: olm.io/v1
kind: MaintenanceWindow
metadata: {name: nights}
spec: {windows: [{schedule: 0 22 * * *, duration: 4h}]}
",
    );
    let mut unreadable = windows.clone();
    unreadable.insert("nights", Err("spec.windows is empty: write at least one window".into()));
    let spec = CronActionSpec {
        schedule: "*/30 * * * *".into(),
        maintenance_window: "nights".into(),
        ..CronActionSpec::default()
    };
    let check =
        |windows: &MaintenanceWindows, since: &str, now: &str, expected: Result<&str, &str>| {
            let status = CronActionStatus {
                last_schedule_time: Some(at(&format!("2026-01-01T{since}:00Z"))),
                ..CronActionStatus::default()
            };
            let now = at(&format!("2026-01-01T{now}Z"));
            let (created, uid) = (at("2026-01-01T00:00:00Z"), "9e5b");
            let object = CronObject { name: "c", uid, created, spec: &spec, status: &status };
            let decision = cron(&object, &[], windows, now);
            let due = Schedule::parse(&spec.schedule, "").unwrap().latest(created, now);
            assert_eq!(decision.status.last_schedule_time, due, "the time is acted on");
            assert_eq!(decision.make.is_some(), expected.is_ok(), "{decision:?}");
            if let Ok(made) = expected {
                let minute = at(&format!("2026-01-01T{made}:00Z")).as_second() / 60;
                assert_eq!(decision.make, Some(format!("c-{minute}")));
            }
            let missed = decision.status.missed.map(|it| (it.reason, it.count, it.message));
            let reason = |message: &str| match message.contains("is not open") {
                true => "MaintenanceWindowClosed".to_owned(),
                false => "InvalidMaintenanceWindow".to_owned(),
            };
            let expected = expected.err().map(|it| (reason(it), 1, it.to_owned()));
            assert_eq!(missed, expected);
        };
    let closed = "MaintenanceWindow nights is not open, it opens 2026-01-01T22:00:00Z";
    check(&windows, "21:00", "21:30:00", Err(closed));
    check(&windows, "21:30", "22:00:00", Ok("22:00"));
    check(&windows, "01:00", "01:30:05", Ok("01:30"));
    // It closes meanwhile, or it opens after the time.
    check(&windows, "01:00", "01:59:59", Ok("01:30"));
    check(&windows, "01:30", "02:00:00", Err(closed));
    let missing = "there is no MaintenanceWindow nights: create it, or name another one";
    check(&MaintenanceWindows::default(), "22:00", "22:30:00", Err(missing));
    let refused = "MaintenanceWindow nights is not accepted: spec.windows is empty: write at \
                   least one window";
    check(&unreadable, "22:00", "22:30:00", Err(refused));
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
    let decision = of_cron("c", created, &spec, &Default::default(), &history, created);
    assert_eq!(decision.delete, ["old", "cancelled", "mid"]);
}

#[test]
fn schedules_with_long_names_make_actions_of_different_names() {
    let created = at("2026-01-01T00:00:00Z");
    let hourly = CronActionSpec { schedule: "0 * * * *".into(), ..CronActionSpec::default() };
    let made = |name: &str, now: &str| {
        let made = of_cron(name, created, &hourly, &Default::default(), &[], at(now)).make;
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
