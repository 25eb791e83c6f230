//! Virtual time: it only advances when all tasks wait.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A time of day that follows the clock of a paused runtime.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    base: Timestamp,
    began: Instant,
}

impl VirtualClock {
    /// A clock that shows `base` now. To be called within the runtime.
    pub fn from(base: Timestamp) -> Self {
        Self { base, began: Instant::now() }
    }

    fn time(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).unwrap_or_default();
        self.base.checked_add(elapsed).unwrap_or(self.base)
    }
}

impl k8s_apiserver::Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.time()
    }
}

impl plimsoll_controller::Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.time()
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

/// The time at which a simulated cluster starts: always the same, so that results are too.
pub fn start_time() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH)
}
