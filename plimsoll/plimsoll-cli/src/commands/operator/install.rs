//! `plimsoll operator install`: `operator resolve --apply`, followed by a wait until everything is
//! installed.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use kube::Client;
use plimsoll_api::duration;
use plimsoll_operators::install::InstallRequest;
use serde_json::{Value, json};

use super::agreement::{Planned as _, agreed};
use super::apply::{apply, dry_run_writes};
use super::catalogs::CatalogChoice;
use super::dry_run::DryRun;
use super::loadout::StateArguments;
use super::resolve::{InstallChoice, InstallSource, plan};
use super::wait::{TIMEOUT, wait};
use crate::arguments::name;
use crate::exit;
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::format::Format;

/// Arguments of `plimsoll operator install`.
#[derive(Debug, Args)]
pub struct InstallArguments {
    #[command(flatten)]
    choice: InstallChoice,
    /// Namespace to install the packages into; the one that the bundle suggests without it
    #[arg(long, short, value_parser = name::namespace)]
    namespace: Option<String>,
    /// Which objects that exist are taken over: none, those without a controlling owner, or all
    #[arg(long, value_name = "POLICY", value_parser = ["Prevent", "IfNoController", "None"])]
    collision_protection: Option<String>,
    /// Agree to the plan
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    dry_run: DryRun,
    /// Carry the plan out on a copy of the cluster, in simulated time, and change nothing: show what would be
    /// unsatisfied, stuck or invalid
    #[arg(long)]
    rehearse: bool,
    /// Do not wait until everything is installed
    #[arg(long)]
    no_wait: bool,
    /// How long to wait until everything is installed; 0s for ever
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        default_value = TIMEOUT,
        conflicts_with = "no_wait"
    )]
    timeout: Duration,
    /// Output format of the Operators
    #[arg(long, short, value_name = "FORMAT", default_value_t, requires = "dry_run")]
    output: Format,
    #[command(flatten)]
    catalogs: CatalogChoice,
}

impl InstallArguments {
    pub(super) fn is_agreed(&self) -> bool {
        self.yes
    }
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster or a catalog cannot be read, nothing satisfies all requirements, or the API server
/// refuses an Operator.
pub(super) async fn run(
    client: &Client,
    arguments: &InstallArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let choice = &arguments.choice;
    let namespace = arguments.namespace.clone();
    let collision_protection = arguments.collision_protection.clone();
    let request =
        InstallRequest { namespace, collision_protection, only_new: true, ..choice.request() };
    let state = StateArguments::of_cluster(arguments.catalogs.clone());
    let source = InstallSource { client: Some(client), state: &state, directory: None };
    let planned = plan(&source, choice, &request, out).await?;
    planned.state.announce(arguments.output.is_wide());
    if arguments.rehearse {
        let plan = planned.rehearsed(&request);
        return Ok(plan.rehearse(Some(client), &arguments.output, out).await?.into());
    }
    if arguments.dry_run.is_set() {
        let writes = planned.writes(&request);
        let is_written = match &arguments.output {
            Format::Name => {
                writes.iter().try_for_each(|it| writeln!(out, "{}", it.name))?;
                true
            }
            output => {
                let items: Vec<&Value> = writes.iter().filter_map(|it| it.object()).collect();
                let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
                output.write(&list, out)?
            }
        };
        if !is_written {
            out.write_all(planned.text().as_bytes())?;
        }
        if arguments.dry_run.is_on_server() {
            let mut discarded = io::sink();
            let said: &mut dyn Write = if is_written { &mut discarded } else { &mut *out };
            dry_run_writes(client, &writes, said).await?;
            if !is_written {
                return Ok(planned.preview(client, &request, out).await?.into());
            }
        }
        return Ok(exit::SUCCESS.into());
    }
    out.write_all(planned.text().as_bytes())?;
    let again = async |out: &mut dyn Write| plan(&source, choice, &request, out).await;
    let (question, default) = ("Would you like to continue?", DefaultAnswer::Yes);
    let Some(current) = agreed(&planned, question, default, prompter, out, again).await? else {
        writeln!(out, "Nothing was changed")?;
        return Ok(exit::DECLINED.into());
    };
    apply(client, &current.writes(&request), out).await?;
    if !arguments.no_wait {
        let targets = current.plan.operators.iter().rev();
        let targets: Vec<_> = targets.map(|it| (it.name.clone(), it.version.clone())).collect();
        wait(client, &targets, arguments.timeout, out).await?;
    }
    Ok(exit::SUCCESS.into())
}
