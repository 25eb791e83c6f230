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
    /// How the capabilities came to be what they are.
    pub capabilities: CapabilitiesProgress,
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
