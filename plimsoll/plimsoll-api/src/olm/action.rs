//! Actions: requests for one change, as Jobs are (OPR-23, OPR-24), and what makes them again, on a
//! schedule, or when something changes.

mod change;
mod generators;
mod part;
mod status;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::OperatorStatus;
use super::window::WindowReference;
use crate::config::MetaCondition;

pub use self::change::{ChangeOperation, ChangeState, PlannedChange};
pub use self::generators::{
    ConcurrencyPolicy, CronActionSpec, CronActionStatus, EventActionSpec, EventActionStatus,
    EventSourceKind, EventTrigger, EventType, MissedTimes, ObservedContent, RateLimit,
    RetryActionSpec, RetryActionStatus, SelectedObjects,
};
pub use self::part::{ActionPartSpec, PartContent, PartReference};
pub use self::status::{
    ActionDependency, ActionState, ActionStatus, EffectiveAttribute, FailureDetails, PolicyDecision,
};

/// Type of the condition of an Action that tells how it ended.
pub const ACTION_SUCCEEDED: &str = "ActionSucceeded";
/// Type of the conditions of an Action that name the dependencies that it created.
pub const CONSTRAINT_SATISFIED: &str = "ConstraintSatisfied";
/// Finalizer of an Action whose plan is executed: it is removed once the changes that were begun are recorded
/// as done or given up.
pub const ACTION_FINALIZER: &str = "olm.io/action";
/// Annotation of an Operator: uid of the Action that created it.
pub const CREATED_BY_ANNOTATION: &str = "olm.io/created-by-action";
/// Annotation of an Operator: namespace of the Action that created it.
pub const CREATED_IN_ANNOTATION: &str = "olm.io/created-in-namespace";
/// Annotation of an Operator that an Action for which permissions were looked at has written: the requested version, and
/// the digests of the content that was inspected for it. No other content of that version is installed.
pub const INSPECTED_ANNOTATION: &str = "olm.io/inspected-content";
/// Annotation of an Operator or the ClusterVersion: the change of an Action that was written to it last, as the uid
/// of the Action and the position of the change in its plan, such as `UID/0`.
pub const CHANGED_BY_ANNOTATION: &str = "olm.io/changed-by-action";
/// Annotation of an Action: the EventActions that led to it, each as `NAMESPACE/NAME`, in order and separated by
/// commas. Of an Operator or the ClusterVersion: those that led to the Action that wrote it last.
pub const TRIGGERED_BY_ANNOTATION: &str = "olm.io/triggered-by";
/// Annotation of an Operator or the ClusterVersion: the generation for which [`TRIGGERED_BY_ANNOTATION`] was written.
/// Another one was written by another client.
pub const TRIGGERED_GENERATION_ANNOTATION: &str = "olm.io/triggered-generation";
/// Label of an Action: name of the RetryAction, CronAction or EventAction that made it.
pub const OWNER_LABEL: &str = "olm.io/action-owner";

