//! The timeline of an update: when run levels completed, what was waited for, which conditions
//! changed, and how it ended.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_api::{ConditionStatus, ObjectKey, Reason};
use plimsoll_controller::View;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long the update may make no progress once the cluster reports Failing: longer than any pause
/// between two attempts, and than what operators usually need to recover.
pub(super) const FAILING_FOR: Duration = Duration::from_secs(10 * 60);
/// How long the update may make no progress while the cluster reports no failure: longer than the time after
/// which every operator is called slow.
const QUIET_FOR: Duration = Duration::from_secs(100 * 60);

/// Levels, waits and conditions of an update; times are spans since it began.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// How the update ended.
    pub end: RehearsalEnd,
    /// When it ended.
    pub took: Duration,
    /// Steps done at the end, and all of them.
    pub done: (usize, usize),
    /// When each run level was complete; `None` for those that never were.
    pub levels: Vec<(Option<u32>, Option<Duration>)>,
    /// What was waited for, in the order in which it began.
    pub waits: Vec<StepWait>,
    /// The changes of the ClusterVersion's conditions, in order.
    pub transitions: Vec<ConditionTransition>,
}

/// How a rehearsed update ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RehearsalEnd {
    /// The release is complete.
    Complete,
    /// The update is stalled.
    #[default]
    Stalled,
}

/// A wait of a step, or its failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepWait {
    /// The object of the step.
    pub object: ObjectKey,
    /// The last reported reason.
    pub reason: Reason,
    /// The last reported message.
    pub message: String,
    /// Start of the wait.
    pub from: Duration,
    /// End of the wait; `None` if it lasts to the end.
    pub until: Option<Duration>,
    /// Whether it failed.
    pub failed: bool,
}

/// A condition that changed its status or its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionTransition {
    /// The time since the update began.
    pub at: Duration,
    /// Its type.
    pub type_: String,
    /// Its status from then on.
    pub status: ConditionStatus,
    /// Its reason from then on.
    pub reason: String,
    /// Its message at that moment.
    pub message: String,
}

/// Watches a controller until the version is complete or nothing gets on any more; it may fail for
/// as long as `limit`.
pub(super) async fn watch(
    mut views: watch::Receiver<View>,
    version: &str,
    began: Instant,
    limit: Duration,
) -> Timeline {
    let mut log = TimelineRecorder::default();
    loop {
        let at = began.elapsed();
        log.record(&views.borrow_and_update(), at);
        let view = views.borrow().clone();
        if view.completed && view.version == version {
            return log.end(&view, RehearsalEnd::Complete, at);
        }
        let deadline = log.deadline(limit);
        if at >= deadline {
            return log.end(&view, RehearsalEnd::Stalled, at);
        }
        tokio::select! {
            biased;
            changed = views.changed() => if changed.is_err() {
                return log.end(&view, RehearsalEnd::Stalled, began.elapsed());
            },
            () = sleep_until(began + deadline) => {}
        }
    }
}

/// The timeline so far.
#[derive(Debug, Default)]
struct TimelineRecorder {
    levels: BTreeMap<Option<u32>, Option<Duration>>,
    order: Vec<Option<u32>>,
    /// Waits that last, by object, as places in `waits`.
    open: BTreeMap<ObjectKey, usize>,
    waits: Vec<StepWait>,
    conditions: BTreeMap<String, (ConditionStatus, String)>,
    transitions: Vec<ConditionTransition>,
    /// When the number of done steps last grew, and to what.
    progressed: (Duration, usize),
    failing_since: Option<Duration>,
}

impl TimelineRecorder {
    fn record(&mut self, view: &View, at: Duration) {
        if view.done > self.progressed.1 {
            self.progressed = (at, view.done);
        }
        for level in &view.levels {
            if !self.levels.contains_key(&level.level) {
                self.order.push(level.level);
            }
            let done = self.levels.entry(level.level).or_default();
            if level.done == level.total {
                done.get_or_insert(at);
            }
        }
        self.record_waits(view, at);
        for condition in &view.conditions {
            let now = (condition.status, condition.reason.clone());
            if self.conditions.get(&condition.type_) == Some(&now) {
                continue;
            }
            self.conditions.insert(condition.type_.clone(), now);
            self.transitions.push(ConditionTransition {
                at,
                type_: condition.type_.clone(),
                status: condition.status,
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            });
        }
        let failing = view.conditions.iter().any(|condition| match condition.type_.as_str() {
            "Failing" => condition.status != ConditionStatus::False,
            "ReleaseAccepted" => condition.status == ConditionStatus::False,
            _ => false,
        });
        self.failing_since = failing.then(|| self.failing_since.unwrap_or(at));
    }

