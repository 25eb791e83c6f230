//! `plimsoll operator install`: packages with what they require are resolved against what the cluster has,
//! and their Operators created.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;
use plimsoll_api::{Operator, OperatorRevision};
use plimsoll_content::expressions::Cel;
use plimsoll_controller::operators::cluster_facts;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_resolve::range::masterminds;
use plimsoll_resolve::{
    CatalogName, CatalogSource, ChannelPolicy, InstallReason, InstalledBundle, PackageRequest,
    Query, Resolution, Solution, collect_problem, solve,
};
use plimsoll_simulation::duration;
use serde_json::{Value, json};

use super::apply::{OperatorWrite, WriteAction, apply, new_operator, wait};
use super::catalogs::{CatalogChoice, OpenedCatalogs, short_digest};
use super::state::{AddOnState, installed_bundle, revisions, status};
use crate::arguments::name;
use crate::exit::{self, Refusal};
use crate::prompt::{DefaultAnswer, Respondent};
use crate::render::format::Format;

/// Arguments of `plimsoll operator install`.
#[derive(Debug, Args)]
pub struct InstallArguments {
    /// Packages
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Versions that will do, which the Operator then follows, such as "~1.2"; without it the newest
    /// version of the channel is pinned
    #[arg(long, value_name = "RANGE", aliases = ["versionRange", "version"])]
    version_range: Option<String>,
    /// Channel to take the packages from; the default one otherwise
    #[arg(long)]
    channel: Option<String>,
    /// Catalog to take the packages from, by its name
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Namespace to install the packages into; the one that the bundle suggests without it
    #[arg(long, short, value_parser = name::namespace)]
    namespace: Option<String>,
    /// Install the packages without what they require
    #[arg(long)]
    no_dependencies: bool,
    #[command(flatten)]
    catalogs: CatalogChoice,
    /// Agree to the plan
    #[arg(long, short)]
    yes: bool,
    /// Show the plan, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not wait until everything is installed
    #[arg(long)]
    no_wait: bool,
    /// How long to wait until everything is installed; for ever without it
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "no_wait")]
    timeout: Option<Duration>,
    /// Output format of the Operators
    #[arg(long, short, value_name = "FORMAT", default_value_t, requires = "dry_run")]
    output: Format,
}

impl InstallArguments {
    pub(super) fn is_agreed(&self) -> bool {
        self.yes
    }
}

/// What an installation does.
#[derive(Debug, Default, PartialEq)]
struct InstallationPlan {
    /// Who depends on what, a sentence each.
    dependencies: Vec<String>,
    /// The Operators to create, what others depend on first.
    create: Vec<PlannedOperator>,
    /// What speaks against it, such as deprecations, a sentence each.
    warnings: Vec<String>,
}

/// An Operator to create.
#[derive(Debug, PartialEq)]
struct PlannedOperator {
    name: String,
    version: semver::Version,
    object: Value,
}

