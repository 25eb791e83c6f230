//! What can be said about an object that a plan waits for, and how much it matters.

use crate::Reason;

/// How an unmet expectation surfaces in `Failing` and `Progressing` (CV-14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Reported at the end, but does not stop anything: a degraded operator during installation.
    Report,
    /// Ordinary progress; slow after a while.
    None,
    /// Tolerated for a while, then a failure.
    FailAfterInterval,
    /// A failure at once.
    Fail,
}

/// The health of one object, seen from the plan that wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As the manifest wants it; nothing to wait for.
    Ready,
    /// As far as this mode demands, with something to report: a degraded operator while installing.
    ReadyWith {
        /// Why it is reported.
        reason: Reason,
        /// What is reported.
        message: String,
    },
    /// Not yet there.
    Waiting {
        /// How the waiting surfaces.
        effect: Effect,
        /// Why it waits.
        reason: Reason,
        /// What it waits for.
        message: String,
    },
}
