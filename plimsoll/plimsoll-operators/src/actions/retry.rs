//! RetryActions: attempts that are Actions of their own, as Jobs have Pods.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionState, RetryActionSpec};

use super::derived_name;

/// How many attempts may fail if it is not said.
const BACKOFF_LIMIT: u32 = 6;
/// What is waited for after the first failure; twice that after the next one.
const DELAY: Duration = Duration::from_secs(10);
/// What is waited for at most.
const DELAY_MAX: Duration = Duration::from_secs(6 * 60);

/// An attempt, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// How far it is.
    pub state: ActionState,
    /// When it ended; `None` before.
    pub ended: Option<Timestamp>,
}

/// What is done with a RetryAction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDecision {
    /// An attempt of this name is made.
    Attempt(String),
    /// The next attempt is made at this time.
    Wait(Timestamp),
    /// An attempt is under way.
    Running,
    /// One succeeded.
    Succeeded,
    /// Too many failed.
    Failed,
}

/// Decides what is done. `uid` is that of the RetryAction, `recorded` the number of failures in its status:
/// attempts that were deleted count.
pub fn decide(
    name: &str,
    uid: &str,
    spec: &RetryActionSpec,
    recorded: u32,
    attempts: &[Attempt],
    now: Timestamp,
) -> RetryDecision {
    if attempts.iter().any(|it| it.state == ActionState::Succeeded) {
        return RetryDecision::Succeeded;
    }
    if attempts.iter().any(|it| !it.state.is_final()) {
        return RetryDecision::Running;
    }
    let failed = u32::try_from(attempts.len()).unwrap_or(u32::MAX).max(recorded);
    if failed > spec.backoff_limit.unwrap_or(BACKOFF_LIMIT) {
        return RetryDecision::Failed;
    }
    let ended = attempts.iter().filter_map(|it| it.ended).max();
    let delay = delay(uid, failed);
    // An end far ahead is one of a clock that was wrong: nobody waits for it.
    let due = ended.filter(|it| *it <= now + delay).and_then(|it| it.checked_add(delay).ok());
    match due.filter(|it| *it > now) {
        Some(due) => RetryDecision::Wait(due),
        None => RetryDecision::Attempt(derived_name(name, &[uid, &failed.to_string()])),
    }
}

/// What is waited for after a number of failures: longer each time, and not the same for all.
fn delay(uid: &str, failed: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failed.saturating_sub(1).min(16));
    let delay = DELAY.saturating_mul(doubled).min(DELAY_MAX);
    let spread = uid.bytes().fold(0, |sum, byte| (sum * 31 + u32::from(byte)) % 100);
    delay + delay * spread / 1000
}
