//! `plimsoll operator resolve`: the Operators that packages need, as files or in a cluster (OPR-15,
//! OPR-16).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use kube::Client;
use plimsoll_content::expressions::Cel;
use plimsoll_operators::change_plan::ChangePlan;
use plimsoll_operators::install::{
    InstallConflict, InstallError, InstallPlan, InstallRequest, plan_install_locked,
};
use plimsoll_operators::loadout::{Loadout, LoadoutFile};
use plimsoll_operators::lock::LockedOperators;
use plimsoll_operators::query::{needed_packages, refusal, unknown_catalog};
use plimsoll_operators::{OperatorInputs, RequestedOperator, RequestedPackage};
use plimsoll_resolve::CatalogPart;
use plimsoll_resolve::range::masterminds::Range;
use serde_json::Value;

use super::NO_CLUSTER;
use super::agreement::{Planned, agreed, uids};
use super::apply::{OperatorWrite, apply, dry_run_writes};
use super::catalogs::CatalogChoice;
use super::dry_run::DryRun;
use super::loadout::{LoadoutState, StateArguments, StateSource, read_files};
use super::lock;
use super::manifests::{texts, write_manifests};
use super::output::Output;
use super::packages::unneeded;
use super::preview::{PreviewedBundle, preview_bundles};
use super::rehearse::RehearsedPlan;
use super::selection::{DeclaredObject, declared_operators, requested_operator, written_in};
use super::versions::VersionChoice;
use crate::arguments::value;
use crate::exit::{self, Exit, Refusal};
use crate::progress::ProgressLine;
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::format::{Format, FormatParser};

/// The packages to install, and the options for choosing their bundles.
#[derive(Debug, Args)]
pub struct InstallChoice {
    /// Packages to install, each with a range of its own if it needs one, such as foo@~1.2
    #[arg(
        required_unless_present = "filename",
        value_name = "PACKAGE[@RANGE]",
        value_parser = requested_operator
    )]
    pub(super) packages: Vec<RequestedPackage>,
    /// Take the packages from the Operators that a file, or the files of a directory, declare, with their
    /// versions, channels and catalogs; `-` for standard input; repeatable
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with = "packages")]
    filename: Vec<PathBuf>,
    #[command(flatten)]
    version: VersionChoice,
    /// Channel to take the packages from; the default one otherwise
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    /// Catalog to take the packages from, by its name
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    repository: Option<String>,
    /// Choose who satisfies a requirement: PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE
    #[arg(long = "use", value_name = "PROVIDED=PACKAGE", value_parser = value::provider)]
    provider: Vec<String>,
    /// Exclude a package, or one bundle of it
    #[arg(long, value_name = "PACKAGE[/BUNDLE]", value_parser = value::exclusion)]
    exclude: Vec<String>,
    /// Prefer a catalog for dependencies, by its name; `same` for that of --repository
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    prefer_repository: Option<String>,
    /// Install the packages without their dependencies
    #[arg(long)]
    no_dependencies: bool,
    /// Go on although the packages conflict with what is installed
    #[arg(long)]
    force: bool,
}

impl InstallChoice {
    /// Returns the Operators that files declare; none if packages are named.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or the files declare no Operator.
    pub(super) fn declared(&self) -> Result<Vec<DeclaredObject>, anyhow::Error> {
        match self.filename.as_slice() {
            [] => Ok(Vec::new()),
            paths => declared_operators(paths),
        }
    }

    /// Returns the request for the packages, or for the Operators that files declare.
    ///
    /// # Errors
    ///
    /// When a range cannot be read, or is beside another one.
    pub(super) fn request(
        &self,
        declared: Vec<DeclaredObject>,
    ) -> Result<InstallRequest, anyhow::Error> {
        let mut packages = self.packages.clone();
        for DeclaredObject { name, version, object: _ } in &declared {
            let range = Some(version.clone()).filter(|it| !it.is_empty());
            if let Some(range) = &range {
                Range::parse(range).with_context(|| format!("spec.version of {name}"))?;
            }
            packages.push(RequestedPackage { name: name.clone(), range });
        }
        Ok(InstallRequest {
            version_range: self.version.range(&packages)?,
            packages,
            declared: declared.into_iter().map(|it| (it.name, it.object)).collect(),
            channel: self.channel.clone(),
            repository: self.repository.clone(),
            namespace: None,
            collision_protection: None,
            providers: self.provider.clone(),
            exclude: self.exclude.clone(),
            prefer_repository: self.prefer_repository.clone(),
            no_dependencies: self.no_dependencies,
        })
    }
}

