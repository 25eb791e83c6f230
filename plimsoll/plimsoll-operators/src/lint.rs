//! Lint of a directory of Operators, before it is applied (OPR-19).
//!
//! The Operators are converged with the decisions that the controller makes ([`converge`]). A finding is an
//! unwanted decision with the line that causes it. No rule is implemented a second time here.

mod configured;
mod moves;
mod ranges;
mod sets;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_api::olm::{CHANGE_SET_ANNOTATION, CrdUpgradeSafety, InstallConstraints};
use plimsoll_content::diagnostic::{
    Diagnostic, FieldEdit, FieldProblem, LoadoutCode, Severity, has_errors,
};
use plimsoll_resolve::offer::{OfferRequest, UpgradeEdges, offers};
use plimsoll_resolve::requirement::{CheckedRequirement, InstalledPackages, RequiredNames};
use plimsoll_resolve::{Bundle, CatalogPart, ClusterFacts, Expressions, Package};

pub use self::configured::{ConfiguredOperator, configured};
use self::moves::ConvergedWays;
pub use self::moves::{BundleMove, moves};
use super::installed::{required, unmet};
use super::loadout::{ConvergedOperators, DeclaredOperator, Loadout, ObjectPlace, converge};
use super::planner::{ChosenBundles, Outcome};
use super::{
    OperatorAction, OperatorBlock, OperatorDecision, OperatorInputs, RequestedOperator,
    version_text,
};

/// The field with the change set of an Operator.
const CHANGE_SET_FIELD: &str = "metadata.annotations.olm.io/change-set";

/// The inputs of a lint.
#[derive(Clone, Copy)]
pub struct LintInputs<'a> {
    /// The Operators that are to be applied.
    pub loadout: &'a Loadout,
    /// The path of the directory or file that declares them, as findings show it.
    pub path: &'a str,
    /// The Operators that were applied before, for rules about changes; `None` if unknown. Operators of the
    /// cluster take precedence.
    pub base: Option<&'a Loadout>,
    /// The Operators of the cluster; empty without a cluster. Those that the loadout does not declare are
    /// unchanged.
    pub current: &'a BTreeMap<String, RequestedOperator>,
    /// The catalogs, with the packages that the loadout can reach.
    pub catalogs: &'a [CatalogPart],
    /// The catalogs that exist and cannot be read, with the reason.
    pub unavailable: &'a BTreeMap<String, String>,
    /// What is said of packages that no catalog has, by name, with the names that may be meant; of others it is only
    /// said that no catalog has them.
    pub unknown: &'a BTreeMap<String, String>,
    /// The facts about the cluster.
    pub facts: &'a ClusterFacts,
    /// What users of definitions cannot follow in the updates that [`moves()`] returns: sentences without a full
    /// stop, by Operator.
    pub unsafe_definitions: &'a BTreeMap<String, Vec<String>>,
    /// What the bundles of the Operators that [`configured()`] returns refuse of their specs, by Operator.
    pub refused_fields: &'a BTreeMap<String, Vec<FieldProblem>>,
    /// The evaluator of constraint expressions.
    pub expressions: &'a dyn Expressions,
}

