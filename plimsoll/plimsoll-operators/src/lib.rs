//! Decisions on Operators, each a function of the Operators, the catalogs and the cluster (OPR-7 to OPR-13,
//! OPR-26, OPR-27); the state machine that carries them out ([`reconciler`]); the plans of commands and
//! [`actions`]. Nothing here has a client, a clock or a random source.
//!
//! A decision does not depend on the order of events: only on what is requested, what is installed, and which
//! Operator is first, by creation time and then by name.
//!
//! # Rules
//!
//! * Dependencies are checked and never installed. Missing ones are reported; `spec.constraintPolicy`
//!   determines whether they block an installation or an update.
//! * An update follows the channel's graph, unless `spec.upgradePolicy` says otherwise, to the most preferred
//!   version that the cluster, the requirements and the dependants allow. A preferred version that is blocked
//!   is reported.
//! * Operators of one change set are judged as if all of them were updated; one that is blocked blocks all.
//! * An API has one owner. A second one is refused with the name of the first.

pub mod actions;
pub mod change_plan;
mod change_set;
mod comparison;
pub mod conditions;
mod decide;
pub mod deletion;
pub mod deletion_plan;
mod dependency_index;
pub mod inspected;
pub mod install;
pub mod installation;
mod installed;
pub mod inventory;
pub mod lint;
pub mod loadout;
pub mod lock;
pub mod manifest;
pub mod observed;
mod planned_change;
mod planner;
pub mod query;
pub mod ready_when;
pub mod reconciler;
mod request;
pub mod revision_key;
pub mod rollback;
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
pub use self::installed::installed_bundle;
pub use self::request::RequestedPackage;

/// An Operator as it is requested, and what is installed of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedOperator {
    /// The requested spec.
    pub spec: OperatorSpec,
    /// The creation time.
    pub created: Timestamp,
    /// Whether it was installed as a dependency of another Operator.
    pub is_dependency: bool,
    /// Whether its label says that a user installed it by its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_user: bool,
    /// Whether it is of the cluster, and the files that declare Operators do not declare it: it counts as
    /// installed, and no plan changes it.
    #[serde(skip)]
    pub is_undeclared: bool,
    /// The annotation [`plimsoll_api::olm::CHANGE_SET_ANNOTATION`]; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_set: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// The installed bundle; `None` before the first revision is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<InstalledOperator>,
    /// The bundle of the kept revision that `spec.revision` names; `None` if that is the installed one, or
    /// none is named or kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<Bundle>,
    /// The kinds that its revisions define, including those that are being rolled out.
    #[serde(skip)]
    pub owned: BTreeSet<GroupKind>,
}

impl RequestedOperator {
    /// Returns an Operator that is new, and of which nothing is installed.
    pub(crate) fn new(spec: OperatorSpec, is_dependency: bool) -> Self {
        Self {
            spec,
            created: Timestamp::UNIX_EPOCH,
            is_dependency,
            is_of_user: false,
            is_undeclared: false,
            change_set: None,
            is_deleting: false,
            installed: None,
            returns_to: None,
            owned: BTreeSet::new(),
        }
    }

    /// Returns the kinds that its revisions define, or that its installed bundle provides.
    pub(crate) fn provided(&self) -> BTreeSet<GroupKind> {
        let installed = self.installed.iter().flat_map(|it| installed::kinds(&it.bundle));
        self.owned.iter().cloned().chain(installed).collect()
    }
}

/// The installed bundle of an Operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledOperator {
    /// The bundle, and the catalog and channel that it is from.
    pub reference: BundleReference,
    /// The content that the resolver needs: what the bundle provides and requires.
    pub bundle: Bundle,
    /// The number of its revision.
    pub revision: u32,
    /// The reason, as a sentence, that blocks other minor and major versions: a ClusterOperator of the
    /// package is not upgradeable, or objects of earlier revisions are not deleted yet; `None` if nothing
    /// does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_block: Option<String>,
}

