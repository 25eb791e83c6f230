//! The timers of the controller: what is due although nothing happened.

use std::time::Duration;

use super::Uptime;

/// How often everything is applied once more although no watch showed a change: a safety net
/// against what watches do not show.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How soon a write is repeated that has to succeed before anything else is done.
pub const WRITE_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Least time between two wake-ups: what is due and cannot be done yet must not keep a processor
/// busy.
pub const WAKE_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The timers of the controller's loop.
#[derive(Debug, Clone)]
pub struct Timers {
    sweep_at: Uptime,
    /// When the loop last woke up although nothing had happened.
    last_timeout: Uptime,
    /// When the prune annotation may be written next.
    annotation_at: Uptime,
}

impl Timers {
    /// Starts now.
    pub fn new(uptime: Uptime) -> Self {
        Self { sweep_at: uptime + SWEEP_INTERVAL, last_timeout: uptime, annotation_at: uptime }
    }

    /// Handles a timeout of the loop; returns whether a sweep is due.
    pub fn handle_timeout(&mut self, uptime: Uptime) -> bool {
        self.last_timeout = uptime;
        let is_due = uptime >= self.sweep_at;
        if is_due {
            self.sweep_at = uptime + SWEEP_INTERVAL;
        }
        is_due
    }

    /// Whether the prune annotation may be written now; from then on it may not for a while.
    pub fn may_write_annotation(&mut self, uptime: Uptime) -> bool {
        let may_write = uptime >= self.annotation_at;
        if may_write {
            self.annotation_at = uptime + WRITE_RETRY_INTERVAL;
        }
        may_write
    }

    /// When to wake up: at the earliest of `others`, for the next sweep, and to write the prune
    /// annotation if `is_annotation_stale`.
    pub fn wake_at(
        &self,
        others: impl IntoIterator<Item = Uptime>,
        is_annotation_stale: bool,
    ) -> Uptime {
        let annotation_at = is_annotation_stale.then_some(self.annotation_at);
        let times = others.into_iter().chain(annotation_at);
        let earliest = times.fold(self.sweep_at, Ord::min);
        earliest.max(self.last_timeout + WAKE_INTERVAL_MIN)
    }
}

#[cfg(test)]
mod tests {
    //! What is due when.

    use super::*;

    fn at(milliseconds: u64) -> Uptime {
        Uptime::from_start(Duration::from_millis(milliseconds))
    }

    #[test]
    fn the_loop_wakes_up_for_what_comes_first() {
        #[track_caller]
        fn check(others: &[u64], is_annotation_stale: bool, expected: u64) {
            let timers = Timers::new(at(1000));
            let others = others.iter().map(|it| at(*it));
            assert_eq!(timers.wake_at(others, is_annotation_stale), at(expected));
        }
        check(&[], false, 3_601_000);
        check(&[5000, 4000], false, 4000);
        check(&[5_000_000], false, 3_601_000);
        check(&[5000], true, 1010);
        check(&[500], false, 1010);
        check(&[1010], false, 1010);
    }

    #[test]
    fn wake_ups_keep_a_distance() {
        let mut timers = Timers::new(at(0));
        timers.handle_timeout(at(700));
        assert_eq!(timers.wake_at([at(100)], false), at(710));
        assert_eq!(timers.wake_at([at(711)], false), at(711));
    }

    #[test]
    fn a_sweep_is_due_once_an_hour() {
        let mut timers = Timers::new(at(0));
        assert!(!timers.handle_timeout(at(3_599_999)));
        assert!(timers.handle_timeout(at(3_600_000)));
        assert!(!timers.handle_timeout(at(3_600_001)));
        assert!(!timers.handle_timeout(at(7_199_999)));
        assert!(timers.handle_timeout(at(7_200_000)));
    }

    #[test]
    fn the_annotation_is_written_once_a_second() {
        let mut timers = Timers::new(at(0));
        assert!(timers.may_write_annotation(at(0)));
        assert!(!timers.may_write_annotation(at(999)));
        assert_eq!(timers.wake_at([], true), at(1000));
        assert!(timers.may_write_annotation(at(1000)));
        assert_eq!(timers.wake_at([], true), at(2000));
    }
}
