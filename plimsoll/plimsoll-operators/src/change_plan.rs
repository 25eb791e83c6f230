//! Plans of changes of Operators as one value, whichever operation they are of: what `install`, `update`,
//! `delete` and Actions show in all formats (OPR-15 to OPR-18, OPR-23).

mod effects;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ConditionStatus;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::Dependant;
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionStatus, ChangeOperation, PlannedChange};
use plimsoll_resolve::CatalogPart;
use serde::Serialize;

use self::effects::{BundleVersion, Effects, name_bundle};
use crate::OperatorInputs;
use crate::deletion_plan::{DeletionPlan, PlannedDeletion, PossibleOrphan};
use crate::install::{InstallPlan, InstallRequest, PlannedOperator, expected, meanings};
use crate::manifest::OperatorManifest;
use crate::observed::ObservedOperator;
use crate::planned_change::{change, digest, removal};
use crate::update::{OperatorUpdate, OperatorVersion, UpdatePlan};

/// The changes of Operators that an operation makes, and their effects.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangePlan {
    /// The operation.
    pub operation: PlannedOperation,
    /// The digest of the changes, computed as `status.planDigest` of an Action.
    pub digest: String,
    /// The annotation of the change set of changed Operators; absent if they change one by one, or in several change
    /// sets, which the changes have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_set: Option<String>,
    /// The changes in their order: what is installed or updated begins with dependencies, what is deleted with
    /// dependants.
    pub changes: Vec<OperatorChange>,
    /// The other Operators that the plan concerns, which stay as they are, by name.
    pub kept: Vec<KeptOperator>,
    /// The dependencies that lead to a changed Operator or from it, by the names of the dependant and of the
    /// other Operator.
    pub dependencies: Vec<PlannedDependency>,
    /// The requirements that are not satisfied afterwards.
    pub unsatisfied: Vec<UnsatisfiedRequirement>,
    /// The Operators that were installed as dependencies and that no Operator depends on afterwards, by name.
    pub orphans: Vec<String>,
    /// The overrides of the request that had an effect, a line each.
    pub overrides: Vec<String>,
    /// What users should know besides, a line each, such as the meanings of requested ranges.
    pub notes: Vec<String>,
    /// The defects of the catalogs, a sentence each.
    pub warnings: Vec<String>,
}

/// The operation that a plan is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PlannedOperation {
    /// Packages are installed with their dependencies.
    Install,
    /// Other versions are requested.
    Update,
    /// Operators are deleted.
    Delete,
    /// An Action changes Operators or the release.
    #[default]
    Action,
}

/// A change of an Operator, or of the release.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorChange {
    /// The change as an Action has it.
    #[serde(flatten)]
    pub planned: PlannedChange,
    /// The Operators that depend on it, with their requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<Dependant>,
    /// The requirements of its version before that are not satisfied beside what is requested, for which it moves;
    /// empty if it is requested itself, or if others require its new version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub displaced_by: Vec<String>,
    /// The reason that it is not updated to a higher version, as a sentence without a full stop; absent if it
    /// has the highest one, or if none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
    /// What goes with it and what is kept; absent if it is not deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<PlannedDeletion>,
}

/// An Operator that stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptOperator {
    /// The name of the Operator.
    pub operator: String,
    /// `spec.version`; empty for any version.
    pub requested: String,
    /// The installed version; empty for none.
    pub version: String,
    /// Whether it was installed as a dependency of other Operators.
    pub dependency: bool,
    /// The Operators that depend on it, with their requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<Dependant>,
    /// The reason that it is not updated, as a sentence without a full stop; absent if it has the highest
    /// version, or if no update was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
}

/// A dependency of one Operator on another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedDependency {
    /// The name of the Operator that depends on the other.
    pub operator: String,
    /// The name of the other Operator, which satisfies the requirement.
    pub on: String,
    /// The version of the first one that has the requirement.
    pub version: String,
    /// The requirement, such as `bar >=1.2.7`.
    pub requirement: String,
    /// Whether the plan breaks it: the other Operator is deleted, and the first one is not.
    pub broken: bool,
}

/// A requirement that no Operator satisfies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnsatisfiedRequirement {
    /// The name of the Operator that has the requirement.
    pub operator: String,
    /// The requirement, such as `bar >=1.2.7`.
    pub requirement: String,
    /// What is missing, in a clause that follows "but".
    pub missing: String,
}

impl UnsatisfiedRequirement {
    /// Returns the requirement as a sentence without a full stop.
    pub fn text(&self) -> String {
        let Self { operator, requirement, missing } = self;
        format!("{operator} requires {requirement}, but {missing}")
    }
}

impl ChangePlan {
    /// Returns the plan of an operation that changes nothing.
    pub fn nothing(operation: PlannedOperation) -> Self {
        Self { operation, digest: digest(&[]), ..Self::default() }
    }

