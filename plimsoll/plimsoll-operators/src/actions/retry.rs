//! RetryActions: their attempts are Actions, as the attempts of a Job are Pods.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionState, RetryActionSpec};

use super::derived_name;

/// The number of failures that are retried without `spec.backoffLimit`.
const BACKOFF_LIMIT: u32 = 6;
/// The delay after the first failure; it doubles with each further one.
const DELAY: Duration = Duration::from_secs(10);
/// The maximum delay.
const DELAY_MAX: Duration = Duration::from_secs(6 * 60);

/// An attempt of a RetryAction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The state of its Action.
    pub state: ActionState,
    /// The completion time; `None` before.
    pub ended: Option<Timestamp>,
}

/// A decision on a RetryAction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDecision {
    /// Create an attempt with this name.
    Attempt(String),
    /// Wait until this time before the next attempt.
    Wait(Timestamp),
    /// An attempt is in progress.
    Running,
    /// An attempt succeeded.
    Succeeded,
    /// Too many attempts failed.
    Failed,
}

/// Decides on a RetryAction. `uid` is that of the RetryAction, `recorded` the number of failures in its
/// status: deleted attempts count as well.
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
    // An end in the distant future is due to a wrong clock and is ignored.
    let due = ended.filter(|it| *it <= now + delay).and_then(|it| it.checked_add(delay).ok());
    match due.filter(|it| *it > now) {
        Some(due) => RetryDecision::Wait(due),
        None => RetryDecision::Attempt(derived_name(name, &[uid, &failed.to_string()])),
    }
}

/// Returns the delay after a number of failures: it grows with each one, and differs between RetryActions.
fn delay(uid: &str, failed: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failed.saturating_sub(1).min(16));
    let delay = DELAY.saturating_mul(doubled).min(DELAY_MAX);
    let spread = uid.bytes().fold(0, |sum, byte| (sum * 31 + u32::from(byte)) % 100);
    delay + delay * spread / 1000
}

#[cfg(test)]
mod tests;
