//! Deletion of an Operator: its objects are deleted in an order in which finalizers can still be removed
//! (OPR-11, OPR-29).
//!
//! 1. Its operands, while the operator runs: only the operator removes their finalizers.
//! 2. Its definitions, while conversion and validation webhooks still respond.
//! 3. What the API server calls: admission webhooks and API services. Definitions that are kept lose their
//!    conversion webhooks.
//! 4. Workloads, and what publishes them.
//! 5. Services, configuration, storage and policies.
//! 6. Roles, bindings and service accounts, which the operator needed until now.
//! 7. The namespace, if it was created for the Operator and is empty.
//!
//! The next requests follow from the observed objects alone: a new leader continues where the previous one
//! stopped. Objects that another Operator has too are never deleted.

pub mod definition;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::olm::{
    CrdDeletion, DeletionPolicy, DeletionProgress, RemainingObjects, WorkloadDeletion,
};
use plimsoll_plan::removal::Terminating;

use super::rollout::Phase;

/// The maximum number of stuck objects that a status lists.
const STUCK_NAMED: usize = 20;

/// A phase of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeletionPhase {
    /// Objects of the kinds that the operator defines.
    Operands,
    /// CustomResourceDefinitions.
    Definitions,
    /// Admission webhooks and API services.
    Admission,
    /// Workloads, and what publishes them.
    Workloads,
    /// Services, configuration, storage and policies.
    Configuration,
    /// Roles, bindings and service accounts.
    Access,
    /// Namespaces.
    Namespaces,
}

impl DeletionPhase {
    /// Returns the phase in which an object of an Operator is deleted.
    fn of(key: &ObjectKey) -> Self {
        if key.group == "apiregistration.k8s.io" {
            return Self::Admission;
        }
        match Phase::of(&key.group_kind()) {
            Phase::Definitions | Phase::Conversions => Self::Definitions,
            Phase::Admission => Self::Admission,
            Phase::Workloads | Phase::Publishing => Self::Workloads,
            Phase::Services | Phase::Configuration | Phase::Storage | Phase::Policies => {
                Self::Configuration
            }
            Phase::Access | Phase::Identity => Self::Access,
            Phase::Namespaces => Self::Namespaces,
        }
    }

    /// Returns the name of the phase in statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operands => "Operands",
            Self::Definitions => "Definitions",
            Self::Admission => "Admission",
            Self::Workloads => "Workloads",
            Self::Configuration => "Configuration",
            Self::Access => "Access",
            Self::Namespaces => "Namespaces",
        }
    }
}

/// An existing object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveObject {
    /// The key of the object.
    pub key: ObjectKey,
    /// The uid of the object.
    pub uid: String,
    /// The uids of its owners.
    pub owners: BTreeSet<String>,
    /// The deletion timestamp, and what blocks the deletion; `None` if it is not terminating.
    pub terminating: Option<Terminating>,
}

/// The inputs of a decision on a deletion.
#[derive(Debug, Clone, Copy)]
pub struct DeletionInputs<'a> {
    /// The policy for definitions and operands.
    pub policy: &'a DeletionPolicy,
    /// The objects of all revisions of the Operator.
    pub objects: &'a [LiveObject],
    /// The objects of the kinds that the Operator defines.
    pub operands: &'a [LiveObject],
    /// The objects that another Operator or the release has too.
    pub shared: &'a BTreeSet<ObjectKey>,
    /// The namespaces that contain objects of other owners.
    pub occupied: &'a BTreeSet<String>,
    /// The time at which the deletion was requested.
    pub started: Timestamp,
    /// The current time.
    pub now: Timestamp,
}

/// The next step of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextDeletion {
    /// The policy refuses the deletion while there are operands.
    Refused {
        /// The operands, counted by kind and namespace.
        remaining: Vec<RemainingObjects>,
    },
    /// A phase is in progress.
    Phase {
        /// The phase in progress.
        phase: DeletionPhase,
        /// The objects to delete now; the others are terminating or are deleted with their owners.
        delete: Vec<LiveObject>,
        /// The progress to report.
        progress: DeletionProgress,
    },
    /// Everything that is to be deleted is gone.
    Complete {
        /// The objects that are kept, by policy or because they are shared.
        kept: Vec<ObjectKey>,
    },
}

