//! `plimsoll operator pause` and `resume`: pausing the reconciliation of Operators.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use kube::api::Patch;
use kube::{Api, Client};
use plimsoll_api::Operator;
use serde_json::json;

use super::state::AddOnState;
use super::{dry_run_suffix, patch_parameters};
use crate::exit;

/// Arguments of `plimsoll operator pause` and `resume`.
#[derive(Debug, Args)]
pub struct PauseArguments {
    /// Operators
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Let the API server check the change without making it
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, has no Operator of a name, or refuses the change.
pub(super) async fn run(
    client: &Client,
    arguments: &PauseArguments,
    is_paused: bool,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    // All names are checked before anything changes.
    for name in &arguments.names {
        state.operator(name)?;
    }
    let word = if is_paused { "paused" } else { "resumed" };
    let operators: Api<Operator> = Api::all(client.clone());
    for name in &arguments.names {
        if state.operator(name)?.spec.paused == is_paused {
            writeln!(out, "operator.olm.io/{name} {word} (no change)")?;
            continue;
        }
        let patch = Patch::Merge(json!({ "spec": { "paused": is_paused } }));
        let parameters = patch_parameters(arguments.dry_run);
        operators
            .patch(name, &parameters, &patch)
            .await
            .with_context(|| format!("failed to change Operator `{name}`"))?;
        writeln!(out, "operator.olm.io/{name} {word}{}", dry_run_suffix(arguments.dry_run))?;
    }
    Ok(exit::SUCCESS.into())
}
