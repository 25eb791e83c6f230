//! `plimsoll operator resolve`: the Operators that packages need, as files or in a cluster (OPR-15,
//! OPR-16).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;
use plimsoll_content::expressions::Cel;
use plimsoll_plan::operators::lint::{dependency_range, is_pinned};
use plimsoll_plan::operators::loadout::{Loadout, SettledOperators, settle};
use plimsoll_plan::operators::{OperatorInputs, RequestedOperator};
use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::requirement::{InstalledPackages, Provider};
use plimsoll_resolve::{
    Api, Bundle, BundleExclusion, CatalogName, CatalogPart, ClusterFacts, Constraint,
    ExplanationStepKind, FORMAT, FollowedChannel, InstalledBundle, PackageRequest, Problem,
    ProviderChoice, Query, Resolution, ResolutionOverrides, Solution, solve,
};

use super::apply::{OperatorWrite, WriteAction, apply, new_operator};
use super::loadout::{LoadoutState, StateArguments, StateSource, read_files};
use super::lock;
use super::manifests::{ChangeSetEdit, OperatorManifest, write_manifests};
use crate::exit;
use crate::prompt::{DefaultAnswer, Respondent};

/// Arguments of `plimsoll operator resolve`.
#[derive(Debug, Args)]
pub struct ResolveArguments {
    /// Packages to install
    #[arg(required = true)]
    packages: Vec<String>,
    /// Versions that will do, such as "~1.2"; the Operators then follow their ranges
    #[arg(long, value_name = "RANGE", alias = "versionRange")]
    version_range: Option<String>,
    /// Channel to take the packages from; the default one otherwise
    #[arg(long)]
    channel: Option<String>,
    /// Catalog to take the packages from, by its name
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Choose who satisfies a requirement: PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE
    #[arg(long = "use", value_name = "PROVIDED=PACKAGE")]
    provider: Vec<String>,
    /// Exclude a package, or one bundle of it
    #[arg(long, value_name = "PACKAGE[/BUNDLE]")]
    exclude: Vec<String>,
    /// Prefer a catalog for dependencies, by its name; `same` for that of --repository
    #[arg(long, value_name = "NAME")]
    prefer_repository: Option<String>,
    /// Install the packages without their dependencies
    #[arg(long)]
    no_dependencies: bool,
    /// Write the files although they conflict with what is installed
    #[arg(long)]
    force: bool,
    /// Directory of the files; what is declared in it counts as installed
    #[arg(long, value_name = "DIR", default_value = ".")]
    write: PathBuf,
    /// Create and update the Operators of the cluster instead of writing files
    #[arg(long, conflicts_with_all = ["write", "force"])]
    apply: bool,
    /// Refuse if operators.lock is missing or out of date
    #[arg(long, conflicts_with = "apply")]
    locked: bool,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Answer yes to every question
    #[arg(long, short)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) state: StateArguments,
}

/// An Operator to write.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlannedOperator {
    name: String,
    version: semver::Version,
    /// The version or range of its spec.
    range: String,
    is_dependency: bool,
}

impl PlannedOperator {
    /// What is written of it to a cluster.
    fn write(&self, arguments: &ResolveArguments, state: &LoadoutState) -> OperatorWrite {
        let name = self.name.clone();
        let action = match state.in_cluster(&name) {
            Some(there) => WriteAction::set_version(there, &self.range),
            None => {
                let mut object = new_operator(&name, &self.range, self.is_dependency);
                let fields =
                    [("channel", &arguments.channel), ("repository", &arguments.repository)];
                for (field, value) in fields.into_iter().filter(|_| !self.is_dependency) {
                    if let Some(value) = value {
                        object["spec"][field] = value.clone().into();
                    }
                }
                WriteAction::Create { object }
            }
        };
        OperatorWrite { name, action }
    }
}

/// What a resolution comes to.
struct ResolvePlan {
    /// Who depends on what, a line each.
    edges: Vec<String>,
    /// Those who are requested first, then what each needs.
    operators: Vec<PlannedOperator>,
}

