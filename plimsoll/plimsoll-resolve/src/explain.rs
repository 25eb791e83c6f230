//! Why something cannot be, in plain explanation_steps, and what could be changed.

mod diagnosis;
mod explainer;
mod format;
mod suggestions;

use serde::{Deserialize, Serialize};

pub(crate) use explainer::explanation_steps;
pub(crate) use format::{channel_of, described, named};
pub(crate) use suggestions::suggestions;
pub use suggestions::{SuggestedChange, SuggestedChangeKind};

/// Why a problem has no solution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// A minimal conflict: everything that it takes, and nothing that it does not; from what was
    /// asked to what is in the way.
    pub conflict: Vec<ExplanationStep>,
    /// What would make the problem solvable: the smallest changes, each of them tried out.
    pub changes: Vec<SuggestedChange>,
    /// What is wrong in the catalogs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One link of a chain of reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationStep {
    /// What it says, without a stop.
    pub text: String,
    /// What it is about.
    pub kind: ExplanationStepKind,
    /// The bundles that it speaks of, as `package.version` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<String>,
    /// The bundles that would satisfy it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

/// What a sentence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExplanationStepKind {
    /// Something was asked for.
    Request,
    /// Something is installed and stays, or follows its channel.
    Installed,
    /// A bundle was chosen before.
    Chosen,
    /// A bundle needs something.
    Requirement,
    /// A bundle cannot be used.
    Ineligible,
    /// Bundles exclude each other.
    Exclusion,
}
