//! The history of an Operator: which revisions were rolled out, and when.

use jiff::Timestamp;
use plimsoll_api::config::UpdateState;
use plimsoll_api::limited_message;
use plimsoll_api::olm::{OperatorHistory, RollbackPolicy};

use super::track::TrackedOperator;

/// The number of entries of a history that are kept.
const HISTORY_KEPT: usize = 10;

impl TrackedOperator {
    /// Adds those entries of the reported history that are older than the known ones: all of it at first, and
    /// entries that were written back when the deletion of the Operator was aborted.
    pub(super) fn take_earlier_history(&mut self) {
        let oldest = self.history.last().map(|it| it.started_time.as_second());
        let is_earlier = |it: &&OperatorHistory| {
            oldest.is_none_or(|oldest| it.started_time.as_second() < oldest)
        };
        self.history.extend(self.reported.history.iter().filter(is_earlier).cloned());
        self.history.truncate(HISTORY_KEPT);
    }

    /// Records the start of the rollout of a revision.
    pub(super) fn record_begin(&mut self, number: u32, risks: &[String], now: Timestamp) {
        let newest = self.history.first();
        if newest.is_none_or(|it| it.revision != number || it.state != UpdateState::Partial) {
            self.record(number, now, None, limited_message(risks.join("; ")));
        }
    }

    /// Returns whether the status in the cluster names the rollout that is in progress. A process that
    /// takes over continues with that one.
    pub(super) fn is_rollout_recorded(&self) -> bool {
        let Some(rollout) = self.rollout.as_ref().filter(|it| !it.is_complete) else { return true };
        let newest = self.reported.history.first();
        newest.is_some_and(|it| it.revision == rollout.number && it.state == UpdateState::Partial)
    }

    /// Records the return to a revision that was complete before.
    pub(super) fn record_return(&mut self, number: u32, now: Timestamp) {
        self.record(number, now, Some(now), String::new());
    }

    fn record(
        &mut self,
        number: u32,
        started_time: Timestamp,
        completion_time: Option<Timestamp>,
        accepted_risks: String,
    ) {
        let Some(revision) = self.revisions.get(&number) else { return };
        let state = match completion_time {
            Some(_) => UpdateState::Completed,
            None => UpdateState::Partial,
        };
        let entry = OperatorHistory {
            state,
            started_time,
            completion_time,
            revision: number,
            bundle: revision.bundle.name.clone(),
            version: revision.bundle.version.clone(),
            accepted_risks,
        };
        self.history.insert(0, entry);
        self.history.truncate(HISTORY_KEPT);
    }

    /// Records that the rollout of a revision is complete, so that it is the installed one.
    pub(super) fn record_completion(&mut self, number: u32, now: Timestamp) {
        self.installed = Some(number);
        if let Some(entry) = self.history.iter_mut().find(|it| it.revision == number) {
            entry.state = UpdateState::Completed;
            entry.completion_time = Some(now);
        }
    }

    /// Returns whether a bundle was rolled back, so that it is not tried again automatically, whatever revision of
    /// another bundle is rolled out now.
    pub(super) fn was_rolled_back(&self, bundle: &str) -> bool {
        let is_under_way = self
            .history
            .first()
            .is_some_and(|it| it.bundle == bundle && it.state == UpdateState::Partial);
        let completed = self.history.iter().skip_while(|it| it.bundle == bundle);
        let mut completed = completed.skip_while(|it| it.state == UpdateState::Partial);
        self.object.spec.rollback == RollbackPolicy::Automatic
            && !is_under_way
            && completed.any(|it| it.bundle == bundle && it.state == UpdateState::Partial)
    }

    /// Returns whether the rollout of a revision was given up for another one.
    pub(super) fn was_returned_from(&self, number: u32) -> bool {
        let newest = self.history.iter().position(|it| it.revision == number);
        newest.is_some_and(|index| {
            let mut later = self.history[..index].iter();
            self.history[index].state == UpdateState::Partial
                && later.any(|it| it.state == UpdateState::Completed)
        })
    }
}
