//! What keeps a release from being applied, worded for people (CV-12, CV-13).
//!
//! # Departures from upstream
//!
//! * The API server's own words are part of the message of every failure; upstream replaces them.
//! * The summary of several failures names the first one and the objects of the others; upstream
//!   says "an unknown error has occurred: MultipleErrors".

mod api;
mod condense;
mod summary;

use jiff::Timestamp;
use plimsoll_api::{Effect, Reason};

pub use api::{cause, could_not_update, from_api_status, without_values};
pub use condense::{condense, groups};
pub use summary::summarize;

/// One thing that keeps a release from being applied, or is worth reporting while it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// How it surfaces in conditions; none for several failures of different reasons and for
    /// errors that surface at once.
    pub effect: Option<Effect>,
    /// The whole story, naming the object.
    pub message: String,
    /// The objects concerned, as messages name them: `deployment "ns/name"`. One, but for
    /// condensed failures.
    pub objects: Vec<String>,
    /// The names of the ClusterOperators concerned, if it is about such: sorted.
    pub cluster_operators: Vec<String>,
    /// Since when it has been so, if that is known.
    pub since: Option<Timestamp>,
    /// What the ClusterOperator that is waited for says of itself, if it is bad: `is not available
    /// since 2026-01-01T00:00:00Z (Crashing)`.
    pub trouble: Option<String>,
}

impl Failure {
    /// A failure about an ordinary object, such as `deployment "ns/name"`.
    pub fn of_object(
        object: impl Into<String>,
        reason: Reason,
        effect: Option<Effect>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            effect,
            message: message.into(),
            objects: vec![object.into()],
            cluster_operators: Vec::new(),
            since: None,
            trouble: None,
        }
    }

    /// A failure about the ClusterOperator `name`.
    pub fn of_cluster_operator(
        name: &str,
        reason: Reason,
        effect: Option<Effect>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            cluster_operators: vec![name.to_owned()],
            ..Self::of_object(format!("clusteroperator \"{name}\""), reason, effect, message)
        }
    }

    /// The same failure, known since a time.
    #[must_use]
    pub fn since(self, since: Timestamp) -> Self {
        Self { since: Some(since), ..self }
    }

    /// The short names of what it is about: ClusterOperators by name alone, objects with kind.
    pub fn names(&self) -> &[String] {
        if self.cluster_operators.is_empty() { &self.objects } else { &self.cluster_operators }
    }
}

#[cfg(test)]
mod tests;
