//! When both statuses are computed, and when they are written.
//!
//! The ClusterVersion's status itself is computed by [`status`](crate::status). It is computed anew
//! at most every [`COMPUTE_INTERVAL`], written at once when a condition changes its status, and at
//! most every [`WRITE_INTERVAL`] when only numbers and texts change. ReleaseProgress is written
//! first, so that a process that dies in between resumes no later than the ClusterVersion says.

mod compute;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_api::config::{ClusterVersionStatus, Release, UpdateState};
use plimsoll_api::progress::{Orphan, ReleaseProgressStatus};
use plimsoll_api::{Condition, ConditionStatus};

use super::Uptime;
use super::rejected_capabilities::RejectedCapabilities;
use crate::progress::timeline::Timeline;

pub use compute::StatusContext;

/// Least time between two computations, so that a burst of events costs one.
pub const COMPUTE_INTERVAL: Duration = Duration::from_millis(50);
/// Least time between two writes of numbers and texts.
pub const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the status is computed anew while something waits, although nothing happens: some
/// conditions change as time passes.
pub const WAITING_INTERVAL: Duration = Duration::from_secs(1);
/// How long statuses may fail to be written before the process is no longer ready.
pub const UNWRITTEN_TOLERATED: Duration = Duration::from_secs(30);
/// When to look again while nothing is to be done: never, as far as the status is concerned.
const FAR: Duration = Duration::from_secs(60 * 60);

/// The statuses of the ClusterVersion and of ReleaseProgress.
#[derive(Debug, Clone, PartialEq)]
struct Statuses {
    cluster_version: ClusterVersionStatus,
    release_progress: ReleaseProgressStatus,
}

/// A write of both statuses.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusWrite {
    /// The status of ReleaseProgress, to be written first; `None` if it is as it should be.
    pub release_progress: Option<ReleaseProgressStatus>,
    /// The status of the ClusterVersion; `None` if it is as it should be.
    pub cluster_version: Option<ClusterVersionWrite>,
}

/// A write of the ClusterVersion's status.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterVersionWrite {
    /// The whole status.
    pub status: ClusterVersionStatus,
    /// The capabilities to leave out of it; see [`RejectedCapabilities`].
    pub left_out: BTreeSet<String>,
}

/// A write under way.
#[derive(Debug, Clone)]
struct PendingWrite {
    statuses: Statuses,
    /// Whether it retries the names that were left out.
    is_retry: bool,
}

/// Both statuses of this process.
#[derive(Debug, Clone)]
pub struct StatusReport {
    status: ClusterVersionStatus,
    /// As they should be written, and as the cluster has them as far as writes succeeded.
    wanted: Statuses,
    written: Statuses,
    pending: Option<PendingWrite>,
    /// The image of a release that was completed before this process; it need not be completed
    /// again.
    completed: Option<String>,
    timeline: Timeline,
    rejected: RejectedCapabilities,
    /// Something happened since the last computation.
    is_stale: bool,
    /// Something waits, so that conditions may change as time passes.
    is_waiting: bool,
    compute_at: Uptime,
    write_at: Uptime,
    /// Since when writes fail; `None` if the last one succeeded.
    failing_since: Option<Uptime>,
    /// The ReleaseProgress was deleted since the last write began.
    is_progress_lost: bool,
}

impl StatusReport {
    /// Starts with the status of the ClusterVersion and what an earlier process recorded in
    /// ReleaseProgress.
    pub fn new(
        status: ClusterVersionStatus,
        recorded: &ReleaseProgressStatus,
        uptime: Uptime,
    ) -> Self {
        let newest = status.history.first();
        let completed = newest
            .filter(|entry| entry.state == UpdateState::Completed)
            .map(|entry| entry.image.clone());
        let names = recorded.capabilities.withheld.iter().cloned().collect();
        let written =
            Statuses { cluster_version: status.clone(), release_progress: recorded.clone() };
        Self {
            wanted: written.clone(),
            written,
            status,
            pending: None,
            completed,
            timeline: Timeline::recorded(recorded),
            rejected: RejectedCapabilities::new(names, uptime),
            is_stale: true,
            is_waiting: false,
            compute_at: uptime,
            write_at: uptime,
            failing_since: None,
            is_progress_lost: false,
        }
    }

