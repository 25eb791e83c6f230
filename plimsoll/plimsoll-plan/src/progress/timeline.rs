//! When each run level of an update began and ended, and from the updates that this cluster has
//! completed, how long the rest may take.
//!
//! A level begins when the one before it ends. What is known survives a restart, since it is kept
//! in the status of the ReleaseProgress.

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{UpdateHistory, UpdateState};
use plimsoll_api::progress::{
    CompletedUpdate, LevelDuration, LevelProgress, ReleaseProgressStatus, UpdateProgress,
};
use plimsoll_api::whole_seconds;

/// Completed updates that are kept to learn from: enough for a median that one bad day does not
/// move, and a small object.
pub const UPDATES_KEPT: usize = 5;
/// How many times its usual time a run level takes before it is called slow.
const SLOW_FACTOR: u64 = 2;
/// Seconds by which a level must be late at least to be called slow: short levels vary.
const SLOW_LEAST: u64 = 60;

/// The longest update that is learned from: in a longer one something waited for a person, or the
/// clock was wrong.
pub const LEARNED_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);
/// By how much a clock may be adjusted during an update that is learned from: what is learned is in
/// minutes.
const ADJUSTMENT_MAX: SignedDuration = SignedDuration::from_secs(30);

/// How far a run level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelCount {
    /// Its number; `None` for files that name none.
    pub level: Option<u32>,
    /// Steps done.
    pub done: usize,
    /// Steps.
    pub total: usize,
}

/// What is seen of an update at one moment.
#[derive(Debug, Clone, Copy)]
pub struct UpdateObservation<'a> {
    /// The releases of the cluster, newest first.
    pub history: &'a [UpdateHistory],
    /// The run levels in order.
    pub levels: &'a [LevelCount],
    /// The run level that the update is paused before.
    pub paused_before: Option<u32>,
    /// The moment in a time that no adjustment of the clock moves.
    pub steady_now: Timestamp,
}

/// The update under way or the last one, and how long others took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    update: Option<UpdateProgress>,
    completed: Vec<CompletedUpdate>,
    /// The time of day, as a distance from the steady time; `None` before anything was observed.
    clock: Option<SignedDuration>,
    /// Whether the clock was set during the update under way: its times tell no durations.
    is_clock_set: bool,
}

impl Timeline {
    /// Takes up what an earlier process recorded.
    pub fn recorded(progress: &ReleaseProgressStatus) -> Self {
        let ReleaseProgressStatus { update, completed_updates, .. } = progress;
        Self { update: update.clone(), completed: completed_updates.clone(), ..Self::default() }
    }

    /// The update under way, or the last one.
    pub fn update(&self) -> Option<&UpdateProgress> {
        self.update.as_ref()
    }

    /// How long the latest updates took, newest first.
    pub fn completed(&self) -> &[CompletedUpdate] {
        &self.completed
    }

    /// How many steps of a release were done before it was begun: those that the release before has,
    /// too. `newest` is the newest entry of the history so far, `is_recorded` whether it is that of
    /// the release, and `done` how many steps are done now.
    pub fn unchanged(
        &self,
        newest: Option<&UpdateHistory>,
        is_recorded: bool,
        done: usize,
    ) -> usize {
        match (newest, &self.update) {
            // Nothing of a release is applied before the history has it.
            (Some(_), _) if !is_recorded => done,
            (Some(newest), Some(update))
                if is_of(update, newest) && update.completion_time.is_none() =>
            {
                update.unchanged
            }
            _ => 0,
        }
    }

    /// Takes note of how far the newest release of the history is.
    pub fn observe(&mut self, seen: &UpdateObservation<'_>, now: Timestamp) {
        let clock = now.duration_since(seen.steady_now);
        let adjustment = clock - self.clock.replace(clock).unwrap_or(clock);
        self.is_clock_set |= adjustment.abs() > ADJUSTMENT_MAX;
        let now = whole_seconds(now);
        let Some(newest) = seen.history.first() else {
            return;
        };
        let known = self.update.as_ref().is_some_and(|update| is_of(update, newest));
        match newest.state {
            UpdateState::Partial if !known => {
                self.update = Some(begun(seen, newest));
                self.is_clock_set = false;
            }
            UpdateState::Completed if !known => return,
            UpdateState::Partial | UpdateState::Completed => {}
        }
        let Some(update) = &mut self.update else {
            return;
        };
        if update.completion_time.is_some() {
            return;
        }
        update.paused_before = seen.paused_before;
        update.levels = levels(update, seen.levels, now);
        if newest.state == UpdateState::Completed {
            let end = newest.completion_time.unwrap_or(now);
            update.completion_time = Some(end);
            let is_plausible = end.duration_since(update.started_time) <= LEARNED_MAX;
            if !update.from.is_empty() && is_plausible && !self.is_clock_set {
                self.completed.insert(0, durations(update, end));
                self.completed.truncate(UPDATES_KEPT);
            }
        }
    }
}

