//! Installation planning: the Operators that requested packages need, with their dependencies (OPR-15,
//! OPR-16).

mod check;
mod compared;
mod expansion;
mod expected;
mod forced;
mod overrides;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::printable::on_one_line;
use plimsoll_resolve::{CatalogPart, Explanation, ExplanationStepKind, ResolutionOverrides};
use semver::Version;
use serde_json::Value;

use self::check::choices;
pub use self::check::{RequestError, unknown_package};
pub use self::expansion::expanded;
pub(crate) use self::expansion::meanings;
pub(crate) use self::expected::expected;
use self::overrides::exclusion;
use super::comparison::OperatorVersion;
use super::manifest::{ChangeSetEdit, OperatorManifest};
use super::planner::{
    self, ChangeRequest, Outcome, Proposal, ProposalError, Wanted, catalog_name, for_commands,
    held, propose, without_installed,
};
use super::{OperatorBlock, OperatorInputs, RequestedOperator, RequestedPackage};

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
    /// What is written otherwise than it was requested, what stays unsatisfied, and what is not declared, a line
    /// each.
    pub notes: Vec<String>,
    /// The Operators to create or change: the requested ones first, then their dependencies.
    pub operators: Vec<PlannedOperator>,
    /// The annotation of the change set of those that only move together; `None` without such, or if there are
    /// several change sets.
    pub change_set: Option<String>,
    /// The Operators that no Operator depends on afterwards, with their versions, by name: those that were installed
    /// as dependencies, and those that another one depended on before and that no person asked for.
    pub orphans: BTreeMap<String, OperatorVersion>,
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
    /// The versions before; `None` if it is created.
    pub before: Option<OperatorVersion>,
    /// Whether other Operators need it, and it was not requested itself.
    pub is_dependency: bool,
    /// The requirements of its version before for which it moves, as an update has them.
    pub displaced_by: Vec<String>,
    /// Whether it exists as a dependency, and its label says from now on that a person asked for it.
    pub becomes_requested: bool,
    /// The name of the catalog that has the version.
    pub catalog: String,
    /// The channel for its spec; `None` if that is unchanged, or the default one.
    pub channel: Option<String>,
    /// The name of the catalog for its spec; `None` if that is unchanged, or any will do.
    pub repository: Option<String>,
    /// The namespace for its spec; `None` if that is unchanged, or the one that its bundle suggests.
    pub namespace: Option<String>,
    /// The change of the annotation of its change set.
    pub change_set: ChangeSetEdit,
}

impl InstallPlan {
    /// Returns the Operators as they are written for a request, dependencies first.
    pub fn manifests(&self, request: &InstallRequest) -> Vec<OperatorManifest> {
        self.operators.iter().rev().map(|it| it.manifest(request)).collect()
    }

    /// Returns the plan as text for users: the dependencies, the Operators to create or change, and orphans.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.edges.iter().map(|it| format!("* {it}")).collect();
        lines.extend(self.operators.iter().filter_map(PlannedOperator::displacement));
        lines.extend(self.overrides.iter().map(|it| format!("* override: {it}")));
        lines.extend(self.notes.iter().map(|it| format!("* {it}")));
        lines.extend(self.ranges.iter().cloned());
        match self.operators.as_slice() {
            [] => {
                let verb = if self.packages.len() == 1 { "is" } else { "are" };
                lines.push(format!("Nothing to do: {} {verb} installed", self.packages.join(", ")));
            }
            operators => {
                lines.push("Generate Operator resources for:".to_owned());
                lines.extend(operators.iter().map(|it| format!("- {}", self.row(it))));
                lines.extend(self.orphan_rows());
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
        let held = self.held.iter().cloned();
        let undeclared =
            self.undeclared.iter().map(|it| format!("{it} of the cluster is not declared here"));
        let lines = edges.chain(exclusions.map(|it| it.text.clone()));
        let lines = lines.chain(preferences).chain(held).chain(undeclared);
        let lines: String = lines.map(|it| format!("* {}\n", on_one_line(&it))).collect();
        lines + &self.explanation.text()
    }
}

/// The reason that there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallError {
    /// The request names something that does not exist, or a package twice.
    Invalid(RequestError),
    /// The controller would not install a package, or may not change its Operator.
    Blocked {
        /// The name of the Operator.
        name: String,
        /// The blocker.
        block: OperatorBlock,
    },
    /// The packages conflict with each other or with installed Operators.
    Unsatisfiable(Box<InstallConflict>),
    /// The resolver reached its limit of work before it had an answer.
    LimitExceeded,
}

impl InstallError {
    /// Returns the error with another sentence about a package that does not exist, if it is about one: `explain`
    /// returns what is said where more than a part of the catalogs is known; `None` to leave it.
    #[must_use]
    pub fn explained(mut self, explain: impl FnOnce(&str) -> Option<String>) -> Self {
        if let Self::Invalid(RequestError::NoPackage { name, unknown, .. }) = &mut self
            && let Some(sentence) = explain(name.as_str())
        {
            *unknown = sentence;
        }
        self
    }
}