/// Returns what to delete next.
pub fn next(inputs: &DeletionInputs<'_>) -> NextDeletion {
    let DeletionInputs { policy, operands, .. } = inputs;
    if policy.workloads == WorkloadDeletion::Refuse && !operands.is_empty() {
        return NextDeletion::Refused { remaining: counted(operands.iter()) };
    }
    let keeps_definitions = policy.crds == CrdDeletion::Orphan
        || (policy.workloads == WorkloadDeletion::Orphan && !operands.is_empty());
    if !keeps_definitions && policy.workloads == WorkloadDeletion::Delete && !operands.is_empty() {
        let uids: BTreeSet<&String> = operands.iter().map(|object| &object.uid).collect();
        // Operands of other operands are deleted with their owners, which may need them to clean up.
        let is_root = |object: &&LiveObject| object.owners.iter().all(|uid| !uids.contains(uid));
        let roots = operands.iter().filter(is_root);
        return phase(inputs, DeletionPhase::Operands, roots, operands.iter());
    }
    let mut phases: BTreeMap<DeletionPhase, Vec<&LiveObject>> = BTreeMap::new();
    let mut kept = Vec::new();
    for object in inputs.objects {
        let phase = DeletionPhase::of(&object.key);
        let is_kept = inputs.shared.contains(&object.key)
            || (phase == DeletionPhase::Definitions && keeps_definitions)
            || (phase == DeletionPhase::Namespaces && inputs.occupied.contains(&object.key.name));
        match is_kept {
            true => kept.push(object.key.clone()),
            false => phases.entry(phase).or_default().push(object),
        }
    }
    match phases.pop_first() {
        None => NextDeletion::Complete { kept },
        Some((first, objects)) => {
            phase(inputs, first, objects.iter().copied(), objects.iter().copied())
        }
    }
}

/// Returns a phase that deletes some objects and ends when all of `all` are gone.
fn phase<'a>(
    inputs: &DeletionInputs<'_>,
    phase: DeletionPhase,
    delete: impl Iterator<Item = &'a LiveObject>,
    all: impl Iterator<Item = &'a LiveObject> + Clone,
) -> NextDeletion {
    let stuck = all.clone().filter_map(|it| stuck(it, inputs.now)).take(STUCK_NAMED).collect();
    NextDeletion::Phase {
        phase,
        delete: delete.filter(|object| object.terminating.is_none()).cloned().collect(),
        progress: DeletionProgress {
            phase: phase.as_str().to_owned(),
            started_time: inputs.started,
            remaining: counted(all),
            stuck,
        },
    }
}

/// Returns a stuck object with what holds it, as text; `None` if it is not stuck.
fn stuck(object: &LiveObject, now: Timestamp) -> Option<String> {
    let terminating = object.terminating.as_ref().filter(|it| it.is_stuck(now))?;
    let finalizers = terminating.finalizers_text();
    let finalizers = finalizers.unwrap_or_else(|| "no finalizers".to_owned());
    Some(terminating.with_remaining(format!("{}: {finalizers}", object.key)))
}

/// Counts objects by kind and namespace.
fn counted<'a>(objects: impl Iterator<Item = &'a LiveObject>) -> Vec<RemainingObjects> {
    let mut counts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for LiveObject { key, .. } in objects {
        *counts.entry((key.group_kind().to_string(), &key.namespace)).or_default() += 1;
    }
    let counts = counts.into_iter().map(|((kind, namespace), count)| RemainingObjects {
        kind,
        namespace: namespace.to_owned(),
        count,
        names: Vec::new(),
    });
    counts.collect()
}

#[cfg(test)]
mod tests;
