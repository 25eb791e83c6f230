//! `plimsoll operator`, which is also `kubectl operator`: Operators of a cluster, the packages that they
//! may be installed from, and what a change of them would do.
//!
//! Exit codes: [`exit::SUCCESS`] when it is done, [`exit::FAILURE`] when it failed or was refused,
//! [`exit::USAGE`] for a command line that cannot be understood, [`exit::DECLINED`] when a person
//! declined it or something blocks it, [`exit::INTERRUPTED`] when a person interrupted a wait.
//!
//! [`exit::SUCCESS`]: crate::exit::SUCCESS
//! [`exit::FAILURE`]: crate::exit::FAILURE
//! [`exit::USAGE`]: crate::exit::USAGE
//! [`exit::DECLINED`]: crate::exit::DECLINED
//! [`exit::INTERRUPTED`]: crate::exit::INTERRUPTED

pub mod abort;
pub mod action;
mod agreement;
mod apply;
pub mod catalogs;
mod cluster_resolver;
pub mod delete;
pub mod describe;
pub mod dry_run;
pub mod events;
mod finalizers;
pub mod history;
pub mod install;
pub mod lint;
pub mod list;
pub mod loadout;
pub mod lock;
mod manifests;
pub(crate) mod names;
mod output;
pub mod packages;
pub mod pause;
pub mod policy;
mod preview;
pub(crate) mod rehearse;
pub mod resolve;
pub mod rollback;
pub mod selection;
pub mod snapshot;
pub(crate) mod state;
pub mod tree;
mod unknown;
mod unreadable;
pub mod update;
pub mod versions;
mod wait;
mod watch;
pub mod why;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use kube::Client;
use kube::api::PatchParams;

use self::catalogs::{CatalogChoice, or_without_cluster};
use crate::arguments::cluster::ClusterArguments;
use crate::prompt::Prompter;

/// What is done about Operators, and in which cluster.
#[derive(Debug, Args)]
pub struct OperatorArguments {
    /// What to do
    #[command(subcommand)]
    pub command: OperatorCommand,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// What can be done about Operators.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// List Operators: what is installed, satisfied and orphaned, and available updates
    List(list::ListArguments),
    /// Write the Operators that packages need, with what they depend on
    Resolve(Box<resolve::ResolveArguments>),
    /// Check whether a directory of Operators will work when it is applied
    Lint(Box<lint::LintArguments>),
    /// Write exactly which bundles a directory of Operators comes to, for --locked
    Lock(lock::LockArguments),
    /// Print everything that a resolution depends on, as a file for --state
    Snapshot(snapshot::SnapshotArguments),
    /// List the packages of all catalogs that match all words
    Search(packages::SearchArguments),
    /// Show a package: channels, versions, provided and required APIs
    Show(packages::ShowArguments),
    /// List the packages that provide an API
    WhoProvides(packages::WhoProvidesArguments),
    /// Show an Operator: conditions, requirements, what depends on it, events
    Describe(describe::DescribeArguments),
    /// Show which Operators depend on which
    Tree(tree::TreeArguments),
    /// Show who asked for an Operator: a person, or Operators that depend on it
    Why(why::WhyArguments),
    /// List the events of Operators
    Events(events::EventsArguments),
    /// List what was installed of an Operator, and the revisions that it can return to
    History(history::HistoryArguments),
    /// Return an Operator to a kept revision
    Rollback(rollback::RollbackArguments),
    /// Leave Operators as they are: nothing is installed, updated, repaired or deleted
    Pause(pause::PauseArguments),
    /// Resume what was paused
    Resume(pause::PauseArguments),
    /// Install packages with what they require: resolve, show the plan, ask, create the Operators
    Install(Box<install::InstallArguments>),
    /// Update Operators: one plan for all of them, then all of it or nothing
    ///
    /// What follows a range is updated by the controller; this also updates what its new versions
    /// require.
    Update(Box<update::UpdateArguments>),
    /// Delete Operators with all that they installed, and wait until they are gone
    ///
    /// Definitions go with all their objects, which are your users' data, unless --keep-crds or
    /// `spec.deletion` say otherwise.
    #[command(aliases = ["uninstall", "remove"])]
    Delete(delete::DeleteArguments),
    /// Delete the Operators that were installed as dependencies and that nothing depends on any more
    Autoremove(delete::AutoremoveArguments),
    /// Abort the deletion of an Operator: what is left of it is kept, and managed again
    Abort(abort::AbortArguments),
    /// Request changes as Actions; show, approve, retry and cancel them
    Action(action::ActionArguments),
    /// Try policies of Actions out
    Policy(policy::PolicyArguments),
}