impl From<RequestError> for InstallError {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

/// A conflict that prevents the installation of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallConflict {
    /// The requested packages.
    pub packages: Vec<String>,
    /// The explanation of the conflict.
    pub explanation: Explanation,
    /// The plan of installing the packages all the same, as they are without other Operators; `None` if they
    /// conflict with each other.
    pub alone: Option<InstallPlan>,
    /// The dependencies that exist and do not get the version that is needed, with the reason, a line each.
    pub held: Vec<String>,
    /// The overrides of the request without which there is a solution, as command-line options.
    pub preferences: Vec<String>,
    /// The Operators of the cluster that have a part in it and are not declared by the files.
    pub undeclared: Vec<String>,
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
    plan_install_locked(inputs, catalogs, request, &BTreeSet::new())
}

/// Plans an installation beside Operators of which some are `locked`: their bundle is installed only according to a
/// lock of files, and what is written of them also leads to the plan where nothing is installed.
///
/// # Errors
///
/// When the packages cannot be installed.
pub fn plan_install_locked(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &InstallRequest,
    locked: &BTreeSet<String>,
) -> Result<InstallPlan, InstallError> {
    request.check(inputs, catalogs)?;
    let present = without_installed(inputs.operators, locked);
    let mut planner = Planner::new(inputs, catalogs, request)?;
    planner.present = &present;
    let expected = expected(inputs, catalogs, request);
    for name in request.names() {
        let (operator, wanted) = (inputs.operators.get(name), &planner.change.wanted[name]);
        if let Some(block) = operator.and_then(|it| held(name, it, wanted)) {
            return Err(InstallError::Blocked { name: name.to_owned(), block });
        }
    }
    match planner.proposed(&expected) {
        Ok(plan) => Ok(plan),
        Err(ProposalError::LimitExceeded) => Err(InstallError::LimitExceeded),
        Err(ProposalError::Blocked { name, block }) => Err(InstallError::Blocked { name, block }),
        Err(ProposalError::Unsatisfiable(explanation)) => {
            let undeclared = expected.iter().filter(|(_, it)| it.is_undeclared);
            let steps: Vec<_> =
                explanation.conflicts.iter().flat_map(|it| &it.steps).map(|it| &it.text).collect();
            let is_part = |(name, it): &(&String, &RequestedOperator)| {
                let version = it.installed.as_ref().map(|it| it.bundle.version.to_string());
                let text = format!("{name} {}", version.unwrap_or_default());
                steps.iter().any(|it| it.contains(&text))
            };
            let alone = Planner::new(inputs, catalogs, request)?.unexplained();
            let alone = alone.proposed(&BTreeMap::new()).ok();
            let forced = alone.map(|it| planner.beside(it, &expected));
            let (alone, held) = forced.map(|it| (Some(it.plan), it.held)).unwrap_or_default();
            let conflict = InstallConflict {
                packages: request.names().map(str::to_owned).collect(),
                alone,
                held,
                preferences: planner.unsatisfiable_preferences(&expected),
                undeclared: undeclared.filter(is_part).map(|(name, _)| name.clone()).collect(),
                explanation: for_commands(explanation, true, inputs.operators),
            };
            Err(InstallError::Unsatisfiable(Box::new(conflict)))
        }
    }
}

struct Planner<'a> {
    inputs: OperatorInputs<'a>,
    /// The Operators with what is really installed of them.
    present: &'a BTreeMap<String, RequestedOperator>,
    catalogs: &'a [CatalogPart],
    request: &'a InstallRequest,
    change: ChangeRequest,
}

impl<'a> Planner<'a> {
    fn new(
        inputs: OperatorInputs<'a>,
        catalogs: &'a [CatalogPart],
        request: &'a InstallRequest,
    ) -> Result<Self, RequestError> {
        let providers: Result<Vec<_>, _> =
            request.providers.iter().map(|it| choices(it, catalogs)).collect();
        let preferred = match (request.prefer_repository.as_deref(), &request.repository) {
            (Some("same"), Some(name)) => vec![catalog_name(name)],
            // Dependencies are taken from the catalog of the package that requires them by default.
            (Some("same"), None) | (None, _) => Vec::new(),
            (Some(name), _) => vec![catalog_name(name)],
        };
        let wanted = request.names().map(|name| {
            let wanted = Wanted {
                range: request.range_of(name).map(str::to_owned),
                follows: true,
                channel: request.channel_of(name).map(str::to_owned),
                repository: request.repository_of(name).map(str::to_owned),
                namespace: request.namespace.clone(),
            };
            (name.to_owned(), wanted)
        });
        let change = ChangeRequest {
            wanted: wanted.collect(),
            is_install: true,
            pins: request.names().all(|it| request.range_of(it).is_none()),
            overrides: ResolutionOverrides {
                providers: providers?.into_iter().flatten().collect(),
                exclude: request.exclude.iter().map(|it| exclusion(it)).collect(),
                prefer_catalogs: preferred,
            },
            no_dependencies: request.no_dependencies,
            ..ChangeRequest::default()
        };
        Ok(Self { inputs, present: inputs.operators, catalogs, request, change })
    }

