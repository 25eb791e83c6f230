//! Orphans that somebody asks to be deleted: each name in the annotation is a request for once.

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use plimsoll_plan::removal::PRUNE;
use tokio::time::Instant;

use super::{Controller, WRITE_AGAIN, Work};
use crate::write::Writer;

/// The annotation of a ClusterVersion.
pub(super) fn asked(cluster_version: &DynamicObject) -> Option<String> {
    cluster_version.annotations().get(PRUNE).cloned()
}

impl Work {
    /// Takes what was pruned out of the annotation: an object of the same name that is left behind
    /// later is another one.
    pub(super) async fn settle_pruning(&mut self, controller: &Controller) {
        if !self.is_pruning_settled() || Instant::now() < self.settle_at {
            return;
        }
        self.settle_at = Instant::now() + WRITE_AGAIN;
        let Some((asked, left)) = self.session.execution.removals().stale_annotation() else {
            return;
        };
        let writer = Writer::new(controller.client.clone());
        if let Err(error) = writer.replace_annotation(PRUNE, asked, left.annotation()).await {
            tracing::debug!(%error, "the request to prune is not brought up to date yet");
        }
    }

    /// Whether something that was asked for has been pruned, and ReleaseProgress tells so: a process
    /// that took over before that would not know it.
    pub(super) fn is_pruning_settled(&self) -> bool {
        let removals = self.session.execution.removals();
        removals.stale_annotation().is_some()
            && self.reporter.statuses().has_written_orphans(removals.orphans())
    }
}
