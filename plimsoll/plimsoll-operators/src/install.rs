//! Installation planning: the Operators that requested packages need, with their dependencies (OPR-15,
//! OPR-16).

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::printable::on_one_line;
use plimsoll_resolve::{
    Api, BundleExclusion, CatalogPart, Explanation, ExplanationStepKind, FollowedChannel,
    PackageRequest, Problem, ProviderChoice, Query, Resolution, ResolutionOverrides, Solution,
    solve,
};
use semver::Version;
use serde_json::Value;

use super::loadout::converge;
use super::manifest::{ChangeSetEdit, OperatorManifest};
use super::planner::{self, ChosenBundle, Outcome, ProblemRequest, catalog_name, is_pinned};
use super::{OperatorInputs, RequestedOperator, RequestedPackage};

/// A request to install packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallRequest {
    /// The packages, some with a range of their own.
    pub packages: Vec<RequestedPackage>,
    /// The range of the packages that have none of their own, which the Operators then follow; without it,
    /// the newest version is pinned.
    pub version_range: Option<String>,
    /// The Operators of packages as files declare them, by name: they are written so, in the chosen version.
    pub declared: BTreeMap<String, Value>,
    /// The channel to install the packages from; any without it.
    pub channel: Option<String>,
    /// The name of the catalog to install the packages from; any without it.
    pub repository: Option<String>,
    /// The namespace to install the packages into; without it, the one that their bundles suggest.
    pub namespace: Option<String>,
    /// What becomes of objects that exist, as `spec.collisionProtection`; without it, they stop the
    /// installation.
    pub collision_protection: Option<String>,
    /// The chosen providers of requirements: `PACKAGE=PACKAGE` or `GROUP/VERSION/KIND=PACKAGE`.
    pub providers: Vec<String>,
    /// The excluded packages and bundles: `PACKAGE` or `PACKAGE/BUNDLE`.
    pub exclude: Vec<String>,
    /// The catalog to prefer for dependencies; `same` for that of `repository`.
    pub prefer_repository: Option<String>,
    /// Whether to install the packages without their dependencies.
    pub no_dependencies: bool,
    /// Whether to refuse packages that there are Operators of.
    pub only_new: bool,
}

impl InstallRequest {
    /// Returns the names of the packages.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().map(|it| it.name.as_str())
    }

    /// Returns the requested range of a package; `None` if it is not requested or any version will do.
    pub fn range_of(&self, name: &str) -> Option<&str> {
        let package = self.packages.iter().find(|it| it.name == name)?;
        package.range.as_deref().or(self.version_range.as_deref())
    }

    /// Returns the channel to install a package from; `None` for any.
    pub fn channel_of(&self, name: &str) -> Option<&str> {
        self.declared_field(name, "channel").or(self.channel.as_deref())
    }

    /// Returns the name of the catalog to install a package from; `None` for any.
    pub fn repository_of(&self, name: &str) -> Option<&str> {
        self.declared_field(name, "repository").or(self.repository.as_deref())
    }

    /// Returns a field of the spec that a file declares; `None` if it is absent or empty.
    fn declared_field(&self, name: &str, field: &str) -> Option<&str> {
        let value = self.declared.get(name)?["spec"][field].as_str()?;
        Some(value).filter(|it| !it.is_empty())
    }
}

/// The result of planning an installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallPlan {
    /// The requested packages.
    pub packages: Vec<String>,
    /// The dependencies between packages, a line each.
    pub edges: Vec<String>,
    /// The overrides of the request that had an effect, a line each.
    pub overrides: Vec<String>,
    /// The meanings of the requested ranges that need an explanation.
    pub ranges: Vec<String>,
    /// The Operators to create: the requested ones first, then their dependencies.
    pub operators: Vec<PlannedOperator>,
    /// The defects of the catalogs, a sentence each.
    pub warnings: Vec<String>,
}

/// An Operator to create, or to request another version of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedOperator {
    /// The name of the Operator, which is that of its package.
    pub name: String,
    /// The version that will be installed.
    pub version: Version,
    /// The version or range for its spec.
    pub range: String,
    /// Whether it is a dependency of other Operators.
    pub is_dependency: bool,
    /// The name of the catalog that has the version.
    pub catalog: String,
}