impl<'a> LintInputs<'a> {
    fn deciding(self, operators: &'a BTreeMap<String, RequestedOperator>) -> OperatorInputs<'a> {
        let Self { unavailable, facts, expressions, .. } = self;
        OperatorInputs { operators, unavailable, facts, expressions }
    }

    /// Returns the converged Operators of the previous loadout; `None` if it is unknown.
    fn converged_base(self) -> Option<ConvergedOperators> {
        let operators = self.base?.requested();
        let Self { catalogs, unavailable, facts, expressions, .. } = self;
        let inputs = OperatorInputs { operators: &operators, unavailable, facts, expressions };
        Some(converge(inputs, catalogs))
    }

    /// Returns the Operators once the loadout is applied, with what is installed of each until then. `base` are
    /// the converged Operators of the previous loadout.
    fn applied(self, base: Option<&ConvergedOperators>) -> BTreeMap<String, RequestedOperator> {
        let Self { loadout, current, .. } = self;
        let before = match base {
            Some(converged) if current.is_empty() => &converged.operators,
            Some(_) | None => current,
        };
        let mut operators = current.clone();
        for (name, mut operator) in loadout.requested() {
            if let Some(there) = before.get(&name) {
                operator.installed.clone_from(&there.installed);
                operator.owned.clone_from(&there.owned);
                operator.created = there.created;
            }
            operators.insert(name, operator);
        }
        operators
    }
}

/// Returns all findings, by file and line.
pub fn lint(inputs: LintInputs<'_>) -> Vec<Diagnostic> {
    let loadout = inputs.loadout;
    let base_converged = inputs.converged_base();
    let operators = inputs.applied(base_converged.as_ref());
    let ways = ConvergedWays::new(inputs.deciding(&operators), inputs.catalogs);
    let converged = &ways.converged;
    let waiting = converged.decisions.iter().filter(|(_, it)| {
        matches!(&it.action, OperatorAction::Blocked(block) if block.reason == Reason::ConstraintsUnmet)
    });
    let waiting: BTreeSet<&str> = waiting.map(|(name, _)| name.as_str()).collect();
    // The result if unmet requirements blocked no installation shows which requirements are unmet.
    let relaxed = (!waiting.is_empty()).then(|| {
        let mut operators = converged.operators.clone();
        for (name, operator) in &mut operators {
            if waiting.contains(name.as_str()) {
                operator.spec.constraint_policy.install = InstallConstraints::Warn;
            }
        }
        converge(inputs.deciding(&operators), inputs.catalogs)
    });
    let unchanged = ChosenBundles::new();
    let mut linter = Linter {
        inputs,
        converged,
        ways: &ways,
        outcome: Outcome::new(inputs.deciding(&converged.operators), inputs.catalogs, &unchanged),
        relaxed: relaxed.as_ref(),
        base: base_converged.as_ref(),
        together: sets::deadlocks(inputs, converged),
        findings: loadout.defects.clone(),
    };
    if loadout.operators.is_empty() && !has_errors(&loadout.defects) {
        let message = "nothing here declares an Operator of olm.io/v1";
        linter.findings.push(LoadoutCode::NoOperators.diagnostic(inputs.path, message));
    }
    let mut names = BTreeMap::new();
    for declared in &loadout.operators {
        match names.get(declared.name.as_str()) {
            None => {
                names.insert(declared.name.as_str(), declared);
                linter.operator(declared);
            }
            Some(first) => linter.duplicate(declared, first),
        }
    }
    let mut findings = linter.findings;
    findings.sort();
    findings.dedup();
    findings
}

struct Linter<'a> {
    inputs: LintInputs<'a>,
    /// The converged Operators.
    converged: &'a ConvergedOperators,
    /// The same, with the way of each.
    ways: &'a ConvergedWays,
    /// The bundles of the converged Operators.
    outcome: Outcome<'a>,
    /// The converged Operators if unmet requirements blocked no installation; `None` if they block none.
    relaxed: Option<&'a ConvergedOperators>,
    /// The converged Operators of the previous loadout; `None` if it is unknown.
    base: Option<&'a ConvergedOperators>,
    /// The Operators that can only be updated together, with the annotation of their change set.
    together: BTreeMap<String, String>,
    findings: Vec<Diagnostic>,
}

impl<'a> Linter<'a> {
    fn add(
        &mut self,
        declared: &DeclaredOperator,
        field: &str,
        code: LoadoutCode,
        message: String,
    ) -> &mut Diagnostic {
        let DeclaredOperator { place, lines, .. } = declared;
        let file = &self.inputs.loadout.files[declared.file];
        let package = declared.name.clone();
        let found = file.diagnostic(place, lines, field, code, message);
        self.findings.push_mut(Diagnostic { package, ..found })
    }

    fn duplicate(&mut self, declared: &DeclaredOperator, first: &DeclaredOperator) {
        let file = &self.inputs.loadout.files[first.file].path;
        let (line, _) = first.position("metadata.name");
        let name = &declared.name;
        let message = format!(
            "{name} is declared a second time; the first is in {file}:{line}, and applying both leaves \
             the last"
        );
        let finding = self.add(declared, "metadata.name", LoadoutCode::Duplicate, message);
        finding.help = Some("remove one of the two".to_owned());
    }

