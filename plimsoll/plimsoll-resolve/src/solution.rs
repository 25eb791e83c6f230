//! What is to be done: a value that can be printed, compared and stored.

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::explain::ExplanationStep;
use crate::problem::CatalogName;

/// What satisfies everything that was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Solution {
    /// What is to be installed or updated, by namespace and package.
    pub install: Vec<PlannedBundle>,
    /// What stays as it is although it was asked for or could be updated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<KeptBundle>,
    /// What people decided instead of the resolver, and had a part in this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// What is wrong in the catalogs where this was sought, and did not get in its way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Something to install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedBundle {
    /// Where to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The package.
    pub package: String,
    /// The version.
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
    /// The bundle that it follows in its channel, whether that is installed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// For whom it is.
    pub because: Vec<InstallReason>,
    /// What would have been preferred, and why it was not taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead_of: Vec<RefusedCandidate>,
    /// What would have done too but is less preferred, and by which rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rather_than: Vec<LowerRanked>,
}

/// Something that would have done too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LowerRanked {
    /// The bundle's name.
    pub bundle: String,
    /// Its version.
    pub version: Version,
    /// The rule, as a sentence without a stop.
    pub why: String,
}

/// Something installed that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptBundle {
    /// Where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The bundle's name.
    pub bundle: String,
    /// Its version.
    pub version: Version,
    /// Who needs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<InstallReason>,
    /// What it could have been updated to, and why it is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead_of: Vec<RefusedCandidate>,
}

/// For whom something is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallReason {
    /// Somebody asked for it.
    Requested {
        /// What was asked for, as people say it.
        request: String,
    },
    /// Something else needs it.
    Required {
        /// The bundle that needs it.
        by: String,
        /// What that needs, as people say it.
        requirement: String,
    },
    /// It follows its channel.
    Follows {
        /// The channel.
        channel: String,
    },
}

/// Something that would have been preferred.
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
    /// Why it was not taken.
    pub why: Vec<ExplanationStep>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
