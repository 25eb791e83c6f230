//! Planning of an Action: its changes of Operators, by the same functions that commands use, or of the
//! release.

mod delete;
mod install;
mod resolution;
mod update;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use plimsoll_api::olm::{OperatorSpec, RemainingObjects};
use plimsoll_content::capability::hint;
use plimsoll_resolve::{CatalogPart, Expressions};
use serde::Deserialize as _;
use serde_json::{Value, json};

use self::delete::deletion;
use self::install::install_request;
use super::attributes::EffectiveAction;
use super::plan::ActionPlan;
use super::release::{self, ObservedRelease};
use super::{ActionFailure, enumerated};
use crate::inventory::OperatorInventory;
use crate::loadout::{ConvergedOperators, converge};
use crate::observed::ObservedOperator;
use crate::query::{needed_packages, unknown_package};
use crate::{OperatorInputs, RequestedOperator, RequestedPackage};
use plimsoll_resolve::requirement::Provider;

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
    let needed = match action.class.as_str() {
        INSTALL | RESOLUTION => needed_packages(&install_request(action)),
        _ => named(action).into_iter().map(|it| it.name).collect(),
    };
    installed.chain(needed).collect()
}

/// Returns the packages that an Action names, each with the versions that will do.
pub fn named(action: &EffectiveAction) -> Vec<RequestedPackage> {
    let package = action.optional_text("package");
    let range = action.optional_text("version").filter(|_| action.class != RELEASE_UPDATE);
    let package = package.map(|name| RequestedPackage { name, range });
    let lists = match action.class.as_str() {
        INSTALL | UPDATE | DELETE | RESOLUTION => ["parameters.packages", "parameters.ranges"],
        // What another class calls so is not known.
        _ => return package.into_iter().collect(),
    };
    let others = lists.into_iter().flat_map(|it| action.texts(it));
    // A text that cannot be read was refused before.
    let others = others.filter_map(|it| it.parse().ok());
    package.into_iter().chain(others).collect()
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
    /// Returns the first of some packages that no catalog has.
    fn unknown<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
        let is_known = |name: &str| self.catalogs.iter().any(|it| it.package(name).is_some());
        names.find(|name| !is_known(name))
    }

    /// Returns whether nothing is changed that would leave requirements unsatisfied.
    fn ensures_constraints(&self) -> bool {
        self.action.is_set("ensureConstraintSatisfiability")
    }

    /// Returns the failure of an Action that names a package that no catalog has.
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
                    set_fields(&mut operator.spec, change);
                    if change_set.is_some() || !change.leaves_change_set.is_empty() {
                        operator.change_set = change_set;
                    }
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
        let changed: BTreeSet<String> = changes.iter().map(|it| it.operator.clone()).collect();
        for change in &mut changes {
            let relied_on = dependencies(after, &change.operator).into_iter();
            change.relies_on = relied_on.filter(|it| !changed.contains(it)).collect();
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
            && self.ensures_constraints()
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

/// Returns the Operators that one depends on, directly or not.
fn dependencies(after: &ConvergedOperators, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut queue = vec![name.to_owned()];
    while let Some(name) = queue.pop() {
        let needed = after.decisions.get(&name).into_iter().flat_map(|it| &it.requirements);
        for requirement in needed {
            if let Some(Provider::Installed(package)) = &requirement.provider
                && found.insert(package.clone())
            {
                queue.push(package.clone());
            }
        }
    }
    found.remove(name);
    found
}

/// Returns the failure of an Action that names an Operator that does not exist.
fn no_operator(name: &str, inventory: &OperatorInventory) -> ActionFailure {
    let hint = hint(name, inventory.observed.keys().map(String::as_str));
    let message = format!("there is no Operator {name}{hint}");
    ActionFailure::new(Reason::OperatorNotFound, message)
}

/// Returns the spec of an Operator after a change; `there` is the Operator if it exists.
pub fn spec_after(change: &PlannedChange, there: Option<&ObservedOperator>) -> OperatorSpec {
    if let Some(manifest) = &change.manifest {
        return OperatorSpec::deserialize(&manifest["spec"]).unwrap_or_default();
    }
    let mut spec = there.map(|it| it.spec.clone()).unwrap_or_default();
    set_fields(&mut spec, change);
    spec
}

/// Sets what a change writes of the spec of an Operator.
fn set_fields(spec: &mut OperatorSpec, change: &PlannedChange) {
    spec.version.clone_from(&change.requested);
    if !change.repository.is_empty() {
        spec.repository.clone_from(&change.repository);
    }
    if let Some(fields) = change.spec_fields.as_ref().and_then(Value::as_object) {
        let mut value = json!(spec);
        for (field, wanted) in fields {
            value[field] = wanted.clone();
        }
        if let Ok(changed) = OperatorSpec::deserialize(value) {
            *spec = changed;
        }
    }
}

#[cfg(test)]
mod tests;
