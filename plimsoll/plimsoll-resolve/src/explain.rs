//! Explanations: why a problem has no solution, step by step, and what could be changed.

mod diagnosis;
mod explainer;
mod format;
mod suggestions;

use serde::{Deserialize, Serialize};

pub(crate) use explainer::explanation_steps;
pub(crate) use format::{channel_of, described, named, shortened};
pub(crate) use suggestions::suggestions;
pub use suggestions::{SuggestedChange, SuggestedChangeKind};

/// Why a problem has no solution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The conflicts, each between other requests and installed bundles than the others; at least
    /// one.
    pub conflicts: Vec<ExplainedConflict>,
    /// Defects of the catalogs that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A conflict, and what would resolve it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedConflict {
    /// A minimal conflict: without any of its steps there would be none. From the requests to the
    /// blockers, then the conclusion.
    pub steps: Vec<ExplanationStep>,
    /// What would resolve it: the smallest changes, each of them tried out without the requests and
    /// installed bundles of the other conflicts.
    pub changes: Vec<SuggestedChange>,
}

/// One step of an explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationStep {
    /// What it says, without a stop.
    pub text: String,
    /// Its kind.
    pub kind: ExplanationStepKind,
    /// The bundles that it names, as `package.version` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<String>,
    /// The bundles that would satisfy it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

/// Kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExplanationStepKind {
    /// A package is requested.
    Request,
    /// A bundle is installed, and is kept or follows its channel.
    Installed,
    /// A bundle is selected first.
    Chosen,
    /// A bundle requires something.
    Requirement,
    /// A bundle cannot be used.
    Ineligible,
    /// Bundles conflict.
    Exclusion,
    /// What follows from the steps before.
    Conclusion,
}
