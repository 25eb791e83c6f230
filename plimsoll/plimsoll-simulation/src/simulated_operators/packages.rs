//! The operators of bundles, simulated: events in, actions out; no client and no clock.
//!
//! # The course of such an operator
//!
//! * A Deployment that belongs to an Operator (label `olm.io/operator`) becomes available some time
//!   after each of its changes.
//! * While one of its Deployments is available, the operator reconciles the objects of the kinds that
//!   its definitions define: each has a finalizer, which the operator removes when the object is being
//!   deleted. Once its Deployments are gone, no finalizer is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_api::{GroupKind, ObjectKey};
use serde_json::Value;

use super::faults::{PackageFault, PackageFaultKind};

/// The finalizer of objects that a simulated operator reconciles.
pub(super) const FINALIZER: &str = "simulation.plimsoll.io/operand";

/// Something that happened to what belongs to an Operator.
#[derive(Debug)]
pub(super) enum PackageEvent {
    /// A Deployment is there, or changed.
    Deployment {
        /// Which.
        key: ObjectKey,
        /// Name of the Operator, which is that of its package.
        package: String,
        /// The tags of its images.
        versions: BTreeSet<String>,
        /// Its generation.
        generation: i64,
        /// Whether that generation has rolled out.
        rolled_out: bool,
    },
    /// A Deployment is gone.
    DeploymentGone(ObjectKey),
    /// A kind is defined.
    Definition {
        /// Which.
        kind: GroupKind,
        /// Name of the Operator.
        package: String,
    },
    /// A kind is not defined any more.
    DefinitionGone(GroupKind),
    /// An object of a defined kind is there, or changed.
    Operand {
        /// Which.
        key: ObjectKey,
        /// What matters of it.
        operand: Operand,
    },
    /// An object of a defined kind is gone.
    OperandGone(ObjectKey),
}

/// Something to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PackageAction {
    /// Report that a Deployment has rolled out.
    RollOut(ObjectKey),
    /// Replace the finalizers of an object, as it was seen.
    SetFinalizers(ObjectKey, Operand),
}

/// An object of a kind that an Operator defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operand {
    /// The resource version that it was seen at.
    pub(super) resource_version: String,
    /// Whether it is being deleted.
    pub(super) is_deleting: bool,
    /// Its finalizers.
    pub(super) finalizers: Vec<String>,
}

/// The state machine of the operators of all bundles. Times are spans since its start.
#[derive(Debug)]
pub(super) struct Packages {
    faults: Vec<PackageFault>,
    delay: Duration,
    deployments: BTreeMap<ObjectKey, PackageDeployment>,
    definitions: BTreeMap<GroupKind, String>,
    /// With the resource version at which each was last acted upon.
    operands: BTreeMap<ObjectKey, (Operand, Option<String>)>,
}

#[derive(Debug)]
struct PackageDeployment {
    package: String,
    versions: BTreeSet<String>,
    generation: i64,
    rolled_out: bool,
    /// When its rollout is reported; `None` once that was requested.
    due: Option<Duration>,
}

impl Packages {
    pub(super) fn new(faults: Vec<PackageFault>, delay: Duration) -> Self {
        Self {
            faults,
            delay,
            deployments: BTreeMap::new(),
            definitions: BTreeMap::new(),
            operands: BTreeMap::new(),
        }
    }

