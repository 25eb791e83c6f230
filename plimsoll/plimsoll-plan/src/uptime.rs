//! Time since the process started, as a value.

use std::ops::Add;
use std::time::Duration;

/// A moment, as the time since the process started; no adjustment of the clock moves it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(Duration);

impl Uptime {
    /// The moment so long after the start.
    pub const fn from_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time since the start.
    pub const fn since_start(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Uptime {
    type Output = Self;

    fn add(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(delay))
    }
}
