//! `plimsoll.io/v1alpha1`: ReleaseProgress, the controller's state and report beyond the published
//! ClusterVersion API.
//!
//! A payload may contain its own ClusterVersion CRD, which would drop fields of ours, so they are in
//! an object of their own. The definition in `crds/` is generated from these types; see
//! [`crate::config`] on how.

mod inventory;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ObjectKey;
use crate::config::{ClusterVersionSpec, Release, UpdateHistory};

/// The state of the release that is being applied or reconciled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleaseProgressStatus {
    /// Version of the release.
    pub version: String,
    /// Pull specification of the release.
    pub image: String,
    /// Hash of the manifests that the numbers in `doneSteps` refer to, in their order. With other
    /// manifests a number means nothing.
    pub plan_hash: String,
    /// `Initializing`, `Updating` or `Reconciling`.
    pub mode: String,
    /// The feature set that the controller was started with; absent if it follows the FeatureGate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_set: Option<String>,
    /// Number of manifests to apply; deletions of orphans are in `deletions`.
    pub total: usize,
    /// Number of manifests that are applied and as they must be.
    pub done: usize,
    /// The manifests that `done` counts, as ranges of their numbers in the plan, from 0: `0-17,20`.
    pub done_steps: String,
    /// Steps that are pending or failed although everything before them is done, in the order of the
    /// plan.
    // +listType=atomic
    pub steps: Vec<StepProgress>,
    /// The update in progress, or the latest one; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateProgress>,
    /// Durations of the latest completed updates, newest first.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completed_updates: Vec<CompletedUpdate>,
    /// The ClusterOperators of the release; absent before the release is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operators: Option<OperatorsProgress>,
    /// The objects that the release contains, those that the administrator made unmanaged included, by
    /// kind and namespace.
    // +listType=atomic
    pub inventory: Vec<InventoryPart>,
    /// The Jobs that completed, of this release and of earlier ones, oldest first: none of them runs again.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completed_jobs: Vec<CompletedJob>,
    /// Objects that releases delete, and the state of each deletion.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<Deletion>,
    /// Objects that an earlier release applied and this one does not contain.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<Orphan>,
    /// Why capabilities are enabled that were not requested, or missing in the ClusterVersion.
    pub capabilities: CapabilitiesProgress,
    /// Objects that the administrator made unmanaged.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<OverrideProgress>,
    /// What the ClusterVersion held when it was last seen; absent before that. A ClusterVersion that
    /// was deleted and made again continues from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_version: Option<ClusterVersionRecord>,
    /// The plan of an update that was accepted, and reported here, by a process that ended before the
    /// ClusterVersion named it; absent when there is none. Once the update is accepted again, it
    /// continues from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun_plan: Option<BegunPlanRecord>,
}

/// A plan, and what was done of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BegunPlanRecord {
    /// Pull specification of its release.
    pub image: String,
    /// Hash of the manifests that the numbers in `doneSteps` refer to, in their order.
    pub plan_hash: String,
    /// The manifests that were done, as ranges of their numbers in the plan, from 0: `0-17,20`.
    pub done_steps: String,
}

/// An annotation of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnnotationRecord {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What a ClusterVersion holds that cannot be found out from the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVersionRecord {
    /// Its annotations that the controller follows.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<AnnotationRecord>,
    /// Its spec.
    pub spec: ClusterVersionSpec,
    /// The release that was being applied or reconciled.
    pub desired: Release,
    /// The releases of the cluster, newest first.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<UpdateHistory>,
    /// The capabilities that were enabled, sorted.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enabled_capabilities: Vec<String>,
}

/// The progress of an update by run level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateProgress {
    /// Version that was completed before; empty for an installation.
    pub from: String,
    /// Version that the update leads to.
    pub to: String,
    /// Pull specification of the payload that the update leads to.
    pub image: String,
    /// When the update was started.
    pub started_time: Timestamp,
    /// When the update was completed; absent before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// Number of steps that were done before the update began, since the release before has the same
    /// manifests.
    pub unchanged: usize,
    /// The run level that the update is paused before; absent unless it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_before: Option<u32>,
    /// Its run levels in order; files without a run level come last.
    // +listType=atomic
    pub levels: Vec<LevelProgress>,
}

/// A run level of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LevelProgress {
    /// Number of the run level; absent for files without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Number of steps that are done.
    pub done: usize,
    /// Number of steps.
    pub total: usize,
    /// When its first step was started; absent before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_time: Option<Timestamp>,
    /// When its last step was done; absent before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
}