/// Arguments of `plimsoll operator resolve`.
#[derive(Debug, Args)]
pub struct ResolveArguments {
    #[command(flatten)]
    choice: InstallChoice,
    /// Directory of the files; what is declared in it counts as installed
    #[arg(long, value_name = "DIR", default_value = ".")]
    write: PathBuf,
    /// Create and update the Operators of the cluster instead of writing files
    #[arg(long, conflicts_with = "write")]
    apply: bool,
    /// Refuse if operators.lock is missing or out of date
    #[arg(long, conflicts_with = "apply")]
    locked: bool,
    #[command(flatten)]
    dry_run: DryRun,
    /// Carry the plan out on a copy of the cluster, in simulated time, and change nothing: show what would be
    /// unsatisfied, stuck or invalid
    #[arg(long, requires = "apply")]
    rehearse: bool,
    /// Answer yes to every question
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Output format of the Operators, or of the plan; if it is not for people, everything else goes to standard
    /// error
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::CHANGES, default_value_t)]
    output: Format,
    #[command(flatten)]
    pub(super) state: StateArguments,
}

impl ResolveArguments {
    /// Returns whether the command needs no cluster.
    pub(super) fn needs_no_cluster(&self) -> bool {
        match self.apply {
            true => self.state.needs_no_cluster(),
            false => self.state.is_without_cluster(),
        }
    }

    /// Returns the catalogs with which the command needs no cluster.
    pub(super) fn catalogs(&self) -> Option<&CatalogChoice> {
        self.state.catalogs().filter(|_| !self.apply)
    }

    /// Fails if the Operators of the cluster would be written as something else than the cluster has them.
    ///
    /// # Errors
    ///
    /// When they would.
    fn check_state(&self) -> Result<(), anyhow::Error> {
        match &self.state.state {
            Some(StateSource::Files) if self.apply => bail!(
                "--apply is for the Operators of a cluster, which --state files does not read: leave out one \
                 of them"
            ),
            Some(StateSource::Snapshot(_)) if self.apply && self.dry_run.is_sent() => {
                bail!("--state with --apply needs --dry-run=client: a snapshot cannot be changed")
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the directory whose files are written; `None` if the Operators of the cluster are
    /// written.
    fn directory(&self) -> Option<&Path> {
        (!self.apply).then_some(self.write.as_path())
    }
}

/// The sources that an installation is planned from.
pub(super) struct InstallSource<'a> {
    /// The client of the cluster; `None` if there is no cluster.
    pub(super) client: Option<&'a Client>,
    /// The options for the state.
    pub(super) state: &'a StateArguments,
    /// The directory whose files count as installed; `None` if the cluster determines what is
    /// installed.
    pub(super) directory: Option<&'a Path>,
    /// Whether digests are shown whole where the state is said.
    pub(super) is_wide: bool,
}

/// A plan of an installation, with the state that it was made from.
pub(super) struct PlannedInstall {
    pub(super) state: LoadoutState,
    loadout: Loadout,
    pub(super) plan: InstallPlan,
    /// The conflict that `--force` overrides; `None` if there is none.
    conflict: Option<InstallConflict>,
    /// The Operators that it was made beside.
    operators: BTreeMap<String, RequestedOperator>,
    /// The packages that it was made from.
    parts: Vec<CatalogPart>,
}

impl Planned for PlannedInstall {
    fn text(&self) -> String {
        let conflict = self.conflict.as_ref().map(InstallConflict::text).unwrap_or_default();
        conflict + &self.plan.text()
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.plan, &self.conflict) == (&other.plan, &other.conflict)
    }

    fn uids(&self) -> BTreeMap<&str, &str> {
        uids(&self.state, self.plan.operators.iter().map(|it| it.name.as_str()))
    }
}

impl PlannedInstall {
    /// Returns the writes to a cluster, dependencies first.
    pub(super) fn writes(&self, request: &InstallRequest) -> Vec<OperatorWrite> {
        self.state.writes(&self.plan.manifests(request))
    }

    /// Returns the plan as the value that the plans of all operations are.
    pub(super) fn changes(&self, request: &InstallRequest) -> ChangePlan {
        let inputs = OperatorInputs {
            operators: &self.operators,
            unavailable: &self.state.unavailable(),
            facts: &self.state.facts,
            expressions: &Cel,
        };
        ChangePlan::of_install(&self.plan, request, inputs, &self.parts)
    }

