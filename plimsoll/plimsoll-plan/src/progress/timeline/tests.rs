//! Updates level by level, and what is learned from them.

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{UpdateHistory, UpdateState};
use plimsoll_api::progress::ReleaseProgressStatus;

use super::{Estimate, LevelCount, Timeline, UPDATES_KEPT, UpdateObservation, estimate};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn entry(version: &str, state: UpdateState, started: i64) -> UpdateHistory {
    UpdateHistory {
        state,
        started_time: at(started),
        completion_time: None,
        version: version.to_owned(),
        image: format!("image@{version}"),
        verified: false,
        accepted_risks: String::new(),
    }
}

/// Levels 10 and 20 of four steps each, with so many done.
fn levels(first: usize, second: usize) -> [LevelCount; 2] {
    [(10, first), (20, second)].map(|(level, done)| LevelCount {
        level: Some(level),
        done,
        total: 4,
    })
}

/// An update from 1 to a version, begun at a time, with its levels completed at others.
fn update(timeline: &mut Timeline, version: &str, started: i64, first: i64, second: i64) {
    let history =
        |state| vec![entry(version, state, started), entry("1", UpdateState::Completed, 0)];
    for (time, done) in [(started, (0, 0)), (first, (4, 0)), (second, (4, 4))] {
        let state = if time == second { UpdateState::Completed } else { UpdateState::Partial };
        let levels = levels(done.0, done.1);
        let seen =
            UpdateObservation { history: &history(state), levels: &levels, paused_before: None };
        timeline.observe(&seen, at(time));
    }
}

#[test]
fn a_level_begins_when_the_one_before_ends_and_an_update_is_remembered() {
    let mut timeline = Timeline::default();
    update(&mut timeline, "2", 100, 160, 400);
    let completed = &timeline.completed()[0];
    assert_eq!((completed.from.as_str(), completed.to.as_str()), ("1", "2"));
    assert_eq!(completed.seconds, 300);
    let seconds: Vec<u64> = completed.levels.iter().map(|level| level.seconds).collect();
    assert_eq!(seconds, [60, 240]);
    // Told once more, nothing changes.
    let before = timeline.clone();
    let history = [entry("2", UpdateState::Completed, 100)];
    let seen = UpdateObservation { history: &history, levels: &levels(4, 4), paused_before: None };
    timeline.observe(&seen, at(900));
    assert_eq!(timeline, before);
    for number in 0..10 {
        update(
            &mut timeline,
            "3",
            1000 * (number + 1),
            1000 * (number + 1) + 1,
            1000 * (number + 2),
        );
    }
    assert_eq!(timeline.completed().len(), UPDATES_KEPT);
}

#[test]
fn an_installation_is_told_but_teaches_nothing() {
    let mut timeline = Timeline::default();
    for state in [UpdateState::Partial, UpdateState::Completed] {
        let history = [entry("1", state, 0)];
        let seen =
            UpdateObservation { history: &history, levels: &levels(4, 4), paused_before: None };
        timeline.observe(&seen, at(50));
    }
    assert_eq!(timeline.completed(), []);
    assert!(timeline.update().is_some_and(|update| update.completion_time.is_some()));
}

/// Estimates in the midst of an update that is at `done` of its levels, `elapsed` seconds after
/// the first level was completed at 100, where earlier ones took 60 and 240 seconds.
#[track_caller]
fn check(done: (usize, usize), elapsed: i64, expected: Estimate) {
    let mut timeline = Timeline::default();
    update(&mut timeline, "2", 100, 160, 400);
    let history = [entry("3", UpdateState::Partial, 1000), entry("2", UpdateState::Completed, 100)];
    for (time, done) in [(1000, (0, 0)), (1100, done)] {
        let levels = levels(done.0, done.1);
        let seen = UpdateObservation { history: &history, levels: &levels, paused_before: None };
        timeline.observe(&seen, at(time));
    }
    // Times survive a restart.
    let recorded = ReleaseProgressStatus {
        update: timeline.update().cloned(),
        completed_updates: timeline.completed().to_vec(),
        ..ReleaseProgressStatus::default()
    };
    let timeline = Timeline::recorded(&recorded);
    let update = timeline.update().expect("one is under way");
    assert_eq!(estimate(update, timeline.completed(), at(1100 + elapsed)), expected);
}

#[test]
fn what_is_left_is_learned_from_the_updates_before() {
    check((4, 0), 0, Estimate { elapsed: 100, remaining: Some(240), slow: false });
    check((4, 2), 100, Estimate { elapsed: 200, remaining: Some(140), slow: false });
    // Late: half of its steps are open, so half of its time is left.
    check((4, 2), 300, Estimate { elapsed: 400, remaining: Some(120), slow: false });
    check((4, 2), 500, Estimate { elapsed: 600, remaining: Some(120), slow: true });
    check((3, 0), 0, Estimate { elapsed: 100, remaining: Some(255), slow: false });
}

#[test]
fn nothing_is_estimated_where_nothing_was_learned() {
    let mut timeline = Timeline::default();
    let history = [entry("2", UpdateState::Partial, 0), entry("1", UpdateState::Completed, 0)];
    let seen = UpdateObservation { history: &history, levels: &levels(1, 0), paused_before: None };
    timeline.observe(&seen, at(10));
    let update = timeline.update().expect("one is under way");
    let expected = Estimate { elapsed: 60, remaining: None, slow: false };
    assert_eq!(estimate(update, &[], at(60)), expected);
}