    /// Returns the plan of an installation beside the Operators of `inputs`.
    pub fn of_install(
        plan: &InstallPlan,
        request: &InstallRequest,
        inputs: OperatorInputs<'_>,
        catalogs: &[CatalogPart],
    ) -> Self {
        let present = expected(inputs, catalogs, request);
        let installation = |it: &PlannedOperator| {
            let manifest = it.manifest(request);
            let mut planned = written(&manifest, it.before.as_ref(), it.version.to_string());
            planned.catalog.clone_from(&it.catalog);
            name_bundle(&mut planned, catalogs);
            planned
        };
        // Dependencies come first.
        let changes: Vec<PlannedChange> = plan.operators.iter().rev().map(installation).collect();
        let versions: Vec<BundleVersion<'_>> = changes.iter().map(BundleVersion::of).collect();
        let inputs = OperatorInputs { operators: &present, ..inputs };
        let Effects { dependencies, unsatisfied } =
            Effects::new(inputs, catalogs, &versions, &names(&changes));
        let orphans: Vec<String> = plan.orphans.keys().cloned().collect();
        let concerned = dependencies.iter().flat_map(|it| [&it.operator, &it.on]);
        let concerned = concerned.chain(unsatisfied.iter().map(|it| &it.operator)).chain(&orphans);
        let mut concerned: BTreeSet<&str> = concerned.map(String::as_str).collect();
        for it in &changes {
            concerned.remove(it.operator.as_str());
        }
        let kept = concerned.into_iter().filter_map(|name| {
            let operator = present.get(name)?;
            Some(KeptOperator {
                dependency: operator.is_dependency,
                required_by: required_by(name, &dependencies),
                ..kept(name, &OperatorVersion::of(operator))
            })
        });
        let mut all = Self {
            change_set: plan.change_set.clone(),
            kept: kept.collect(),
            unsatisfied: unsatisfied.into_iter().collect(),
            orphans,
            overrides: plan.overrides.clone(),
            notes: plan.ranges.iter().chain(&plan.notes).cloned().collect(),
            warnings: plan.warnings.clone(),
            ..Self::with(PlannedOperation::Install, changes, dependencies)
        };
        for (change, it) in all.changes.iter_mut().zip(plan.operators.iter().rev()) {
            change.displaced_by.clone_from(&it.displaced_by);
        }
        all
    }

    /// Returns the plan of an update beside the Operators of `inputs`; `ranges` are the requested ones, by name
    /// of the Operator.
    pub fn of_update(
        plan: &UpdatePlan,
        ranges: &BTreeMap<String, String>,
        inputs: OperatorInputs<'_>,
        catalogs: &[CatalogPart],
    ) -> Self {
        let manifests = plan.written().into_iter().zip(plan.manifests());
        let changes = manifests.map(|(it, manifest)| {
            let planned = written(&manifest, it.before.as_ref(), installed(&it.after));
            let repository = it.repository.clone().filter(|_| !it.is_new());
            PlannedChange { repository: repository.unwrap_or_default(), ..planned }
        });
        let moved = plan.operators.iter().filter(|it| it.is_moved() && !it.is_written());
        let mut changes: Vec<PlannedChange> = changes.chain(moved.map(awaited)).collect();
        changes.iter_mut().for_each(|it| name_bundle(it, catalogs));
        let mut stays = Vec::new();
        for it in plan.operators.iter().filter(|it| !it.is_moved() && !it.is_written()) {
            let held_back = it.held_back.clone();
            let kept = kept(&it.name, &it.after);
            stays.push(KeptOperator { dependency: it.dependency, held_back, ..kept });
        }
        let versions = changes.iter().map(BundleVersion::of);
        let versions: Vec<BundleVersion<'_>> =
            versions.chain(stays.iter().map(BundleVersion::of_kept)).collect();
        let Effects { dependencies, unsatisfied } =
            Effects::new(inputs, catalogs, &versions, &names(&changes));
        for it in &mut stays {
            it.required_by = required_by(&it.operator, &dependencies);
        }
        let orphans = plan.operators.iter().filter(|it| it.orphaned);
        let meanings = meanings(ranges.values().map(String::as_str)).into_iter();
        let mut all = Self {
            change_set: plan.change_set.clone(),
            kept: stays,
            unsatisfied: unsatisfied.into_iter().collect(),
            orphans: orphans.map(|it| it.name.clone()).collect(),
            notes: meanings.chain(plan.notes.iter().cloned()).collect(),
            ..Self::with(PlannedOperation::Update, changes, dependencies)
        };
        for change in &mut all.changes {
            let update = plan.operators.iter().find(|it| it.name == change.planned.operator);
            change.held_back = update.and_then(|it| it.held_back.clone());
            change.displaced_by = update.map(|it| it.displaced_by.clone()).unwrap_or_default();
        }
        all
    }

