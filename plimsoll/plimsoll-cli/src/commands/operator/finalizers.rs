//! `plimsoll operator delete --force-finalizers`: removing the finalizers of objects that block the
//! deletion of an Operator.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, TestOperation};
use kube::api::{DynamicObject, Patch};
use kube::{Api, Client, Error};
use plimsoll_controller::{Workload, include_rollouts, stuck_workloads};
use serde_json::json;

use super::patch_parameters;
use super::state::{AddOnState, status};
use crate::exit;
use crate::prompt::{DefaultAnswer, Prompter};

/// Removes the finalizers of the objects that block the deletion of Operators, according to their
/// status.
///
/// # Errors
///
/// When an Operator is not being deleted, a request fails, or an object has changed in the
/// meantime.
pub(super) async fn remove(
    client: &Client,
    state: &AddOnState,
    names: &BTreeSet<String>,
    is_dry_run: bool,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let mut stuck = Vec::new();
    for name in names {
        let operator = state.operator(name)?;
        if operator.metadata.deletion_timestamp.is_none() {
            bail!(
                "Operator `{name}` is not being deleted: run `operator delete {name}` first, which lets \
                 the operator remove its finalizers itself"
            );
        }
        let mut status = status(operator);
        let uid = operator.metadata.uid.as_deref().unwrap_or_default();
        let included = include_rollouts(client, name, uid, &mut status).await;
        included.with_context(|| format!("failed to read the OperatorRevisions of `{name}`"))?;
        stuck.extend(stuck_workloads(client, &status).await?);
    }
    if stuck.is_empty() {
        writeln!(out, "Nothing to do: no object is stuck")?;
        return Ok(exit::SUCCESS.into());
    }
    for it in &stuck {
        let finalizers = it.metadata.finalizers.as_deref().unwrap_or_default().join(", ");
        writeln!(out, "{}: {finalizers}", it.key())?;
    }
    if is_dry_run {
        return Ok(exit::SUCCESS.into());
    }
    let question = "WARNING: what these finalizers are for will not be cleaned up. Would you like to \
                    continue?";
    if !prompter.confirm(question, DefaultAnswer::No, out)? {
        writeln!(out, "Nothing was changed")?;
        return Ok(exit::DECLINED.into());
    }
    for it in &stuck {
        let context = || format!("failed to remove the finalizers of {}", it.key());
        remove_from(client, it).await.with_context(context)?;
        writeln!(out, "finalizers of {} removed", it.key())?;
    }
    Ok(exit::SUCCESS.into())
}

/// Removes the finalizers of an object, and fails if they have changed since it was read. Succeeds
/// if the object is gone.
async fn remove_from(client: &Client, workload: &Workload) -> Result<(), Error> {
    let Workload { resource, metadata } = workload;
    let objects: Api<DynamicObject> = match &metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let field = |name: &str| PointerBuf::from_tokens(["metadata", name]);
    let is = |name: &str, value| PatchOperation::Test(TestOperation { path: field(name), value });
    let patch = Patch::<()>::Json(json_patch::Patch(vec![
        is("uid", json!(metadata.uid)),
        is("finalizers", json!(metadata.finalizers)),
        PatchOperation::Remove(RemoveOperation { path: field("finalizers") }),
    ]));
    let name = metadata.name.as_deref().unwrap_or_default();
    match objects.patch_metadata(name, &patch_parameters(false), &patch).await {
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}
