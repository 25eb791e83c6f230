//! Events: what happens to a plan that is being carried out.

use plimsoll_api::{GroupKind, ObjectKey, Verdict};

use super::outcome::StepOutcome;
use super::track::Mark;
use super::world::{NamespaceState, Scope};
use crate::plan::GroupVersionKind;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step was executed.
    Executed {
        /// The step.
        step: usize,
        /// How it went.
        outcome: StepOutcome,
    },
    /// A watch showed an object, or that it is gone.
    Observed {
        /// The object.
        key: ObjectKey,
        /// What it showed.
        mark: Mark,
    },
    /// All objects of a kind are going to be listed.
    ListExpected(GroupKind),
    /// A watch has shown all objects of a kind that exist.
    Listed(GroupKind),
    /// The health of an object was seen.
    Health {
        /// The object.
        key: ObjectKey,
        /// Its revision.
        revision: u64,
        /// What it says.
        verdict: Verdict,
    },
    /// A kind is served.
    KindServed(GroupVersionKind, Scope),
    /// A namespace exists in a state, or does not.
    Namespace(String, Option<NamespaceState>),
    /// The rare full pass: everything is applied once more.
    Sweep,
}