impl OperatorCommand {
    /// Returns whether it does without a cluster: it is requested to, or there is none and the command
    /// line names the catalogs.
    fn needs_no_cluster(&self, cluster: &ClusterArguments) -> bool {
        let needs_none = match self {
            Self::Resolve(arguments) => arguments.needs_no_cluster(),
            Self::Lint(arguments) => arguments.state.is_without_cluster(),
            Self::Lock(arguments) => arguments.state.is_without_cluster(),
            Self::Update(arguments) => arguments.needs_no_cluster(),
            Self::Install(arguments) => arguments.needs_no_cluster(),
            Self::Snapshot(arguments) => arguments.needs_no_cluster(),
            Self::Search(arguments) => arguments.lookup.needs_no_cluster(),
            Self::Show(arguments) => arguments.lookup.needs_no_cluster(),
            Self::WhoProvides(arguments) => arguments.lookup.needs_no_cluster(),
            Self::Policy(_) => true,
            _ => false,
        };
        let has_catalogs = || self.catalogs().is_some_and(CatalogChoice::is_named);
        !cluster.is_named() && (needs_none || (has_catalogs() && !cluster.is_configured()))
    }

    /// The catalogs with which it needs no cluster; `None` if it needs one, or the command line says
    /// where the state comes from.
    fn catalogs(&self) -> Option<&CatalogChoice> {
        match self {
            Self::Search(arguments) => arguments.lookup.catalogs(),
            Self::Show(arguments) => arguments.lookup.catalogs(),
            Self::WhoProvides(arguments) => arguments.lookup.catalogs(),
            Self::Resolve(arguments) => arguments.catalogs(),
            Self::Lint(arguments) => arguments.state.catalogs(),
            Self::Lock(arguments) => arguments.state.catalogs(),
            Self::Update(arguments) => arguments.catalogs(),
            _ => None,
        }
    }

    /// Returns whether it shows what it is going to do: then people have to know where.
    fn plans(&self) -> bool {
        matches!(
            self,
            Self::Install(_)
                | Self::Resolve(_)
                | Self::Lint(_)
                | Self::Update(_)
                | Self::Lock(_)
                | Self::Snapshot(_)
                | Self::Delete(_)
                | Self::Autoremove(_)
                | Self::Rollback(_)
        )
    }