/// The duration of a completed update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompletedUpdate {
    /// Version that was completed before; empty for an installation.
    pub from: String,
    /// Version that the update led to.
    pub to: String,
    /// When the update was started.
    pub started_time: Timestamp,
    /// Seconds from start to completion.
    pub seconds: u64,
    /// Its run levels in order.
    // +listType=atomic
    pub levels: Vec<LevelDuration>,
}

/// The duration of a run level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LevelDuration {
    /// Number of the run level; absent for files without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Number of steps.
    pub steps: usize,
    /// Seconds from the completion of the level before to its own completion.
    pub seconds: u64,
}

/// The ClusterOperators of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorsProgress {
    /// Number of ClusterOperators in the release.
    pub total: usize,
    /// Number of those that report the versions of the release.
    pub updated: usize,
    /// Names of those that are being updated.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updating: Vec<String>,
    /// Names of those that do not exist yet.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Names of those that do not report that they are available.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// Names of those that report that they are available but degraded.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

/// The objects of one kind and namespace that a release contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryPart {
    /// API group; absent for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind in CamelCase, such as `Deployment`.
    pub kind: String,
    /// Namespace; absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Names of the objects, sorted.
    // +listType=atomic
    pub names: Vec<String>,
}

/// A Job that completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletedJob {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// Hash of its manifest without the cluster profiles that it names. With another manifest, it runs.
    pub manifest_hash: String,
}

/// The state of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionState {
    /// The API server accepted the deletion; the object still exists.
    Requested,
    /// The API server rejected the deletion; it is retried.
    Refused,
    /// The object is deleted.
    Completed,
    /// The object was deleted, and exists again.
    Reappeared,
}

/// A deletion that a release, or a user of the controller, requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// Manifest file that requests the deletion.
    pub file: String,
    /// Version of the release that first requested it.
    pub version: String,
    /// `Requested`, `Refused`, `Completed` or `Reappeared`.
    pub state: DeletionState,
    /// When the deletion was first requested.
    pub requested_at: Timestamp,
    /// When the object was marked for deletion; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminating_since: Option<Timestamp>,
    /// Finalizers that hold up the deletion.
    // +listType=atomic
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// When the object was observed to be deleted; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Why the object is not deleted yet; empty if nothing holds it up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Deletion {
    /// Creates a deletion that was requested at `now`.
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

/// An object that an earlier release applied and this one does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// API version that the object was applied in, without the group.
    pub api_version: String,
    /// Manifest file that contained the object; empty if it is not known.
    pub file: String,
    /// Version of the latest release that applied the object.
    pub version: String,
    /// Why the object is not applied any more.
    pub message: String,
    /// When the object became an orphan.
    pub since: Timestamp,
}

impl Orphan {
    /// Creates an orphan that became one at `now`.
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

/// What is known about capabilities beyond the lists of names in the ClusterVersion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesProgress {
    /// Capabilities that were not requested and that updates enabled, oldest first.
    // +listType=atomic
    pub implied: Vec<ImpliedCapability>,
    /// Enabled capabilities that the installed CRD of ClusterVersion rejects in its status.
    // +listType=atomic
    pub withheld: Vec<String>,
    /// CamelCase reason of `withheld`; empty if it is empty.
    pub reason: String,
    /// Text for people on `withheld`; empty if it is empty.
    pub message: String,
}

/// A capability that an update enabled, and the manifest that requires it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImpliedCapability {
    /// Name of the capability.
    pub capability: String,
    /// Version of the release that requires it.
    pub version: String,
    /// The first manifest file of that release that requires it.
    pub file: String,
    /// Number of the document in the file, from 0.
    pub document: usize,
    /// Object of that manifest, which was applied before, as `kind.group "namespace/name"`.
    pub object: String,
    /// Number of manifests of the release that require it.
    pub manifests: usize,
    /// When it was enabled.
    pub since: Timestamp,
}

/// A step that is pending or failed although everything before it is done.
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
    /// CamelCase reason.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// Number of attempts so far.
    pub attempts: u32,
    /// When it entered this state.
    pub since: Timestamp,
}

/// Whether an override is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverrideState {
    /// The object is unmanaged.
    InForce,
    /// The object is managed again.
    Expired,
}

/// An object that the administrator made unmanaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverrideProgress {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// `InForce` while the object is unmanaged, `Expired` after that.
    pub state: OverrideState,
    /// Why the object is unmanaged, as its terms say; empty if they do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When the override expires; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}
