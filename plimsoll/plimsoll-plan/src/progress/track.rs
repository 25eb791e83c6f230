//! Where one step of a plan stands.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::{Reason, Verdict};

use super::world::StepBlocker;
use super::{RETRY_AFTER_MAX, RETRY_DELAY_MAX};

/// How finely traces tell writes of the same fields apart: the times of managedFields are in whole
/// seconds.
pub const TRACE_RESOLUTION: Duration = Duration::from_secs(1);

/// An object as a write left it or a watch showed it: its revision, and what of it is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The object's resourceVersion; for an object that is gone, the one of its deletion.
    pub revision: u64,
    /// The object's `metadata.generation`; 0 for kinds without one.
    pub generation: i64,
    /// Whether the object is being deleted.
    pub is_terminating: bool,
    /// What of the object is ours.
    pub trace: Trace,
}

impl Mark {
    /// An object of a kind without generations that is not being deleted.
    pub fn new(revision: u64, trace: Trace) -> Self {
        Self { revision, generation: 0, is_terminating: false, trace }
    }

    /// Returns whether what another mark of the object shows was before this one. That an object is missing
    /// in a list is marked with the revision after the one it had: a watch that shows it at that one again
    /// shows that the list was older.
    pub(super) fn is_after(&self, other: &Self) -> bool {
        let is_assumed = self.trace == Trace::Gone
            && other.trace != Trace::Gone
            && self.revision == other.revision + 1;
        self.revision > other.revision && !is_assumed
    }
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

impl TryError {
    /// The delay that the server asked for, as far as it gets it.
    pub(super) fn asked_delay(&self) -> Duration {
        self.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX)
    }

    /// Why it failed, and when it is tried again if the server asked for a longer delay than usual.
    pub(super) fn message(&self) -> String {
        let (cause, delay) = (&self.cause, self.asked_delay());
        match self.retry_after.filter(|_| delay > RETRY_DELAY_MAX) {
            Some(asked) => format!(
                "{cause}; waiting for the API server, which asked for no other try within {} s: \
                 trying again every {} s",
                asked.as_secs(),
                delay.as_secs()
            ),
            None => cause.clone(),
        }
    }
}

/// Whether a failure is expected to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transience {
    /// A busy server, a lost connection, a conflict.
    Transient,
    /// Something that an administrator has to change.
    Lasting,
}

/// What an API server made of a request to delete an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// There was no such object.
    Absent,
    /// It is gone.
    Gone,
    /// It goes when its finalizers are done.
    Going,
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

/// A write of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// When it was answered.
    pub(super) at: Timestamp,
    /// Whether a write that began at least [`TRACE_RESOLUTION`] later found its trace.
    pub(super) is_confirmed: bool,
}

