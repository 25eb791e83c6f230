//! `plimsoll operator install`: `operator resolve --apply`, followed by a wait until everything is
//! installed.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;
use plimsoll_api::duration;
use plimsoll_operators::install::InstallRequest;

use super::NO_CLUSTER;
use super::agreement::{Planned as _, agreed};
use super::apply::{apply, dry_run_writes, leave_change_set};
use super::dry_run::DryRun;
use super::loadout::{StateArguments, StateSource};
use super::output::Output;
use super::resolve::{InstallChoice, InstallSource, PlannedInstall, plan};
use super::wait::{InstallationTarget, TIMEOUT, wait};
use crate::arguments::name;
use crate::exit;
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::format::{Format, FormatParser};

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
    /// Output format of the Operators, or of the plan; if it is not for people, everything else goes to standard
    /// error
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::CHANGES, default_value_t)]
    output: Format,
    #[command(flatten)]
    state: StateArguments,
}

impl InstallArguments {
    pub(super) fn is_agreed(&self) -> bool {
        self.yes
    }

    /// Returns whether the command needs no cluster.
    pub(super) fn needs_no_cluster(&self) -> bool {
        self.state.needs_no_cluster()
    }

    /// Fails if the state is not that of a cluster, or is a snapshot and not only a plan is wanted.
    ///
    /// # Errors
    ///
    /// When it is.
    fn check_state(&self) -> Result<(), anyhow::Error> {
        match &self.state.state {
            Some(source @ (StateSource::Files | StateSource::Hybrid)) => bail!(
                "--state {source} is for files, which `operator resolve` writes: leave it out to install in the \
                 cluster"
            ),
            Some(StateSource::Snapshot(_)) if self.dry_run.is_sent() => {
                bail!("--state needs --dry-run=client: a snapshot cannot be changed")
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster or a catalog cannot be read, nothing satisfies all requirements, or the API server
/// refuses an Operator.
pub(super) async fn run(
    client: Option<&Client>,
    arguments: &InstallArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    arguments.check_state()?;
    let choice = &arguments.choice;
    let namespace = arguments.namespace.clone();
    let collision_protection = arguments.collision_protection.clone();
    let request = choice.request(choice.declared()?)?;
    let request = InstallRequest { namespace, collision_protection, ..request };
    let is_wide = arguments.output.is_wide();
    let source = InstallSource { client, state: &arguments.state, directory: None, is_wide };
    let mut output = Output::new(&arguments.output, out);
    let planned = plan(&source, choice, &request, output.people()).await?;
    planned.state.announce(is_wide);
    if arguments.rehearse {
        let plan = planned.rehearsed(&request);
        return Ok(plan.rehearse(client, &arguments.output, output.out()).await?.into());
    }
    if arguments.dry_run.is_set() {
        return attempt(client, arguments, &planned, &request, &mut output).await;
    }
    output.people().write_all(planned.text().as_bytes())?;
    if planned.plan.operators.is_empty() {
        output.write_operators(&[], || planned.changes(&request))?;
        return Ok(exit::SUCCESS.into());
    }
    let again = async |out: &mut dyn Write| plan(&source, choice, &request, out).await;
    let (question, default) = ("Would you like to continue?", DefaultAnswer::Yes);
    let said = output.people();
    let Some(current) = agreed(&planned, question, default, prompter, said, again).await? else {
        writeln!(output.people(), "Nothing was changed")?;
        return Ok(exit::DECLINED.into());
    };
    let client = client.context(NO_CLUSTER)?;
    let writes = current.writes(&request);
    let written = apply(client, &writes, &mut output.of_changes()).await?;
    output.write_operators(&written, || current.changes(&request))?;
    if !arguments.no_wait {
        let created = writes.iter().filter(|it| it.is_creation());
        let created: BTreeSet<&str> = created.map(|it| it.name.as_str()).collect();
        let targets = current.plan.operators.iter().rev().map(|it| InstallationTarget {
            name: it.name.clone(),
            version: it.version.clone(),
            is_new: created.contains(it.name.as_str()),
            returns_from: None,
        });
        let targets: Vec<InstallationTarget> = targets.collect();
        wait(client, &targets, arguments.timeout, &mut output.of_changes()).await?;
        for it in &current.plan.operators {
            if let Some(set) = it.change_set.value() {
                leave_change_set(client, std::iter::once(it.name.as_str()), set).await?;
            }
        }
    }
    Ok(exit::SUCCESS.into())
}

/// Shows what would be created, and has the API server check it if that is requested.
async fn attempt(
    client: Option<&Client>,
    arguments: &InstallArguments,
    planned: &PlannedInstall,
    request: &InstallRequest,
    output: &mut Output<'_>,
) -> Result<ExitCode, anyhow::Error> {
    let server = client.filter(|_| arguments.dry_run.is_on_server());
    if output.is_for_people() {
        output.out().write_all(planned.text().as_bytes())?;
    }
    let objects = match server {
        Some(client) => dry_run_writes(client, &planned.writes(request), output.people()).await?,
        None => planned.requested(None, request)?,
    };
    if !output.is_for_people() {
        output.write_operators(&objects, || planned.changes(request))?;
    } else if let Some(client) = server {
        return Ok(planned.preview(client, request, output.out()).await?.into());
    }
    Ok(exit::SUCCESS.into())
}
