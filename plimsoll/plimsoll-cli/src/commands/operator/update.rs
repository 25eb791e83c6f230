//! `plimsoll operator update`: one plan for all Operators of a cluster or of a directory, which is
//! carried out completely or not at all (OPR-17, OPR-20).

mod declared;
mod refusal;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use kube::Client;
use plimsoll_api::duration;
use plimsoll_content::expressions::Cel;
use plimsoll_operators::change_plan::{ChangePlan, PlannedOperation};
use plimsoll_operators::install::RequestError;
use plimsoll_operators::loadout::{Loadout, PlanningProgress};
use plimsoll_operators::lock::LockedOperators;
use plimsoll_operators::update::{
    OperatorUpdate, UpdatePlan, UpdateRequest, is_set_of_update, kept_at_revisions,
    plan_update_shown,
};
use plimsoll_operators::{OperatorInputs, RequestedOperator, RequestedPackage};
use plimsoll_resolve::CatalogPart;
use plimsoll_resolve::range::masterminds::Range;

use self::refusal::refusal;
use super::NO_CLUSTER;
use super::agreement::{Planned, agreed, uids};
use super::apply::{apply, dry_run_writes, leave_change_set};
use super::catalogs::CatalogChoice;
use super::dry_run::DryRun;
use super::loadout::{LoadoutState, StateArguments, StateSource, read_files};
use super::lock;
use super::manifests::write_manifests;
use super::output::Output;
use super::preview::{PreviewedBundle, preview_bundles};
use super::rehearse::RehearsedPlan;
use super::selection::{labelled, requested_operator};
use super::versions::VersionChoice;
use super::wait::{InstallationTarget, TIMEOUT, wait};
use crate::arguments::name::without_kind;
use crate::exit::{self, Exit, Refusal};
use crate::progress::ProgressLine;
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::format::{Format, FormatParser};

/// The text of a plan for Operators that are pinned, of which nothing is requested.
const ALL_PINNED: &str = "All operator versions are pinned. Nothing to do. If you want to bring all your operators \
                          to the latest version try with --latest\n";

/// Arguments of `plimsoll operator update`.
#[derive(Debug, Args)]
pub struct UpdateArguments {
    /// Operators to update though they are pinned: to the newest version, or within a range, such as
    /// 'foo@~1.2'; without any, those that follow a range are updated
    #[arg(value_name = "NAME[@RANGE]", value_parser = requested_operator)]
    names: Vec<RequestedPackage>,
    #[command(flatten)]
    version: VersionChoice,
    /// Update the Operators of the cluster with these labels, such as `team=harbour`, as if they were named
    #[arg(long, short = 'l', value_name = "SELECTOR", conflicts_with_all = ["names", "filename"])]
    selector: Option<String>,
    /// Update pinned Operators as well, to their newest versions
    #[arg(
        long,
        visible_alias = "all",
        visible_short_alias = 'A',
        overrides_with = "latest",
        conflicts_with_all = ["names", "selector"]
    )]
    latest: bool,
    /// The same as NAME@RANGE; several are separated by `;`, or are options of their own
    #[arg(long, value_name = "NAME@RANGE", alias = "forRange", conflicts_with = "latest")]
    for_range: Vec<RequestedRanges>,
    /// Directory of Operators whose files are rewritten, or a single file; without it, those of the
    /// cluster change
    #[arg(long, short, value_name = "DIR")]
    filename: Option<PathBuf>,
    /// Refuse if operators.lock is missing or out of date
    #[arg(long)]
    locked: bool,
    /// Agree to the plan
    #[arg(long, short)]
    pub(super) yes: bool,
    #[command(flatten)]
    dry_run: DryRun,
    /// Carry the plan out on a copy of the cluster, in simulated time, and change nothing: show what would be
    /// unsatisfied, stuck or invalid
    #[arg(long, conflicts_with = "filename")]
    rehearse: bool,
    /// Do not wait until everything is installed
    #[arg(long, conflicts_with = "filename")]
    no_wait: bool,
    /// How long to wait until everything is installed; 0s for ever
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        default_value = TIMEOUT,
        conflicts_with_all = ["no_wait", "filename"]
    )]
    timeout: Duration,
    /// Output format of the plan; if it is not for people, everything else goes to standard error
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::CHANGES, default_value_t)]
    output: Format,
    #[command(flatten)]
    state: StateArguments,
}

