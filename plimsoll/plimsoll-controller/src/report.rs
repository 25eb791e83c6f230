//! Writes the statuses that [`StatusReport`] computes.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use plimsoll_api::config::ClusterVersionStatus;
use plimsoll_api::progress::ReleaseProgressStatus;
use plimsoll_api::{CLUSTER_VERSION, Condition, RELEASE_PROGRESS};
use plimsoll_plan::reconciler::counters::Counters;
use plimsoll_plan::reconciler::rejected_capabilities::{rejected_names, without};
use plimsoll_plan::reconciler::revisions::{StorageRollback, WrittenRevision};
use plimsoll_plan::reconciler::status_report::{
    ClusterVersionWrite, StatusContext, StatusReport, StatusWrite,
};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::bootstrap;
use crate::clock::Stopwatch;
use crate::error::Error;
use crate::versioned_status::{StatusWriteError, VersionedStatus, is_missing};
use crate::view::MetricsSnapshot;
use crate::write::Writer;

/// The ClusterVersion and ReleaseProgress as they were last seen.
#[derive(Debug, Clone)]
pub(crate) struct SeenStatuses {
    pub(crate) cluster_version: VersionedStatus,
    pub(crate) release_progress: VersionedStatus,
}

/// An object with one of the statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusObject {
    ClusterVersion,
    ReleaseProgress,
}

/// How a write of both statuses ended.
struct StatusWriteOutcome {
    /// How both objects were left, as far as that is known.
    seen: SeenStatuses,
    /// The capabilities that were left out of the ClusterVersion's status; `None` if that was not
    /// written.
    result: Result<Option<BTreeSet<String>>, StatusWriteError>,
}

/// Writes the statuses of the ClusterVersion and of ReleaseProgress.
pub(crate) struct Reporter {
    client: Client,
    stopwatch: Stopwatch,
    report: StatusReport,
    seen: SeenStatuses,
    /// The revisions of both objects.
    cluster_version: WrittenRevision,
    release_progress: WrittenRevision,
    /// Another client wrote after this process had read; see [`Self::is_outdated`].
    is_outdated: bool,
    /// There was no ClusterVersion to write to.
    is_deleted: bool,
    writing: Option<JoinHandle<StatusWriteOutcome>>,
}

impl Reporter {
    /// Starts with both objects as they were read.
    pub(crate) fn new(
        client: Client,
        stopwatch: Stopwatch,
        status: ClusterVersionStatus,
        recorded: &ReleaseProgressStatus,
        seen: SeenStatuses,
    ) -> Self {
        let report = StatusReport::new(status, recorded, stopwatch.uptime());
        Self {
            client,
            stopwatch,
            report,
            seen,
            cluster_version: WrittenRevision::default(),
            release_progress: WrittenRevision::default(),
            is_outdated: false,
            is_deleted: false,
            writing: None,
        }
    }

    /// Returns what is reported.
    pub(crate) fn statuses(&self) -> &StatusReport {
        &self.report
    }

    /// Something happened that the status may have to report.
    pub(crate) fn touch(&mut self) {
        self.report.touch();
    }

    /// Another release is to be applied: even one that was completed before has to be completed
    /// anew.
    pub(crate) fn superseded(&mut self) {
        self.report.superseded();
    }

    /// The definition of ClusterVersion may have changed.
    pub(crate) fn definition_changed(&mut self) {
        self.report.definition_changed(self.stopwatch.uptime());
    }

    /// Computes the statuses if it is time, and starts to write them if there is something new.
    /// Returns the conditions when they were computed.
    pub(crate) fn report(&mut self, context: &StatusContext<'_>) -> Option<Vec<Condition>> {
        let (conditions, write) = self.report.report(context, self.stopwatch.uptime());
        if let Some(write) = write {
            self.start(write);
        }
        conditions
    }

    /// Computes the statuses now.
    pub(crate) fn compute(&mut self, context: &StatusContext<'_>) {
        self.report.compute(context);
    }

