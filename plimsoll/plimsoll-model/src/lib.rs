//! Plimsoll's vocabulary: the small types that every other crate speaks in.
//!
//! No serialisation of objects, no Kubernetes client, no IO: keys, conditions, the one list of
//! reasons, and what can be said about the health of an object.

mod condition;
mod key;
mod reason;
mod verdict;

pub use condition::{Condition, ConditionStatus, merge_conditions};
pub use key::{GroupKind, ObjectKey};
pub use reason::Reason;
pub use verdict::{Effect, Verdict};