    /// Returns the planner without explanations, which cost many times as much as a plan.
    fn unexplained(mut self) -> Self {
        self.change.is_unexplained = true;
        self
    }

    /// Plans the installation beside some Operators.
    fn proposed(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
    ) -> Result<InstallPlan, ProposalError> {
        let present = if operators.is_empty() { operators } else { self.present };
        let inputs = OperatorInputs { operators, ..self.inputs };
        let proposal = propose(inputs, present, self.catalogs, &self.change, &|_| {})?;
        let mut plan = self.plan(inputs, &proposal);
        plan.note_requested();
        plan.note_kept(operators);
        plan.notes.extend(self.unoffered(inputs));
        Ok(plan)
    }

    /// Returns the plan that a proposal leads to.
    fn plan(&self, inputs: OperatorInputs<'_>, proposal: &Proposal) -> InstallPlan {
        let asked = self.request;
        let chosen = planner::chosen(self.catalogs, &proposal.solution);
        let after = Outcome::new(inputs, self.catalogs, &chosen);
        let mut plan = InstallPlan {
            packages: asked.names().map(str::to_owned).collect(),
            overrides: self.overrides(proposal),
            ranges: meanings(asked.names().filter_map(|it| asked.range_of(it))),
            notes: proposal.notes.iter().chain(&proposal.unsatisfied).cloned().collect(),
            change_set: proposal.change_set().cloned(),
            warnings: proposal.solution.warnings.clone(),
            ..InstallPlan::default()
        };
        plan.ranges.dedup();
        let mut queue: Vec<&str> = asked.names().collect();
        let mut seen: BTreeSet<&str> = queue.iter().copied().collect();
        // Those that leave a change set that ends are changed, too.
        let is_changed = |name: &str| {
            let leaves = |it: &RequestedOperator| {
                let edit = proposal.change_set_edit(name, inputs.operators.get(name));
                !it.is_undeclared && edit == ChangeSetEdit::Remove
            };
            self.becomes_requested(name, inputs.operators.get(name))
                || proposal.written.contains(name)
                || proposal.operators.get(name).is_some_and(leaves)
        };
        let mut others = proposal.operators.keys().map(String::as_str).filter(|it| is_changed(it));
        let mut at = 0;
        loop {
            let next = queue.get(at).copied().or_else(|| others.find(|it| seen.insert(it)));
            let Some(name) = next else { break };
            at += 1;
            if queue.len() < at {
                queue.push(name);
            }
            if is_changed(name) {
                plan.operators.extend(self.operator(proposal, &after, chosen.get(name), name));
            }
            if asked.no_dependencies {
                continue;
            }
            for requirement in after.requirements(name) {
                let Some(provider) = after.provider(&requirement) else { continue };
                // What is as it was needs no line.
                if chosen.contains_key(name) || proposal.written.contains(provider) {
                    let version = &after.bundles[name].version;
                    let text = spelled(&requirement.text);
                    plan.edges.push(format!("{name} v{version} depends on {text}"));
                }
                if inputs.operators.get(provider).is_some_and(|it| it.is_undeclared) {
                    plan.notes.push(format!("{provider} of the cluster is not declared here"));
                }
                queue.extend(Some(provider).filter(|it| seen.insert(it)));
            }
        }
        self.compare(&mut plan, inputs, &chosen);
        plan
    }
}

/// Returns a requirement as users read it: `bar >= v1.2.3`. One that is no package in a range is returned as it is.
pub fn spelled(requirement: &str) -> String {
    let Some((name, range)) = requirement.split_once(' ') else { return requirement.to_owned() };
    let is_number = |text: &str| text.starts_with(|it: char| it.is_ascii_digit());
    if !is_number(range.trim_start_matches(['<', '>', '=', '!', ' ', 'v'])) {
        return requirement.to_owned();
    }
    let word = |word: &str| {
        let version = word.trim_start_matches(['<', '>', '=', '!']);
        let number = version.trim_start_matches('v');
        match word.strip_suffix(version) {
            Some("") if is_number(number) => format!("v{number}"),
            Some(sign) if is_number(number) => format!("{sign} v{number}"),
            Some(_) | None => word.to_owned(),
        }
    };
    format!("{name} {}", range.split(' ').map(word).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests;