    /// Returns the plan of a deletion of some of the Operators.
    pub fn of_deletion(
        plan: &DeletionPlan,
        operators: &BTreeMap<String, ObservedOperator>,
    ) -> Self {
        let changes = plan.delete.iter().map(|it| removal(it, operators.get(&it.name)));
        let changes: Vec<PlannedChange> = changes.collect();
        let dependencies = effects::of_deletion(plan, operators);
        let broken = dependencies.iter().filter(|it| it.broken);
        let unsatisfied = broken.map(|it| UnsatisfiedRequirement {
            operator: it.operator.clone(),
            requirement: it.requirement.clone(),
            missing: format!("{} is deleted", it.on),
        });
        let concerned = plan.needed.iter().map(|it| &it.name).chain(&plan.orphans);
        let concerned = concerned.chain(plan.possible_orphans.iter().map(|it| &it.name));
        let concerned = concerned.chain(plan.broken.iter().map(|it| &it.dependant));
        let concerned: BTreeSet<&String> = concerned.collect();
        let kept = concerned.into_iter().map(|name| {
            let there = operators.get(name);
            KeptOperator {
                operator: name.clone(),
                requested: there.map(|it| it.spec.version.clone()).unwrap_or_default(),
                version: there.map(|it| it.version().to_owned()).unwrap_or_default(),
                dependency: there.is_some_and(|it| it.is_dependency),
                required_by: required_by(name, &dependencies),
                held_back: None,
            }
        });
        let mut all = Self {
            kept: kept.collect(),
            unsatisfied: unsatisfied.collect(),
            orphans: plan.orphans.clone(),
            notes: plan.possible_orphans.iter().map(PossibleOrphan::text).collect(),
            ..Self::with(PlannedOperation::Delete, changes, dependencies)
        };
        for (change, deletion) in all.changes.iter_mut().zip(&plan.delete) {
            change.deletion = Some(deletion.clone());
        }
        all
    }

    /// Returns the plan of an Action, as far as its status has it; without a digest if there is none yet. The
    /// notes end with the reason that it failed, if it did.
    pub fn of_action(status: &ActionStatus) -> Self {
        let is_failure = |it: &&MetaCondition| {
            it.type_ == ACTION_SUCCEEDED && it.status == ConditionStatus::False
        };
        let failure = status.conditions.iter().find(is_failure).map(|it| it.message.clone());
        Self {
            digest: status.plan_digest.clone(),
            notes: status.explanation.iter().cloned().chain(failure).collect(),
            ..Self::with(PlannedOperation::Action, status.plan.clone(), BTreeSet::new())
        }
    }

    /// Returns the plan that makes changes between which there are dependencies.
    fn with(
        operation: PlannedOperation,
        changes: Vec<PlannedChange>,
        dependencies: BTreeSet<PlannedDependency>,
    ) -> Self {
        let digest = digest(&changes);
        let changes = changes.into_iter().map(|planned| OperatorChange {
            required_by: required_by(&planned.operator, &dependencies),
            planned,
            displaced_by: Vec::new(),
            held_back: None,
            deletion: None,
        });
        let (changes, dependencies) = (changes.collect(), dependencies.into_iter().collect());
        Self { operation, digest, changes, dependencies, ..Self::default() }
    }
}

/// Returns the change that writes an Operator; `before` are its versions if it exists.
fn written(
    manifest: &OperatorManifest,
    before: Option<&OperatorVersion>,
    version: String,
) -> PlannedChange {
    let created = change(manifest, None, version);
    match before {
        None => created,
        Some(before) => PlannedChange {
            operation: ChangeOperation::Update,
            requested_before: before.requested.clone(),
            version_before: installed(before),
            manifest: None,
            ..created
        },
    }
}

/// Returns the change of an Operator whose version changes although it is not written.
fn awaited(update: &OperatorUpdate) -> PlannedChange {
    PlannedChange {
        operator: update.name.clone(),
        operation: ChangeOperation::Await,
        requested_before: update.after.requested.clone(),
        requested: update.after.requested.clone(),
        version_before: update.before.as_ref().map(installed).unwrap_or_default(),
        version: installed(&update.after),
        dependency: update.dependency,
        ..PlannedChange::default()
    }
}

/// Returns an Operator that stays in a version.
fn kept(name: &str, version: &OperatorVersion) -> KeptOperator {
    KeptOperator {
        operator: name.to_owned(),
        requested: version.requested.clone(),
        version: installed(version),
        ..KeptOperator::default()
    }
}

/// Returns the installed version as text; empty if none is installed.
fn installed(version: &OperatorVersion) -> String {
    version.installed.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Returns the names of changed Operators.
fn names(changes: &[PlannedChange]) -> BTreeSet<&str> {
    changes.iter().map(|it| it.operator.as_str()).collect()
}

/// Returns the Operators that depend on one.
fn required_by(name: &str, dependencies: &BTreeSet<PlannedDependency>) -> Vec<Dependant> {
    let on_it = dependencies.iter().filter(|it| it.on == name);
    let dependants = on_it
        .map(|it| Dependant { operator: it.operator.clone(), requirement: it.requirement.clone() });
    dependants.collect()
}

#[cfg(test)]
mod tests;
