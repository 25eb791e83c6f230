//! Operators: a decision for each, as a function of the Operators, the catalogs and the cluster (OPR-7 to
//! OPR-13, OPR-26, OPR-27); the machine that carries decisions out ([`reconciler`]); what commands and
//! [`actions`] plan. Nothing here has a client, a clock or a random source.
//!
//! A decision does not depend on the order in which anything happened: only on what is requested, what
//! is installed, and who was first, by creation time and then by name.
//!
//! # Rules
//!
//! * Dependencies are checked and never installed. What is missing is reported; whether it holds up an
//!   installation or an upgrade is up to `spec.constraintPolicy`.
//! * An upgrade follows the channel's graph, unless `spec.upgradePolicy` says otherwise, to the most
//!   preferred version that the cluster, the requirements and the dependants allow. What is preferred
//!   and waits is named.
//! * Operators of one change set are judged as if all of them had moved; one that cannot holds up all.
//! * An API has one owner. The second one is refused with the name of the first.

pub mod actions;
mod change_set;
pub mod conditions;
mod decide;
pub mod deletion;
pub mod deletion_plan;
pub mod install;
mod installed;
pub mod inventory;
pub mod lint;
pub mod loadout;
pub mod lock;
pub mod observed;
pub mod reconciler;
pub mod rollout;
mod selection;
pub mod snapshot;
pub mod update;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::olm::{BundleReference, Dependant, OperatorSpec};
use plimsoll_api::{GroupKind, Reason};
use plimsoll_resolve::requirement::{CheckedRequirement, RequiredNames};
use plimsoll_resolve::{Bundle, ClusterFacts, Expressions};
use serde::{Deserialize, Serialize};

pub use self::change_set::{ChangeSet, ChangeSetError};
pub use self::decide::decide;

/// An Operator, as the cluster has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedOperator {
    /// What is requested.
    pub spec: OperatorSpec,
    /// When it was created.
    pub created: Timestamp,
    /// Whether it was installed because another one needed it.
    pub is_dependency: bool,
    /// The annotation [`plimsoll_api::olm::CHANGE_SET_ANNOTATION`]; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_set: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What is installed; `None` before the first revision is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<InstalledOperator>,
    /// The kinds that its revisions define, those under way included.
    #[serde(skip)]
    pub owned: BTreeSet<GroupKind>,
}

/// What is installed of an Operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledOperator {
    /// The bundle, and where it came from.
    pub reference: BundleReference,
    /// What it provides and requires.
    pub bundle: Bundle,
    /// Number of its revision.
    pub revision: u32,
    /// Why other minor and major versions are not installed, as a sentence: a ClusterOperator of the
    /// package is not upgradeable, or objects of earlier revisions do not go; `None` if nothing objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
}

/// What decisions are made from.
#[derive(Clone, Copy)]
pub struct OperatorInputs<'a> {
    /// All Operators, by name.
    pub operators: &'a BTreeMap<String, RequestedOperator>,
    /// The catalogs that exist but are not served, with the reason: it is not known what they have.
    pub unavailable: &'a BTreeMap<String, String>,
    /// What is known of the cluster.
    pub facts: &'a ClusterFacts,
    /// Evaluates expressions of constraints.
    pub expressions: &'a dyn Expressions,
}

/// What becomes of an Operator, and what is to be reported of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorDecision {
    /// What is done.
    pub action: OperatorAction,
    /// A version that is preferred to what is installed or chosen, and what it waits for; `None` if
    /// there is none.
    pub held_back: Option<OperatorBlock>,
    /// The requirements of the bundle that is installed, or that is about to be.
    pub requirements: Vec<CheckedRequirement>,
    /// Why the bundle that is installed or chosen does not fit the cluster any more, as a sentence; `None`
    /// if it does.
    pub unfit: Option<String>,
    /// What is deprecated of that bundle, and the author's message, as a sentence; `None` if nothing is.
    pub deprecation: Option<String>,
    /// The Operators whose requirements the installed bundle satisfies, by name.
    pub dependants: Vec<Dependant>,
    /// Whether it was installed as a dependency and nothing depends on it.
    pub is_orphaned: bool,
    /// The bundles that were judged, whether or not one was chosen.
    pub judged: JudgedBundles,
}

/// What bundles require and provide that an Operator might move to: when something of it changes, the
/// decision may be another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgedBundles {
    /// The packages that they require by name.
    pub packages: BTreeSet<String>,
    /// The kinds of the APIs that they require.
    pub apis: BTreeSet<GroupKind>,
    /// Whether one requires something that has no name.
    pub is_open: bool,
    /// The kinds that they provide.
    pub provides: BTreeSet<GroupKind>,
}

impl JudgedBundles {
    /// Takes note of a bundle.
    pub(crate) fn add(&mut self, bundle: &Bundle) {
        let RequiredNames { packages, apis, is_open } = RequiredNames::of(bundle);
        self.packages.extend(packages.into_iter().map(str::to_owned));
        self.apis.extend(apis.into_iter().map(|api| GroupKind::new(&api.group, &api.kind)));
        self.is_open |= is_open;
        self.provides.extend(installed::kinds(bundle));
    }
}

/// What is done with an Operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorAction {
    /// What is installed is what is requested.
    Keep,
    /// A person has paused it.
    Paused,
    /// It is being deleted.
    Delete,
    /// A kept revision is applied again.
    Return {
        /// Its number.
        revision: u32,
    },
    /// A bundle is installed.
    Install(SelectedBundle),
    /// Another bundle takes the place of the installed one.
    Upgrade(SelectedBundle),
    /// Something is in the way. What is installed stays.
    Blocked(OperatorBlock),
}

/// A bundle that was chosen for an Operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedBundle {
    /// The bundle, and where it comes from.
    pub reference: BundleReference,
    /// The kinds that it provides.
    pub provides: BTreeSet<GroupKind>,
    /// What does not hold and is overridden by policy, as sentences.
    pub accepted_risks: Vec<String>,
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorBlock {
    /// The reason.
    pub reason: Reason,
    /// What is in the way, and what would help.
    pub message: String,
}

impl OperatorBlock {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// How people write a version.
pub(crate) fn version_text(version: &str) -> String {
    match version.strip_prefix('v') {
        Some(_) => version.to_owned(),
        None => format!("v{version}"),
    }
}

#[cfg(test)]
mod tests;