    /// Returns whether questions that it asks are agreed to beforehand.
    fn is_agreed(&self) -> bool {
        match self {
            Self::Delete(arguments) => arguments.is_agreed(),
            Self::Autoremove(arguments) => arguments.is_agreed(),
            Self::Install(arguments) => arguments.is_agreed(),
            Self::Resolve(arguments) => arguments.yes,
            Self::Update(arguments) => arguments.yes,
            Self::Rollback(arguments) => arguments.yes,
            Self::Action(arguments) => arguments.is_agreed(),
            Self::Lint(_)
            | Self::Lock(_)
            | Self::Snapshot(_)
            | Self::List(_)
            | Self::Search(_)
            | Self::Show(_)
            | Self::WhoProvides(_)
            | Self::Describe(_)
            | Self::Tree(_)
            | Self::Why(_)
            | Self::Events(_)
            | Self::History(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Abort(_)
            | Self::Policy(_) => false,
        }
    }
}

/// What is wrong if a cluster is needed and none is known.
const NO_CLUSTER: &str = "no cluster is configured; name one with --kubeconfig FILE";
/// Field manager of what this program requests of Operators.
pub(crate) const FIELD_MANAGER: &str = "plimsoll-operator";

/// Returns the parameters of a patch.
pub(crate) fn patch_parameters(is_dry_run: bool) -> PatchParams {
    PatchParams {
        dry_run: is_dry_run,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Returns the end of a line about a change, which says that it was only tried.
pub(crate) fn dry_run_suffix(is_dry_run: bool) -> &'static str {
    if is_dry_run { " (server dry run)" } else { "" }
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, or what is requested is refused.
pub async fn run(
    arguments: OperatorArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let OperatorArguments { command, cluster } = arguments;
    let mut prompter = Prompter::new(command.is_agreed());
    let client = if command.needs_no_cluster(&cluster) {
        None
    } else {
        let client = cluster.watching_client("operator").await;
        Some(match command.catalogs() {
            // What is wrong with a cluster that was asked for is not that there is no catalog.
            _ if cluster.is_named() => client?,
            Some(catalogs) if catalogs.is_named() => or_without_cluster(client, Some(catalogs))?,
            Some(_) if !cluster.is_configured() => {
                client.context("no catalog is named with --catalog FILE")?
            }
            Some(_) | None => client?,
        })
    };
    if client.is_some() && command.plans() {
        anstream::eprintln!("context: {}", cluster.described()?);
    }
    execute(client.as_ref(), &command, &mut prompter, out).await
}

/// Runs a command on a cluster, or without one if it can.
///
/// # Errors
///
/// As [`run`].
pub async fn execute(
    client: Option<&Client>,
    command: &OperatorCommand,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let cluster = || client.context(NO_CLUSTER);
    match command {
        OperatorCommand::Search(arguments) => packages::search(client, arguments, out).await,
        OperatorCommand::Show(arguments) => packages::show(client, arguments, out).await,
        OperatorCommand::Resolve(arguments) => resolve::run(client, arguments, prompter, out).await,
        OperatorCommand::Lint(arguments) => lint::run(client, arguments, out).await,
        OperatorCommand::Lock(arguments) => lock::run(client, arguments, out).await,
        OperatorCommand::Snapshot(arguments) => snapshot::run(client, arguments, out).await,
        OperatorCommand::Update(arguments) => update::run(client, arguments, prompter, out).await,
        OperatorCommand::WhoProvides(arguments) => {
            packages::who_provides(client, arguments, out).await
        }
        OperatorCommand::List(arguments) => list::run(cluster()?, arguments, out).await,
        OperatorCommand::Describe(arguments) => describe::run(cluster()?, arguments, out).await,
        OperatorCommand::Tree(arguments) => tree::run(cluster()?, arguments, out).await,
        OperatorCommand::Why(arguments) => why::run(cluster()?, arguments, out).await,
        OperatorCommand::Events(arguments) => events::run(cluster()?, arguments, out).await,
        OperatorCommand::History(arguments) => history::run(cluster()?, arguments, out).await,
        OperatorCommand::Rollback(arguments) => {
            rollback::run(cluster()?, arguments, prompter, out).await
        }
        OperatorCommand::Pause(arguments) => pause::run(cluster()?, arguments, true, out).await,
        OperatorCommand::Resume(arguments) => pause::run(cluster()?, arguments, false, out).await,
        OperatorCommand::Action(arguments) => {
            action::run(cluster()?, arguments, prompter, out).await
        }
        OperatorCommand::Delete(arguments) => {
            delete::delete(cluster()?, arguments, prompter, out).await
        }
        OperatorCommand::Autoremove(arguments) => {
            delete::autoremove(cluster()?, arguments, prompter, out).await
        }
        OperatorCommand::Install(arguments) => install::run(client, arguments, prompter, out).await,
        OperatorCommand::Abort(arguments) => abort::run(cluster()?, arguments, out).await,
        OperatorCommand::Policy(arguments) => match &arguments.command {
            policy::PolicyCommand::Test(arguments) => policy::test(arguments, out),
            policy::PolicyCommand::Explain(arguments) => policy::explain(arguments, out),
            policy::PolicyCommand::Compile(arguments) => policy::compile(arguments, out),
        },
    }
}