impl InstallPlan {
    /// Returns the Operators as they are written for a request, dependencies first.
    pub fn manifests(&self, request: &InstallRequest) -> Vec<OperatorManifest> {
        self.operators.iter().rev().map(|it| it.manifest(request)).collect()
    }

    /// Returns the plan as text for users: the dependencies, and the Operators to create.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.edges.iter().map(|it| format!("* {it}")).collect();
        lines.extend(self.overrides.iter().map(|it| format!("* override: {it}")));
        lines.extend(self.ranges.iter().cloned());
        match self.operators.as_slice() {
            [] => lines.push(format!("Nothing to do: {} is installed", self.packages.join(", "))),
            operators => {
                lines.push("Generate Operator resources for:".to_owned());
                lines.extend(operators.iter().map(|it| format!("- {}@v{}", it.name, it.version)));
            }
        }
        lines.extend(self.warnings.iter().map(|it| format!("WARNING: {it}")));
        lines.iter().map(|it| format!("{}\n", on_one_line(it))).collect()
    }
}

impl InstallConflict {
    /// Returns the plan of installing the packages all the same; `None` if they conflict with each other.
    pub fn overridden(&self) -> Option<InstallPlan> {
        self.alone.as_ref().map(|it| InstallPlan { edges: Vec::new(), ..it.clone() })
    }

    /// Returns a sentence that says what is refused.
    pub fn message(&self) -> String {
        let packages = self.packages.join(", ");
        format!("installing {packages} could leave your system in an inconsistent state")
    }

    /// Returns the conflict as text for users: the dependencies, the exclusions, and what would resolve it.
    pub fn text(&self) -> String {
        let edges = self.alone.iter().flat_map(|it| &it.edges).cloned();
        let steps = self.explanation.conflicts.iter().flat_map(|it| &it.steps);
        let exclusions = steps.filter(|it| it.kind == ExplanationStepKind::Exclusion);
        let preferences = self
            .preferences
            .iter()
            .map(|it| format!("{it} cannot be satisfied: without it there is a solution"));
        let lines = edges.chain(exclusions.map(|it| it.text.clone())).chain(preferences);
        let lines: String = lines.map(|it| format!("* {}\n", on_one_line(&it))).collect();
        lines + &self.explanation.text()
    }
}

impl PlannedOperator {
    /// Returns the Operator as it is written for a request.
    pub fn manifest(&self, request: &InstallRequest) -> OperatorManifest {
        let requested =
            |value: Option<&str>| value.filter(|_| !self.is_dependency).map(str::to_owned);
        OperatorManifest {
            name: self.name.clone(),
            version: self.range.clone(),
            is_dependency: self.is_dependency,
            channel: requested(request.channel_of(&self.name)),
            repository: requested(request.repository_of(&self.name)),
            namespace: requested(request.namespace.as_deref()),
            collision_protection: requested(request.collision_protection.as_deref()),
            change_set: ChangeSetEdit::Keep,
            declared: request.declared.get(&self.name).cloned().unwrap_or_default(),
        }
    }
}

/// The reason that there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallError {
    /// A chosen provider cannot be read; the text is the reason.
    InvalidProvider(String),
    /// There is an Operator of a package, and the request is only for new ones; the text is its name.
    Exists(String),
    /// The packages conflict with each other or with installed Operators.
    Unsatisfiable(Box<InstallConflict>),
    /// The resolver reached its limit of work before it had an answer.
    LimitExceeded,
}

/// A conflict that prevents the installation of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallConflict {
    /// The requested packages.
    pub packages: Vec<String>,
    /// The explanation of the conflict.
    pub explanation: Explanation,
    /// The plan if nothing were installed; `None` if the packages conflict with each other.
    pub alone: Option<InstallPlan>,
    /// The overrides of the request without which there is a solution, as command-line options.
    pub preferences: Vec<String>,
}

