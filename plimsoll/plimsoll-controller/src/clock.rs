//! Where the time of day comes from: passed in, so that tests and rehearsals set it.

use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_plan::reconciler::Uptime;
use tokio::time::Instant;

/// A source of the time of day.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
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

    /// The time of day as it would be if nobody had set the clock since the start.
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