impl UpdateArguments {
    /// Returns whether the command needs no cluster.
    pub(super) fn needs_no_cluster(&self) -> bool {
        match self.filename {
            Some(_) => self.state.is_without_cluster(),
            None => self.state.needs_no_cluster(),
        }
    }

    /// Returns the catalogs with which the command needs no cluster.
    pub(super) fn catalogs(&self) -> Option<&CatalogChoice> {
        self.state.catalogs().filter(|_| self.filename.is_some())
    }

    /// Returns the Operators that the command line names.
    ///
    /// # Errors
    ///
    /// When one is named twice, a range is for nothing or beside another one, or no Operator has the labels.
    async fn named(&self, client: Option<&Client>) -> Result<NamedOperators, anyhow::Error> {
        let range = self.version.range(&self.names)?;
        let mut packages = self.names.clone();
        if let Some(selector) = &self.selector {
            let found = labelled(client.context(NO_CLUSTER)?, selector).await?;
            packages.extend(found.iter().map(|it| RequestedPackage::named(it)));
        }
        if range.is_some() && packages.is_empty() {
            let message =
                "--version and --version-range are for Operators that are named: add their names";
            return Err(Refusal::usage(message.to_owned()).into());
        }
        packages.iter_mut().for_each(|it| it.range = it.range.take().or_else(|| range.clone()));
        let follow = packages.iter().filter(|_| range.is_some()).map(|it| it.name.clone());
        let mut named = NamedOperators { follow: follow.collect(), ..NamedOperators::default() };
        packages.extend(self.for_range.iter().flat_map(|it| it.0.iter().cloned()));
        for RequestedPackage { name, range } in packages {
            if named.names.contains(&name) || named.ranges.contains_key(&name) {
                let ranges = named.ranges.remove(&name).into_iter().chain(range).collect();
                bail!("{}", RequestError::Twice { name, ranges });
            }
            if let Some(range) = range {
                named.ranges.insert(name, range);
            } else {
                named.names.insert(name);
            }
        }
        Ok(named)
    }
}

/// The Operators that a command line names.
#[derive(Debug, Default)]
struct NamedOperators {
    /// Those with a range, by name.
    ranges: BTreeMap<String, String>,
    /// Those of them that follow their range from then on, though they are pinned.
    follow: BTreeSet<String>,
    /// Those that are to have their newest version.
    names: BTreeSet<String>,
}

/// Names of Operators with ranges.
#[derive(Debug, Clone)]
struct RequestedRanges(Vec<RequestedPackage>);

impl FromStr for RequestedRanges {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let parts = list.split(';').map(str::trim).filter(|it| !it.is_empty());
        let ranges = parts.map(|text| match text.split_once('@') {
            Some((name, range)) if !name.is_empty() && !range.is_empty() => {
                let name = without_kind(name)?;
                Range::parse(range).map_err(|error| format!("{name}: {error}"))?;
                Ok(RequestedPackage { name: name.to_owned(), range: Some(range.to_owned()) })
            }
            Some((name, "")) if !name.is_empty() => Err(format!(
                "`{text}` has no range; put it in quotes, the shell takes `;`, `<` and `>` for itself: \
                 '{name}@<3.0.0'"
            )),
            Some(_) | None => {
                Err(format!("`{text}` is not of the form NAME@RANGE, such as 'foo-operator@~1.2'"))
            }
        });
        let ranges: Vec<RequestedPackage> = ranges.collect::<Result<_, _>>()?;
        match ranges.is_empty() {
            true => Err("it names no Operator: write NAME@RANGE".to_owned()),
            false => Ok(Self(ranges)),
        }
    }
}