    /// The status of the ClusterVersion as last computed.
    pub fn status(&self) -> &ClusterVersionStatus {
        &self.status
    }

    /// Another release is to be applied: even one that was completed before has to be completed
    /// anew.
    pub fn superseded(&mut self) {
        self.completed = None;
        self.is_stale = true;
    }

    /// Something happened that the status may have to report.
    pub fn touch(&mut self) {
        self.is_stale = true;
    }

    /// The definition of ClusterVersion may have changed.
    pub fn definition_changed(&mut self, uptime: Uptime) {
        self.rejected.definition_changed(uptime);
    }

    /// When to call [`Self::report`] although nothing happens.
    pub fn wake_at(&self, uptime: Uptime) -> Uptime {
        let far = uptime + FAR;
        let compute = match (self.is_stale, self.is_waiting) {
            (true, _) => self.compute_at,
            (false, true) => self.compute_at.max(uptime + WAITING_INTERVAL),
            (false, false) => far,
        };
        let write = match (&self.pending, self.is_unwritten()) {
            (Some(_), _) => far,
            (None, true) => self.write_at,
            (None, false) => self.rejected.retry_at().map_or(far, |at| at.max(self.write_at)),
        };
        compute.min(write)
    }

    /// Computes the statuses if it is time, and says what to write if there is something new.
    /// Returns the conditions when they were computed.
    pub fn report(
        &mut self,
        context: &StatusContext<'_>,
        uptime: Uptime,
    ) -> (Option<Vec<Condition>>, Option<StatusWrite>) {
        let mut is_urgent = false;
        let is_computed = (self.is_stale || self.is_waiting) && uptime >= self.compute_at;
        if is_computed {
            is_urgent = self.compute(context);
            self.is_stale = false;
            self.compute_at = uptime + COMPUTE_INTERVAL;
        }
        let is_write_time = uptime >= self.write_at;
        let is_due = self.is_unwritten() && (is_urgent || is_write_time);
        let is_retry = self.rejected.is_retry_due(uptime) && is_write_time;
        let mut write = None;
        if self.pending.is_none() && (is_due || is_retry) {
            self.write_at = uptime + WRITE_INTERVAL;
            write = Some(self.start_write(uptime));
        }
        (is_computed.then(|| self.status.conditions.clone()), write)
    }

    /// Computes the statuses now; what is to be written at once, `None` if the cluster has it.
    pub fn finish(&mut self, context: &StatusContext<'_>, uptime: Uptime) -> Option<StatusWrite> {
        self.compute(context);
        self.is_unwritten().then(|| self.start_write(uptime))
    }

    /// Whether something happened since the statuses were computed.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// The statuses that are being computed are the last ones: nothing that happened is missing.
    pub fn clear_stale(&mut self) {
        self.is_stale = false;
    }

    /// Whether the cluster lacks a part of the statuses as last computed.
    pub fn is_unwritten(&self) -> bool {
        self.wanted != self.written
    }

    /// A write succeeded. `rejected` are the capabilities that were left out of the ClusterVersion's
    /// status; `None` if it was not written.
    pub fn write_succeeded(&mut self, rejected: Option<BTreeSet<String>>, uptime: Uptime) {
        self.failing_since = None;
        let Some(PendingWrite { statuses, is_retry }) = self.pending.take() else { return };
        self.written = statuses;
        if std::mem::take(&mut self.is_progress_lost) {
            // What was written is gone already.
            self.written.release_progress = ReleaseProgressStatus::default();
        }
        if let Some(names) = rejected {
            // ReleaseProgress names what is left out, and no longer once it is not.
            self.is_stale |= names != *self.rejected.names();
            self.rejected.written_without(names, is_retry, uptime);
        }
    }