impl InstallationPlan {
    /// The plan for people.
    fn text(&self) -> String {
        let mut text = String::new();
        for dependency in &self.dependencies {
            text.push_str(&format!("* {}\n", on_one_line(dependency)));
        }
        text.push_str("Create Operator resources for:\n");
        for it in &self.create {
            text.push_str(&format!("- {}@v{}\n", it.name, it.version));
        }
        for warning in &self.warnings {
            text.push_str(&format!("WARNING: {}\n", on_one_line(warning)));
        }
        text
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
    person: &mut Respondent,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if let Some(range) = &arguments.version_range {
        masterminds::Range::parse(range).context("--version-range")?;
    }
    let state = AddOnState::read(client).await?;
    if let Some(name) = arguments.packages.iter().find(|it| state.operators.contains_key(*it)) {
        bail!("there is an Operator `{name}` already: `operator describe {name}` shows it");
    }
    let catalogs = arguments.catalogs.open(&state.catalogs)?;
    for package in &arguments.packages {
        catalogs.with_package(package, |_, _| Ok(()))?;
    }
    let revisions = revisions(client).await?;
    let plan = match resolve(client, arguments, &state, &revisions, &catalogs).await? {
        Ok(plan) => plan,
        Err(explanation) => {
            out.write_all(explanation.as_bytes())?;
            let message = format!(
                "installing {} could leave your system in an inconsistent state",
                arguments.packages.join(", ")
            );
            return Err(Refusal { message, exit: exit::UNSATISFIABLE }.into());
        }
    };
    if arguments.dry_run {
        let items: Vec<&Value> = plan.create.iter().map(|it| &it.object).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        let is_written = match &arguments.output {
            Format::Name => {
                plan.create.iter().try_for_each(|it| writeln!(out, "{}", it.name))?;
                true
            }
            output => output.write(&list, out)?,
        };
        if !is_written {
            write_plan(&plan, &catalogs, out)?;
        }
        return Ok(exit::SUCCESS.into());
    }
    write_plan(&plan, &catalogs, out)?;
    if !person.confirm("Would you like to continue?", DefaultAnswer::Yes, out)? {
        writeln!(out, "Nothing was changed")?;
        return Ok(exit::DECLINED.into());
    }
    let writes = plan.create.iter().map(|it| OperatorWrite {
        name: it.name.clone(),
        action: WriteAction::Create { object: it.object.clone() },
    });
    apply(client, &writes.collect::<Vec<_>>(), out).await?;
    if !arguments.no_wait {
        let targets = plan.create.iter().map(|it| (it.name.clone(), it.version.clone()));
        wait(client, &targets.collect::<Vec<_>>(), arguments.timeout, out).await?;
    }
    Ok(exit::SUCCESS.into())
}

fn write_plan(
    plan: &InstallationPlan,
    catalogs: &OpenedCatalogs,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    for catalog in &catalogs.opened {
        writeln!(out, "catalog {} {}", catalog.name, short_digest(&catalog.digest))?;
    }
    catalogs.notes().iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
    out.write_all(plan.text().as_bytes())?;
    Ok(())
}

/// The plan, or why there is none.
async fn resolve(
    client: &Client,
    arguments: &InstallArguments,
    state: &AddOnState,
    revisions: &[OperatorRevision],
    catalogs: &OpenedCatalogs,
) -> Result<Result<InstallationPlan, String>, anyhow::Error> {
    let facts = cluster_facts(client).await.context("failed to read facts of the cluster")?;
    let indexed: Vec<_> = catalogs.opened.iter().map(|it| it.indexed()).collect();
    let sources: Vec<CatalogSource<'_>> = catalogs
        .opened
        .iter()
        .zip(&indexed)
        .map(|(opened, catalog)| CatalogSource {
            name: &opened.name,
            namespace: "",
            weight: opened.weight,
            catalog,
        })
        .collect();
    let repository = arguments.repository.as_deref();
    if let Some(wanted) = repository
        && !catalogs.opened.iter().any(|it| it.name == *wanted)
    {
        let names: Vec<&str> = catalogs.opened.iter().map(|it| it.name.as_str()).collect();
        bail!(
            "--repository: there is no catalog `{wanted}`{}",
            name::hint(wanted, names.into_iter())
        );
    }
    let request = |package: &String| PackageRequest {
        package: package.clone(),
        channel: arguments.channel.clone(),
        version: arguments.version_range.clone(),
        catalog: repository
            .map(|name| CatalogName { namespace: String::new(), name: name.to_owned() }),
        ignore_dependencies: arguments.no_dependencies,
        ..PackageRequest::default()
    };
    let installed = |(name, operator): (&String, &Operator)| {
        let bundle = installed_bundle(name, operator, revisions)?;
        Some(InstalledBundle {
            namespace: String::new(),
            package: Some(name.clone()),
            follows: None,
            // What it misses already is no reason against something else.
            ignore_dependencies: status(operator).dependencies.iter().any(|it| !it.satisfied),
            bundle,
        })
    };
    let query = Query {
        facts,
        operator_groups: Vec::new(),
        global_namespaces: Vec::new(),
        installed: state.operators.iter().filter_map(installed).collect(),
        requests: arguments.packages.iter().map(request).collect(),
        channels: ChannelPolicy::DefaultOnly,
        overrides: Default::default(),
    };
    let problem = collect_problem(&sources, query, &Cel);
    if let Some(failure) = indexed.iter().find_map(|it| it.failure()) {
        bail!("a catalog cannot be read: {failure}; `--no-cache` reads it anew");
    }
    match solve(&problem, &Cel) {
        Resolution::Solved(solution) => Ok(Ok(planned(arguments, &solution))),
        Resolution::Unsatisfiable(explanation) => Ok(Err(explanation.text())),
        Resolution::LimitExceeded => bail!(
            "the dependencies are too complex: no solution or proof of none was found within the \
             limit; install fewer packages at once"
        ),
    }
}

/// What a solution creates.
fn planned(arguments: &InstallArguments, solution: &Solution) -> InstallationPlan {
    let mut plan =
        InstallationPlan { warnings: solution.warnings.clone(), ..InstallationPlan::default() };
    let mut open: Vec<_> = solution.install.iter().collect();
    // What others depend on is created first; of a cycle, the first by name.
    let required_by = |bundle: &str, package: &str| {
        let planned = solution.install.iter().find(|it| it.package == package);
        planned.is_some_and(|it| {
            it.because
                .iter()
                .any(|why| matches!(why, InstallReason::Required { by, .. } if by == bundle))
        })
    };
    while !open.is_empty() {
        let is_free = |bundle: &str, open: &[&plimsoll_resolve::PlannedBundle]| {
            !open.iter().any(|it| it.bundle != bundle && required_by(bundle, &it.package))
        };
        let next = open.iter().position(|it| is_free(&it.bundle, &open)).unwrap_or_default();
        let bundle = open.remove(next);
        let (package, version) = (&bundle.package, &bundle.version);
        let is_requested = arguments.packages.contains(package);
        let range = match (is_requested, &arguments.version_range) {
            (true, Some(range)) => range.clone(),
            (true, None) => version.to_string(),
            // Patches of what was resolved, and nothing before it.
            (false, _) => format!(">={version}, <{}.{}", version.major, version.minor + 1),
        };
        let mut object = new_operator(package, &range, !is_requested);
        if is_requested {
            let fields = [
                ("channel", &arguments.channel),
                ("repository", &arguments.repository),
                ("namespace", &arguments.namespace),
            ];
            for (field, value) in fields {
                if let Some(value) = value {
                    object["spec"][field] = value.clone().into();
                }
            }
        }
        for why in &bundle.because {
            if let InstallReason::Required { by, requirement } = why {
                let by = match solution.install.iter().find(|it| it.bundle == *by) {
                    Some(by) => format!("{} v{}", by.package, by.version),
                    None => by.clone(),
                };
                // As the design document writes it.
                let requirement = requirement.replace(" in `", " ").replace('`', "");
                plan.dependencies.push(format!("{by} depends on {requirement}"));
            }
        }
        plan.create.push(PlannedOperator {
            name: package.clone(),
            version: version.clone(),
            object,
        });
    }
    plan.dependencies.sort();
    plan
}