    fn record_waits(&mut self, view: &View, at: Duration) {
        let over: Vec<ObjectKey> = self
            .open
            .keys()
            .filter(|object| !view.waits.iter().any(|wait| wait.object == **object))
            .cloned()
            .collect();
        for object in over {
            if let Some(index) = self.open.remove(&object) {
                self.waits[index].until = Some(at);
            }
        }
        for wait in &view.waits {
            let index = *self.open.entry(wait.object.clone()).or_insert_with(|| {
                self.waits.push(StepWait {
                    object: wait.object.clone(),
                    reason: wait.reason,
                    message: String::new(),
                    from: at,
                    until: None,
                    failed: false,
                });
                self.waits.len() - 1
            });
            let known = &mut self.waits[index];
            known.reason = wait.reason;
            known.message.clone_from(&wait.message);
            known.failed = wait.failed;
        }
    }

    /// Returns when to give up, unless something happens before.
    fn deadline(&self, limit: Duration) -> Duration {
        let quiet = self.progressed.0 + QUIET_FOR;
        match self.failing_since {
            Some(since) => quiet.min(since.max(self.progressed.0) + limit),
            None => quiet,
        }
    }

    fn end(self, view: &View, end: RehearsalEnd, at: Duration) -> Timeline {
        Timeline {
            end,
            took: match end {
                RehearsalEnd::Complete => at,
                RehearsalEnd::Stalled => self.progressed.0,
            },
            done: (view.done, view.total),
            levels: self.order.iter().map(|level| (*level, self.levels[level])).collect(),
            waits: self.waits,
            transitions: self.transitions,
        }
    }
}

#[cfg(test)]
mod tests {
    //! A few views in a row, and what is remembered of them.

    use std::time::Duration;

    use jiff::Timestamp;
    use plimsoll_api::{Condition, ConditionStatus, ObjectKey, Reason};
    use plimsoll_controller::{LevelView, View, WaitView};

    use super::{FAILING_FOR, QUIET_FOR, RehearsalEnd, TimelineRecorder};

    fn view(done: usize, waiting: bool, failing: ConditionStatus) -> View {
        let wait = WaitView {
            object: ObjectKey {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
                namespace: String::new(),
                name: "crane".to_owned(),
            },
            reason: Reason::ClusterOperatorUpdating,
            message: format!("at {done}"),
            since: Timestamp::UNIX_EPOCH,
            failed: false,
        };
        View {
            done,
            total: 2,
            levels: vec![LevelView { level: Some(10), done, total: 2, components: Vec::new() }],
            waits: if waiting { vec![wait] } else { Vec::new() },
            conditions: vec![Condition {
                type_: "Failing".to_owned(),
                status: failing,
                last_transition_time: Timestamp::UNIX_EPOCH,
                reason: String::new(),
                message: String::new(),
            }],
            ..View::default()
        }
    }

    #[test]
    fn waits_levels_and_conditions_are_recorded_with_their_times() {
        let second = Duration::from_secs;
        let mut log = TimelineRecorder::default();
        log.record(&view(0, true, ConditionStatus::False), second(1));
        assert_eq!(log.deadline(FAILING_FOR), QUIET_FOR);
        log.record(&view(1, true, ConditionStatus::True), second(5));
        assert_eq!(log.deadline(FAILING_FOR), second(5) + FAILING_FOR);
        log.record(&view(1, true, ConditionStatus::True), second(7));
        assert_eq!(
            log.deadline(FAILING_FOR),
            second(5) + FAILING_FOR,
            "it has been failing all the time"
        );
        let last = view(2, false, ConditionStatus::False);
        log.record(&last, second(9));
        assert_eq!(log.deadline(FAILING_FOR), second(9) + QUIET_FOR);
        let timeline = log.end(&last, RehearsalEnd::Complete, second(9));
        assert_eq!(timeline.levels, [(Some(10), Some(second(9)))]);
        assert_eq!(timeline.waits.len(), 1);
        assert_eq!(timeline.waits[0].message, "at 1");
        assert_eq!((timeline.waits[0].from, timeline.waits[0].until), (second(1), Some(second(9))));
        let transitions: Vec<_> =
            timeline.transitions.iter().map(|it| (it.at, it.status)).collect();
        assert_eq!(
            transitions,
            [
                (second(1), ConditionStatus::False),
                (second(5), ConditionStatus::True),
                (second(9), ConditionStatus::False),
            ]
        );
    }
}