/// A plan of an update, with the state that it was made from.
struct PlannedUpdate {
    state: LoadoutState,
    loadout: Loadout,
    /// The requested ranges, by name of the Operator.
    ranges: BTreeMap<String, String>,
    /// The plan; `None` if all Operators are pinned and nothing else is requested.
    plan: Option<UpdatePlan>,
    /// The Operators that it was made beside.
    operators: BTreeMap<String, RequestedOperator>,
    /// The packages that it was made from.
    parts: Vec<CatalogPart>,
}

impl PlannedUpdate {
    /// Returns the plan as the value that the plans of all operations are.
    fn changes(&self) -> ChangePlan {
        let Some(plan) = &self.plan else {
            let notes = kept_at_revisions(&self.operators);
            return ChangePlan { notes, ..ChangePlan::nothing(PlannedOperation::Update) };
        };
        let inputs = OperatorInputs {
            operators: &self.operators,
            unavailable: &self.state.unavailable(),
            facts: &self.state.facts,
            expressions: &Cel,
        };
        ChangePlan::of_update(plan, &self.ranges, inputs, &self.parts)
    }
}

impl Planned for PlannedUpdate {
    fn text(&self) -> String {
        let Some(plan) = &self.plan else {
            let kept = kept_at_revisions(&self.operators);
            let kept: String = kept.iter().map(|it| format!("* {it}\n")).collect();
            return ALL_PINNED.to_owned() + &kept;
        };
        plan.text(&self.ranges)
    }

    fn is_like(&self, other: &Self) -> bool {
        self.plan == other.plan
    }

    fn uids(&self) -> BTreeMap<&str, &str> {
        let written = self.plan.iter().flat_map(UpdatePlan::written);
        uids(&self.state, written.map(|it| it.name.as_str()))
    }
}

/// Runs the command.
///
/// # Errors
///
/// When files, catalogs or the cluster cannot be read, arguments are invalid, nothing satisfies all
/// requirements, or something cannot be written.
pub(super) async fn run(
    client: Option<&Client>,
    arguments: &UpdateArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let named = arguments.named(client).await?;
    if arguments.locked && arguments.filename.is_none() {
        bail!("--locked is for files: name their directory with -f DIR");
    }
    if arguments.dry_run.is_on_server() && arguments.filename.is_some() {
        bail!("--dry-run=server is for the Operators of a cluster: files are not sent to a server");
    }
    let mut output = Output::new(&arguments.output, out);
    let planned = plan(client, arguments, &named, output.people()).await?;
    planned.state.announce(arguments.output.is_wide());
    if let Some(directory) = arguments.filename.as_deref().filter(|_| arguments.locked) {
        lock::require(directory, &planned.state, &planned.loadout)?;
    }
    if arguments.rehearse {
        let plan = planned.plan.as_ref();
        let plan = RehearsedPlan::of_update(planned.text(), &planned.state, plan);
        return Ok(plan.rehearse(client, &arguments.output, output.out()).await?.into());
    }
    let Some(update) = &planned.plan else {
        output.people().write_all(planned.text().as_bytes())?;
        output.write_plan(|| planned.changes())?;
        return Ok(exit::SUCCESS.into());
    };
    let shown = show(client, arguments, &planned, update, output.people()).await?;
    if let ControlFlow::Break(exit) = shown {
        output.write_plan(|| planned.changes())?;
        return Ok(exit.into());
    }
    let again = async |out: &mut dyn Write| plan(client, arguments, &named, out).await;
    let (question, default) = ("Would you like to continue?", DefaultAnswer::No);
    let said = output.people();
    let Some(current) = agreed(&planned, question, default, prompter, said, again).await? else {
        writeln!(output.people(), "Nothing was changed")?;
        return Ok(exit::DECLINED.into());
    };
    let PlannedUpdate { state, mut loadout, .. } = current;
    match (&arguments.filename, client) {
        (Some(directory), _) => {
            for path in write_manifests(&mut loadout, directory, &update.manifests(), None)? {
                writeln!(output.of_changes(), "{} written", path.display())?;
            }
            lock::refresh(directory, &state, &mut output.of_changes())?;
        }
        (None, Some(client)) => {
            apply(client, &state.writes(&update.manifests()), &mut output.of_changes()).await?;
        }
        (None, None) => bail!(NO_CLUSTER),
    }
    output.write_plan(|| planned.changes())?;
    if let (None, Some(client), false) = (&arguments.filename, client, arguments.no_wait) {
        follow(client, &state, update, arguments.timeout, &mut output.of_changes()).await?;
    }
    Ok(exit::SUCCESS.into())
}

