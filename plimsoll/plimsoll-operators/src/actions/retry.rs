//! RetryActions: their attempts are Actions, as the attempts of a Job are Pods.
//!
//! Attempts follow one another. The name of an attempt is derived from the number of failures before it, so
//! that number tells which attempt is the current one, and each failure is counted once whatever becomes of
//! its Action. It is counted before the next attempt is made.
//!
//! As with Jobs, any failure is tried again, an attempt that is deleted has failed, and nothing follows the
//! end. An attempt that a user cancels has not failed: the RetryAction ends with it. If it succeeds before it
//! stops, the RetryAction has succeeded. It ends with an attempt whose plan is rejected as well: another one would
//! ask for the same approval.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::action::{
    ACTION_SUCCEEDED, ActionState, RetryActionSpec, RetryActionStatus,
};
use plimsoll_api::{ConditionStatus, Reason, duration, whole_seconds};

use super::{derived_name, name_after_collisions};
use crate::conditions::{ConditionDraft, condition};

/// The number of failures that are retried without `spec.backoffLimit`.
const BACKOFF_LIMIT: u32 = 6;
/// The delay after the first failure; it doubles with each further one.
const DELAY: Duration = Duration::from_secs(10);
/// The maximum delay.
const DELAY_MAX: Duration = Duration::from_secs(6 * 60);
/// The beginning of the message after an attempt failed, before the message of that attempt.
const FAILED: &str = "the last attempt failed";
/// The text before that message once the next attempt is made.
const FAILED_BEFORE: &str = "; the last one failed: ";

/// A RetryAction as the API server has it.
#[derive(Debug, Clone, Copy)]
pub struct RetryObject<'a> {
    /// The name of the object.
    pub name: &'a str,
    /// The uid of the object.
    pub uid: &'a str,
    /// The creation time.
    pub created: Timestamp,
    /// The generation of its spec.
    pub generation: i64,
    /// The requested spec.
    pub spec: &'a RetryActionSpec,
    /// The status.
    pub status: &'a RetryActionStatus,
}

/// An attempt of a RetryAction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The name of its Action.
    pub name: String,
    /// The state of its Action.
    pub state: ActionState,
    /// The creation time.
    pub created: Timestamp,
    /// The completion time; `None` before.
    pub ended: Option<Timestamp>,
    /// Whether its cancellation is requested.
    pub is_cancelled: bool,
    /// Whether it failed since an approver rejected its plan.
    pub is_rejected: bool,
    /// The message of its condition of success; empty if it has none.
    pub message: String,
}

/// A decision on a RetryAction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetryDecision {
    /// The name of the attempt to create, before collisions; `None` for none.
    pub make: Option<String>,
    /// The name of the attempt to cancel; `None` for none.
    pub cancel: Option<String>,
    /// The names of the attempts to delete, oldest first.
    pub delete: Vec<String>,
    /// The name of an attempt that was made and is not observed: it may be deleted, or not observed yet.
    /// `None` if there is no such attempt.
    pub look_for: Option<String>,
    /// Whether the RetryAction itself is to be deleted.
    pub is_outlived: bool,
    /// The status to write after these changes; until it is written, the decision is the same.
    pub status: RetryActionStatus,
    /// The time of the next decision; `None` if only an event causes one.
    pub wake_at: Option<Timestamp>,
}