/// Whether an update is that of an entry of the history.
fn is_of(update: &UpdateProgress, entry: &UpdateHistory) -> bool {
    update.image == entry.image && update.started_time == entry.started_time
}

fn begun(seen: &UpdateObservation<'_>, newest: &UpdateHistory) -> UpdateProgress {
    let completed = seen.history.iter().skip(1).find(|entry| entry.state == UpdateState::Completed);
    UpdateProgress {
        from: completed.map(|entry| entry.version.clone()).unwrap_or_default(),
        to: newest.version.clone(),
        image: newest.image.clone(),
        started_time: newest.started_time,
        // Nothing of the release is applied before this is recorded.
        unchanged: seen.levels.iter().map(|level| level.done).sum(),
        ..UpdateProgress::default()
    }
}

/// The levels with their times: those known, and what follows from the counts.
fn levels(update: &UpdateProgress, counts: &[LevelCount], now: Timestamp) -> Vec<LevelProgress> {
    let mut begins = Some(update.started_time);
    let mut levels = Vec::new();
    for count in counts {
        let known = update.levels.iter().find(|known| known.level == count.level);
        let complete = count.done >= count.total && begins.is_some();
        let level = LevelProgress {
            level: count.level,
            done: count.done,
            total: count.total,
            started_time: known.and_then(|known| known.started_time).or(begins),
            completion_time: complete.then(|| {
                let known = known.and_then(|known| known.completion_time);
                known.unwrap_or_else(|| begins.map_or(now, |begins| now.max(begins)))
            }),
        };
        begins = level.completion_time;
        levels.push(level);
    }
    levels
}

fn durations(update: &UpdateProgress, end: Timestamp) -> CompletedUpdate {
    let level = |level: &LevelProgress| LevelDuration {
        level: level.level,
        steps: level.total,
        seconds: level
            .started_time
            .map(|from| seconds(from, level.completion_time.unwrap_or(end)))
            .unwrap_or_default(),
    };
    CompletedUpdate {
        from: update.from.clone(),
        to: update.to.clone(),
        started_time: update.started_time,
        seconds: seconds(update.started_time, end),
        levels: update.levels.iter().map(level).collect(),
    }
}

/// How long an update may still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Seconds since it began.
    pub elapsed: u64,
    /// Seconds that are left; `None` if this cluster has no update to learn from.
    pub remaining: Option<u64>,
    /// Whether a run level takes much longer than it used to.
    pub slow: bool,
}

/// Estimates what is left of an update from how long others took.
pub fn estimate(update: &UpdateProgress, past: &[CompletedUpdate], now: Timestamp) -> Estimate {
    let end = update.completion_time.unwrap_or(now);
    let mut estimate =
        Estimate { elapsed: seconds(update.started_time, end), remaining: None, slow: false };
    if past.is_empty() {
        return estimate;
    }
    let mut remaining = 0;
    for level in update.levels.iter().filter(|level| level.completion_time.is_none()) {
        let usual = usual(level, past);
        match level.started_time {
            None => remaining += usual,
            Some(started) => {
                let elapsed = seconds(started, now);
                // A level that is late is not done because its time is up.
                let open = level.total.saturating_sub(level.done) as u64;
                let share = usual * open / (level.total as u64).max(1);
                remaining += usual.saturating_sub(elapsed).max(share.min(usual));
                estimate.slow |= elapsed > (usual * SLOW_FACTOR).max(usual + SLOW_LEAST);
            }
        }
    }
    estimate.remaining = Some(remaining);
    estimate
}

/// The median of the seconds that a level took; one that no update had is reckoned by its steps.
fn usual(level: &LevelProgress, past: &[CompletedUpdate]) -> u64 {
    let all = || past.iter().flat_map(|update| &update.levels);
    let mut seconds: Vec<u64> =
        all().filter(|it| it.level == level.level).map(|it| it.seconds).collect();
    seconds.sort_unstable();
    if let Some(median) = seconds.get(seconds.len() / 2) {
        return *median;
    }
    let (time, steps) =
        all().fold((0, 0), |(time, steps), it| (time + it.seconds, steps + it.steps));
    time * level.total as u64 / (steps as u64).max(1)
}

fn seconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
