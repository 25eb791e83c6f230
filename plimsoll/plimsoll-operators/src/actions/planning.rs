//! Planning of an Action: its changes of Operators, by the same functions that commands use, or of the
//! release.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use plimsoll_api::olm::{OperatorSpec, RemainingObjects};
use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::requirement::Provider;
use plimsoll_resolve::{CatalogPart, Expressions};
use semver::Version;
use serde::Deserialize as _;

use super::attributes::EffectiveAction;
use super::plan::ActionPlan;
use super::release::{self, ObservedRelease};
use super::{ActionFailure, enumerated};
use crate::deletion_plan::{DeletionPlan, DeletionRequest, depend, orphans};
use crate::install::{InstallError, InstallPlan, InstallRequest, plan_install};
use crate::inventory::OperatorInventory;
use crate::loadout::{ConvergedOperators, converge};
use crate::planned_change::{awaited, change, removal};
use crate::planner::{is_pinned, takes_back};
use crate::query::{ResolutionOutcome, answer_request, unknown_package};
use crate::update::{OperatorUpdate, UpdateError, UpdatePlan, UpdateRequest, plan_update};
use crate::{OperatorInputs, RequestedOperator, RequestedPackage};

/// The name of the class that installs a package.
pub const INSTALL: &str = "operator-install";
/// The name of the class that requests other versions.
pub const UPDATE: &str = "operator-update";
/// The name of the class that deletes an Operator.
pub const DELETE: &str = "operator-delete";
/// The name of the class that deletes dependencies that no Operator depends on.
pub const AUTOREMOVE: &str = "autoremove";
/// The name of the class that reports what an installation would do.
pub const RESOLUTION: &str = "resolution";
/// The name of the class that requests an update of the release.
pub const RELEASE_UPDATE: &str = "release-update";
/// The name of the class that requests capabilities of the release.
pub const CAPABILITY_ENABLE: &str = "capability-enable";

/// Returns the packages to read from catalogs.
pub fn packages(action: &EffectiveAction, inventory: &OperatorInventory) -> Vec<String> {
    let installed = inventory.operators.keys().cloned();
    installed.chain(action.optional_text("package")).collect()
}