/// Prints the plan. Breaks with the exit code if there is nothing to carry out.
async fn show(
    client: Option<&Client>,
    arguments: &UpdateArguments,
    planned: &PlannedUpdate,
    update: &UpdatePlan,
    out: &mut dyn Write,
) -> Result<ControlFlow<Exit>, anyhow::Error> {
    let is_for_people = arguments.output.is_for_people();
    if is_for_people || !arguments.dry_run.is_set() {
        out.write_all(planned.text().as_bytes())?;
    }
    if let (true, Some(client)) = (arguments.dry_run.is_on_server(), client) {
        let manifests = update.manifests();
        dry_run_writes(client, &planned.state.writes(&manifests), out).await?;
        if !is_for_people {
            return Ok(ControlFlow::Break(exit::SUCCESS));
        }
        let bundles = previewed(update);
        let exit = preview_bundles(client, &planned.state, &manifests, &bundles, out).await?;
        return Ok(ControlFlow::Break(exit));
    }
    if arguments.dry_run.is_set() {
        return Ok(ControlFlow::Break(exit::SUCCESS));
    }
    if update.is_empty() {
        writeln!(out, "Nothing to do")?;
        return Ok(ControlFlow::Break(exit::SUCCESS));
    }
    let is_written = update.operators.iter().any(OperatorUpdate::is_written);
    // A lock is written where a range comes to another version.
    let lock = arguments.filename.as_deref().map(lock::read).transpose()?.flatten();
    if is_written || lock.is_some() {
        return Ok(ControlFlow::Continue(()));
    }
    let may_continue = arguments.filename.is_none() && !arguments.no_wait;
    if may_continue && !interrupted(&planned.state, update).is_empty() {
        writeln!(out, "An update that was interrupted is continued")?;
        return Ok(ControlFlow::Continue(()));
    }
    writeln!(out, "Nothing to write: the controller installs what is requested")?;
    // What follows a range comes by itself, whatever was requested here.
    let is_requested = |it: &OperatorUpdate| {
        it.is_awaited() || (it.is_moved() && planned.ranges.contains_key(&it.name))
    };
    if let Some(client) = client.filter(|_| may_continue)
        && update.operators.iter().any(is_requested)
    {
        follow(client, &planned.state, update, arguments.timeout, out).await?;
    }
    Ok(ControlFlow::Break(exit::SUCCESS))
}

/// Returns the bundles that Operators would be installed in or moved to.
fn previewed(update: &UpdatePlan) -> Vec<PreviewedBundle> {
    let moved = update.operators.iter().filter(|it| it.is_new() || it.is_moved());
    let bundles = moved.filter_map(|it| {
        let version = it.after.installed.clone()?;
        Some(PreviewedBundle { name: it.name.clone(), version, catalog: None })
    });
    bundles.collect()
}

/// Reads the state, and the files of the directory.
async fn read(
    client: Option<&Client>,
    arguments: &UpdateArguments,
) -> Result<(LoadoutState, Loadout), anyhow::Error> {
    let files = arguments.filename.as_deref().map(read_files).transpose()?.unwrap_or_default();
    let loadout = Loadout::read_sound(files).map_err(|error| anyhow!(error))?;
    let otherwise = match &arguments.filename {
        None => Some(StateSource::Cluster),
        Some(_) => None,
    };
    let declared: Vec<String> = loadout.operators.iter().map(|it| it.name.clone()).collect();
    let state = arguments.state.read_for(client, otherwise, Some(&declared)).await?;
    let is_shown = !arguments.dry_run.is_sent() && matches!(state.source, StateSource::Snapshot(_));
    if arguments.filename.is_none() && state.source != StateSource::Cluster && !is_shown {
        match state.source {
            StateSource::Snapshot(_) => {
                bail!("--state needs --dry-run=client or -f DIR: a snapshot cannot be changed")
            }
            source => bail!("--state {source} needs a directory: name it with -f DIR"),
        }
    }
    Ok((state, loadout))
}