/// Plans an installation beside the Operators of `inputs`.
///
/// # Errors
///
/// When the packages cannot be installed.
pub fn plan_install(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &InstallRequest,
) -> Result<InstallPlan, InstallError> {
    let providers: Result<Vec<_>, _> =
        request.providers.iter().map(|it| choices(it, catalogs)).collect();
    let providers: Vec<ProviderChoice> = providers?.into_iter().flatten().collect();
    let exists = |it: &&str| request.only_new && inputs.operators.contains_key(*it);
    if let Some(name) = request.names().find(exists) {
        return Err(InstallError::Exists(name.to_owned()));
    }
    let planner = Planner { inputs, catalogs, request, providers };
    let converged = converge(inputs, catalogs);
    let present = OperatorInputs { operators: &converged.operators, ..inputs };
    let problem = planner.problem(present);
    match solve(&problem, inputs.expressions) {
        Resolution::Solved(solution) => Ok(planner.plan(present, &solution)),
        Resolution::LimitExceeded => Err(InstallError::LimitExceeded),
        Resolution::Unsatisfiable(explanation) => {
            let nothing = OperatorInputs { operators: &BTreeMap::new(), ..inputs };
            let alone = match solve(&planner.problem(nothing), inputs.expressions) {
                Resolution::Solved(solution) => Some(planner.plan(nothing, &solution)),
                Resolution::Unsatisfiable(_) | Resolution::LimitExceeded => None,
            };
            let packages = request.names().map(str::to_owned).collect();
            let preferences = planner.unsatisfiable_preferences(&problem);
            let conflict = InstallConflict { packages, explanation, alone, preferences };
            Err(InstallError::Unsatisfiable(Box::new(conflict)))
        }
    }
}

/// Returns the meaning of a range with `^` or `~`, and the range for patch releases only; `None` for other
/// ranges.
pub fn expanded(range: &str) -> Option<String> {
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

struct Planner<'a> {
    inputs: OperatorInputs<'a>,
    catalogs: &'a [CatalogPart],
    request: &'a InstallRequest,
    providers: Vec<ProviderChoice>,
}