/// Returns the Operators that a plan deletes, which depends on their workloads.
pub fn deleted(action: &EffectiveAction, inventory: &OperatorInventory) -> Vec<String> {
    match action.class.as_str() {
        DELETE | AUTOREMOVE => match deletion(action, inventory, &BTreeMap::new()) {
            Ok(plan) => plan.delete.into_iter().map(|it| it.name).collect(),
            Err(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns whether a class changes the release.
pub fn is_of_release(class: &str) -> bool {
    matches!(class, RELEASE_UPDATE | CAPABILITY_ENABLE)
}

/// Plans an Action. `workloads` are those of the Operators that [`deleted`] returns.
///
/// # Errors
///
/// When it cannot be done.
pub fn plan(
    action: &EffectiveAction,
    inventory: &OperatorInventory,
    release: Option<&ObservedRelease>,
    workloads: &BTreeMap<String, Vec<RemainingObjects>>,
    catalogs: &[CatalogPart],
    expressions: &dyn Expressions,
) -> Result<ActionPlan, ActionFailure> {
    let planner = Planner { action, inventory, catalogs, expressions };
    match action.class.as_str() {
        INSTALL => planner.install(),
        UPDATE => planner.update(),
        DELETE | AUTOREMOVE => planner.delete(workloads),
        RESOLUTION => planner.resolution(),
        RELEASE_UPDATE => release::update(action, release),
        CAPABILITY_ENABLE => release::enable(action, release),
        class => Err(ActionFailure::new(
            Reason::ActionClassNotFound,
            format!("this controller does not serve class {class}"),
        )),
    }
}

struct Planner<'a> {
    action: &'a EffectiveAction,
    inventory: &'a OperatorInventory,
    catalogs: &'a [CatalogPart],
    expressions: &'a dyn Expressions,
}

impl Planner<'_> {
    fn install_request(&self) -> InstallRequest {
        let action = self.action;
        InstallRequest {
            packages: vec![RequestedPackage::named(action.text("package"))],
            version_range: action.optional_text("version"),
            channel: action.optional_text("channel"),
            repository: action.optional_text("repository"),
            no_dependencies: !action.is_set("installDependencies"),
            ..InstallRequest::default()
        }
    }

    fn install_plan(&self, request: &InstallRequest) -> Result<InstallPlan, ActionFailure> {
        let package = self.action.text("package");
        if !self.catalogs.iter().any(|it| it.packages.iter().any(|it| it.name == package)) {
            return Err(self.not_found(package));
        }
        let inputs = self.inventory.inputs(self.expressions);
        plan_install(inputs, self.catalogs, request).map_err(|error| match error {
            InstallError::Invalid(error) => {
                ActionFailure::new(Reason::InvalidAction, error.to_string())
            }
            InstallError::Blocked { name, block } => {
                ActionFailure::new(block.reason, format!("{name}: {}", block.message))
            }
            InstallError::LimitExceeded => ActionFailure::new(
                Reason::ConstraintsUnmet,
                "the dependencies are too complex to be resolved within the limit of work",
            ),
            InstallError::Unsatisfiable(conflict) => {
                ActionFailure::new(Reason::ConstraintsUnmet, conflict.text().trim_end().to_owned())
            }
        })
    }

    fn not_found(&self, package: &str) -> ActionFailure {
        let unavailable: Vec<String> = self.inventory.unavailable.keys().cloned().collect();
        match unavailable.as_slice() {
            [] => ActionFailure::new(
                Reason::PackageNotFound,
                unknown_package(package, self.inventory.offered.iter().map(String::as_str)),
            ),
            names => ActionFailure::new(
                Reason::CatalogUnavailable,
                format!(
                    "no catalog that can be read has package {package}; not read: {}",
                    enumerated(names)
                ),
            ),
        }
    }

    /// Returns whether the package is requested already, in a version that matches.
    fn is_requested(&self) -> bool {
        let (package, version) = (self.action.text("package"), self.action.text("version"));
        let Some(there) = self.inventory.observed.get(package) else { return false };
        let operator = self.inventory.operators.get(package);
        let is_same_pin = || {
            let installed = Version::parse(there.version());
            is_pinned(version)
                && is_pinned(&there.spec.version)
                && Range::parse(version)
                    .is_ok_and(|range| installed.is_ok_and(|it| range.matches(&it)))
        };
        let elsewhere = ["channel", "repository"].iter().any(|it| self.action.get(it).is_some());
        !there.is_deleting
            && !elsewhere
            && operator.is_none_or(|it| !it.is_dependency && !takes_back(version, it))
            && (version.is_empty() || there.spec.version == version || is_same_pin())
    }

    fn install(&self) -> Result<ActionPlan, ActionFailure> {
        let request = self.install_request();
        let install = match self.is_requested() {
            true => InstallPlan::default(),
            false => self.install_plan(&request)?,
        };
        let mut changes = Vec::new();
        // Dependencies come first.
        for it in install.operators.iter().rev() {
            let (manifest, version) = (it.manifest(&request), it.version.to_string());
            let there = self.inventory.observed.get(&it.name);
            let is_requested = there.is_some_and(|there| {
                there.spec.version == it.range
                    && it.change_set.value().is_none()
                    && !it.becomes_requested
            });
            changes.push(match there {
                Some(there) if is_requested && there.version() == version => continue,
                Some(there) if is_requested => awaited(&it.name, there, version, it.is_dependency),
                there => change(&manifest, there, version),
            });
        }
        let mut after = self.after(&changes);
        if self.name_catalogs(&install, &after, &mut changes) {
            after = self.after(&changes);
        }
        self.await_requested(&after, &mut changes);
        let mut explanation = install.edges;
        if changes.is_empty() {
            explanation.push(format!("{} is installed", self.action.text("package")));
        }
        self.finished(changes, explanation, &after)
    }

    /// Sets the planned catalog in Operators that are created, where another one would be preferred. Returns
    /// whether there are any.
    fn name_catalogs(
        &self,
        install: &InstallPlan,
        after: &ConvergedOperators,
        changes: &mut [PlannedChange],
    ) -> bool {
        let mut is_changed = false;
        for planned in &install.operators {
            let operator = after.operators.get(&planned.name);
            let installed = operator.and_then(|it| it.installed.as_ref());
            let change = changes.iter_mut().find(|it| it.operator == planned.name);
            if installed.is_some_and(|it| it.reference.catalog != planned.catalog)
                && let Some(manifest) = change.and_then(|it| it.manifest.as_mut())
            {
                manifest["spec"]["repository"] = planned.catalog.as_str().into();
                is_changed = true;
            }
        }
        is_changed
    }

    /// Adds the Operators to wait for: the package and its dependencies, as far as they were requested before
    /// and are not installed yet.
    fn await_requested(&self, after: &ConvergedOperators, changes: &mut Vec<PlannedChange>) {
        let package = self.action.text("package");
        let mut queue = vec![package.to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(name) = queue.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let needed = after.decisions.get(&name).into_iter().flat_map(|it| &it.requirements);
            for requirement in needed {
                if let Some(Provider::Installed(package)) = &requirement.provider {
                    queue.push(package.clone());
                }
            }
            let expected = after.operators.get(&name).and_then(|it| it.installed.as_ref());
            let (Some(there), Some(expected)) = (self.inventory.observed.get(&name), expected)
            else {
                continue;
            };
            let is_planned = changes.iter().any(|it| it.operator == name);
            if there.version().is_empty() && !is_planned {
                let version = expected.reference.version.clone();
                changes.push(awaited(&name, there, version, name != package));
            }
        }
    }

    fn update(&self) -> Result<ActionPlan, ActionFailure> {
        let (package, version) = (self.action.text("package"), self.action.text("version"));
        let ranges = match (package, version) {
            ("", "") => BTreeMap::new(),
            ("", _) | (_, "") => {
                return Err(ActionFailure::new(
                    Reason::InvalidAction,
                    "give spec.package with spec.version for one Operator, or neither for all of them",
                ));
            }
            (package, version) => BTreeMap::from([(package.to_owned(), version.to_owned())]),
        };
        let request = UpdateRequest {
            latest: self.action.is_set("parameters.latest"),
            ranges,
            together: self.action.is_set("parameters.together"),
            ..UpdateRequest::default()
        };
        let inputs = self.inventory.inputs(self.expressions);
        let plan = plan_update(inputs, self.catalogs, &request).map_err(update_failure)?;
        let mut explanation = Vec::new();
        for it in &plan.operators {
            if let Some(why) = &it.held_back {
                explanation.push(format!("{} stays: {why}", it.name));
            }
        }
        let changes = self.update_changes(&plan);
        let after = self.after(&changes);
        self.finished(changes, explanation, &after)
    }

    /// Returns the changes of an update: those of the Operators that are written, dependencies first, and those of
    /// the others whose version changes.
    fn update_changes(&self, plan: &UpdatePlan) -> Vec<PlannedChange> {
        let version = |it: &OperatorUpdate| {
            it.after.installed.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        let observed = |name: &str| self.inventory.observed.get(name);
        let written = plan.written().into_iter().zip(plan.manifests());
        let written =
            written.map(|(it, manifest)| change(&manifest, observed(&it.name), version(it)));
        let moved = plan.operators.iter().filter(|it| it.is_moved() && !it.is_written());
        let moved = moved.filter_map(|it| {
            let there = observed(&it.name)?;
            Some(PlannedChange {
                requested_before: there.spec.version.clone(),
                version_before: there.version().to_owned(),
                ..awaited(&it.name, there, version(it), it.dependency)
            })
        });
        written.chain(moved).collect()
    }

    fn delete(
        &self,
        workloads: &BTreeMap<String, Vec<RemainingObjects>>,
    ) -> Result<ActionPlan, ActionFailure> {
        let plan = deletion(self.action, self.inventory, workloads)?;
        if self.action.is_set("ensureConstraintSatisfiability")
            && let Some(broken) = plan.broken.first()
        {
            let dependants = plan.dependants_of(&broken.operator);
            let dependants: Vec<String> = dependants.into_iter().map(str::to_owned).collect();
            let depend = depend(&dependants);
            return Err(ActionFailure::new(
                Reason::DependedUpon,
                format!("{} is not deleted: {depend} on it", broken.operator),
            ));
        }
        let changes = plan.delete.iter();
        let changes = changes.map(|it| removal(it, self.inventory.observed.get(&it.name)));
        let explanation = plan.text().lines().map(str::to_owned).collect();
        let broken = plan.broken.iter();
        let broken = broken.map(|it| format!("{} depends on {}", it.dependant, it.operator));
        Ok(ActionPlan {
            changes: changes.collect(),
            explanation,
            unsatisfied: broken.collect(),
            orphans: plan.orphans.clone(),
            result: String::new(),
        })
    }

    fn resolution(&self) -> Result<ActionPlan, ActionFailure> {
        let inputs = self.inventory.inputs(self.expressions);
        let (offered, request) = (&self.inventory.offered, self.install_request());
        let answer = answer_request(inputs, self.catalogs, offered, &request, &|_| None);
        let result = answer.transcript();
        let Some(error) = answer.error else {
            return Ok(ActionPlan { result, ..ActionPlan::default() });
        };
        let reason = match answer.outcome {
            ResolutionOutcome::PackageNotFound => {
                let failure = self.not_found(self.action.text("package"));
                return Err(ActionFailure { answer: Some(result), ..failure });
            }
            ResolutionOutcome::Invalid => Reason::InvalidAction,
            ResolutionOutcome::Solved
            | ResolutionOutcome::Unsatisfiable
            | ResolutionOutcome::LimitExceeded => Reason::ConstraintsUnmet,
        };
        let message =
            if answer.text.is_empty() { error } else { answer.text.trim_end().to_owned() };
        Err(ActionFailure { answer: Some(result), ..ActionFailure::new(reason, message) })
    }

    /// Returns the converged Operators after changes.
    fn after(&self, changes: &[PlannedChange]) -> ConvergedOperators {
        let mut operators = self.inventory.operators.clone();
        for change in changes {
            let change_set = Some(change.change_set.clone()).filter(|it| !it.is_empty());
            match (&change.manifest, operators.get_mut(&change.operator)) {
                (Some(manifest), _) => {
                    let spec = OperatorSpec::deserialize(&manifest["spec"]).unwrap_or_default();
                    let operator = RequestedOperator {
                        // Later than all existing Operators.
                        created: Timestamp::MAX,
                        change_set,
                        ..RequestedOperator::new(spec, change.dependency)
                    };
                    operators.insert(change.operator.clone(), operator);
                }
                (None, Some(operator)) if change.operation == ChangeOperation::Update => {
                    operator.spec.version.clone_from(&change.requested);
                    operator.change_set = change_set;
                    operator.is_dependency &= !change.becomes_requested;
                }
                (None, _) => {}
            }
        }
        let inputs = self.inventory.inputs(self.expressions);
        converge(OperatorInputs { operators: &operators, ..inputs }, self.catalogs)
    }

    /// Completes a plan with its effects. Fails if the Action requires that all requirements are satisfied
    /// and one of a changed Operator is not.
    fn finished(
        &self,
        mut changes: Vec<PlannedChange>,
        explanation: Vec<String>,
        after: &ConvergedOperators,
    ) -> Result<ActionPlan, ActionFailure> {
        for change in &mut changes {
            let operator = after.operators.get(&change.operator);
            if let Some(installed) = operator.and_then(|it| it.installed.as_ref())
                && installed.reference.version == change.version
            {
                change.bundle.clone_from(&installed.reference.name);
                change.channel.clone_from(&installed.reference.channel);
                change.catalog.clone_from(&installed.reference.catalog);
            }
        }
        let mut unsatisfied = Vec::new();
        let mut caused = None;
        for (name, decision) in &after.decisions {
            for it in decision.requirements.iter().filter(|it| it.provider.is_none()) {
                let text = format!("{name} requires {}, but {}", it.text, it.missing);
                if changes.iter().any(|it| it.operator == *name) {
                    caused.get_or_insert_with(|| text.clone());
                }
                unsatisfied.push(text);
            }
        }
        if let Some(text) = caused
            && self.action.is_set("ensureConstraintSatisfiability")
        {
            return Err(ActionFailure::new(Reason::ConstraintsUnmet, text));
        }
        let orphaned = after.decisions.keys().filter(|name| after.is_orphaned(name));
        Ok(ActionPlan {
            changes,
            explanation,
            unsatisfied,
            orphans: orphaned.cloned().collect(),
            result: String::new(),
        })
    }
}

fn deletion(
    action: &EffectiveAction,
    inventory: &OperatorInventory,
    workloads: &BTreeMap<String, Vec<RemainingObjects>>,
) -> Result<DeletionPlan, ActionFailure> {
    let is_autoremove = action.class == AUTOREMOVE;
    let names = if is_autoremove {
        orphans(&inventory.observed).names
    } else {
        let package = action.text("package");
        if !inventory.observed.contains_key(package) {
            let message = format!("there is no Operator {package}");
            return Err(ActionFailure::new(Reason::OperatorNotFound, message));
        }
        BTreeSet::from([package.to_owned()])
    };
    Ok(DeletionPlan::new(&DeletionRequest {
        operators: &inventory.observed,
        workloads,
        conversions: &BTreeMap::new(),
        of_release: &inventory.of_release,
        names: &names,
        cascade: is_autoremove || action.is_set("parameters.cascade"),
        keep_crds: false,
    }))
}

fn update_failure(error: UpdateError) -> ActionFailure {
    match error {
        UpdateError::UnknownOperator { name } => {
            ActionFailure::new(Reason::OperatorNotFound, format!("there is no Operator {name}"))
        }
        UpdateError::NotOffered { block, .. } => ActionFailure::new(block.reason, block.message),
        UpdateError::Blocked { name, block } => {
            ActionFailure::new(block.reason, format!("{name}: {}", block.message))
        }
        UpdateError::Unsatisfiable(explanation) => {
            ActionFailure::new(Reason::ConstraintsUnmet, explanation.text().trim_end().to_owned())
        }
        UpdateError::LimitExceeded => ActionFailure::new(
            Reason::ConstraintsUnmet,
            "the dependencies are too complex to be resolved within the limit of work",
        ),
    }
}