/// One request. Nothing of it changes after it was created but its approvals and its cancellation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionSpec {
    /// Name of the ActionClass, or one of its aliases.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=253
    pub action_class: String,
    /// Package that it is about; empty for a class that is about all of them.
    // +kubebuilder:validation:MaxLength=253
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// Version, or range of versions, of the package; empty for any.
    // +kubebuilder:validation:MaxLength=256
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Channel that versions are taken from; empty for the default one.
    // +kubebuilder:validation:MaxLength=256
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the Catalog that the package is taken from; empty for any.
    // +kubebuilder:validation:MaxLength=253
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// Whether Operators are created for what the package requires; absent for what the class says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_dependencies: Option<bool>,
    /// Whether nothing is installed as long as requirements are not satisfied; absent for what the class
    /// says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ensure_constraint_satisfiability: Option<bool>,
    /// Whether only the plan is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// What else the class knows, by its schema; absent for nothing.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// What has to hold of the plan, or nothing is changed.
    pub preconditions: ActionPreconditions,
    /// How long it may take from its start, such as `10m`; empty for one hour, or six for a change of the
    /// release.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deadline: String,
    /// How long it is kept after it ended, such as `24h`; empty for what the class says, else until the
    /// `historyLimit` of the class is exceeded.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ttl_after_finished: String,
    /// Who requests it. Set at admission; a request that names another user is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<ActionRequester>,
    /// The approvals and rejections of its plan, one of each user who gave one.
    // +listType=map
    // +listMapKey=approver
    // +kubebuilder:validation:MaxItems=32
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ActionApproval>,
    /// Whether it is given up: before it begins, or else before its next change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// What has to hold of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionPreconditions {
    /// All requirements of all Operators are satisfied afterwards; of a deletion, those that are satisfied
    /// before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub consistent: bool,
    /// No Operator goes that has objects of its kinds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_workload_removal: bool,
    /// No Operator is left that was installed as a dependency and that nothing depends on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_orphans: bool,
    /// No CustomResourceDefinition goes: Operators are deleted only if their definitions are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_definition_removal: bool,
    /// No bundle brings permissions in all namespaces that the installed one does not have: rules of ClusterRoles that it
    /// binds or aggregates, and bindings of other ClusterRoles.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_new_cluster_permissions: bool,
    /// It begins while a MaintenanceWindow is open, or a window of its own; absent for any time.
    // +kubebuilder:validation:XValidation:rule="has(self.name) ? !has(self.schedule)
    //  && !has(self.timeZone) && !has(self.duration) : has(self.schedule) && has(self.duration)",
    //  message="give either name, or schedule and duration"
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_maintenance_window: Option<WindowReference>,
    /// Expressions of the Common Expression Language over `plan`, each true.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=16
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expressions: Vec<PlanExpression>,
}

/// An expression over a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanExpression {
    /// The expression, such as `plan.changes.size() < 5`.
    // +required
    // +kubebuilder:validation:MaxLength=2048
    pub expression: String,
    /// What is said if it does not hold; empty for the expression.
    // +kubebuilder:validation:MaxLength=512
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Who requests something, as the API server knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionRequester {
    /// User name.
    // +required
    pub username: String,
    /// Groups.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=256
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// The approval or rejection of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionApproval {
    /// User name of who gives it. One needs the verb `approve` on the Action, and is not its requester.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=512
    pub approver: String,
    /// Groups of the approver that matter to policies, each of which the approver is in.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=256
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Digest of the plan: `status.planDigest`. It says nothing of another plan.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=128
    pub plan: String,
    /// `Approved` or `Rejected`.
    // +kubebuilder:validation:Enum=Approved;Rejected
    pub decision: ApprovalDecision,
    /// Why; empty if nothing was said.
    // +kubebuilder:validation:MaxLength=1024
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What an approver decided on a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalDecision {
    /// It may be executed.
    #[default]
    Approved,
    /// It may not: the Action fails.
    Rejected,
}

/// A class of Actions, and who serves it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionClassSpec {
    /// Name of the controller that serves it, such as `example.com/backups`.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=253
    pub controller: String,
    /// What Actions of it do, in a sentence.
    // +kubebuilder:validation:MaxLength=1024
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The command that does the same by hand, such as `kubectl operator install`; empty if there is none.
    // +kubebuilder:validation:MaxLength=256
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by_hand: String,
    /// How many ended Actions of it are kept in each namespace, those that ended last; absent for 100.
    // +kubebuilder:validation:Minimum=0
    // +kubebuilder:validation:Maximum=100000
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_limit: Option<u32>,
    /// How long Actions of it are kept after they ended unless they say otherwise, such as `24h`; empty
    /// until `historyLimit` is exceeded.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ttl_after_finished: String,
    /// Other names of it.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=8
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Names of the attributes that Actions of it may have beside parameters.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=16
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<String>,
    /// Names of those that they must have.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=16
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Values of attributes that an Action leaves out, by name.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Value>,
    /// OpenAPI v3 schema of `spec.parameters`; without one, an Action has none.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// Whether a class can be served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionClassStatus {
    /// Accepted: whether its schema, attributes and defaults agree, and no other class has its names.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<MetaCondition>,
}

/// The installed version that an Operator reports; empty for none.
pub fn installed_version(status: &OperatorStatus) -> &str {
    status.bundle.as_ref().map_or("", |it| it.version.as_str())
}
