//! Rehearsals of plans: what is to be written to a cluster is written to a copy of it, where the controller
//! carries it out in simulated time.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use kube::Client;
use plimsoll_api::olm::CrdDeletion;
use plimsoll_operators::deletion_plan::DeletionPlan;
use plimsoll_operators::update::UpdatePlan;
use plimsoll_simulation::rehearsal::{
    ClusterSnapshot, OperatorRequest, OperatorsRehearsal, RehearsedCatalog,
};
use plimsoll_simulation::simulated_operators::Faults;
use plimsoll_source::catalog::Cache;
use serde_json::json;

use super::apply::{OperatorWrite, WriteAction};
use super::catalogs::OpenedCatalogs;
use super::loadout::LoadoutState;
use crate::arguments::catalog::{INDICES, cache_directory};
use crate::exit::{self, Exit};
use crate::render::format::Format;
use crate::render::rehearsal::operators::OperatorsReport;

/// How long the workloads of an Operator take to become available.
const DELAY: Duration = Duration::from_secs(60);

/// A plan to rehearse.
pub(super) struct RehearsedPlan<'p> {
    /// The plan as text for people.
    text: String,
    /// The catalogs that it was made from; `None` to read those of the copy from where they say.
    catalogs: Option<&'p OpenedCatalogs>,
    /// What it requests of the cluster.
    requests: Vec<OperatorRequest>,
}

impl<'p> RehearsedPlan<'p> {
    /// Returns a plan that writes Operators, as it is rehearsed; it was made from this state.
    pub(super) fn of_writes(
        text: String,
        state: &'p LoadoutState,
        writes: &[OperatorWrite],
    ) -> Self {
        let requests = writes.iter().map(request).collect();
        Self { text, catalogs: Some(&state.catalogs), requests }
    }

    /// Returns an update as it is rehearsed; without a plan, nothing is written.
    pub(super) fn of_update(
        text: String,
        state: &'p LoadoutState,
        plan: Option<&UpdatePlan>,
    ) -> Self {
        let writes = plan.map(|it| state.writes(&it.manifests())).unwrap_or_default();
        Self::of_writes(text, state, &writes)
    }

    /// Returns a deletion as it is rehearsed. `keep_crds` keeps definitions even if `spec.deletion` does not say
    /// so.
    pub(super) fn of_deletion(text: String, plan: &DeletionPlan, keep_crds: bool) -> Self {
        let patch = json!({ "spec": { "deletion": { "crds": CrdDeletion::Orphan } } });
        let requests = plan.delete.iter().flat_map(|it| {
            let name = it.name.clone();
            let keep = keep_crds.then(|| OperatorRequest::Patch { name, patch: patch.clone() });
            keep.into_iter().chain([OperatorRequest::Delete(it.name.clone())])
        });
        Self { text, catalogs: None, requests: requests.collect() }
    }

    /// Rehearses the plan on a copy of the cluster and prints the report; for people, after the plan. Returns
    /// the exit code.
    ///
    /// # Errors
    ///
    /// When there is no cluster, it cannot be copied, the API server refuses a write, or the output cannot be
    /// written.
    pub(super) async fn rehearse(
        self,
        client: Option<&Client>,
        output: &Format,
        out: &mut dyn Write,
    ) -> Result<Exit, anyhow::Error> {
        let client = client.context("no cluster is configured; name one with --kubeconfig FILE")?;
        if matches!(output, Format::Text | Format::Wide) {
            writeln!(out, "{}", self.text)?;
        }
        let rehearsal = OperatorsRehearsal {
            cluster: Some(ClusterSnapshot::of_operators(client).await?),
            requests: self.requests,
            catalogs: self.catalogs.map(rehearsed).transpose()?.unwrap_or_default(),
            cache: cache(false),
            delay: DELAY,
            faults: Faults::default(),
        };
        // A rehearsal has a runtime of its own.
        let rehearsed = tokio::task::spawn_blocking(move || rehearsal.run()).await;
        let result = rehearsed.map_err(|error| anyhow!("the rehearsal panicked: {error}"))??;
        let report = OperatorsReport::of(result, "a copy of the cluster".to_owned());
        report.write(output, false, out)?;
        Ok(if report.succeeds { exit::SUCCESS } else { exit::WOULD_STOP })
    }
}

fn request(write: &OperatorWrite) -> OperatorRequest {
    match &write.action {
        WriteAction::Create { object } => OperatorRequest::Apply(object.clone()),
        WriteAction::Patch { patch, .. } => {
            OperatorRequest::Patch { name: write.name.clone(), patch: patch.clone() }
        }
    }
}

/// Returns opened catalogs as a rehearsal reads them: from where they were opened.
///
/// # Errors
///
/// When the working directory is not known.
pub(crate) fn rehearsed(catalogs: &OpenedCatalogs) -> Result<Vec<RehearsedCatalog>, anyhow::Error> {
    let rehearsed = catalogs.opened.iter().map(|it| {
        let mut source = it.source.clone();
        let path = std::path::absolute(&source.path).context("failed to find a catalog")?;
        source.path = path.to_string_lossy().into_owned();
        Ok(RehearsedCatalog { name: it.name.clone(), weight: it.weight, source })
    });
    rehearsed.collect()
}

/// Returns the cache for the indexes of catalogs; `None` if it is to be ignored or there is no directory for it.
pub(crate) fn cache(is_ignored: bool) -> Option<Cache> {
    let directory = cache_directory(INDICES).filter(|_| !is_ignored)?;
    Some(Cache::new(&directory))
}