    /// Returns the plan as it is rehearsed.
    pub(super) fn rehearsed(&self, request: &InstallRequest) -> RehearsedPlan<'_> {
        RehearsedPlan::of_writes(self.text(), &self.state, &self.writes(request))
    }

    /// Returns the Operators as files have them afterwards, dependencies first.
    ///
    /// # Errors
    ///
    /// When a file has a form that cannot be changed, or declares something else.
    fn objects(
        &self,
        directory: &Path,
        request: &InstallRequest,
    ) -> Result<Vec<Value>, anyhow::Error> {
        let (mut loadout, manifests) = (self.loadout.clone(), self.plan.manifests(request));
        let files = texts(&mut loadout, directory, &manifests, None)?.into_iter();
        let files = files
            .map(|(path, text)| LoadoutFile { path: path.to_string_lossy().into_owned(), text });
        let mut written = written_in(&files.collect::<Vec<_>>());
        Ok(manifests.iter().filter_map(|it| written.remove(&it.name)).collect())
    }

    /// Returns the Operators as they would be written to files, or to the cluster without a directory.
    ///
    /// # Errors
    ///
    /// As [`Self::objects`].
    pub(super) fn requested(
        &self,
        directory: Option<&Path>,
        request: &InstallRequest,
    ) -> Result<Vec<Value>, anyhow::Error> {
        if let Some(directory) = directory {
            return self.objects(directory, request);
        }
        let writes = self.writes(request);
        Ok(writes.iter().map(|it| it.requested(self.state.in_cluster(&it.name))).collect())
    }

    /// Prints what would become of the objects of the Operators, dependencies first. Returns the exit code.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be read, or the output cannot be written.
    pub(super) async fn preview(
        &self,
        client: &Client,
        request: &InstallRequest,
        out: &mut dyn Write,
    ) -> Result<Exit, anyhow::Error> {
        let bundles = self.plan.operators.iter().rev().map(|it| PreviewedBundle {
            name: it.name.clone(),
            version: it.version.clone(),
            catalog: Some(it.catalog.clone()),
        });
        let (manifests, bundles) = (self.plan.manifests(request), bundles.collect::<Vec<_>>());
        preview_bundles(client, &self.state, &manifests, &bundles, out).await
    }
}

/// Plans an installation.
///
/// # Errors
///
/// When files, catalogs or the cluster cannot be read, arguments are invalid, or the packages
/// conflict with what is installed and `--force` is not set; the state and the conflict have been printed then.
pub(super) async fn plan(
    source: &InstallSource<'_>,
    choice: &InstallChoice,
    request: &InstallRequest,
    out: &mut dyn Write,
) -> Result<PlannedInstall, anyhow::Error> {
    let directory = source.directory.filter(|it| it.exists());
    let files = directory.map(read_files).transpose()?.unwrap_or_default();
    let loadout = Loadout::read_understood(files).map_err(|error| anyhow!(error))?;
    let usual = source.directory.is_none().then_some(StateSource::Cluster);
    let declared = loadout.operators.iter().map(|it| it.name.clone());
    let needed: Vec<String> = needed_packages(request).into_iter().chain(declared).collect();
    let state = source.state.read_for(source.client, usual, Some(&needed)).await?;
    let progress = ProgressLine::begin("planning");
    let names = needed_packages(request).into_iter().chain(state.names_to_plan(&loadout));
    let parts = state.parts(names);
    if let Err(error) = require_known(&state, request, &parts) {
        drop(progress);
        state.announce(source.is_wide);
        return Err(error);
    }
    let declared = loadout.operators.iter().map(|it| it.name.clone());
    let requested = request.names().map(str::to_owned);
    let chosen = request.providers.iter().filter_map(|it| Some(it.split_once('=')?.1.to_owned()));
    state.require_readable(requested.chain(chosen).chain(declared))?;
    let operators = state.operators_to_plan(&loadout, &parts);
    let LockedOperators { operators, locked } = lock::filled(directory, &state, operators, &parts)?;
    let inputs = OperatorInputs {
        operators: &operators,
        unavailable: &state.unavailable(),
        facts: &state.facts,
        expressions: &Cel,
    };
    let planned = plan_install_locked(inputs, &parts, request, &locked);
    drop(progress);
    match planned {
        Ok(plan) => Ok(PlannedInstall { state, loadout, plan, conflict: None, operators, parts }),
        Err(InstallError::Unsatisfiable(conflict)) => {
            if let Some(plan) = conflict.overridden().filter(|_| choice.force) {
                let conflict = Some(*conflict);
                return Ok(PlannedInstall { state, loadout, plan, conflict, operators, parts });
            }
            state.announce(source.is_wide);
            out.write_all(conflict.text().as_bytes())?;
            let message = conflict.message();
            Err(Refusal { message, exit: exit::UNSATISFIABLE }.into())
        }
        Err(error @ InstallError::Blocked { .. }) => {
            state.announce(source.is_wide);
            Err(Refusal { message: refusal(&error), exit: exit::UNSATISFIABLE }.into())
        }
        Err(error) => {
            state.announce(source.is_wide);
            let unknown = |name: &str| Some(state.require_package(name).err()?.to_string());
            let sentence = match error.unknown_api() {
                Some(api) => unneeded(source.client, &state, api).await,
                None => None,
            };
            bail!(refusal(&error.explained(unknown).explained_api(sentence)))
        }
    }
}