impl Planner<'_> {
    /// Returns the problem: the requested packages beside the installed ones.
    fn problem(&self, inputs: OperatorInputs<'_>) -> Problem {
        let asked = self.request;
        let request = |package: &RequestedPackage| PackageRequest {
            package: package.name.clone(),
            channel: asked.channel_of(&package.name).map(str::to_owned),
            version: asked.range_of(&package.name).map(str::to_owned),
            catalog: asked.repository_of(&package.name).map(catalog_name),
            ignore_dependencies: asked.no_dependencies,
            ..PackageRequest::default()
        };
        let follows = |_: &str, operator: &RequestedOperator| {
            let there = &operator.installed.as_ref()?.reference;
            let follows = !is_pinned(&operator.spec.version) && !there.channel.is_empty();
            follows.then(|| FollowedChannel {
                channel: there.channel.clone(),
                catalog: Some(catalog_name(&there.catalog)),
            })
        };
        let exclusion = |text: &String| {
            let (package, bundle) = match text.split_once('/') {
                Some((package, bundle)) => (package, Some(bundle.to_owned())),
                None => (text.as_str(), None),
            };
            BundleExclusion { package: package.to_owned(), versions: None, bundle }
        };
        let preferred = match (asked.prefer_repository.as_deref(), &asked.repository) {
            (Some("same"), Some(name)) => vec![catalog_name(name)],
            // Dependencies are taken from the catalog of the package that requires them by default.
            (Some("same"), None) | (None, _) => Vec::new(),
            (Some(name), _) => vec![catalog_name(name)],
        };
        let names: Vec<String> = asked.names().map(str::to_owned).collect();
        let request = ProblemRequest {
            catalogs: self.catalogs.to_vec(),
            requests: asked.packages.iter().map(request).collect(),
            overrides: ResolutionOverrides {
                providers: self.providers.clone(),
                exclude: asked.exclude.iter().map(exclusion).collect(),
                prefer_catalogs: preferred,
            },
            follows: &follows,
            installs: &names,
        };
        planner::problem(inputs, request)
    }

    /// Returns the overrides of the request without one of which a problem has a solution, as command-line
    /// options.
    fn unsatisfiable_preferences(&self, problem: &Problem) -> Vec<String> {
        let is_solved = |overrides: ResolutionOverrides| {
            let query = Query { overrides, ..problem.query.clone() };
            let problem = Problem { query, ..problem.clone() };
            matches!(solve(&problem, self.inputs.expressions), Resolution::Solved(_))
        };
        let mut preferences = Vec::new();
        let asked = problem.query.overrides.clone();
        for provider in &self.request.providers {
            let Ok(chosen) = choices(provider, self.catalogs) else { continue };
            let mut without = asked.clone();
            without.providers.retain(|it| !chosen.contains(it));
            if is_solved(without) {
                preferences.push(format!("--use {provider}"));
            }
        }
        for (text, exclusion) in self.request.exclude.iter().zip(&asked.exclude) {
            let mut without = asked.clone();
            without.exclude.retain(|it| it != exclusion);
            if is_solved(without) {
                preferences.push(format!("--exclude {text}"));
            }
        }
        preferences
    }

    /// Returns the plan that a solution leads to.
    fn plan(&self, inputs: OperatorInputs<'_>, solution: &Solution) -> InstallPlan {
        let asked = self.request;
        let chosen = planner::chosen(self.catalogs, solution);
        let after = Outcome::new(inputs, self.catalogs, &chosen);
        let mut plan = InstallPlan {
            packages: asked.names().map(str::to_owned).collect(),
            overrides: solution.overrides.clone(),
            ranges: asked.names().filter_map(|it| expanded(asked.range_of(it)?)).collect(),
            warnings: solution.warnings.clone(),
            ..InstallPlan::default()
        };
        plan.ranges.dedup();
        let mut queue: Vec<&str> = asked.names().collect();
        let mut seen: BTreeSet<&str> = queue.iter().copied().collect();
        let mut at = 0;
        while let Some(name) = queue.get(at).copied() {
            at += 1;
            plan.operators.extend(self.operator(&after, chosen.get(name), name));
            let Some(ChosenBundle { bundle, .. }) = chosen.get(name) else { continue };
            if asked.no_dependencies {
                continue;
            }
            for requirement in after.requirements(name) {
                let text = spelled(&requirement.text);
                plan.edges.push(format!("{name} v{} depends on {text}", bundle.version));
                queue.extend(after.provider(&requirement).filter(|it| seen.insert(it)));
            }
        }
        plan
    }

    /// Returns an Operator to create, or to request another version of; `None` if it is unchanged.
    fn operator(
        &self,
        after: &Outcome<'_>,
        chosen: Option<&ChosenBundle<'_>>,
        name: &str,
    ) -> Option<PlannedOperator> {
        let asked = self.request;
        let present = after.inputs.operators.get(name);
        let is_dependency = !asked.names().any(|it| it == name);
        let (range, catalog) =
            match (chosen, asked.range_of(name).or(asked.version_range.as_deref())) {
                (Some(chosen), Some(range)) if !is_dependency => (range.to_owned(), chosen.catalog),
                (Some(chosen), range) => {
                    let present = present.filter(|_| is_dependency);
                    (after.version(name, present, range.is_none()), chosen.catalog)
                }
                (None, _) if is_dependency => {
                    let catalog = &present?.installed.as_ref()?.reference.catalog;
                    (after.revised(name, present?)?, catalog.as_str())
                }
                (None, _) => return None,
            };
        Some(PlannedOperator {
            name: name.to_owned(),
            version: after.bundles.get(name)?.version.clone(),
            range,
            is_dependency,
            catalog: catalog.to_owned(),
        })
    }
}

/// Parses a chosen provider: of an API by its name, or of all APIs that a package provides.
fn choices(text: &str, catalogs: &[CatalogPart]) -> Result<Vec<ProviderChoice>, InstallError> {
    let invalid = |message: String| Err(InstallError::InvalidProvider(message));
    let Some((provided, package)) = text.split_once('=') else {
        return invalid(format!(
            "`{text}` is not of the form PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE"
        ));
    };
    let names: Vec<&str> = provided.split('/').collect();
    let apis: BTreeSet<Api> = match names.as_slice() {
        [group, version, kind] => BTreeSet::from([Api {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
        }]),
        [name] => {
            let packages = catalogs.iter().flat_map(|it| &it.packages);
            let bundles = packages.filter(|it| it.name == *name).flat_map(|it| &it.bundles);
            bundles.flat_map(|it| it.provides.clone()).collect()
        }
        _ => return invalid(format!("`{provided}` is neither a package nor GROUP/VERSION/KIND")),
    };
    if apis.is_empty() {
        return invalid(format!(
            "`--use {text}`: no catalog has a package {provided} that provides an API"
        ));
    }
    let choice = |api| ProviderChoice { api, package: package.to_owned(), catalog: None };
    Ok(apis.into_iter().map(choice).collect())
}

/// Returns a requirement as users read it: `bar >= v1.2.3`.
pub fn spelled(requirement: &str) -> String {
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
