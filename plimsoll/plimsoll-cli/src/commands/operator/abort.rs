//! `plimsoll operator abort`: aborting the deletion of an Operator.

use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{DynamicObject, Patch, PostParams};
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use plimsoll_api::{OPERATOR, Operator};
use plimsoll_simulation::cluster_state::api;
use serde::Deserialize;
use serde_json::json;

use super::state::AddOnState;
use super::{FIELD_MANAGER, patch_parameters};
use crate::exit;

/// The time that the controller may take to release an Operator whose deletion is aborted.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Arguments of `plimsoll operator abort`.
#[derive(Debug, Args)]
pub struct AbortArguments {
    /// Operator whose deletion is aborted
    name: String,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `plimsoll operator abort`: keeps what is left of an Operator that is being deleted, and
/// manages it again.
///
/// An API server cannot undo a deletion. So the finalizers of the Operator are removed without
/// another object being deleted, and the Operator is created again with the same spec. It owns the
/// objects that are left, and installs the missing ones.
///
/// # Errors
///
/// When the cluster cannot be reached, or the Operator is not being deleted.
pub(super) async fn run(
    client: &Client,
    arguments: &AbortArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let AbortArguments { name, dry_run } = arguments;
    let state = AddOnState::read(client).await?;
    let operator = state.operator(name)?;
    if operator.metadata.deletion_timestamp.is_none() {
        bail!("Operator `{name}` is not being deleted: there is nothing to abort");
    }
    if *dry_run {
        writeln!(out, "the deletion of {name} would be aborted, and {name} created again")?;
        return Ok(exit::SUCCESS.into());
    }
    let operators: Api<Operator> = Api::all(client.clone());
    let whole = api(client, OPERATOR)
        .get(name)
        .await
        .with_context(|| format!("failed to read Operator `{name}`"))?;
    release(&operators, name, whole.metadata.uid.as_deref()).await?;
    // It is paused until it has its history, from which the numbers of its revisions follow.
    let created = create_again(client, name, &whole).await?;
    // There is no other copy of the history.
    let status = json!({
        "metadata": { "uid": created.metadata.uid },
        "status": { "observedGeneration": 0, "history": whole.data["status"]["history"] },
    });
    operators
        .patch_status(name, &patch_parameters(false), &Patch::Merge(status))
        .await
        .with_context(|| format!("failed to write the history of Operator `{name}` back"))?;
    let resumed = json!({
        "metadata": { "uid": created.metadata.uid },
        "spec": { "paused": whole.data["spec"]["paused"] },
    });
    operators
        .patch(name, &patch_parameters(false), &Patch::Merge(resumed))
        .await
        .with_context(|| format!("Operator `{name}` is paused: failed to set spec.paused back"))?;
    writeln!(out, "deletion of {name} aborted")?;
    Ok(exit::SUCCESS.into())
}

/// Removes the finalizers of an Operator that is being deleted, and waits until it is gone.
///
/// # Errors
///
/// When it has other finalizers, or cannot be written.
async fn release(
    operators: &Api<Operator>,
    name: &str,
    uid: Option<&str>,
) -> Result<(), anyhow::Error> {
    let release = json!({ "metadata": { "uid": uid, "finalizers": null } });
    operators
        .patch(name, &patch_parameters(false), &Patch::Merge(release))
        .await
        .with_context(|| format!("failed to abort the deletion of Operator `{name}`"))?;
    let gone = watch_object(operators.clone(), name).try_skip_while(|object| {
        let is_there = object.as_ref().is_some_and(|it| it.metadata.uid.as_deref() == uid);
        async move { Ok(is_there) }
    });
    let gone = tokio::time::timeout(TIMEOUT, async { pin!(gone).next().await }).await;
    gone.map_err(|_| anyhow!("Operator `{name}` has other finalizers, and is still there"))?;
    Ok(())
}

/// Creates an Operator again as it was stored, including fields that this program does not know, but
/// paused.
///
/// # Errors
///
/// When it is refused; then it is printed, since there is no other copy of it.
async fn create_again(
    client: &Client,
    name: &str,
    whole: &DynamicObject,
) -> Result<DynamicObject, anyhow::Error> {
    let mut spec = whole.data["spec"].clone();
    spec["paused"] = true.into();
    let again = json!({
        "apiVersion": OPERATOR.api_version(),
        "kind": OPERATOR.kind,
        "metadata": {
            "name": name,
            "labels": whole.metadata.labels,
            "annotations": whole.metadata.annotations,
        },
        "spec": spec,
    });
    let parameters =
        PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let object = Deserialize::deserialize(&again)?;
    match api(client, OPERATOR).create(&parameters, &object).await {
        Ok(created) => Ok(created),
        Err(error) => {
            anstream::eprintln!("{again}");
            Err(error).with_context(|| {
                format!("failed to create Operator `{name}` again: create the object above")
            })
        }
    }
}