    /// Records what happened.
    pub(super) fn observe(&mut self, event: PackageEvent, now: Duration) {
        match event {
            PackageEvent::Deployment { key, package, versions, generation, rolled_out } => {
                let before = self.deployments.get(&key).filter(|it| it.generation == generation);
                let due = match before {
                    _ if rolled_out => None,
                    None => Some(now + self.delay),
                    // What was reported is not there any more.
                    Some(before) => before.due.or(Some(now)),
                };
                let deployment =
                    PackageDeployment { package, versions, generation, rolled_out, due };
                self.deployments.insert(key, deployment);
            }
            PackageEvent::DeploymentGone(key) => {
                self.deployments.remove(&key);
            }
            PackageEvent::Definition { kind, package } => {
                self.definitions.insert(kind, package);
            }
            PackageEvent::DefinitionGone(kind) => {
                self.operands.retain(|key, _| key.group_kind() != kind);
                self.definitions.remove(&kind);
            }
            PackageEvent::Operand { key, operand } => {
                let acted = self.operands.remove(&key).and_then(|(_, acted)| acted);
                self.operands.insert(key, (operand, acted));
            }
            PackageEvent::OperandGone(key) => {
                self.operands.remove(&key);
            }
        }
    }

    /// Returns what is to be done now.
    pub(super) fn actions(&mut self, now: Duration) -> Vec<PackageAction> {
        let mut actions = Vec::new();
        let unavailable: BTreeSet<ObjectKey> = self
            .deployments
            .iter()
            .filter(|(_, it)| self.has_fault(PackageFaultKind::NeverAvailable, it, now))
            .map(|(key, _)| key.clone())
            .collect();
        for (key, deployment) in &mut self.deployments {
            if deployment.due.is_some_and(|due| due <= now) && !unavailable.contains(key) {
                deployment.due = None;
                actions.push(PackageAction::RollOut(key.clone()));
            }
        }
        let running = self
            .deployments
            .iter()
            .filter(|(key, it)| it.rolled_out && !unavailable.contains(*key));
        let mut keeps = BTreeMap::new();
        for (_, deployment) in running {
            let keeping = self.has_fault(PackageFaultKind::KeepsFinalizers, deployment, now);
            *keeps.entry(deployment.package.clone()).or_insert(false) |= keeping;
        }
        for (key, (operand, acted)) in &mut self.operands {
            let package = self.definitions.get(&key.group_kind());
            let Some(keeps) = package.and_then(|package| keeps.get(package)) else { continue };
            let Some(finalizers) = finalizers(operand, *keeps) else { continue };
            if acted.as_ref() == Some(&operand.resource_version) {
                continue;
            }
            *acted = Some(operand.resource_version.clone());
            let operand = Operand { finalizers, ..operand.clone() };
            actions.push(PackageAction::SetFinalizers(key.clone(), operand));
        }
        actions
    }

    /// Returns when there may be something to do although nothing happens.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let rollouts = self.deployments.values().filter_map(|it| it.due);
        let faults = self.faults.iter().map(|fault| fault.after);
        rollouts.chain(faults).filter(|due| *due > now).min()
    }

    fn has_fault(
        &self,
        kind: PackageFaultKind,
        deployment: &PackageDeployment,
        now: Duration,
    ) -> bool {
        self.faults.iter().any(|fault| {
            fault.fault == kind
                && fault.package == deployment.package
                && fault.after <= now
                && fault.version.as_ref().is_none_or(|it| deployment.versions.contains(it))
        })
    }
}

/// The finalizers that an object is to have; `None` if they are as they should be.
fn finalizers(operand: &Operand, keeps: bool) -> Option<Vec<String>> {
    let has = operand.finalizers.iter().any(|it| it == FINALIZER);
    match (operand.is_deleting, has) {
        (false, false) => {
            Some(operand.finalizers.iter().cloned().chain([FINALIZER.to_owned()]).collect())
        }
        (true, true) if !keeps => {
            Some(operand.finalizers.iter().filter(|it| *it != FINALIZER).cloned().collect())
        }
        _ => None,
    }
}

/// The tags of the images of a Deployment.
pub(super) fn versions(deployment: &Value) -> BTreeSet<String> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let images = containers.into_iter().flatten().filter_map(|it| it["image"].as_str());
    let tags = images.filter_map(|image| image.rsplit_once(':'));
    tags.filter(|(_, tag)| !tag.contains('/')).map(|(_, tag)| tag.to_owned()).collect()
}

#[cfg(test)]
mod tests;