/// What is known of one step.
#[derive(Debug, Clone)]
pub(super) struct Track {
    pub(super) state: State,
    /// Tries since it last succeeded, and why the last one failed: reported until one succeeds, also
    /// while the next one is under way.
    pub(super) attempts: u32,
    pub(super) error: Option<TryError>,
    /// How far it has come that is done in parts; `None` if no part was done, or all of it is.
    pub(super) part_done: Option<String>,
    /// Since when it is in its state, counting a change of error or verdict as the same.
    pub(super) since: Timestamp,
    /// Since when it is in its state for its present reason: a wait for an operator to be updated is
    /// no part of the time that it is degraded.
    pub(super) reason_since: Timestamp,
    /// Whether it was done once under this plan: what progress counts.
    pub(super) reached: bool,
    /// When it was last started, and the newest revision of its object that was known then; 0
    /// when none was.
    pub(super) started: Timestamp,
    pub(super) started_at_revision: u64,
    /// Whether an earlier process recorded it as done, and nothing has shown yet whether that is so.
    pub(super) is_claimed: bool,
    /// Whether it runs once and has completed, a later step has replaced it, or it is left out: nothing of it is
    /// applied any more, whoever deletes the object.
    pub(super) is_completed: bool,
    /// What our last write left.
    pub(super) applied: Option<Mark>,
    /// What the write before it left, unless a change since then was counted as repaired; `None` when there
    /// was none of the same manifest.
    replaced: Option<Mark>,
    /// Whether a change by another client was counted that the next write reverts.
    pub(super) is_repair_counted: bool,
    /// The last write that was not a confirmation, and whether one followed; `None` when there was
    /// none in this process.
    pub(super) written: Option<Written>,
    /// How far its deletion has come; `None` if this process did not ask for one.
    pub(super) deletion: Option<Deleted>,
    /// What a watch showed last.
    pub(super) observed: Option<Mark>,
    /// The least revision that the next list has to show of the object; 0 if nothing is known of it.
    expected: u64,
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
            part_done: None,
            since: now,
            reason_since: now,
            reached: false,
            started: now,
            started_at_revision: 0,
            is_claimed: false,
            is_completed: false,
            applied: None,
            replaced: None,
            is_repair_counted: false,
            written: None,
            deletion: None,
            observed: None,
            expected: 0,
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
        if !same || reason(&self.state) != reason(&state) {
            self.reason_since = now;
        }
        if matches!(state, State::Done(_)) {
            self.reached = true;
        }
        self.state = state;
    }

    /// It is started.
    pub(super) fn start(&mut self, now: Timestamp) {
        let marks = [self.applied, self.observed].into_iter().flatten();
        let revisions = marks.filter(|mark| mark.trace != Trace::Gone).map(|mark| mark.revision);
        self.started = now;
        self.started_at_revision = revisions.max().unwrap_or_default();
    }

    /// Its object is going to be listed.
    pub(super) fn expect_list(&mut self) {
        let applied = self.applied.filter(|mark| mark.trace != Trace::Gone);
        self.expected = applied.map_or(0, |mark| mark.revision);
    }

    /// Whether the watch of its object, which waits for no list, showed it last as ours and not going.
    pub(super) fn is_shown_as_ours(&self) -> bool {
        let is_ours = |mark: Mark| matches!(mark.trace, Trace::Ours(_)) && !mark.is_terminating;
        self.expected == 0 && self.observed.is_some_and(is_ours)
    }

    /// Whether the list that ended showed its object older than it had to, or not at all.
    pub(super) fn is_listed_older(&mut self) -> bool {
        let expected = std::mem::take(&mut self.expected);
        self.observed.map_or(0, |mark| mark.revision) < expected
    }

    /// The revision that our last write left; 0 if there was none.
    pub(super) fn applied_revision(&self) -> u64 {
        self.applied.map_or(0, |mark| mark.revision)
    }

    /// Our write was answered: the object is as it has to be.
    pub(super) fn wrote(&mut self, mark: Mark, now: Timestamp) {
        let is_same = self.applied.is_some_and(|before| before.trace == mark.trace);
        let confirms = self
            .written
            .is_some_and(|written| is_same && self.started >= written.at + TRACE_RESOLUTION);
        self.written = match self.written {
            Some(written) if confirms => Some(Written { is_confirmed: true, ..written }),
            _ => Some(Written { at: now, is_confirmed: false }),
        };
        self.replaced = self.applied.filter(|_| !self.is_repair_counted);
        self.is_repair_counted = false;
        self.applied = Some(mark);
    }

    /// Returns, once, whether our last write reverted a change by another client that a watch showed while
    /// the write was under way, or after it.
    pub(super) fn takes_reverted(&mut self) -> bool {
        let is_reverted = match (self.replaced, self.applied, self.observed) {
            (Some(replaced), Some(applied), Some(observed)) => {
                replaced.revision < observed.revision
                    && observed.revision < applied.revision
                    && observed.trace != replaced.trace
            }
            _ => false,
        };
        if is_reverted {
            self.replaced = None;
        }
        is_reverted
    }

    /// When to find out whether the object is still as our last write left it, if a watch shows
    /// that it changed and the trace cannot tell: a write of a process before this one that comes
    /// in within the second of ours leaves the same trace. Kinds with generations show whether
    /// anything but metadata and status changed.
    pub(super) fn confirm_at(&self) -> Option<Timestamp> {
        let (applied, observed, written) = (self.applied?, self.observed?, self.written?);
        let is_changed = observed.revision > applied.revision
            && (observed.generation == 0 || observed.generation != applied.generation);
        (is_changed && observed.trace == applied.trace && !written.is_confirmed)
            .then(|| written.at + TRACE_RESOLUTION)
    }

    /// Whether it was executed and nothing is to be done about it but, perhaps, to confirm it.
    pub(super) fn is_executed(&self) -> bool {
        match &self.state {
            State::Waiting(_) | State::Done(_) => true,
            State::Retry { .. } => self.error.is_none(),
            State::Pending | State::Due | State::Running | State::Blocked(_) => false,
        }
    }

    /// Whether a watch shows an object that this process had deleted, applied by us: a write of a
    /// process before this one came in late.
    pub(super) fn has_reappeared(&self) -> bool {
        matches!(self.deletion, Some(Deleted::Absent | Deleted::Gone))
            && self
                .observed
                .is_some_and(|mark| matches!(mark.trace, Trace::Ours(_)) && !mark.is_terminating)
    }

    /// Whether it was done once, as far as anything may follow from that.
    pub(super) fn is_proven(&self) -> bool {
        self.reached && !self.is_claimed
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

/// Why a step that was executed is not as it must be, or has something to report.
fn reason(state: &State) -> Option<Reason> {
    match state {
        State::Waiting(Verdict::Waiting { reason, .. } | Verdict::ReadyWith { reason, .. })
        | State::Done(Some((reason, _))) => Some(*reason),
        State::Waiting(Verdict::Ready) | State::Done(None) | State::Pending | State::Due => None,
        State::Running | State::Blocked(_) | State::Retry { .. } => None,
    }
}
