//! Where one step of a plan stands.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::{Reason, Verdict};

use super::world::StepBlocker;

/// An object as a write left it or a watch showed it: its revision, and what of it is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The object's resourceVersion; for an object that is gone, the one of its deletion.
    pub revision: u64,
    /// What of the object is ours.
    pub trace: Trace,
}

/// What of an object is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// There is no object.
    Gone,
    /// There is one, but we never applied it.
    Foreign,
    /// The digest of our managedFields entry.
    Ours(u64),
}

/// Why a try failed, in the words of the API server and in ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryError {
    /// The reason as conditions name it.
    pub reason: Reason,
    /// The whole cause: what it means, then what the server said.
    pub cause: String,
    /// Whether trying again is likely to help without anybody doing anything.
    pub transience: Transience,
    /// How long the server asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// Whether a failure is expected to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transience {
    /// A busy server, a lost connection, a conflict.
    Transient,
    /// Somebody has to change something.
    Lasting,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Its turn has not come.
    Pending,
    /// To be executed as soon as a slot is free.
    Due,
    /// Being executed.
    Running,
    /// Its turn has come, but something it needs is missing.
    Blocked(StepBlocker),
    /// It failed and is tried again at a time.
    Retry { at: Timestamp },
    /// Executed, and not yet as it must be.
    Waiting(Verdict),
    /// As it must be; with something to report in some cases.
    Done(Option<(Reason, String)>),
}

/// What is known of one step.
#[derive(Debug, Clone)]
pub(super) struct Track {
    pub(super) state: State,
    /// Tries since it last succeeded, and why the last one failed: told until one succeeds, also
    /// while the next one is under way.
    pub(super) attempts: u32,
    pub(super) error: Option<TryError>,
    /// Since when it is in its state, counting a change of error or verdict as the same.
    pub(super) since: Timestamp,
    /// Whether it was done once under this plan: what progress counts.
    pub(super) reached: bool,
    /// What our last write left.
    pub(super) applied: Option<Mark>,
    /// What a watch showed last.
    pub(super) observed: Option<Mark>,
    /// What was last seen of its health, at which revision.
    pub(super) health: Option<(u64, Verdict)>,
    /// Repairs in a row, and when the last one was: slows down a fight over an object.
    pub(super) repairs: u32,
    pub(super) repaired: Option<Timestamp>,
}

impl Track {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            state: State::Pending,
            attempts: 0,
            error: None,
            since: now,
            reached: false,
            applied: None,
            observed: None,
            health: None,
            repairs: 0,
            repaired: None,
        }
    }

    /// Enters a state; `since` moves only when the kind of state changes.
    pub(super) fn enter(&mut self, state: State, now: Timestamp) {
        let trying =
            |state: &State| matches!(state, State::Due | State::Running | State::Retry { .. });
        let same = std::mem::discriminant(&self.state) == std::mem::discriminant(&state)
            || (self.error.is_some() && trying(&self.state) && trying(&state));
        if !same {
            self.since = now;
        }
        if matches!(state, State::Done(_)) {
            self.reached = true;
        }
        self.state = state;
    }

    /// Whether a watch has shown our part of the object changed, or the object gone, since our
    /// last write.
    pub(super) fn has_drifted(&self) -> bool {
        match (self.applied, self.observed) {
            (Some(applied), Some(observed)) => {
                observed.revision > applied.revision && observed.trace != applied.trace
            }
            _ => false,
        }
    }
}