    fn operator(&mut self, declared: &DeclaredOperator) {
        let name = declared.name.as_str();
        let Some(decision) = self.converged.decisions.get(name) else { return };
        if let OperatorAction::Blocked(block) = &decision.action {
            self.blocked(declared, block);
        } else if let Some(block) = &decision.held_back
            && block.reason == Reason::UpgradeBlocked
        {
            self.blocked(declared, block);
        } else if decision.action == OperatorAction::Keep
            && let Some(block) = sources::unknown(self.inputs, self.converged, name)
        {
            self.blocked(declared, &block);
        }
        if let Some(message) = &decision.incompatibility {
            self.add(declared, "spec.version", LoadoutCode::ClusterUnfit, message.clone());
        }
        if let Some(message) = &decision.deprecation {
            let (field, code) = ("spec.version", LoadoutCode::Deprecated);
            let help = format!("choose another version or package of what {name} does");
            self.add(declared, field, code, message.clone()).help = Some(help);
        }
        if let Some((message, help)) = sets::surplus(self.converged, name) {
            let finding = self.add(declared, CHANGE_SET_FIELD, LoadoutCode::ChangeSet, message);
            finding.help = Some(help);
        }
        self.requirements(declared, decision);
        let refused = self.inputs.refused_fields.get(name);
        for FieldProblem { field, message } in refused.into_iter().flatten() {
            let message = format!("{field}: {message}");
            self.add(declared, field, LoadoutCode::Unreadable, message);
        }
        self.definitions(declared);
        self.risks(declared);
        if self.converged.is_orphaned(name) {
            let message = format!("{name} is a dependency, and nothing depends on it");
            let finding = self.add(declared, "metadata.name", LoadoutCode::Orphan, message);
            finding.help = Some(format!(
                "delete the Operator, or keep it with the label {}: {}",
                plimsoll_api::olm::INSTALLED_AS_LABEL,
                plimsoll_api::olm::INSTALLED_AS_USER
            ));
        }
        self.version(declared, decision);
    }

    /// Reports the block of a decision.
    fn blocked(&mut self, declared: &DeclaredOperator, block: &OperatorBlock) {
        use LoadoutCode::{
            ChangeSet, ClusterUnfit, Conflict, Deadlock, NoVersion, NotUpgradable, PackageNotFound,
            UnknownSource,
        };
        let name = declared.name.as_str();
        if let Some(set) = self.together.get(name) {
            let message = format!("{}; it can only move together with others", block.message);
            let help = format!("annotate all of them with {CHANGE_SET_ANNOTATION}: {set}");
            let edit = edit(declared, &["metadata", "annotations", CHANGE_SET_ANNOTATION], set);
            let finding = self.add(declared, "spec.version", Deadlock, message);
            (finding.help, finding.edit) = (Some(help), Some(edit));
            return;
        }
        let (field, code, help) = match block.reason {
            Reason::PackageNotFound | Reason::CatalogUnavailable => {
                let text = "choose one of those that `kubectl operator search` lists".to_owned();
                ("metadata.name", PackageNotFound, Some(text))
            }
            Reason::NoMatchingVersion | Reason::VersionSkipped | Reason::InvalidVersionRange => {
                let newest = self.newest(name);
                let text = |version| format!("set spec.version to a range that has {version}");
                ("spec.version", NoVersion, newest.map(text))
            }
            Reason::ChannelNotFound => ("spec.channel", UnknownSource, None),
            Reason::CatalogNotFound | Reason::AmbiguousCatalog => {
                ("spec.repository", UnknownSource, None)
            }
            Reason::InvalidChangeSet => (CHANGE_SET_FIELD, ChangeSet, None),
            Reason::ChangeSetIncomplete => {
                let text = "annotate the others, or set the number of members to that of these";
                (CHANGE_SET_FIELD, ChangeSet, Some(text.to_owned()))
            }
            Reason::ClusterIncompatible => ("spec.version", ClusterUnfit, None),
            Reason::Conflict => ("metadata.name", Conflict, None),
            Reason::ConstraintsUnmet => {
                self.waits(declared, block);
                return;
            }
            // All other reasons block an update.
            _ => ("spec.version", NotUpgradable, None),
        };
        let message = block.explained(name, self.inputs.unknown).to_owned();
        self.add(declared, field, code, message).help = help;
    }