/// Runs the command.
///
/// # Errors
///
/// When files, catalogs or the cluster cannot be read, arguments are invalid, or a file cannot be
/// written.
pub async fn run(
    client: Option<&Client>,
    arguments: &ResolveArguments,
    person: &mut Respondent,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if let Some(range) = &arguments.version_range {
        Range::parse(range)?;
    }
    let has_files = !arguments.apply && arguments.write.exists();
    let files = if has_files { read_files(&arguments.write)? } else { Vec::new() };
    let mut loadout = Loadout::read(files);
    let usual = arguments.apply.then_some(StateSource::Cluster);
    let state = arguments.state.read_or(client, usual).await?;
    anstream::eprintln!("{}", state.header());
    state.catalogs.notes().iter().for_each(|note| anstream::eprintln!("note: {note}"));
    if arguments.locked {
        lock::require(&arguments.write, &state, &loadout)?;
    }
    let requested = arguments.packages.iter().cloned();
    let chosen = arguments.provider.iter().filter_map(|it| Some(it.split_once('=')?.1.to_owned()));
    let parts = state.parts(requested.chain(chosen).chain(state.all_names(&loadout)));
    for package in &arguments.packages {
        state.require_package(package)?;
    }
    let operators = state.operators(&loadout, &parts);
    let inputs = OperatorInputs {
        operators: &operators,
        unavailable: &state.unavailable(),
        facts: &state.facts,
        expressions: &Cel,
    };
    let installed = settle(inputs, &parts);
    let problem = |installed: &SettledOperators| problem(arguments, &state, &parts, installed);
    let mut warning = None;
    let plan = match solve(&problem(&installed)?, &Cel) {
        Resolution::Solved(solution) => {
            plan(arguments, &parts, &installed.operators, &solution, &state.facts)
        }
        Resolution::LimitExceeded => bail!(
            "the dependencies are too complex: request fewer packages, or exclude some with `--exclude`"
        ),
        Resolution::Unsatisfiable(explanation) => {
            let nothing = SettledOperators::default();
            let alone = match solve(&problem(&nothing)?, &Cel) {
                Resolution::Solved(solution) => {
                    Some(plan(arguments, &parts, &nothing.operators, &solution, &state.facts))
                }
                Resolution::Unsatisfiable(_) | Resolution::LimitExceeded => None,
            };
            for edge in alone.iter().flat_map(|it| &it.edges) {
                writeln!(out, "* {edge}")?;
            }
            let steps = explanation.conflicts.iter().flat_map(|it| &it.steps);
            for step in steps.filter(|it| it.kind == ExplanationStepKind::Exclusion) {
                writeln!(out, "* {}", step.text)?;
            }
            let names = arguments.packages.join(", ");
            let error =
                format!("installing {names} could leave your system in an inconsistent state");
            match (arguments.force, alone) {
                (true, Some(plan)) => {
                    anstream::eprintln!("warning: {error}");
                    warning = Some(error);
                    ResolvePlan { edges: Vec::new(), ..plan }
                }
                (_, _) => {
                    anstream::eprintln!("Error: {error}");
                    anstream::eprint!("{}", explanation.text());
                    return Ok(exit::UNSATISFIABLE.into());
                }
            }
        }
    };
    for edge in &plan.edges {
        writeln!(out, "* {edge}")?;
    }
    if let Some(expanded) = arguments.version_range.as_deref().and_then(expanded) {
        writeln!(out, "{expanded}")?;
    }
    if plan.operators.is_empty() {
        writeln!(out, "Nothing to do: {} is installed", arguments.packages.join(", "))?;
        return Ok(exit::SUCCESS.into());
    }
    writeln!(out, "Generate Operator resources for:")?;
    for it in &plan.operators {
        writeln!(out, "- {}@v{}", it.name, it.version)?;
    }
    if arguments.dry_run {
        return Ok(exit::SUCCESS.into());
    }
    if !person.confirm("", DefaultAnswer::Yes, out)? {
        return Ok(exit::DECLINED.into());
    }
    if arguments.apply {
        let client = client.context("no cluster is configured; name one with --kubeconfig FILE")?;
        // What others depend on goes first.
        let writes = plan.operators.iter().rev().map(|it| it.write(arguments, &state));
        apply(client, &writes.collect::<Vec<_>>(), out).await?;
        return Ok(exit::SUCCESS.into());
    }
    let manifests = plan.operators.iter().map(|it| OperatorManifest {
        name: it.name.clone(),
        version: it.range.clone(),
        is_dependency: it.is_dependency,
        channel: arguments.channel.clone().filter(|_| !it.is_dependency),
        repository: arguments.repository.clone().filter(|_| !it.is_dependency),
        change_set: ChangeSetEdit::Keep,
    });
    let manifests: Vec<OperatorManifest> = manifests.collect();
    write_manifests(&mut loadout, &arguments.write, &manifests, warning.as_deref())?;
    lock::refresh(&arguments.write, &state, out)?;
    Ok(exit::SUCCESS.into())
}

