//! Sources of the time of day: passed in, so that tests and rehearsals set it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_plan::reconciler::Uptime;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep_until};

/// The interval after which a change of the time of day is noticed at the latest: it may be set, or the
/// machine may have slept.
pub(crate) const CLOCK_INTERVAL: Duration = Duration::from_secs(60);

/// A source of the time of day.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Returns whether time stands still while work is done, so that the same work gives the same course of
    /// events.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// Runs work that takes a while: on a thread of its own, so that others are answered meanwhile; in
/// virtual time on this one, so that nothing depends on which thread is faster.
///
/// # Errors
///
/// When the work panics on its thread.
pub(crate) async fn run_beside<T: Send + 'static>(
    clock: &dyn Clock,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if clock.is_virtual() { Ok(work()) } else { spawn_blocking(work).await }
}

/// Waits until as much time has passed as a timer measures it, or the time of day is as far from what it was.
pub(crate) async fn sleep_by(clock: &dyn Clock, duration: Duration) {
    let (end, began) = (Instant::now() + duration, clock.now());
    loop {
        sleep_until(end.min(Instant::now() + CLOCK_INTERVAL)).await;
        let passed = clock.now().duration_since(began).unsigned_abs();
        if Instant::now() >= end || passed >= duration {
            return;
        }
    }
}

/// Measures the time since the process started, and turns it into instants to sleep until.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Instant,
    started_at: Timestamp,
}

impl Stopwatch {
    /// Starts now, at this time of day.
    pub(crate) fn start(now: Timestamp) -> Self {
        Self { started: Instant::now(), started_at: now }
    }

    /// The time of day as it would be if the clock had not been set since the start.
    pub(crate) fn steady_time(self) -> Timestamp {
        self.started_at.saturating_add(self.started.elapsed()).unwrap_or(self.started_at)
    }

    /// The time since the start.
    pub(crate) fn uptime(self) -> Uptime {
        Uptime::from_start(self.started.elapsed())
    }

    /// The instant of an uptime.
    pub(crate) fn instant(self, uptime: Uptime) -> Instant {
        self.started + uptime.since_start()
    }
}

#[cfg(test)]
mod tests {
    //! Waits while the time of day is set. On a paused clock.

    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// A time of day that stands still until it is set.
    #[derive(Default)]
    struct SetClock(AtomicI64);

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.load(Ordering::Relaxed)).expect("a time")
        }
    }

    /// Waits for 12 hours while the clock is set by some seconds after 100 seconds; for how many seconds that
    /// lasts.
    async fn check(set_by: i64, expected: u64) {
        let clock = Arc::new(SetClock::default());
        let began = Instant::now();
        let set = Arc::clone(&clock);
        let setting = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(100)).await;
            set.0.store(set_by, Ordering::Relaxed);
        });
        sleep_by(&*clock, Duration::from_secs(12 * 3600)).await;
        assert_eq!(began.elapsed().as_secs(), expected, "{set_by}");
        setting.await.expect("it does not panic");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_soon_after_the_clock_is_set() {
        check(0, 12 * 3600).await;
        check(3600, 12 * 3600).await;
        check(200 * 86_400, 120).await;
        check(-200 * 86_400, 120).await;
    }
}