    /// Reports an installation that is blocked by requirements: they are missing, or are blocked by this one.
    fn waits(&mut self, declared: &DeclaredOperator, block: &OperatorBlock) {
        let relaxed = self.relaxed.and_then(|it| it.decisions.get(&declared.name));
        let missing =
            |it: &OperatorDecision| it.requirements.iter().any(|it| it.provider.is_none());
        match relaxed {
            Some(decision) if missing(decision) => self.requirements(declared, decision),
            Some(_) | None => {
                let message = format!("{}, which waits for this one", block.message);
                let help = "set spec.constraintPolicy.install of one of them to Warn".to_owned();
                let finding = self.add(declared, "metadata.name", LoadoutCode::Deadlock, message);
                finding.help = Some(help);
            }
        }
    }

    /// Reports unmet requirements.
    fn requirements(&mut self, declared: &DeclaredOperator, decision: &OperatorDecision) {
        let name = declared.name.as_str();
        let is_enforced = declared.spec.constraint_policy.install == InstallConstraints::Enforce;
        let operators = self.relaxed.unwrap_or(self.converged);
        let subject = operators.operators.get(name).and_then(|it| it.installed.as_ref());
        let missing = decision.requirements.iter().enumerate();
        let missing: Vec<(usize, &CheckedRequirement)> =
            missing.filter(|(_, it)| it.provider.is_none()).collect();
        for (at, requirement) in missing {
            let mut message = unmet(name, requirement);
            let removed = self.removed_provider(name, requirement);
            let instead = requirement.package.as_ref().and_then(|it| operators.operators.get(it));
            let code = match (&removed, instead.and_then(|it| it.installed.as_ref())) {
                (Some(removed), _) => {
                    message = format!("{message}: {removed} was removed from the loadout");
                    LoadoutCode::NeededRemoved
                }
                (None, Some(_)) => LoadoutCode::DependencyOutOfRange,
                (None, None) => LoadoutCode::MissingDependency,
            };
            let provider = subject.and_then(|it| self.provider(name, &it.bundle, at));
            let help = provider.map(|(package, version)| {
                match (&removed, operators.operators.contains_key(&package)) {
                    (Some(_), _) => format!("keep {package}, or remove {name} as well"),
                    (None, true) => format!("set spec.version of {package} to {version}"),
                    (None, false) => {
                        format!("add an Operator {package}, such as version {version}")
                    }
                }
            });
            let finding = self.add(declared, "metadata.name", code, message);
            finding.help = help;
            if is_enforced {
                finding.severity = Severity::Error;
            }
        }
    }

    /// Returns the Operator that satisfied a requirement before and is no longer in the loadout.
    fn removed_provider(&self, name: &str, requirement: &CheckedRequirement) -> Option<String> {
        let satisfied = |decision: &OperatorDecision| {
            let mut dependants = decision.dependants.iter();
            dependants.any(|it| it.operator == name && it.requirement == requirement.text)
        };
        let before = &self.base?.decisions;
        let (provider, _) = before
            .iter()
            .find(|(other, it)| self.inputs.loadout.operator(other).is_none() && satisfied(it))?;
        Some(provider.clone())
    }

    /// Returns a package and version of the catalogs that satisfies the requirement with the index `at`.
    fn provider(&self, name: &str, bundle: &Bundle, at: usize) -> Option<(String, String)> {
        let LintInputs { catalogs, facts, expressions, .. } = self.inputs;
        let names = RequiredNames::of(bundle);
        let provides = |it: &Bundle| it.provides.iter().any(|api| names.apis.contains(api));
        let may_satisfy = |it: &&Package| {
            names.is_open
                || names.packages.contains(it.name.as_str())
                || it.bundles.iter().any(provides)
        };
        let packages = catalogs.iter().flat_map(|it| &it.packages).filter(may_satisfy);
        let packages: BTreeSet<&str> = packages.map(|it| it.name.as_str()).collect();
        packages.into_iter().filter(|it| *it != name).find_map(|package| {
            let found = offers(catalogs, facts, &fresh(package));
            let usable = found.offers.iter().filter(|it| it.ineligible.is_none());
            let satisfies = |candidate: &Bundle| {
                let installed = InstalledPackages::new(BTreeMap::from([(package, candidate)]));
                let checked = installed.check(name, bundle, facts, expressions);
                checked.get(at).is_some_and(|it| it.provider.is_some())
            };
            let offer = usable.into_iter().find(|it| satisfies(it.bundle))?;
            Some((package.to_owned(), offer.bundle.version.to_string()))
        })
    }

