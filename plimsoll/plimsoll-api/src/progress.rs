//! `plimsoll.io/v1alpha1`: ReleaseProgress, what the controller remembers and tells beyond the
//! published ClusterVersion API.
//!
//! A payload may bring its own ClusterVersion CRD, which would drop fields of ours: so they live
//! in an object of their own.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ObjectKey;

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
    /// Objects that releases deleted, and how far that has come (DEL-5).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<Deletion>,
    /// Objects that earlier releases applied and this one does not mention.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<Orphan>,
    /// How the capabilities came to be what they are.
    pub capabilities: CapabilitiesProgress,
    /// Objects that an administrator took out of management, and on which terms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<OverrideProgress>,
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

/// How far a deletion has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionState {
    /// The API server was asked; the object is not gone yet.
    Requested,
    /// The API server refused; it is asked again.
    Refused,
    /// The object is gone.
    Completed,
    /// The object was gone, and is there again.
    Reappeared,
}

/// A deletion that a release, or somebody through the controller, asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// The manifest that asks for it.
    pub file: String,
    /// Version of the release that asked for it first.
    pub version: String,
    /// How far it has come.
    pub state: DeletionState,
    /// When the API server was asked first.
    pub requested_at: Timestamp,
    /// Since when the object has been going.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminating_since: Option<Timestamp>,
    /// What holds it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// When it was seen to be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// What stands in the way, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Deletion {
    /// A deletion that has just been asked for.
    pub fn new(key: &ObjectKey, file: &str, version: &str, now: Timestamp) -> Self {
        Self {
            object: key.clone(),
            file: file.to_owned(),
            version: version.to_owned(),
            state: DeletionState::Requested,
            requested_at: now,
            terminating_since: None,
            finalizers: Vec::new(),
            completed_at: None,
            message: String::new(),
        }
    }
}

/// An object that a release applied and a later one does not mention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// API version that it was applied in, without the group.
    pub api_version: String,
    /// The manifest that it came from; empty if that is not known any more.
    pub file: String,
    /// Version of the last release that applied it.
    pub version: String,
    /// Why it is not applied any more.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

impl Orphan {
    /// An object that has just been left behind.
    pub fn new(
        key: &ObjectKey,
        api_version: &str,
        file: &str,
        version: &str,
        message: &str,
        now: Timestamp,
    ) -> Self {
        Self {
            object: key.clone(),
            api_version: api_version.to_owned(),
            file: file.to_owned(),
            version: version.to_owned(),
            message: message.to_owned(),
            since: now,
        }
    }
}

/// What there is to tell about capabilities beyond the ClusterVersion's lists of names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesProgress {
    /// Capabilities that updates made necessary and nobody had asked for, oldest first.
    pub implied: Vec<ImpliedCapability>,
    /// Capabilities that the installed definition of ClusterVersion does not let its status name.
    /// They are in force all the same.
    pub withheld: Vec<String>,
    /// Why they are withheld, from the list of reasons; empty if none is.
    pub reason: String,
    /// The whole story of those withheld.
    pub message: String,
}

/// A capability that an update made necessary, and what did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImpliedCapability {
    /// The capability.
    pub capability: String,
    /// Version of the release that made it necessary.
    pub version: String,
    /// The manifest file of that release that did: the first one.
    pub file: String,
    /// Number of the document in the file, from 0.
    pub document: usize,
    /// The object that had been applied before, as `kind.group "namespace/name"`.
    pub object: String,
    /// How many manifests of the release made it necessary.
    pub manifests: usize,
    /// When it became enabled.
    pub since: Timestamp,
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

/// Whether an override has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverrideState {
    /// The object is left alone.
    InForce,
    /// The object is managed again.
    Expired,
}

/// An object that an administrator took out of management.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverrideProgress {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// Whether it is left alone still.
    pub state: OverrideState,
    /// Why, if that is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Until when; none for no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}
