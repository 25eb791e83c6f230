//! Solutions: what to install, update and keep, as a value that can be printed, compared and stored.

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::explain::ExplanationStep;
use crate::problem::CatalogName;

/// The bundles to install that satisfy every request and requirement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Solution {
    /// The bundles to install or update to, by namespace and package.
    pub install: Vec<PlannedBundle>,
    /// The installed bundles that are kept although requested or updatable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<KeptBundle>,
    /// The overrides that had an effect, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// Defects of the catalogs that were read, which did not prevent the solution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A bundle to install or update to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedBundle {
    /// The namespace to install into; empty when the request names none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The package, by name.
    pub package: String,
    /// The version of the bundle.
    pub version: Version,
    /// The bundle's name.
    pub bundle: String,
    /// The channel that it is taken from.
    pub channel: String,
    /// The catalog that it is taken from.
    pub catalog: CatalogName,
    /// The installed bundle whose place it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<String>,
    /// The range that is requested, when this is only a step towards it: the version is outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towards: Option<String>,
    /// The bundle that it follows in its channel, whether that is installed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The requests, requirements and channels that it satisfies.
    pub because: Vec<InstallReason>,
    /// The preferred candidates that could not be selected, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead_of: Vec<RefusedCandidate>,
    /// Candidates that also qualify but rank lower, and by which rule; and newer versions in
    /// channels that are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rather_than: Vec<LowerRanked>,
}

/// A bundle that also qualifies but ranks lower, or that is in a channel that is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LowerRanked {
    /// The package, by name.
    pub package: String,
    /// The bundle's name.
    pub bundle: String,
    /// Its version.
    pub version: Version,
    /// The rule, as a sentence without a stop.
    pub why: String,
}

/// An installed bundle that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptBundle {
    /// The namespace that it is installed in; empty when that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The bundle's name.
    pub bundle: String,
    /// Its version.
    pub version: Version,
    /// What requires it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<InstallReason>,
    /// The updates that could not be selected, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead_of: Vec<RefusedCandidate>,
    /// The updates that rank lower than keeping it, and by which rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rather_than: Vec<LowerRanked>,
    /// The latest version that would do if an update led to it; none when there is none, or when an
    /// update leads on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<UnreachableBundle>,
}

/// A later version to which no update leads from what is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnreachableBundle {
    /// The bundle's name.
    pub bundle: String,
    /// Its version.
    pub version: Version,
    /// The channel that has it.
    pub channel: String,
    /// The catalog that has it.
    pub catalog: CatalogName,
}

impl KeptBundle {
    /// Returns whether there are updates that were not selected, or later versions that none leads to.
    pub(crate) fn is_explained(&self) -> bool {
        !self.instead_of.is_empty() || !self.rather_than.is_empty() || self.unreachable.is_some()
    }
}

/// Why a bundle is in a solution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallReason {
    /// A request names its package.
    Requested {
        /// The request, as text.
        request: String,
    },
    /// Another bundle requires it.
    Required {
        /// The name of the bundle that requires it.
        by: String,
        /// The requirement, as text.
        requirement: String,
    },
    /// It follows its channel.
    Follows {
        /// The channel, by name.
        channel: String,
    },
}

/// A preferred candidate that could not be selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedCandidate {
    /// The bundle's name.
    pub bundle: String,
    /// Its version.
    pub version: Version,
    /// Its channel; none when it is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Its catalog; none when it is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogName>,
    /// How many more there were that would have been preferred.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub and_more: usize,
    /// The conflict that selecting it would cause, step by step.
    pub why: Vec<ExplanationStep>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
