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

/// What is seen at a time by a clock that is not set.
fn seen<'a>(
    history: &'a [UpdateHistory],
    levels: &'a [LevelCount],
    steady_now: Timestamp,
) -> UpdateObservation<'a> {
    UpdateObservation { history, levels, paused_before: None, steady_now }
}

/// An update from 1 to a version, begun at a time, with its levels completed at others.
fn update(timeline: &mut Timeline, version: &str, started: i64, first: i64, second: i64) {
    let history =
        |state| vec![entry(version, state, started), entry("1", UpdateState::Completed, 0)];
    for (time, done) in [(started, (0, 0)), (first, (4, 0)), (second, (4, 4))] {
        let state = if time == second { UpdateState::Completed } else { UpdateState::Partial };
        let levels = levels(done.0, done.1);
        timeline.observe(&seen(&history(state), &levels, at(time)), at(time));
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
    // Recorded once more, nothing changes.
    let before = timeline.clone();
    let history = [entry("2", UpdateState::Completed, 100)];
    timeline.observe(&seen(&history, &levels(4, 4), at(900)), at(900));
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
fn an_installation_is_recorded_but_teaches_nothing() {
    let mut timeline = Timeline::default();
    for state in [UpdateState::Partial, UpdateState::Completed] {
        let history = [entry("1", state, 0)];
        timeline.observe(&seen(&history, &levels(4, 4), at(50)), at(50));
    }
    assert_eq!(timeline.completed(), []);
    assert!(timeline.update().is_some_and(|update| update.completion_time.is_some()));
}

/// An update from 1 to 2 that takes `took` seconds, at whose end the clock shows `end`.
fn with_clock(took: i64, end: i64) -> Timeline {
    let mut timeline = Timeline::default();
    for (steady, now, done) in [(100, 100, (0, 0)), (160, 160, (4, 0)), (100 + took, end, (4, 4))] {
        let mut newest = entry("2", UpdateState::Partial, 100);
        if done == (4, 4) {
            newest.state = UpdateState::Completed;
            newest.completion_time = Some(at(now.max(100)));
        }
        let history = [newest, entry("1", UpdateState::Completed, 0)];
        timeline.observe(&seen(&history, &levels(done.0, done.1), at(steady)), at(now));
    }
    timeline
}

#[test]
fn a_clock_that_is_set_teaches_nothing_and_puts_no_end_before_its_beginning() {
    let learned = |took, end| {
        let timeline = with_clock(took, end);
        let update = timeline.update().expect("there is one");
        for level in &update.levels {
            assert!(level.completion_time >= level.started_time, "{level:?}");
        }
        timeline.completed().iter().map(|it| it.seconds).collect::<Vec<_>>()
    };
    assert_eq!(learned(300, 400), [300]);
    // A clock that is corrected by seconds is not set.
    assert_eq!(learned(300, 420), [320]);
    assert_eq!(learned(300, 100 - 3600), [] as [u64; 0]);
    assert_eq!(learned(300, 10 * 365 * 24 * 3600), [] as [u64; 0]);
    // Set while no process ran, or left to wait.
    let week = 7 * 24 * 3600;
    assert_eq!(learned(week, 100 + week), [604_800]);
    assert_eq!(learned(week + 1, 101 + week), [] as [u64; 0]);
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
        timeline.observe(&seen(&history, &levels, at(time)), at(time));
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
    timeline.observe(&seen(&history, &levels(1, 0), at(10)), at(10));
    let update = timeline.update().expect("one is under way");
    assert_eq!(update.unchanged, 1, "what is done at the beginning is no progress");
    let expected = Estimate { elapsed: 60, remaining: None, slow: false };
    assert_eq!(estimate(update, &[], at(60)), expected);
}

#[test]
fn what_was_done_before_an_update_is_known_from_its_first_moment() {
    let mut timeline = Timeline::default();
    assert_eq!(timeline.unchanged(None, false, 0), 0, "an installation");
    let installed = [entry("1", UpdateState::Completed, 0)];
    assert_eq!(timeline.unchanged(installed.first(), true, 7), 0, "the same release");
    assert_eq!(timeline.unchanged(installed.first(), false, 7), 7, "it is about to be recorded");
    let updating = [entry("2", UpdateState::Partial, 100), entry("1", UpdateState::Completed, 0)];
    timeline.observe(&seen(&updating, &levels(4, 3), at(100)), at(100));
    assert_eq!(timeline.unchanged(updating.first(), true, 8), 7);
    assert_eq!(timeline.unchanged(updating.first(), false, 6), 6, "it goes back");
    let recorded = ReleaseProgressStatus {
        update: timeline.update().cloned(),
        ..ReleaseProgressStatus::default()
    };
    let restarted = Timeline::recorded(&recorded);
    assert_eq!(restarted.unchanged(updating.first(), true, 8), 7, "after a restart");
}
