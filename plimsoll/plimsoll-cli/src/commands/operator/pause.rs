//! `plimsoll operator pause` and `resume`: pausing the reconciliation of Operators.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use kube::api::Patch;
use kube::{Api, Client};
use plimsoll_api::Operator;
use serde_json::json;

use super::dry_run::DryRun;
use super::patch_parameters;
use super::selection::OperatorSelection;
use super::state::AddOnState;
use crate::exit;

/// Arguments of `plimsoll operator pause` and `resume`.
#[derive(Debug, Args)]
#[command(mut_group("OperatorSelection", |it| it.required(true)))]
pub struct PauseArguments {
    #[command(flatten)]
    selection: OperatorSelection,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, has no Operator of a name or label, or refuses the change.
pub(super) async fn run(
    client: &Client,
    arguments: &PauseArguments,
    is_paused: bool,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    // All names are checked before anything changes.
    let names = arguments.selection.names(client, &state).await?;
    let dry_run = arguments.dry_run;
    let word = if is_paused { "paused" } else { "resumed" };
    let operators: Api<Operator> = Api::all(client.clone());
    for name in &names {
        if state.operator(name)?.spec.paused == is_paused {
            writeln!(out, "operator.olm.io/{name} {word} (no change)")?;
            continue;
        }
        let patch = Patch::Merge(json!({ "spec": { "paused": is_paused } }));
        if dry_run.is_sent() {
            operators
                .patch(name, &patch_parameters(dry_run.is_set()), &patch)
                .await
                .with_context(|| format!("failed to change Operator `{name}`"))?;
        }
        writeln!(out, "operator.olm.io/{name} {word}{}", dry_run.suffix())?;
    }
    Ok(exit::SUCCESS.into())
}