/// The problem of the requests beside what is installed.
fn problem(
    arguments: &ResolveArguments,
    state: &LoadoutState,
    parts: &[CatalogPart],
    installed: &SettledOperators,
) -> Result<Problem, anyhow::Error> {
    let catalog = |name: &str| CatalogName { namespace: String::new(), name: name.to_owned() };
    let request = |package: &String| PackageRequest {
        package: package.clone(),
        channel: arguments.channel.clone(),
        version: arguments.version_range.clone(),
        catalog: arguments.repository.as_deref().map(catalog),
        ignore_dependencies: arguments.no_dependencies,
        ..PackageRequest::default()
    };
    // What an installed Operator lacks already is not what is requested.
    let lacks = |name: &str| {
        let decision = installed.decisions.get(name);
        decision.is_some_and(|it| it.requirements.iter().any(|it| it.provider.is_none()))
    };
    let installed = installed.operators.iter().filter_map(|(name, operator)| {
        let there = operator.installed.as_ref()?;
        let follows = (!is_pinned(&operator.spec.version)).then(|| FollowedChannel {
            channel: there.reference.channel.clone(),
            catalog: Some(catalog(&there.reference.catalog)),
        });
        Some(InstalledBundle {
            namespace: String::new(),
            package: Some(name.clone()),
            follows: follows.filter(|it| !it.channel.is_empty()),
            ignore_dependencies: lacks(name) && !arguments.packages.contains(name),
            bundle: there.bundle.clone(),
        })
    });
    let exclusion = |text: &String| {
        let (package, bundle) = match text.split_once('/') {
            Some((package, bundle)) => (package, Some(bundle.to_owned())),
            None => (text.as_str(), None),
        };
        BundleExclusion { package: package.to_owned(), versions: None, bundle }
    };
    let mut providers = Vec::new();
    for text in &arguments.provider {
        providers.extend(choices(text, parts)?);
    }
    let preferred = match (arguments.prefer_repository.as_deref(), &arguments.repository) {
        (Some("same"), Some(name)) => vec![catalog(name)],
        // A dependency is taken from the catalog of what requires it in any case.
        (Some("same"), None) | (None, _) => Vec::new(),
        (Some(name), _) => vec![catalog(name)],
    };
    Ok(Problem {
        format: FORMAT,
        query: Query {
            facts: state.facts.clone(),
            installed: installed.collect(),
            requests: arguments.packages.iter().map(request).collect(),
            overrides: ResolutionOverrides {
                providers,
                exclude: arguments.exclude.iter().map(exclusion).collect(),
                prefer_catalogs: preferred,
            },
            ..Query::default()
        },
        catalogs: parts.to_vec(),
    })
}

/// Who is to provide what: an API by its name, or all APIs that a package provides.
fn choices(text: &str, parts: &[CatalogPart]) -> Result<Vec<ProviderChoice>, anyhow::Error> {
    let Some((provided, package)) = text.split_once('=') else {
        bail!("`{text}` is not of the form PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE");
    };
    let names: Vec<&str> = provided.split('/').collect();
    let apis: BTreeSet<Api> = match names.as_slice() {
        [group, version, kind] => BTreeSet::from([Api {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
        }]),
        [name] => {
            let packages = parts.iter().flat_map(|it| &it.packages).filter(|it| it.name == *name);
            packages.flat_map(|it| &it.bundles).flat_map(|it| it.provides.clone()).collect()
        }
        _ => bail!("`{provided}` is neither a package nor GROUP/VERSION/KIND"),
    };
    if apis.is_empty() {
        bail!("`--use {text}`: no catalog has a package {provided} that provides an API");
    }
    let choice = |api| ProviderChoice { api, package: package.to_owned(), catalog: None };
    Ok(apis.into_iter().map(choice).collect())
}