impl InstalledOperator {
    /// Returns whether it is what a spec requests: in its range, and from its channel and catalog, where it names them.
    pub(crate) fn is_requested_by(&self, spec: &OperatorSpec) -> bool {
        let is_from = |wanted: &str, there: &str| wanted.is_empty() || wanted == there;
        planner::is_in_range(&spec.version, &self.bundle.version)
            && is_from(&spec.channel, &self.reference.channel)
            && is_from(&spec.repository, &self.reference.catalog)
    }
}

/// The inputs of decisions on Operators.
#[derive(Clone, Copy)]
pub struct OperatorInputs<'a> {
    /// All Operators, by name.
    pub operators: &'a BTreeMap<String, RequestedOperator>,
    /// The catalogs that exist but are not served, with the reason; their content is unknown.
    pub unavailable: &'a BTreeMap<String, String>,
    /// The facts about the cluster.
    pub facts: &'a ClusterFacts,
    /// The evaluator of constraint expressions.
    pub expressions: &'a dyn Expressions,
}

/// A decision on an Operator, and what is reported with it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorDecision {
    /// The action to take.
    pub action: OperatorAction,
    /// The block of a version that is preferred to the installed or selected one; `None` if there is no such
    /// version.
    pub held_back: Option<OperatorBlock>,
    /// The requirements of the bundle that is installed or about to be.
    pub requirements: Vec<CheckedRequirement>,
    /// The reason, as a sentence, that the installed or selected bundle is incompatible with the cluster;
    /// `None` if it is compatible.
    pub incompatibility: Option<String>,
    /// A sentence that says what is deprecated, that bundle or its package, with the author's message; `None`
    /// if neither is.
    pub deprecation: Option<String>,
    /// The Operators whose requirements the installed bundle satisfies, by name.
    pub dependants: Vec<Dependant>,
    /// Whether it was installed as a dependency and no Operator depends on it.
    pub is_orphaned: bool,
    /// The requirements and APIs of the judged bundles, whether or not one was selected.
    pub judged: CandidateRequirements,
    /// What is reported of the installed bundle if it stays after all; `None` if no other bundle is selected,
    /// or none is installed.
    pub installed: Option<Box<BundleFindings>>,
    /// The bundle that is prepared ahead, while other Operators of the change set come first; `None` if there
    /// is none.
    pub ahead: Option<BundleReference>,
    /// The requirements of the bundle that a block keeps from being installed; none if one is installed already.
    pub awaited: Vec<CheckedRequirement>,
}

impl OperatorDecision {
    /// Returns the decision to update to a bundle, with nothing that is reported of it.
    pub(crate) fn unreported(selected: SelectedBundle, judged: CandidateRequirements) -> Self {
        Self {
            action: OperatorAction::Upgrade(selected),
            held_back: None,
            requirements: Vec::new(),
            incompatibility: None,
            deprecation: None,
            dependants: Vec::new(),
            is_orphaned: false,
            judged,
            installed: None,
            ahead: None,
            awaited: Vec::new(),
        }
    }

    /// Returns whether a bundle that is installed, selected or waited for may require another Operator, which provides
    /// kinds, although that satisfies no requirement of an installed one.
    pub(crate) fn awaits(&self, name: &str, kinds: &BTreeSet<GroupKind>) -> bool {
        let CandidateRequirements { packages, apis, is_open, provides: _ } = &self.judged;
        let mut required = self.requirements.iter().chain(&self.awaited);
        *is_open
            || packages.contains(name)
            || !apis.is_disjoint(kinds)
            || required.any(|it| it.provider.is_none() && it.package.as_deref() == Some(name))
    }

    /// Replaces the action by a block, so that the installed bundle stays.
    pub(crate) fn block(&mut self, block: OperatorBlock) {
        self.action = OperatorAction::Blocked(block);
        if let Some(installed) = self.installed.take() {
            let BundleFindings { requirements, incompatibility, deprecation } = *installed;
            self.requirements = requirements;
            self.incompatibility = incompatibility;
            self.deprecation = deprecation;
        }
    }
}