    /// Returns the inputs of metrics at one moment. `created` is when the ClusterVersion was, and
    /// when the payload was built.
    pub(crate) fn metrics(
        &self,
        context: &StatusContext<'_>,
        counters: &Arc<Counters>,
        created: [Option<Timestamp>; 2],
    ) -> MetricsSnapshot {
        MetricsSnapshot {
            spec: context.spec.clone(),
            status: self.report.status().clone(),
            created: created[0],
            payload_created: created[1],
            steps: context.step_counts(),
            deletions_unfinished: context.removals.tracker().unfinished().count(),
            orphans: context.removals.orphans().len(),
            overrides: context.overrides.progress(context.now),
            drift_repairs: context.progress.repairs(),
            counters: Arc::clone(counters),
        }
    }

    /// Waits for the end of a write under way; forever when there is none.
    pub(crate) async fn written(&mut self) {
        let Some(writing) = &mut self.writing else {
            return std::future::pending().await;
        };
        let ended = writing.await;
        self.writing = None;
        match ended {
            Ok(StatusWriteOutcome { seen, result }) => {
                self.seen = seen;
                self.cluster_version.written(self.seen.cluster_version.revision());
                self.release_progress.written(self.seen.release_progress.revision());
                match result {
                    Ok(rejected) => {
                        self.report.write_succeeded(rejected, self.stopwatch.uptime());
                        return;
                    }
                    Err(StatusWriteError::Outdated) => self.is_outdated = true,
                    Err(StatusWriteError::Missing) => self.is_deleted = true,
                    Err(StatusWriteError::Failed(error)) => {
                        tracing::warn!(%error, "could not write status; trying again");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "writing status was interrupted"),
        }
        self.report.write_failed(self.stopwatch.uptime());
    }

    /// The connection of the watch of an object was lost: it is going to be listed.
    pub(crate) fn interrupted(&mut self, object: StatusObject) {
        self.revision(object).interrupted();
    }

    /// A watch showed an object; whether it is from before the last write that was answered.
    pub(crate) fn shown(&mut self, object: StatusObject, revision: u64) -> Option<StorageRollback> {
        self.revision(object).shown(revision)
    }

    fn revision(&mut self, object: StatusObject) -> &mut WrittenRevision {
        match object {
            StatusObject::ClusterVersion => &mut self.cluster_version,
            StatusObject::ReleaseProgress => &mut self.release_progress,
        }
    }

    /// Returns whether another client, as a leader whose last write came in late, wrote the status
    /// after this process had read it and before it wrote any: the process has to start again with
    /// what is there now.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Returns whether the ClusterVersion did not exist when its status was to be written.
    pub(crate) fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// The ReleaseProgress is gone: it is made again.
    pub(crate) fn release_progress_lost(&mut self) {
        self.report.release_progress_lost();
    }

    /// The ClusterVersion does not have the status that was started with.
    pub(crate) fn cluster_version_lost(&mut self) {
        self.report.cluster_version_lost();
    }

    /// Writes the statuses now and waits for the end of it; whether all of them was written.
    pub(crate) async fn persist(&mut self, context: &StatusContext<'_>) -> bool {
        self.finish(context).await;
        if self.report.is_stale() {
            self.report.clear_stale();
            self.finish(context).await;
        }
        !self.report.is_unwritten()
    }

    /// Writes the last statuses before the process ends.
    pub(crate) async fn finish(&mut self, context: &StatusContext<'_>) {
        if self.writing.is_some() {
            self.written().await;
        }
        if let Some(write) = self.report.finish(context, self.stopwatch.uptime()) {
            self.start(write);
            self.written().await;
        }
    }

    fn start(&mut self, write: StatusWrite) {
        let (client, mut seen) = (self.client.clone(), self.seen.clone());
        self.writing = Some(tokio::spawn(async move {
            let result = write_statuses(&client, &mut seen, write).await;
            StatusWriteOutcome { seen, result }
        }));
    }
}

/// Writes both statuses; the capabilities that were left out of the ClusterVersion's, `None` if
/// that is not written.
///
/// # Errors
///
/// When a write is rejected or not answered, or another client wrote a status first.
async fn write_statuses(
    client: &Client,
    seen: &mut SeenStatuses,
    write: StatusWrite,
) -> Result<Option<BTreeSet<String>>, StatusWriteError> {
    let json = |error| StatusWriteError::Failed(kube::Error::SerdeError(error));
    if let Some(progress) = write.release_progress {
        let status = serde_json::to_value(progress).map_err(json)?;
        write_release_progress(client, &mut seen.release_progress, &status).await?;
    }
    let Some(ClusterVersionWrite { status, left_out }) = write.cluster_version else {
        return Ok(None);
    };
    let status = serde_json::to_value(status).map_err(json)?;
    write_cluster_version(client, &mut seen.cluster_version, &status, left_out).await.map(Some)
}

/// Writes the status of ReleaseProgress, which is made again if it or its kind was deleted.
///
/// # Errors
///
/// When a write is rejected or not answered, or another client wrote the status first.
async fn write_release_progress(
    client: &Client,
    seen: &mut VersionedStatus,
    status: &Value,
) -> Result<(), StatusWriteError> {
    match seen.replace(client, RELEASE_PROGRESS, status).await {
        Err(StatusWriteError::Missing) => {}
        result => return result,
    }
    tracing::warn!("the ReleaseProgress \"version\" was deleted; it is made again");
    let writer = Writer::new(client.clone());
    let object = match bootstrap::release_progress(client, &writer).await {
        Err(Error::ReadProgress { source } | Error::WriteProgress { source })
            if is_missing(&source) =>
        {
            // Not even its kind is left. It takes a moment to be served: the next write finds it.
            let lost = Err(Error::WriteProgress { source });
            let definitions = bootstrap::release_definitions(None);
            bootstrap::apply_definitions(client, &writer, &definitions).await.and(lost)
        }
        made => made,
    };
    *seen = VersionedStatus::made_again(&object.map_err(|error| match error {
        Error::ReadProgress { source }
        | Error::WriteProgress { source }
        | Error::InstallCrd { source, .. } => StatusWriteError::Failed(source),
        other => StatusWriteError::Failed(kube::Error::Service(Box::new(other))),
    })?);
    match seen.replace(client, RELEASE_PROGRESS, status).await {
        Err(StatusWriteError::Missing) => {
            // It was deleted once more: the next write makes it.
            let gone =
                std::io::Error::other("the ReleaseProgress was deleted while it was written");
            Err(StatusWriteError::Failed(kube::Error::Service(Box::new(gone))))
        }
        result => result,
    }
}

/// Writes the ClusterVersion's status without some capabilities, and without those that the server
/// rejects; returns all that are left out.
///
/// # Errors
///
/// When the status is rejected for another reason, the write is not answered, or another client
/// wrote the status first.
async fn write_cluster_version(
    client: &Client,
    seen: &mut VersionedStatus,
    status: &Value,
    mut left_out: BTreeSet<String>,
) -> Result<BTreeSet<String>, StatusWriteError> {
    loop {
        let permitted = without(status, &left_out);
        let error = match seen.replace(client, CLUSTER_VERSION, &permitted).await {
            Ok(()) => return Ok(left_out),
            Err(StatusWriteError::Failed(error)) => error,
            Err(lost @ (StatusWriteError::Outdated | StatusWriteError::Missing)) => {
                return Err(lost);
            }
        };
        let before = left_out.len();
        left_out.extend(rejected_names(invalid_fields(&error), &permitted));
        if left_out.len() == before {
            return Err(error.into());
        }
    }
}

/// The fields that an API server names as the causes of a rejection.
fn invalid_fields(error: &kube::Error) -> impl Iterator<Item = &str> {
    let details = match error {
        kube::Error::Api(status) => status.details.as_ref(),
        _ => None,
    };
    details.into_iter().flat_map(|it| &it.causes).map(|cause| cause.field.as_str())
}
