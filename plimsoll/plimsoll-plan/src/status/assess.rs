//! From what waits and failed to what is said about it (CV-14).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::{Effect, Reason};

use super::{Limits, StatusInput};
use crate::health::failure::{Failure, condense, groups, summarize};
use crate::plan::mode::Mode;

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
        /// The reason.
        reason: Reason,
        /// The same as a sentence.
        message: String,
        /// The story in a few words.
        summary: String,
    },
}

/// How a failure surfaces in the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `Failing` is True for it.
    Failing,
    /// It may recover; `Failing` is False for it until it took too long.
    Tolerated,
    /// It is waited for.
    Waiting,
    /// Not yet reported.
    Unreported,
}

/// What decides how failures surface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surfacing<'a> {
    pub(crate) mode: Mode,
    /// Whether all steps are done.
    pub(crate) is_all_done: bool,
    pub(crate) limits: &'a Limits,
    /// The time of day.
    pub(crate) now: Timestamp,
}

impl Surfacing<'_> {
    /// How a failure surfaces.
    pub(crate) fn of(&self, failure: &Failure) -> Surface {
        if self.mode == Mode::Reconciling {
            return Surface::Failing;
        }
        match failure.effect {
            None | Some(Effect::Fail) => Surface::Failing,
            // Reported when all else is done: until then it may well recover.
            Some(Effect::Report) if !self.is_all_done => Surface::Unreported,
            Some(Effect::Report) => Surface::Failing,
            Some(Effect::None) => Surface::Waiting,
            // An unknown start counts as long ago.
            Some(Effect::FailAfterInterval) => {
                match is_older(failure, self.limits.degraded_tolerated, self.now) {
                    Some(false) => Surface::Tolerated,
                    Some(true) | None => Surface::Failing,
                }
            }
        }
    }
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
        sorted.failing(input.limits)
    } else if !sorted.waiting.is_empty() || !sorted.tolerated.is_empty() {
        sorted.waiting(input.limits, input.now)
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
        let surfacing = Surfacing {
            mode: input.mode,
            is_all_done: input.done >= input.total,
            limits: input.limits,
            now: input.now,
        };
        let mut sorted = Self::default();
        for failure in input.failures.iter().cloned() {
            match surfacing.of(&failure) {
                Surface::Failing => sorted.failing.push(failure),
                Surface::Tolerated => sorted.tolerated.push(failure),
                Surface::Waiting => sorted.waiting.push(failure),
                Surface::Unreported => {}
            }
        }
        sorted
    }

    fn failing(&self, limits: &Limits) -> Outlook {
        let all = |effect| self.failing.iter().all(|failure| failure.effect == Some(effect));
        let condensed = condense(&self.failing).expect("something fails");
        let Failure { reason, message, .. } = condensed;
        let summary = if all(Effect::FailAfterInterval) {
            let limit = minutes(limits.degraded_tolerated);
            let names = names(&self.failing);
            format!("wait has exceeded {limit} for these operators: {names}")
        } else if all(Effect::Report) && reason != Reason::MultipleErrors {
            message.clone()
        } else {
            summarize(&self.failing)
        };
        Outlook::Failing { reason, message, summary }
    }

    fn waiting(&self, limits: &Limits, now: Timestamp) -> Outlook {
        let all: Vec<Failure> = self.waiting.iter().chain(&self.tolerated).cloned().collect();
        let reason = common_reason(&all);
        let slow = Slow::new(&self.waiting, limits, now);
        if let Some(text) = slow.text() {
            let slow = if slow.failures().any(is_operator) {
                Reason::SlowClusterOperator
            } else {
                Reason::SlowWorkload
            };
            let parts: Vec<String> = std::iter::once(text).chain(troubles(&self.waiting)).collect();
            return Outlook::Slow { reason, slow, text: parts.join("; ") };
        }
        let mut parts = Vec::new();
        if !self.waiting.is_empty() {
            let trouble = match (self.waiting.as_slice(), troubles(&self.waiting).join(" and ")) {
                ([Failure { trouble: Some(trouble), .. }], _) => format!(", which {trouble}"),
                (_, several) if several.is_empty() => several,
                (_, several) => format!(", of which {several}"),
            };
            parts.push(format!("waiting on {}{trouble}", names(&self.waiting)));
        }
        if !self.tolerated.is_empty() {
            let limit = minutes(limits.degraded_tolerated);
            parts.push(format!("waiting up to {limit} on {}", names(&self.tolerated)));
        }
        Outlook::Waiting { reason, text: parts.join(", ") }
    }
}

/// What has been waited for longer than it should take, by how long that is.
struct Slow(BTreeMap<SignedDuration, Vec<Failure>>);

impl Slow {
    fn new(waiting: &[Failure], limits: &Limits, now: Timestamp) -> Self {
        let mut slow: BTreeMap<SignedDuration, Vec<Failure>> = BTreeMap::new();
        for failure in waiting {
            let limit = limits.slow_after(&failure.cluster_operators);
            if is_older(failure, limit, now).unwrap_or(false) {
                slow.entry(limit).or_default().push(failure.clone());
            }
        }
        Self(slow)
    }

    fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.0.values().flatten()
    }

    fn text(&self) -> Option<String> {
        let part = |(limit, failures): (&SignedDuration, &Vec<Failure>)| {
            format!("{} over {}", names(failures), minutes(*limit))
        };
        let parts: Vec<String> = self.0.iter().map(part).collect();
        let slow = parts.join(" and ");
        (!slow.is_empty()).then(|| format!("waiting on {slow} which is longer than expected"))
    }
}

fn minutes(time: SignedDuration) -> String {
    let (number, unit) = match time.as_mins() {
        0 => (time.as_secs(), "second"),
        minutes => (minutes, "minute"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
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

/// What the ClusterOperators that are waited for say of themselves, if it is bad, such as `a is not
/// available`, sorted.
fn troubles(waiting: &[Failure]) -> Vec<String> {
    let trouble = |failure: &Failure| {
        Some(format!("{} {}", failure.cluster_operators.join(", "), failure.trouble.as_ref()?))
    };
    let mut troubles: Vec<String> = waiting.iter().filter_map(trouble).collect();
    troubles.sort_unstable();
    troubles
}

fn is_operator(failure: &Failure) -> bool {
    !failure.cluster_operators.is_empty()
}

/// Whether a failure has lasted longer than a time; `None` if its start is not known.
fn is_older(failure: &Failure, age: SignedDuration, now: Timestamp) -> Option<bool> {
    failure.since.map(|since| now.duration_since(since) > age)
}