/// The attempt after the failures that are counted.
enum Current<'a> {
    /// It has not been made.
    Unmade,
    /// It was made, and is not observed.
    Unseen,
    Running(&'a Attempt),
    Succeeded(&'a Attempt),
    /// It was cancelled on request.
    Cancelled(&'a Attempt),
    /// Its plan was rejected.
    Rejected(&'a Attempt),
    /// It failed, with a time and a message.
    Failed(Timestamp, String),
}

impl RetryObject<'_> {
    /// Decides on the RetryAction. `is_gone` tells that the attempt to look for was looked for, and does not
    /// exist any more.
    pub fn decide(&self, attempts: &[Attempt], is_gone: bool, now: Timestamp) -> RetryDecision {
        let mut decision = RetryDecision {
            delete: self.outdated(attempts),
            status: self.status.clone(),
            ..RetryDecision::default()
        };
        if self.has_ended() {
            let outlived = self.outlived_at();
            decision.is_outlived = outlived.is_some_and(|it| it <= now);
            decision.wake_at = outlived.filter(|it| *it > now);
            return decision;
        }
        if self.spec.requester.is_none() {
            // It is set at admission alone.
            let message = "spec.requester is missing, so nothing is requested: create it again";
            self.end(&mut decision, Reason::InvalidAction, message.to_owned(), now);
            return decision;
        }
        decision.wake_at = self.deadline().filter(|it| *it > now);
        let current = self.current(attempts, is_gone, now);
        match current {
            Current::Unmade => self.begin(&mut decision, attempts, now),
            Current::Unseen => decision.look_for = Some(self.attempt_name()),
            Current::Running(attempt) => self.go_on(&mut decision, attempts, attempt, now),
            Current::Succeeded(attempt) => {
                self.seen(&mut decision, Some(attempt));
                decision.status.succeeded = 1;
                let message = with("an attempt succeeded", ": ", &attempt.message);
                self.end(&mut decision, Reason::ActionSucceeded, message, now);
            }
            Current::Cancelled(attempt) => {
                self.seen(&mut decision, Some(attempt));
                let ended = attempt.ended.unwrap_or(now);
                let cancelled =
                    || (Reason::ActionCancelled, format!("attempt {} was cancelled", attempt.name));
                let (reason, why) = self.stop(self.status.failed, ended).unwrap_or_else(cancelled);
                let message = with(&why, "; the last attempt: ", &attempt.message);
                self.end(&mut decision, reason, message, now);
            }
            Current::Rejected(attempt) => {
                self.seen(&mut decision, Some(attempt));
                decision.status.failed = self.status.failed.saturating_add(1);
                let message = format!("attempt {} was rejected", attempt.name);
                let message = with(&message, ": ", &attempt.message);
                self.end(&mut decision, Reason::PlanRejected, message, now);
            }
            Current::Failed(ended, message) => {
                let attempt = attempts.iter().find(|it| it.name == self.attempt_name());
                self.seen(&mut decision, attempt);
                self.count(&mut decision, ended, &message, now);
            }
        }
        decision
    }

    /// Returns the decision that follows one to make an attempt if the API server refuses its
    /// Action, with a message: the attempt has failed. Until the status is written, it is made again
    /// under the same name.
    pub fn refused(&self, message: &str, now: Timestamp) -> RetryDecision {
        let mut decision = RetryDecision {
            status: self.status.clone(),
            wake_at: self.deadline().filter(|it| *it > now),
            ..RetryDecision::default()
        };
        self.count(&mut decision, now, &format!("its Action is refused: {message}"), now);
        decision
    }

    /// Returns whether the RetryAction has ended: then nothing is made any more.
    fn has_ended(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|it| it.type_ == ACTION_SUCCEEDED && it.status != ConditionStatus::Unknown)
    }

    /// Returns the name of the current attempt before collisions.
    fn base_name(&self) -> String {
        derived_name(self.name, &[self.uid, &self.status.failed.to_string()])
    }

    /// Returns the name of the current attempt.
    fn attempt_name(&self) -> String {
        let collisions = self.status.collision_count.unwrap_or_default();
        name_after_collisions(&self.base_name(), self.uid, collisions)
    }

    fn current<'a>(&self, attempts: &'a [Attempt], is_gone: bool, now: Timestamp) -> Current<'a> {
        let name = self.attempt_name();
        let Some(attempt) = attempts.iter().find(|it| it.name == name) else {
            return match self.status.latest_attempt == name {
                false => Current::Unmade,
                true if is_gone => Current::Failed(now, format!("Action {name} was deleted")),
                true => Current::Unseen,
            };
        };
        match attempt.state {
            ActionState::Pending | ActionState::WaitingForApproval | ActionState::Running => {
                Current::Running(attempt)
            }
            ActionState::Succeeded => Current::Succeeded(attempt),
            ActionState::Cancelled if attempt.is_cancelled => Current::Cancelled(attempt),
            ActionState::Failed if attempt.is_rejected => Current::Rejected(attempt),
            // An Action that is deleted while it runs ends as cancelled, too.
            ActionState::Cancelled | ActionState::Failed => {
                Current::Failed(attempt.ended.unwrap_or(now), attempt.message.clone())
            }
        }
    }

    /// Makes the current attempt if it is due.
    fn begin(&self, decision: &mut RetryDecision, attempts: &[Attempt], now: Timestamp) {
        let failed = self.status.failed;
        let last = self.last_failure(attempts);
        if let Some((reason, why)) = self.stop(failed, now) {
            return self.end(decision, reason, with(&why, "; the last attempt: ", last), now);
        }
        // A time beyond the delay is due to a wrong clock.
        let latest = now.checked_add(delay(self.uid, failed)).unwrap_or(now);
        let next = self.status.next_attempt_time.map(|it| it.min(latest));
        if let Some(next) = next.filter(|it| *it > now) {
            decision.status.next_attempt_time = Some(next);
            decision.wake_at = Some(decision.wake_at.map_or(next, |it| it.min(next)));
            return;
        }
        decision.make = Some(self.base_name());
        self.seen(decision, None);
        decision.status.start_time.get_or_insert_with(|| whole_seconds(now));
        let begins = format!("attempt {} begins", failed.saturating_add(1));
        self.report(decision, with(&begins, FAILED_BEFORE, last), now);
    }

    /// Lets the current attempt run, unless it is to be cancelled.
    fn go_on(
        &self,
        decision: &mut RetryDecision,
        attempts: &[Attempt],
        attempt: &Attempt,
        now: Timestamp,
    ) {
        self.seen(decision, Some(attempt));
        let number = self.status.failed.saturating_add(1);
        let text = match self.stop(self.status.failed, now) {
            Some((_, why)) => {
                decision.cancel = (!attempt.is_cancelled).then(|| attempt.name.clone());
                format!("{why}: attempt {number} stops before its next change")
            }
            None if attempt.is_cancelled => {
                format!("attempt {number} was cancelled and stops before its next change")
            }
            None => format!("attempt {number} is under way"),
        };
        let text = with(&text, FAILED_BEFORE, self.last_failure(attempts));
        self.report(decision, text, now);
    }

    /// Counts the failure of the current attempt.
    fn count(&self, decision: &mut RetryDecision, ended: Timestamp, message: &str, now: Timestamp) {
        let failed = self.status.failed.saturating_add(1);
        decision.status.failed = failed;
        if let Some((reason, why)) = self.stop(failed, now) {
            return self.end(decision, reason, with(&why, "; the last attempt: ", message), now);
        }
        // An end in the future is due to a wrong clock.
        let next = ended.min(now).checked_add(delay(self.uid, failed)).unwrap_or(now);
        decision.status.next_attempt_time = Some(next);
        let wake_at = next.max(now);
        decision.wake_at = Some(decision.wake_at.map_or(wake_at, |it| it.min(wake_at)));
        self.report(decision, with(FAILED, ": ", message), now);
    }

    /// Returns the message of the attempt that failed last; empty if none is known. Of one that was
    /// refused or deleted, the status alone has it.
    fn last_failure<'a>(&'a self, attempts: &'a [Attempt]) -> &'a str {
        let mut conditions = self.status.conditions.iter();
        let condition = conditions.find(|it| it.type_ == ACTION_SUCCEEDED);
        let message = condition.map_or("", |it| it.message.as_str());
        let failed = message.strip_prefix(FAILED).and_then(|it| it.strip_prefix(": "));
        let reported = failed.or_else(|| Some(message.split_once(FAILED_BEFORE)?.1));
        reported.unwrap_or_else(|| last_failure(attempts))
    }

    /// Returns why no further attempt is made after a number of failures and at a time; `None` if one may be.
    fn stop(&self, failed: u32, at: Timestamp) -> Option<(Reason, String)> {
        if failed > self.spec.backoff_limit.unwrap_or(BACKOFF_LIMIT) {
            let attempts = if failed == 1 { "attempt" } else { "attempts" };
            return Some((Reason::BackoffLimitExceeded, format!("{failed} {attempts} failed")));
        }
        if self.spec.cancelled {
            return Some((Reason::ActionCancelled, "it was cancelled".to_owned()));
        }
        let seconds = self.spec.active_deadline_seconds.unwrap_or_default();
        let message = || format!("it was not done within {seconds} s of its creation");
        self.deadline().filter(|it| *it <= at).map(|_| (Reason::DeadlineExceeded, message()))
    }

    /// Returns the time at which no attempt runs any more; `None` for any.
    fn deadline(&self) -> Option<Timestamp> {
        let seconds = u64::try_from(self.spec.active_deadline_seconds?).unwrap_or_default();
        // A deadline beyond the range of timestamps counts as none.
        self.created.checked_add(Duration::from_secs(seconds)).ok()
    }

    /// Returns the time at which the RetryAction is deleted, which has ended; `None` for never.
    fn outlived_at(&self) -> Option<Timestamp> {
        if self.spec.ttl_after_finished.is_empty() {
            return None;
        }
        let kept = duration::parse(&self.spec.ttl_after_finished).ok()?;
        self.status.completion_time?.checked_add(kept).ok()
    }

    /// Records the current attempt, and when the first one was made.
    fn seen(&self, decision: &mut RetryDecision, attempt: Option<&Attempt>) {
        let status = &mut decision.status;
        status.latest_attempt = self.attempt_name();
        status.next_attempt_time = None;
        status.start_time = status.start_time.or(attempt.map(|it| it.created));
    }

    fn end(&self, decision: &mut RetryDecision, reason: Reason, message: String, now: Timestamp) {
        let status = match reason {
            Reason::ActionSucceeded => ConditionStatus::True,
            _ => ConditionStatus::False,
        };
        decision.status.next_attempt_time = None;
        decision.status.completion_time = Some(whole_seconds(now));
        decision.wake_at = None;
        self.set_condition(decision, status, reason, message, now);
    }

    fn report(&self, decision: &mut RetryDecision, message: String, now: Timestamp) {
        let (status, reason) = (ConditionStatus::Unknown, Reason::ActionRunning);
        self.set_condition(decision, status, reason, message, now);
    }

    fn set_condition(
        &self,
        decision: &mut RetryDecision,
        status: ConditionStatus,
        reason: Reason,
        message: String,
        now: Timestamp,
    ) {
        let draft = ConditionDraft { type_: ACTION_SUCCEEDED, status, reason, message };
        decision.status.conditions =
            vec![condition(draft, &self.status.conditions, self.generation, now)];
    }

    /// Returns the ended attempts beyond those that are kept, oldest first. The current one is kept
    /// until it is counted, and one that succeeded is always kept.
    fn outdated(&self, attempts: &[Attempt]) -> Vec<String> {
        let Some(limit) = self.spec.history_limit else { return Vec::new() };
        let current = self.attempt_name();
        let is_kept = |it: &Attempt| it.name == current || it.state == ActionState::Succeeded;
        let ended = || attempts.iter().filter(|it| it.state.is_final());
        let kept = ended().filter(|it| is_kept(it)).count();
        let mut others: Vec<&Attempt> = ended().filter(|it| !is_kept(it)).collect();
        others.sort_by(|a, b| by_end(a).cmp(&by_end(b)));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(kept);
        let count = others.len().saturating_sub(limit);
        others.into_iter().take(count).map(|it| it.name.clone()).collect()
    }
}

/// Returns the sort key of attempts that have ended: oldest first.
fn by_end(attempt: &Attempt) -> (Option<Timestamp>, Timestamp, &str) {
    (attempt.ended, attempt.created, &attempt.name)
}

/// Returns the message of the attempt that failed last; empty if none is there.
fn last_failure(attempts: &[Attempt]) -> &str {
    let failed = attempts.iter().filter(|it| it.state == ActionState::Failed);
    failed.max_by(|a, b| by_end(a).cmp(&by_end(b))).map_or("", |it| it.message.as_str())
}

/// Returns a text with another one after it, unless that is empty.
fn with(text: &str, joint: &str, other: &str) -> String {
    match other {
        "" => text.to_owned(),
        other => format!("{text}{joint}{other}"),
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