    /// A write failed: it is repeated.
    pub fn write_failed(&mut self, uptime: Uptime) {
        self.pending = None;
        self.failing_since.get_or_insert(uptime);
    }

    /// Whether writes have failed for longer than a server takes to restart.
    pub fn is_unwritable(&self, uptime: Uptime) -> bool {
        self.failing_since.is_some_and(|since| uptime >= since + UNWRITTEN_TOLERATED)
    }

    /// The ReleaseProgress is gone: it is made again, with all that it had.
    pub fn release_progress_lost(&mut self) {
        self.written.release_progress = ReleaseProgressStatus::default();
        self.is_progress_lost = true;
    }

    /// The ClusterVersion has another status than the one that was started with.
    pub fn cluster_version_lost(&mut self) {
        self.written.cluster_version = ClusterVersionStatus::default();
    }

    /// Whether the cluster's status names a release as the one that is or was being applied, and
    /// these capabilities as enabled.
    pub fn has_written(&self, release: &Release, enabled: &BTreeSet<String>) -> bool {
        let status = &self.written.cluster_version;
        let named: BTreeSet<&String> = status.capabilities.enabled_capabilities.iter().collect();
        let newest = status.history.first().map(|entry| entry.image.as_str());
        // A release without an image leaves no trace.
        let is_release_named = release.image.is_empty()
            || (status.desired.image == release.image && newest == Some(&release.image));
        is_release_named && enabled.iter().all(|name| named.contains(name))
    }

    /// Whether the cluster's ReleaseProgress lists these orphans and no others.
    pub fn has_written_orphans(&self, orphans: &[Orphan]) -> bool {
        self.written.release_progress.orphans == orphans
    }

    fn start_write(&mut self, uptime: Uptime) -> StatusWrite {
        let is_retry = self.rejected.is_retry_due(uptime);
        self.is_progress_lost = false;
        let statuses = self.wanted.clone();
        let is_changed = statuses.release_progress != self.written.release_progress;
        let release_progress = is_changed.then(|| statuses.release_progress.clone());
        let writes = is_retry || statuses.cluster_version != self.written.cluster_version;
        let cluster_version = writes.then(|| ClusterVersionWrite {
            status: statuses.cluster_version.clone(),
            left_out: self.rejected.left_out(uptime),
        });
        self.pending = Some(PendingWrite { statuses, is_retry });
        StatusWrite { release_progress, cluster_version }
    }

    /// Computes both statuses now; true when something changed that should not wait.
    pub fn compute(&mut self, context: &StatusContext<'_>) -> bool {
        let problems = context.problems();
        self.is_waiting = !problems.is_empty() || context.progress.passes() == 0;
        let is_completed = context.progress.passes() > 0
            || self.completed.as_deref() == Some(context.release.image.as_str());
        let before = urgent(&self.status);
        self.status =
            context.cluster_version(&self.status, &problems, is_completed, &self.timeline);
        let history = &self.status.history;
        let progress =
            context.release_progress(history, &problems, &mut self.timeline, &self.rejected);
        self.wanted = Statuses { cluster_version: self.status.clone(), release_progress: progress };
        before != urgent(&self.status)
    }
}

/// What is written at once when it changes: the status of each condition, and how far the history
/// is.
fn urgent(status: &ClusterVersionStatus) -> (BTreeMap<String, ConditionStatus>, usize) {
    let conditions =
        status.conditions.iter().map(|condition| (condition.type_.clone(), condition.status));
    let completed = status.history.iter().filter(|entry| entry.completion_time.is_some()).count();
    (conditions.collect(), status.history.len() + completed)
}

#[cfg(test)]
mod tests;