/// What a solution comes to.
fn plan(
    arguments: &ResolveArguments,
    parts: &[CatalogPart],
    installed: &BTreeMap<String, RequestedOperator>,
    solution: &Solution,
    facts: &ClusterFacts,
) -> ResolvePlan {
    let chosen = solution.install.iter().filter_map(|it| {
        let catalog = parts.iter().find(|part| part.name == it.catalog)?;
        let package = catalog.packages.iter().find(|package| package.name == it.package)?;
        let bundle = package.bundles.iter().find(|bundle| bundle.name == it.bundle)?;
        Some((it.package.as_str(), bundle))
    });
    let chosen: BTreeMap<&str, &Bundle> = chosen.collect();
    let there = installed
        .iter()
        .filter_map(|(name, it)| Some((name.as_str(), &it.installed.as_ref()?.bundle)));
    let mut bundles: BTreeMap<&str, &Bundle> = there.collect();
    bundles.extend(chosen.iter().map(|(name, bundle)| (*name, *bundle)));
    let after = InstalledPackages::new(bundles.clone());
    let mut plan = ResolvePlan { edges: Vec::new(), operators: Vec::new() };
    let mut queue: Vec<&str> = arguments.packages.iter().map(String::as_str).collect();
    let mut seen: BTreeSet<&str> = queue.iter().copied().collect();
    // What a dependency needs for a range: the ranges of all who depend on it.
    let required = |package: &str| {
        let requirements = bundles.values().flat_map(|it| &it.requires);
        let ranges = requirements.filter_map(|it| match &it.constraint {
            Constraint::Package { name, range } if name == package => Some(range.clone()),
            _ => None,
        });
        ranges.collect::<Vec<_>>()
    };
    let mut at = 0;
    while let Some(name) = queue.get(at).copied() {
        at += 1;
        let Some(bundle) = chosen.get(name) else { continue };
        if !arguments.no_dependencies {
            for requirement in after.check(name, bundle, facts, &Cel) {
                let text = spelled(&requirement.text);
                plan.edges.push(format!("{name} v{} depends on {text}", bundle.version));
                if let Some(Provider::Installed(package)) = requirement.provider
                    && let Some((package, _)) = bundles.get_key_value(package.as_str())
                    && seen.insert(*package)
                {
                    queue.push(*package);
                }
            }
        }
        let is_dependency = !arguments.packages.iter().any(|it| it == name);
        let range = match (&arguments.version_range, is_dependency) {
            (None, _) => bundle.version.to_string(),
            (Some(range), false) => range.clone(),
            (Some(_), true) => {
                let required = required(name);
                dependency_range(&bundle.version, required.iter().map(String::as_str), &[])
            }
        };
        let version = bundle.version.clone();
        plan.operators.push(PlannedOperator {
            name: name.to_owned(),
            version,
            range,
            is_dependency,
        });
    }
    plan
}

/// A requirement as people read it: `bar >= v1.2.3`.
pub(super) fn spelled(requirement: &str) -> String {
    let word = |word: &str| {
        let end = word.find(|letter: char| !matches!(letter, '<' | '>' | '=' | '!'));
        match end.map(|end| word.split_at(end)) {
            Some((sign, version)) if !sign.is_empty() => {
                format!("{sign} v{}", version.trim_start_matches('v'))
            }
            Some(_) | None => word.to_owned(),
        }
    };
    requirement.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What a range with `^` or `~` means, and what to write for patch releases alone; `None` for another
/// one.
pub(super) fn expanded(range: &str) -> Option<String> {
    let (sign, rest) = range.trim().split_at_checked(1)?;
    let numbers: Vec<u64> = rest.split('.').map_while(|it| it.parse().ok()).collect();
    let bound = |at: usize| numbers.get(at).copied().unwrap_or_default();
    let (major, minor, patch) = (bound(0), bound(1), bound(2));
    if numbers.is_empty() || rest.contains([' ', ',', '|', '-']) {
        return None;
    }
    let end = match (sign, numbers.len()) {
        ("^", _) if major > 0 => (major + 1, 0),
        ("^", 1) | ("~", 1) => (major + 1, 0),
        ("^" | "~", _) => (major, minor + 1),
        _ => return None,
    };
    if sign == "^" && major == 0 && minor == 0 && numbers.len() > 2 {
        return None;
    }
    let hint = match sign == "^" && numbers.len() > 1 && end.1 == 0 {
        true => format!("; for patch releases alone, use ~{major}.{minor}"),
        false => String::new(),
    };
    Some(format!("{range} is >= v{major}.{minor}.{patch} < v{}.{}.0{hint}", end.0, end.1))
}

#[cfg(test)]
pub(super) mod tests;
