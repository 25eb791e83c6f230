//! From what waits and failed to what is said about it (cluster-version §2.7).

use jiff::{SignedDuration, Timestamp};
use plimsoll_model::{Effect, Reason};

use super::StatusInput;
use crate::failure::{Failure, condense, groups, summarize};
use crate::mode::Mode;

/// How long an ordinary wait is ordinary: updates of single operators take less than this.
pub const SLOW_AFTER: SignedDuration = SignedDuration::from_mins(30);
/// The same for [`SLOW_NODES_OPERATOR`], which drains and restarts one node after the other.
pub const SLOW_AFTER_NODES: SignedDuration = SignedDuration::from_mins(90);
/// The ClusterOperator that takes its time.
pub const SLOW_NODES_OPERATOR: &str = "machine-config";
/// How long a degraded operator is given to recover before the update counts as failing.
pub const DEGRADED_TOLERATED: SignedDuration = SignedDuration::from_mins(40);
/// Objects other than ClusterOperators that a message names; more are counted.
const OBJECTS_NAMED: usize = 3;

/// What is to be said about the way to a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outlook {
    /// Nothing is in the way.
    Well,
    /// It takes time, as it does.
    Waiting {
        /// What the waiting is about.
        reason: Reason,
        /// `waiting on a, b`.
        text: String,
    },
    /// It takes longer than it should.
    Slow {
        /// What the waiting is about.
        reason: Reason,
        /// Why it is slow.
        slow: Reason,
        /// `waiting on a over 30 minutes which is longer than expected`.
        text: String,
    },
    /// Something is wrong.
    Failing {
        /// What.
        reason: Reason,
        /// The whole story.
        message: String,
        /// The story in a few words.
        summary: String,
    },
}

/// Judges what waits or failed.
pub(super) fn outlook(input: &StatusInput<'_>) -> Outlook {
    if input.release.image.is_empty() && input.release.version.is_empty() {
        return Outlook::Failing {
            reason: Reason::NoDesiredImage,
            message: "No configured operator version, unable to update cluster".to_owned(),
            summary: format!("an unknown error has occurred: {}", Reason::NoDesiredImage),
        };
    }
    if input.mode == Mode::Reconciling {
        return match condense(input.failures) {
            None => Outlook::Well,
            Some(Failure { reason, message, .. }) => {
                Outlook::Failing { reason, message, summary: summarize(input.failures) }
            }
        };
    }
    let sorted = Sorted::new(input);
    if !sorted.failing.is_empty() {
        sorted.failing()
    } else if !sorted.waiting.is_empty() || !sorted.tolerated.is_empty() {
        sorted.waiting(input.now)
    } else {
        Outlook::Well
    }
}

/// Failures on the way to a release, by how they surface.
#[derive(Debug, Default)]
struct Sorted {
    failing: Vec<Failure>,
    tolerated: Vec<Failure>,
    waiting: Vec<Failure>,
}

impl Sorted {
    fn new(input: &StatusInput<'_>) -> Self {
        let mut sorted = Self::default();
        for failure in input.failures.iter().cloned() {
            match failure.effect {
                None | Some(Effect::Fail) => sorted.failing.push(failure),
                // Told when all else is done: until then it may well recover.
                Some(Effect::Report) if input.done < input.total => {}
                Some(Effect::Report) => sorted.failing.push(failure),
                Some(Effect::None) => sorted.waiting.push(failure),
                Some(Effect::FailAfterInterval) => {
                    // An unknown start counts as long ago.
                    if is_older(&failure, DEGRADED_TOLERATED, input.now).unwrap_or(true) {
                        sorted.failing.push(failure);
                    } else {
                        sorted.tolerated.push(failure);
                    }
                }
            }
        }
        sorted
    }

    fn failing(&self) -> Outlook {
        let all = |effect| self.failing.iter().all(|failure| failure.effect == Some(effect));
        let condensed = condense(&self.failing).expect("something fails");
        let Failure { reason, message, .. } = condensed;
        let summary = if all(Effect::FailAfterInterval) {
            let limit = DEGRADED_TOLERATED.as_mins();
            let names = names(&self.failing);
            format!("wait has exceeded {limit} minutes for these operators: {names}")
        } else if all(Effect::Report) && reason != Reason::MultipleErrors {
            message.clone()
        } else {
            summarize(&self.failing)
        };
        Outlook::Failing { reason, message, summary }
    }

