//! Previews of Operators: what a revision would change of the objects of a cluster, by dry-run requests.
//!
//! Each Operator is previewed by itself. One whose bundle cannot be read from here does not keep the others
//! from being shown.

use std::io::Write;

use anyhow::{Context as _, anyhow};
use kube::Client;
use plimsoll_api::olm::{BundleReference, OperatorRevisionSpec, OperatorSpec};
use plimsoll_api::{Operator, OperatorRevision};
use plimsoll_controller::operators::{PreviewedRevision, preview};
use plimsoll_controller::render;
use plimsoll_operators::manifest::OperatorManifest;
use plimsoll_operators::reconciler::{RevisionContent, kept_content, preview_plan};
use plimsoll_resolve::ClusterFacts;
use semver::Version;
use serde::Deserialize as _;

use super::loadout::LoadoutState;
use super::state::status;
use crate::exit::{self, Exit};
use crate::render::forecast::write_revision;

/// A bundle that an Operator would be installed in or moved to.
pub(super) struct PreviewedBundle {
    /// The name of the Operator.
    pub(super) name: String,
    /// The version of the bundle.
    pub(super) version: Version,
    /// The name of the catalog that has it; `None` for the most preferred one.
    pub(super) catalog: Option<String>,
}

/// Previews the revisions of Operators and prints what would change. `manifests` are the Operators that would
/// be written. Returns the exit code.
///
/// # Errors
///
/// When the cluster cannot be read, or the output cannot be written.
pub(super) async fn preview_bundles(
    client: &Client,
    state: &LoadoutState,
    manifests: &[OperatorManifest],
    bundles: &[PreviewedBundle],
    out: &mut dyn Write,
) -> Result<Exit, anyhow::Error> {
    let mut exit = exit::SUCCESS;
    for it in bundles {
        let there = state.in_cluster(&it.name);
        let recorded = there.map(|there| recorded(there, state.revisions())).unwrap_or_default();
        let found = spec(there, manifests, &it.name)
            .and_then(|spec| Ok((content(state, it, &spec, there)?, spec)));
        let (content, spec) = match found {
            Ok(found) => found,
            Err(error) => {
                anstream::eprintln!("note: the objects of {} are not shown: {error:#}", it.name);
                continue;
            }
        };
        let revision = Revision { name: &it.name, there, spec: &spec, recorded: &recorded };
        if show(client, &revision, content, Some(&state.facts), out).await? {
            exit = exit::WOULD_STOP;
        }
    }
    Ok(exit)
}

/// Previews the return of an Operator to a kept revision and prints what would change. Returns the exit code.
///
/// # Errors
///
/// When a part of the revision is missing, the cluster cannot be read, or the output cannot be written.
pub(super) async fn preview_kept(
    client: &Client,
    name: &str,
    operator: &Operator,
    revisions: &[OperatorRevision],
    number: u32,
    out: &mut dyn Write,
) -> Result<Exit, anyhow::Error> {
    let recorded = recorded(operator, revisions);
    let content = kept_content(&recorded, number);
    let content =
        content.with_context(|| format!("a part of revision {number} of {name} is missing"))?;
    let (there, spec) = (Some(operator), &operator.spec);
    let revision = Revision { name, there, spec, recorded: &recorded };
    let is_blocked = show(client, &revision, content, None, out).await?;
    Ok(if is_blocked { exit::WOULD_STOP } else { exit::SUCCESS })
}

/// A revision of an Operator.
struct Revision<'r> {
    name: &'r str,
    /// The Operator of the cluster; `None` if it is new.
    there: Option<&'r Operator>,
    spec: &'r OperatorSpec,
    /// All parts of its kept revisions.
    recorded: &'r [&'r OperatorRevisionSpec],
}

/// Prints what a revision would change. Returns whether something would stop it.
async fn show(
    client: &Client,
    revision: &Revision<'_>,
    content: RevisionContent,
    facts: Option<&ClusterFacts>,
    out: &mut dyn Write,
) -> Result<bool, anyhow::Error> {
    let Revision { name, there, spec, recorded } = revision;
    let status = there.map(status).unwrap_or_default();
    let bundle = content.bundle.clone();
    let plan = preview_plan(content, recorded, status.revision, facts)
        .map_err(|error| anyhow!("{name}: {error}"))?;
    let installed = status.bundle.as_ref();
    let previewed = PreviewedRevision { operator: name, spec, bundle: &bundle, installed };
    let preview = preview(client, plan, previewed).await;
    let preview = preview.with_context(|| format!("failed to preview {name}"))?;
    write_revision(name, &preview.forecast, &preview.risks, out)?;
    Ok(preview.forecast.is_refused())
}

/// Returns the spec that an Operator has, or else the one that it is created with.
fn spec(
    there: Option<&Operator>,
    manifests: &[OperatorManifest],
    name: &str,
) -> Result<OperatorSpec, anyhow::Error> {
    if let Some(there) = there {
        return Ok(there.spec.clone());
    }
    let manifest = manifests.iter().find(|it| it.name == name);
    let object = manifest.with_context(|| format!("there is no Operator `{name}`"))?.object();
    Ok(OperatorSpec::deserialize(&object["spec"])?)
}

/// Returns the parts of the kept revisions of an Operator. Those of a deleted Operator of the same name are
/// not its own.
pub(super) fn recorded<'r>(
    operator: &Operator,
    revisions: &'r [OperatorRevision],
) -> Vec<&'r OperatorRevisionSpec> {
    let uid = operator.metadata.uid.as_ref();
    let is_its_own = |it: &&OperatorRevision| {
        let mut owners = it.metadata.owner_references.iter().flatten();
        owners.any(|owner| Some(&owner.uid) == uid)
    };
    revisions.iter().filter(is_its_own).map(|it| &it.spec).collect()
}

/// Reads a bundle and renders its objects.
fn content(
    state: &LoadoutState,
    previewed: &PreviewedBundle,
    spec: &OperatorSpec,
    there: Option<&Operator>,
) -> Result<RevisionContent, anyhow::Error> {
    let PreviewedBundle { name, version, catalog } = previewed;
    let wanted = catalog.as_deref().or(Some(spec.repository.as_str()).filter(|it| !it.is_empty()));
    let parts = state.parts(std::iter::once(name.clone()));
    let parts = parts.iter().filter(|it| wanted.is_none_or(|wanted| it.name.name == wanted));
    let found = parts.filter_map(|part| {
        let bundles = &part.package(name)?.bundles;
        Some((part, bundles.iter().find(|it| it.version == *version)?))
    });
    let (part, bundle) = found
        .min_by_key(|(part, _)| part.weight)
        .with_context(|| format!("no catalog that can be read from here has {name} v{version}"))?;
    let opened = state.catalogs.opened.iter().find(|it| it.name == part.name.name);
    let opened = opened.context("the content of its catalog is not at hand")?;
    let reference = BundleReference {
        name: bundle.name.clone(),
        version: version.to_string(),
        catalog: opened.name.clone(),
        ..BundleReference::default()
    };
    let mut spec = spec.clone();
    let status = there.map(status).unwrap_or_default();
    if spec.namespace.is_empty()
        && let Some(kept) = there.map(|it| recorded(it, state.revisions()))
        && let Some(kept) = kept.iter().find(|it| Some(it.revision) == status.revision)
    {
        // The namespace is that of the installed revision, whatever the next bundle suggests.
        spec.namespace.clone_from(&kept.namespace);
    }
    // Properties are for the resolver, which has decided.
    render(name, &reference, &opened.source, &spec, Vec::new()).map_err(|error| anyhow!(error))
}