    /// Returns the version of a package that a new installation prefers.
    fn newest(&self, package: &str) -> Option<String> {
        let found = offers(self.inputs.catalogs, self.inputs.facts, &fresh(package));
        let newest = found.offers.iter().find(|it| it.ineligible.is_none())?;
        Some(version_text(&newest.bundle.version.to_string()))
    }

    /// Reports definitions whose change users cannot follow.
    fn definitions(&mut self, declared: &DeclaredOperator) {
        let problems = self.inputs.unsafe_definitions.get(&declared.name);
        let is_enforced = declared.spec.crd_upgrade_safety == CrdUpgradeSafety::Enforce;
        for problem in problems.into_iter().flatten() {
            let code = LoadoutCode::UnsafeDefinition;
            let finding = self.add(declared, "spec.version", code, problem.clone());
            finding.help = is_enforced
                .then(|| "set spec.crdUpgradeSafety to Warn to update all the same".to_owned());
        }
    }

    /// Reports what the steps of an update risk, other than what is unmet in the end, too.
    fn risks(&mut self, declared: &DeclaredOperator) {
        let moves = self.ways.moves(declared);
        if moves.iter().all(|it| it.risks.is_empty()) {
            return;
        }
        let decisions = self.converged.decisions.iter();
        let unmet = decisions.flat_map(|(name, decision)| {
            let missing = decision.requirements.iter().filter(|it| it.provider.is_none());
            missing.map(move |it| required(name, it))
        });
        let unmet: Vec<String> = unmet.collect();
        let is_left = |risk: &str| unmet.iter().any(|it| risk.starts_with(it.as_str()));
        for moved in &moves {
            for risk in moved.risks.iter().filter(|it| !is_left(it)) {
                let message = format!("{} takes a risk: {risk}", moved.text());
                let code = LoadoutCode::UnsafeDefinition;
                let help =
                    "set spec.constraintPolicy.upgrade to Enforce to have it wait".to_owned();
                self.add(declared, "spec.version", code, message).help = Some(help);
            }
        }
    }

    /// Reports problems of the requested version.
    fn version(&mut self, declared: &DeclaredOperator, decision: &OperatorDecision) {
        let name = declared.name.as_str();
        let installed = self.converged.operators.get(name).and_then(|it| it.installed.as_ref());
        let Some(installed) = installed else { return };
        let version = installed.bundle.version.to_string();
        let is_unpinned = declared.spec.version.trim().is_empty() && !declared.has_unread_version;
        if is_unpinned && declared.spec.revision.is_none() {
            let message = format!(
                "{name} has no version: today it becomes {}, another day another one",
                version_text(&version)
            );
            let finding = self.add(declared, "metadata.name", LoadoutCode::Unpinned, message);
            finding.help = Some(format!("set spec.version to {version}"));
            finding.edit = Some(edit(declared, &["spec", "version"], &version));
        } else if declared.is_dependency
            && !decision.dependants.is_empty()
            && let Some((message, range)) = ranges::problem(&self.outcome, declared)
        {
            let finding = self.add(declared, "spec.version", LoadoutCode::DependencyRange, message);
            finding.help = Some(format!("set spec.version to {range:?}"));
            finding.edit = Some(edit(declared, &["spec", "version"], &range));
        }
    }
}

fn fresh(package: &str) -> OfferRequest<'_> {
    OfferRequest {
        package,
        channel: "",
        catalog: "",
        range: None,
        installed: None,
        edges: UpgradeEdges::Graph,
    }
}

fn edit(declared: &DeclaredOperator, field: &[&str], value: &str) -> FieldEdit {
    let keys = declared.place.keys(field);
    FieldEdit { path: keys.into_iter().map(str::to_owned).collect(), value: value.to_owned() }
}

/// Applies the edits of findings. The files of the result have the changes.
pub fn apply_edits(loadout: &Loadout, findings: &[Diagnostic]) -> Loadout {
    let mut fixed = loadout.clone();
    for Diagnostic { file, document, edit, .. } in findings {
        let file = loadout.files.iter().position(|it| it.path == *file);
        let (Some(file), Some(document), Some(edit)) = (file, *document, edit) else { continue };
        let path: Vec<&str> = edit.path.iter().map(String::as_str).collect();
        let place = ObjectPlace { document, path: Vec::new() };
        // What cannot be changed is still reported.
        let _ = fixed.set_field(file, &place, &path, &edit.value);
    }
    Loadout::read(fixed.files)
}

#[cfg(test)]
mod tests;
