//! Preview of a revision of an Operator: its plan, executed on a cluster as a dry run.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use plimsoll_api::Reason;
use plimsoll_api::config::Release;
use plimsoll_api::olm::{BundleReference, CrdUpgradeSafety, OperatorSpec};
use plimsoll_operators::reconciler::{Findings, refused_definitions, unsafe_definitions};
use plimsoll_plan::forecast::{DryRunOutcome, Forecast, of_cluster};
use plimsoll_plan::plan::{Action, Plan};
use plimsoll_plan::progress::{Transience, TryError};

use super::inspect::{Cluster, inspect_definition};
use crate::clock::SystemClock;
use crate::dry_run::{TriedFor, cluster_kinds, try_steps};
use crate::error::Error;
use crate::resources::Resources;

/// A revision to preview.
#[derive(Debug, Clone, Copy)]
pub struct PreviewedRevision<'r> {
    /// The name of the Operator.
    pub operator: &'r str,
    /// The spec of the Operator.
    pub spec: &'r OperatorSpec,
    /// The bundle of the revision.
    pub bundle: &'r BundleReference,
    /// The bundle that is installed; `None` if none is.
    pub installed: Option<&'r BundleReference>,
}

/// What a revision would change.
#[derive(Debug, Clone)]
pub struct RevisionPreview {
    /// What would become of each object.
    pub forecast: Forecast,
    /// The unsafe changes of definitions that the Operator accepts, as sentences.
    pub risks: Vec<String>,
}

/// Previews a revision of an Operator by dry-run requests. Other Operators are only judged where they have an
/// object of its `plan`.
///
/// # Errors
///
/// When the API server does not answer, or rejects discovery or a read.
pub async fn preview(
    client: &Client,
    plan: Plan,
    revision: PreviewedRevision<'_>,
) -> Result<RevisionPreview, Error> {
    let PreviewedRevision { operator, spec, bundle, installed } = revision;
    let resources =
        Resources::discover(client).await.map_err(|source| Error::Discover { source })?;
    let owner = TriedFor::Operator { name: operator, protection: spec.collision_protection };
    let mut observed = try_steps(client, &resources, &plan, &owner).await?;
    let kinds = cluster_kinds(&resources);
    let cluster = Cluster { client: client.clone(), clock: Arc::new(SystemClock), resources };
    let mut risks = Vec::new();
    for (step, observed) in plan.steps.iter().zip(&mut observed) {
        let is_applied = !matches!(step.action, Action::Delete | Action::Migrate);
        let is_inspected = step.manifest.definition.is_some() && is_applied;
        if !is_inspected || observed.before.is_none() {
            continue;
        }
        let refused = |reason: Reason, cause: String| {
            let (transience, retry_after) = (Transience::Lasting, None);
            DryRunOutcome::Refused(TryError { reason, cause, transience, retry_after })
        };
        let mut found = Findings::default();
        let safety = spec.crd_upgrade_safety;
        let read = inspect_definition(&cluster, &step.manifest.object(), safety, &mut found).await;
        let problems = found.unsafe_definitions;
        if let Err(error) = read {
            observed.answer = refused(Reason::InstallationFailed, error);
        } else if !found.refused_definitions.is_empty() {
            let block = refused_definitions(bundle, &found.refused_definitions.join("; "));
            observed.answer = refused(block.reason, block.message);
        } else if safety == CrdUpgradeSafety::Enforce && !problems.is_empty() {
            let block = unsafe_definitions(bundle, &problems.join("; "));
            observed.answer = refused(block.reason, block.message);
        } else {
            risks.extend(problems);
        }
    }
    let from = installed.map(|it| Release {
        version: it.version.clone(),
        image: it.name.clone(),
        ..Release::default()
    });
    // What only earlier revisions have is part of the plan.
    let orphans = BTreeSet::new();
    let forecast = of_cluster(from, Arc::new(plan), &observed, &orphans, &kinds);
    Ok(RevisionPreview { forecast, risks })
}
