//! Sources of the time of day: passed in, so that tests and rehearsals set it.

use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_plan::reconciler::Uptime;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::Instant;

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
