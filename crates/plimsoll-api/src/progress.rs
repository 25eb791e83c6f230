//! `plimsoll.io/v1alpha1`: ReleaseProgress, what the controller remembers and tells beyond the
//! published ClusterVersion API.
//!
//! A payload may bring its own ClusterVersion CRD, which would drop fields of ours: so they live
//! in an object of their own.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How far a release has been applied, and what it waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleaseProgressStatus {
    /// Version of the release.
    pub version: String,
    /// Pull specification of the release.
    pub image: String,
    /// Hash of the plan that `doneSteps` numbers the steps of; another plan starts from nothing.
    pub plan_hash: String,
    /// `Initializing`, `Updating` or `Reconciling`.
    pub mode: String,
    /// Number of steps of the plan.
    pub total: usize,
    /// Number of steps that are done.
    pub done: usize,
    /// Which ones, as ranges of their numbers from 0: `0-17,20`.
    pub done_steps: String,
    /// Steps that wait or failed, in the order of the plan.
    pub steps: Vec<StepProgress>,
    /// The update under way, or the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateProgress>,
    /// How long the latest completed updates took, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completed_updates: Vec<CompletedUpdate>,
    /// The ClusterOperators of the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operators: Option<OperatorsProgress>,
}

/// An update, run level by run level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateProgress {
    /// Version that the cluster had completed before; empty for a first installation.
    pub from: String,
    /// Version that it goes to.
    pub to: String,
    /// Pull specification of that release.
    pub image: String,
    /// When it was begun.
    pub started_time: Timestamp,
    /// When it was completed; none while it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// The run level that it is paused before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_before: Option<u32>,
    /// Its run levels in order; files without one count as the last.
    pub levels: Vec<LevelProgress>,
}

/// A run level of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LevelProgress {
    /// Its number; none for files that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Number of steps that are done.
    pub done: usize,
    /// Number of steps.
    pub total: usize,
    /// When it was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_time: Option<Timestamp>,
    /// When all its steps were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
}

/// How long a completed update took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompletedUpdate {
    /// Version that it came from.
    pub from: String,
    /// Version that it went to.
    pub to: String,
    /// When it was begun.
    pub started_time: Timestamp,
    /// Seconds from beginning to end.
    pub seconds: u64,
    /// Its run levels in order.
    pub levels: Vec<LevelDuration>,
}

/// How long a run level took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LevelDuration {
    /// Its number; none for files that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Number of steps.
    pub steps: usize,
    /// Seconds from the end of the level before to its own end.
    pub seconds: u64,
}

/// The ClusterOperators of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorsProgress {
    /// How many the release has.
    pub total: usize,
    /// How many of them are at the release.
    pub updated: usize,
    /// Those whose turn it is and that are not yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updating: Vec<String>,
    /// Those that say that they are not available.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// Those that say that they are available but degraded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

/// A step that is not done although its turn has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepProgress {
    /// Manifest file.
    pub file: String,
    /// Number of the document in the file, from 0.
    pub document: usize,
    /// The object, as `kind.group "namespace/name"`.
    pub object: String,
    /// `Waiting` or `Failed`.
    pub state: String,
    /// Why, from the list of reasons.
    pub reason: String,
    /// The whole story.
    pub message: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Since when it has been so.
    pub since: Timestamp,
}