/// Fails if a package, or a catalog, that a request names does not exist.
///
/// # Errors
///
/// When one does not, or a catalog cannot be read.
fn require_known(
    state: &LoadoutState,
    request: &InstallRequest,
    parts: &[CatalogPart],
) -> Result<(), anyhow::Error> {
    for package in request.names() {
        state.require_package(package)?;
    }
    match unknown_catalog(request, parts) {
        Some(message) => Err(anyhow!(message)),
        None => Ok(()),
    }
}

/// Runs the command.
///
/// # Errors
///
/// When files, catalogs or the cluster cannot be read, arguments are invalid, nothing satisfies all
/// requirements, or something cannot be written.
pub async fn run(
    client: Option<&Client>,
    arguments: &ResolveArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let choice = &arguments.choice;
    let request = choice.request(choice.declared()?)?;
    let directory = arguments.directory();
    if arguments.dry_run.is_on_server() && directory.is_some() {
        bail!("--dry-run=server is for --apply: files are not sent to a server");
    }
    arguments.check_state()?;
    let is_wide = arguments.output.is_wide();
    let source = InstallSource { client, state: &arguments.state, directory, is_wide };
    let mut output = Output::new(&arguments.output, out);
    let planned = plan(&source, choice, &request, output.people()).await?;
    planned.state.announce(is_wide);
    if let Some(directory) = directory.filter(|_| arguments.locked) {
        lock::require(directory, &planned.state, &planned.loadout)?;
    }
    if arguments.rehearse {
        let plan = planned.rehearsed(&request);
        return Ok(plan.rehearse(client, &arguments.output, output.out()).await?.into());
    }
    if output.is_for_people() || !arguments.dry_run.is_set() {
        output.people().write_all(planned.text().as_bytes())?;
    }
    if let (true, Some(client)) = (arguments.dry_run.is_on_server(), client) {
        let checked = dry_run_writes(client, &planned.writes(&request), output.people()).await?;
        if output.is_for_people() {
            return Ok(planned.preview(client, &request, output.out()).await?.into());
        }
        output.write_operators(&checked, || planned.changes(&request))?;
        return Ok(exit::SUCCESS.into());
    }
    if planned.plan.operators.is_empty() || arguments.dry_run.is_set() {
        if !output.is_for_people() {
            let requested = planned.requested(directory, &request)?;
            output.write_operators(&requested, || planned.changes(&request))?;
        }
        return Ok(exit::SUCCESS.into());
    }
    let again = async |out: &mut dyn Write| plan(&source, choice, &request, out).await;
    let (default, said) = (DefaultAnswer::Yes, output.people());
    let Some(current) = agreed(&planned, "", default, prompter, said, again).await? else {
        return Ok(exit::DECLINED.into());
    };
    let written = match (directory, client) {
        (None, Some(client)) => {
            apply(client, &current.writes(&request), &mut output.of_changes()).await?
        }
        (None, None) => bail!(NO_CLUSTER),
        (Some(directory), _) => {
            let written = match output.is_for_people() {
                true => Vec::new(),
                false => current.objects(directory, &request)?,
            };
            write(current, directory, &request, &mut output.of_changes())?;
            written
        }
    };
    output.write_operators(&written, || planned.changes(&request))?;
    Ok(exit::SUCCESS.into())
}

/// Writes the files of a directory.
fn write(
    planned: PlannedInstall,
    directory: &Path,
    request: &InstallRequest,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let PlannedInstall { state, mut loadout, plan, conflict, .. } = planned;
    let warning = conflict.map(|it| it.message());
    write_manifests(&mut loadout, directory, &plan.manifests(request), warning.as_deref())?;
    lock::refresh(directory, &state, out)
}

#[cfg(test)]
pub(super) mod tests;