/// What is reported of a bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BundleFindings {
    /// Its requirements.
    pub requirements: Vec<CheckedRequirement>,
    /// The reason, as a sentence, that it is incompatible with the cluster; `None` if it is compatible.
    pub incompatibility: Option<String>,
    /// A sentence that says that it or its package is deprecated; `None` if neither is.
    pub deprecation: Option<String>,
}

/// The requirements and APIs of the bundles that an Operator may be updated to. A change of one of these may
/// change the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CandidateRequirements {
    /// The packages that the bundles require by name.
    pub packages: BTreeSet<String>,
    /// The kinds of the APIs that the bundles require.
    pub apis: BTreeSet<GroupKind>,
    /// Whether a requirement names neither a package nor an API, so that any package may satisfy it.
    pub is_open: bool,
    /// The kinds that the bundles provide.
    pub provides: BTreeSet<GroupKind>,
}

impl CandidateRequirements {
    /// Adds a bundle.
    pub(crate) fn add(&mut self, bundle: &Bundle) {
        let RequiredNames { packages, apis, is_open } = RequiredNames::of(bundle);
        self.packages.extend(packages.into_iter().map(str::to_owned));
        self.apis.extend(apis.into_iter().map(|api| GroupKind::new(&api.group, &api.kind)));
        self.is_open |= is_open;
        self.provides.extend(installed::kinds(bundle));
    }
}

/// The action of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorAction {
    /// Nothing: the installed bundle is the requested one.
    Keep,
    /// Nothing: `spec.paused` is set.
    Paused,
    /// The Operator is being deleted.
    Delete,
    /// An earlier revision is applied again.
    RollBack {
        /// The number of the revision.
        revision: u32,
        /// The unmet constraints that the policy overrides, as sentences.
        accepted_risks: Vec<String>,
    },
    /// A bundle is installed.
    Install(SelectedBundle),
    /// Another bundle replaces the installed one.
    Upgrade(SelectedBundle),
    /// A blocker prevents the change. The installed bundle is unchanged.
    Blocked(OperatorBlock),
}

/// A bundle that was selected for an Operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedBundle {
    /// The bundle, and the catalog and channel that it is from.
    pub reference: BundleReference,
    /// The kinds that it provides.
    pub provides: BTreeSet<GroupKind>,
    /// The unmet constraints that the policy overrides, as sentences.
    pub accepted_risks: Vec<String>,
}

/// The reason that something is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorBlock {
    /// The reason that conditions report.
    pub reason: Reason,
    /// The blocker, and what resolves it.
    pub message: String,
}

impl OperatorBlock {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// Returns the message. That of a package that no catalog has is the sentence of `unknown` about it, if there is
    /// one: by name, what those say who know all packages of the catalogs.
    pub fn explained<'a>(&'a self, name: &str, unknown: &'a BTreeMap<String, String>) -> &'a str {
        let sentence = unknown.get(name).filter(|_| self.reason == Reason::PackageNotFound);
        sentence.unwrap_or(&self.message)
    }

    /// Returns whether the catalogs do not offer what is requested, whatever is installed.
    pub(crate) fn is_not_offered(&self) -> bool {
        matches!(
            self.reason,
            Reason::NoMatchingVersion
                | Reason::ChannelNotFound
                | Reason::CatalogNotFound
                | Reason::PackageNotFound
                | Reason::VersionSkipped
                | Reason::InvalidVersionRange
        )
    }
}

/// Joins sentences without full stops, some of which may be questions.
pub fn joined(sentences: &[String]) -> String {
    sentences.join("; ").replace("?; ", "? ")
}

/// Returns a version as messages show it: `v1.2.3`; an empty one as it is.
pub fn version_text(version: &str) -> String {
    match version.is_empty() || version.starts_with('v') {
        true => version.to_owned(),
        false => format!("v{version}"),
    }
}

#[cfg(test)]
mod tests;