    fn waiting(&self, now: Timestamp) -> Outlook {
        let all: Vec<Failure> = self.waiting.iter().chain(&self.tolerated).cloned().collect();
        let reason = common_reason(&all);
        let (slow_nodes, others): (Vec<Failure>, Vec<Failure>) =
            self.waiting.iter().cloned().partition(is_nodes);
        let slow = |failures: Vec<Failure>, after| -> Vec<Failure> {
            let is_slow = |failure: &Failure| is_older(failure, after, now).unwrap_or(false);
            failures.into_iter().filter(is_slow).collect()
        };
        let slow_nodes = slow(slow_nodes, SLOW_AFTER_NODES);
        let slow_others = slow(others, SLOW_AFTER);
        if let Some(text) = slow_text(&slow_others, &slow_nodes) {
            let slow = if slow_others.iter().chain(&slow_nodes).any(is_operator) {
                Reason::SlowClusterOperator
            } else {
                Reason::SlowWorkload
            };
            return Outlook::Slow { reason, slow, text };
        }
        let mut parts = Vec::new();
        if !self.waiting.is_empty() {
            parts.push(format!("waiting on {}", names(&self.waiting)));
        }
        if !self.tolerated.is_empty() {
            let limit = DEGRADED_TOLERATED.as_mins();
            parts.push(format!("waiting up to {limit} minutes on {}", names(&self.tolerated)));
        }
        Outlook::Waiting { reason, text: parts.join(", ") }
    }
}

fn slow_text(others: &[Failure], nodes: &[Failure]) -> Option<String> {
    let mut parts = Vec::new();
    for (failures, limit) in [(others, SLOW_AFTER), (nodes, SLOW_AFTER_NODES)] {
        if !failures.is_empty() {
            parts.push(format!("{} over {} minutes", names(failures), limit.as_mins()));
        }
    }
    let slow = parts.join(" and ");
    (!slow.is_empty()).then(|| format!("waiting on {slow} which is longer than expected"))
}

/// The reason of all, in the plural if it has one; that of the ClusterOperators if these agree.
fn common_reason(failures: &[Failure]) -> Reason {
    let groups = groups(failures);
    let mut reasons: Vec<Reason> = groups.iter().map(|group| group.reason).collect();
    reasons.sort();
    reasons.dedup();
    let of_operators: Vec<&Failure> = groups.iter().filter(|group| is_operator(group)).collect();
    match (reasons.as_slice(), of_operators.as_slice()) {
        ([only], _) => *only,
        (_, [only]) => only.reason,
        _ => Reason::MultipleReasons,
    }
}

/// ClusterOperators by name, sorted, then other objects, of which the first few are named.
fn names(failures: &[Failure]) -> String {
    let (operators, objects): (Vec<&Failure>, Vec<&Failure>) =
        failures.iter().partition(|failure| is_operator(failure));
    let mut names: Vec<&str> =
        operators.iter().flat_map(|failure| failure.names()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let objects: Vec<&str> =
        objects.iter().flat_map(|failure| failure.names()).map(String::as_str).collect();
    names.extend(objects.iter().take(OBJECTS_NAMED));
    let listed = names.join(", ");
    match objects.len().checked_sub(OBJECTS_NAMED) {
        None | Some(0) => listed,
        Some(more) => format!("{listed} and {more} more"),
    }
}

fn is_operator(failure: &Failure) -> bool {
    !failure.cluster_operators.is_empty()
}

fn is_nodes(failure: &Failure) -> bool {
    failure.cluster_operators.iter().any(|name| name == SLOW_NODES_OPERATOR)
}

/// Whether a failure has lasted longer than a time; `None` if its start is not known.
fn is_older(failure: &Failure, age: SignedDuration, now: Timestamp) -> Option<bool> {
    failure.since.map(|since| now.duration_since(since) > age)
}