/// Reads the state, and plans the update.
async fn plan(
    client: Option<&Client>,
    arguments: &UpdateArguments,
    named: &NamedOperators,
    out: &mut dyn Write,
) -> Result<PlannedUpdate, anyhow::Error> {
    let (state, loadout) = read(client, arguments).await?;
    state.require_readable(state.all_names(&loadout))?;
    let progress = ProgressLine::begin("planning");
    let parts = state.parts(state.names_to_plan(&loadout));
    let operators = state.operators_to_plan(&loadout, &parts);
    let LockedOperators { operators, locked } =
        lock::filled(arguments.filename.as_deref(), &state, operators, &parts)?;
    named.require_declared(arguments.filename.as_deref(), &operators)?;
    let request = UpdateRequest {
        latest: arguments.latest,
        ranges: named.ranges.clone(),
        follow: named.follow.clone(),
        names: named.names.clone(),
        together: arguments.filename.is_none(),
        locked,
        unknown: state.unknown(&loadout, &parts),
    };
    let ranges = named.ranges.clone();
    let inputs = OperatorInputs {
        operators: &operators,
        unavailable: &state.unavailable(),
        facts: &state.facts,
        expressions: &Cel,
    };
    if request.is_idle(inputs, &parts) {
        return Ok(PlannedUpdate { state, loadout, ranges, plan: None, operators, parts });
    }
    let shown = |it: PlanningProgress| progress.show(&format!("{} steps", it.steps));
    let planned = plan_update_shown(inputs, &parts, &request, &shown);
    drop(progress);
    match planned {
        Ok(plan) => {
            let plan = Some(plan);
            Ok(PlannedUpdate { state, loadout, ranges, plan, operators, parts })
        }
        Err(error) => {
            state.announce(arguments.output.is_wide());
            Err(refusal(error, &state, &operators, out))
        }
    }
}

/// Returns the members of the change sets of earlier updates that the controller still carries out, each with
/// its annotation.
fn interrupted(state: &LoadoutState, plan: &UpdatePlan) -> Vec<(String, String)> {
    let current = state.current(&Loadout::default(), &[]);
    let set_of = |it: &RequestedOperator| it.change_set.clone().filter(|it| is_set_of_update(it));
    let moved = plan.operators.iter().filter(|it| it.is_moved());
    let sets: BTreeSet<String> = moved.filter_map(|it| set_of(current.get(&it.name)?)).collect();
    let members = current.iter().filter_map(|(name, it)| Some((name.clone(), set_of(it)?)));
    members.filter(|(_, set)| sets.contains(set)).collect()
}

/// Waits until a plan is carried out that the cluster has.
async fn follow(
    client: &Client,
    state: &LoadoutState,
    plan: &UpdatePlan,
    timeout: Duration,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let moved = plan.operators.iter().filter(|it| it.is_new() || it.is_moved());
    let target = |it: &OperatorUpdate| {
        let version = it.after.installed.clone()?;
        let (name, is_new) = (it.name.clone(), it.is_new());
        Some(InstallationTarget { name, version, is_new, returns_from: None })
    };
    let targets: Vec<InstallationTarget> = moved.filter_map(target).collect();
    wait(client, &targets, timeout, out).await?;
    for it in plan.manifests() {
        if let Some(set) = it.change_set.value() {
            leave_change_set(client, std::iter::once(it.name.as_str()), set).await?;
        }
    }
    for (name, set) in interrupted(state, plan) {
        leave_change_set(client, std::iter::once(name.as_str()), &set).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
