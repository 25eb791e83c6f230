//! How an Operator goes: its objects are deleted in an order in which everything that has to be cleaned
//! up still can be (OPR-11, OPR-29).
//!
//! 1. Its operands, while the operator runs: its finalizers are removed by nobody else.
//! 2. Its definitions, while conversion and validation still answer.
//! 3. What calls it: admission webhooks and API services.
//! 4. What runs, and what publishes it.
//! 5. Services, configuration, storage and policies.
//! 6. Roles, bindings and service accounts, which the operator needed until now.
//! 7. The namespace, if it was created for it and is empty.
//!
//! The next requests follow from what is there, and from nothing that was remembered: a process that
//! takes over goes on where the one before it stopped. What another Operator has too is never deleted.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::ObjectKey;
use plimsoll_api::olm::{
    CrdDeletion, DeletionPolicy, DeletionProgress, RemainingObjects, WorkloadDeletion,
};
use plimsoll_plan::removal::{STUCK_AFTER, finalizers_text};

use super::rollout::Phase;

/// Most stuck objects that a status names.
const STUCK_NAMED: usize = 20;

/// A step of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeletionPhase {
    /// The objects of the operator's kinds.
    Operands,
    /// CustomResourceDefinitions.
    Definitions,
    /// Admission webhooks and API services.
    Admission,
    /// What runs, and what publishes it.
    Workloads,
    /// Services, configuration, storage and policies.
    Configuration,
    /// Roles, bindings and service accounts.
    Access,
    /// Namespaces.
    Namespaces,
}

impl DeletionPhase {
    /// The phase in which an object of an Operator is deleted.
    fn of(key: &ObjectKey) -> Self {
        if key.group == "apiregistration.k8s.io" {
            return Self::Admission;
        }
        match Phase::of(&key.group_kind()) {
            Phase::Definitions => Self::Definitions,
            Phase::Admission => Self::Admission,
            Phase::Workloads | Phase::Publishing => Self::Workloads,
            Phase::Services | Phase::Configuration | Phase::Storage | Phase::Policies => {
                Self::Configuration
            }
            Phase::Access | Phase::Identity => Self::Access,
            Phase::Namespaces => Self::Namespaces,
        }
    }

    /// The phase as objects spell it.
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

/// An object that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveObject {
    /// The object.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: String,
    /// The uids of its owners.
    pub owners: BTreeSet<String>,
    /// Since when it is terminating; `None` if it is not.
    pub terminating_since: Option<Timestamp>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

/// What a deletion is decided from.
#[derive(Debug, Clone, Copy)]
pub struct DeletionInputs<'a> {
    /// What becomes of definitions and operands.
    pub policy: &'a DeletionPolicy,
    /// The objects that belong to the Operator, of all of its revisions.
    pub objects: &'a [LiveObject],
    /// The objects of the kinds that its definitions define.
    pub operands: &'a [LiveObject],
    /// Objects that another Operator or the release has too.
    pub shared: &'a BTreeSet<ObjectKey>,
    /// Namespaces that hold objects of others.
    pub occupied: &'a BTreeSet<String>,
    /// When the deletion was requested.
    pub started: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// What to do next for a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextDeletion {
    /// The policy refuses to delete the operator as long as there are operands.
    Refused {
        /// What there is.
        remaining: Vec<RemainingObjects>,
    },
    /// A phase is under way.
    Phase {
        /// Which.
        phase: DeletionPhase,
        /// What to delete now: the rest is terminating, or goes with its owner.
        delete: Vec<LiveObject>,
        /// What to report.
        progress: DeletionProgress,
    },
    /// Nothing is left that is to go.
    Complete {
        /// What stays, by policy or because it is shared.
        kept: Vec<ObjectKey>,
    },
}

/// Decides what to delete next.
pub fn next(inputs: &DeletionInputs<'_>) -> NextDeletion {
    let DeletionInputs { policy, operands, .. } = inputs;
    if policy.workloads == WorkloadDeletion::Refuse && !operands.is_empty() {
        return NextDeletion::Refused { remaining: counted(operands.iter()) };
    }
    let keeps_definitions = policy.crds == CrdDeletion::Orphan
        || (policy.workloads == WorkloadDeletion::Orphan && !operands.is_empty());
    if !keeps_definitions && policy.workloads == WorkloadDeletion::Delete && !operands.is_empty() {
        let uids: BTreeSet<&String> = operands.iter().map(|object| &object.uid).collect();
        // What another operand owns goes with it: its owner may need it to clean up.
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

/// A phase in which some objects are to be deleted, and all of these are to be gone.
fn phase<'a>(
    inputs: &DeletionInputs<'_>,
    phase: DeletionPhase,
    delete: impl Iterator<Item = &'a LiveObject>,
    all: impl Iterator<Item = &'a LiveObject> + Clone,
) -> NextDeletion {
    let is_stuck = |object: &&LiveObject| {
        let limit = SignedDuration::try_from(STUCK_AFTER).unwrap_or(SignedDuration::MAX);
        object.terminating_since.is_some_and(|since| inputs.now.duration_since(since) >= limit)
    };
    let stuck = all.clone().filter(is_stuck).take(STUCK_NAMED).map(described).collect();
    NextDeletion::Phase {
        phase,
        delete: delete.filter(|object| object.terminating_since.is_none()).cloned().collect(),
        progress: DeletionProgress {
            phase: phase.as_str().to_owned(),
            started_time: inputs.started,
            remaining: counted(all),
            stuck,
        },
    }
}

/// A stuck object with what it waits for.
fn described(object: &LiveObject) -> String {
    let finalizers = finalizers_text(&object.finalizers);
    format!("{}: {}", object.key, finalizers.as_deref().unwrap_or("no finalizers"))
}

/// Objects by kind and namespace.
fn counted<'a>(objects: impl Iterator<Item = &'a LiveObject>) -> Vec<RemainingObjects> {
    let mut counts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for LiveObject { key, .. } in objects {
        *counts.entry((key.group_kind().to_string(), &key.namespace)).or_default() += 1;
    }
    let counts = counts.into_iter().map(|((kind, namespace), count)| RemainingObjects {
        kind,
        namespace: namespace.to_owned(),
        count,
    });
    counts.collect()
}

#[cfg(test)]
mod tests;
