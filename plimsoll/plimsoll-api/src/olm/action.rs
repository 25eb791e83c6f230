//! Actions: requests for one change, as Jobs are (OPR-23, OPR-24), and what makes them again, on a
//! schedule, or when something changes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OperatorStatus, RemainingObjects};
use crate::config::MetaCondition;

/// Type of the condition of an Action that tells how it ended.
pub const ACTION_SUCCEEDED: &str = "ActionSucceeded";
/// Annotation of an Operator: uid of the Action that created it.
pub const CREATED_BY_ANNOTATION: &str = "olm.io/created-by-action";
/// Label of an Action: name of the RetryAction, CronAction or EventAction that made it.
pub const OWNER_LABEL: &str = "olm.io/action-owner";

/// One request. Nothing of it changes after it was created but its approval and its cancellation.
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
    /// How long it may take from its start, such as `10m`; empty for one hour.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deadline: String,
    /// Who requests it. Set at admission; a request that names another user is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<ActionRequester>,
    /// The approval of a plan; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ActionApproval>,
    /// Whether it is given up if it has not begun.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// What has to hold of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionPreconditions {
    /// All requirements of all Operators are satisfied afterwards.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub consistent: bool,
    /// No Operator goes that has objects of its kinds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_workload_removal: bool,
    /// No Operator is left that was installed as a dependency and that nothing depends on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_orphans: bool,
    /// It begins within one of these times; absent for any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_maintenance_window: Option<MaintenanceWindow>,
    /// Expressions of the Common Expression Language over `plan`, each true.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=16
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expressions: Vec<PlanExpression>,
}

/// Times at which something may begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceWindow {
    /// When a window opens, in the format of cron.
    // +required
    // +kubebuilder:validation:MaxLength=256
    pub schedule: String,
    /// Time zone of the schedule, such as `Europe/Madrid`; empty for UTC.
    // +kubebuilder:validation:MaxLength=64
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time_zone: String,
    /// How long it is open, such as `4h`.
    // +required
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    pub duration: String,
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

/// The approval of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionApproval {
    /// Digest of the plan: `status.planDigest`. Another plan is not approved.
    // +required
    // +kubebuilder:validation:MaxLength=128
    pub plan: String,
    /// User name of who approves it. One needs the verb `approve` on the Action.
    // +required
    // +kubebuilder:validation:MaxLength=512
    pub approver: String,
}

/// How far an Action is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionState {
    /// It waits to be planned, or for another Action.
    #[default]
    #[serde(rename = "PENDING")]
    Pending,
    /// Its plan waits for an approval.
    #[serde(rename = "APPROVAL")]
    Approval,
    /// Its plan is executed.
    #[serde(rename = "RUNNING")]
    Running,
    /// All of its plan was done.
    #[serde(rename = "SUCCEEDED")]
    Succeeded,
    /// It ended otherwise.
    #[serde(rename = "FAILED")]
    Failed,
    /// It was given up before it began.
    #[serde(rename = "CANCELLED")]
    Cancelled,
}

impl ActionState {
    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Approval => "APPROVAL",
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// What became of an Action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionStatus {
    /// How far it is.
    // +required
    // +kubebuilder:validation:Enum=PENDING;APPROVAL;RUNNING;SUCCEEDED;FAILED;CANCELLED
    pub state: ActionState,
    /// ActionSucceeded. Whether requirements are satisfied is a condition of each Operator.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<MetaCondition>,
    /// Who requested it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<ActionRequester>,
    /// The attributes that count, each with what set it.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effective_spec: Vec<EffectiveAttribute>,
    /// What policies decided.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyDecision>,
    /// The plan: what is done, in this order, and how far it is.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlannedChange>,
    /// Digest of the plan; empty before there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plan_digest: String,
    /// What a person should know of the plan, a line each.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
    /// What a query answered; cut off if it is too long.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// Digest of the whole answer; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result_digest: String,
    /// When its execution began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
}

/// An attribute that counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EffectiveAttribute {
    /// Its name.
    // +required
    pub name: String,
    /// Its value as text.
    // +required
    pub value: String,
    /// What set it: `request`, `class NAME` or `policy NAME`.
    // +required
    pub set_by: String,
}

/// What a policy decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyDecision {
    /// Name of the ActionPolicy; empty for the requester's own permissions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// `Enforce`, `Warn` or `Audit`.
    // +required
    pub mode: String,
    /// Whether it is allowed.
    // +required
    pub allowed: bool,
    /// Why.
    // +required
    pub message: String,
}

/// What is done with an Operator, or with the ClusterVersion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedChange {
    /// Name of the Operator; empty for the ClusterVersion.
    // +required
    pub operator: String,
    /// What is done: `Create`, `Update` or `Delete` the Operator, `UpdateRelease` or `EnableCapability` in the
    /// ClusterVersion, or `Await` what is requested already.
    // +required
    // +kubebuilder:validation:Enum=Create;Update;Delete;UpdateRelease;EnableCapability;Await
    pub operation: ChangeOperation,
    /// Uid of the object that was planned for; empty if it is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// `spec.version` of the Operator, or `spec.desiredUpdate` of the ClusterVersion, before; empty for any,
    /// and if it is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_before: String,
    /// The same afterwards; empty for any, and if it is deleted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested: String,
    /// The installed version before; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version_before: String,
    /// The installed version afterwards; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Name of the bundle that is installed; empty if that is not known, and if it is deleted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// The channel that the bundle is taken from; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the Catalog that the bundle is taken from; empty if that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub catalog: String,
    /// What `spec.repository` of the Operator is set to; empty if it stays as it is, and if it is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// Image of the bundle, or the digest of the Catalog if it has the content itself; empty if that is
    /// not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The capability that is enabled; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub capability: String,
    /// Whether others need it, and it was not requested itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dependency: bool,
    /// The Operator to create; absent otherwise.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// The change set that it is applied with; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub change_set: String,
    /// Objects of its kinds that go with it.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<RemainingObjects>,
    /// How far it is: `Planned`, `Written` to the API server, `Completed` or `Failed`.
    // +required
    // +kubebuilder:validation:Enum=Planned;Written;Completed;Failed
    pub state: ChangeState,
    /// Why it is in that state, in one word; empty for a plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What is done with an Operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeOperation {
    /// It is created.
    Create,
    /// Another version is requested of it.
    Update,
    /// It is deleted.
    Delete,
    /// Another release is requested in the ClusterVersion.
    UpdateRelease,
    /// A capability is requested in the ClusterVersion.
    EnableCapability,
    /// Nothing is written; the Action ends when it is done.
    #[default]
    Await,
}

impl PlannedChange {
    /// Whether it changes the ClusterVersion.
    pub fn is_release(&self) -> bool {
        self.operator.is_empty()
    }

    /// What it changes, for people: the Operator, the release or a capability of it.
    pub fn subject(&self) -> &str {
        match (self.operator.as_str(), self.capability.as_str()) {
            ("", "") => "release",
            ("", capability) => capability,
            (operator, _) => operator,
        }
    }
}

/// How far a change is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeState {
    /// Nothing was done.
    #[default]
    Planned,
    /// The API server has it.
    Written,
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
}

/// Tries an Action until it succeeds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryActionSpec {
    /// How many attempts may fail, as Jobs count them: with one more, the RetryAction fails.
    // +kubebuilder:default=6
    // +kubebuilder:validation:Minimum=0
    // +kubebuilder:validation:Maximum=100
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<u32>,
    /// The Action.
    // +required
    pub template: ActionSpec,
    /// Who requests it. Set at admission; a request that names another user is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<ActionRequester>,
}

/// How the attempts went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryActionStatus {
    /// Attempts that succeeded: none or one.
    // +required
    pub succeeded: u32,
    /// Attempts that failed.
    // +required
    pub failed: u32,
    /// ActionSucceeded.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<MetaCondition>,
    /// When the next attempt begins; absent if none is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Timestamp>,
}

/// What happens when an Action is due while the one before has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    /// Both run.
    #[default]
    Allow,
    /// The new one is left out.
    Forbid,
    /// The one before is cancelled if it has not begun.
    Replace,
}

/// Makes Actions on a schedule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronActionSpec {
    /// When, in the format of cron.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=256
    pub schedule: String,
    /// Time zone of the schedule, such as `Europe/Madrid`; empty for UTC.
    // +kubebuilder:validation:MaxLength=64
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time_zone: String,
    /// How many seconds late an Action may begin if no controller ran at its time; absent for any.
    // +kubebuilder:validation:Minimum=0
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens while the Action before has not ended.
    // +kubebuilder:validation:Enum=Allow;Forbid;Replace
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether no Actions are made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// How many Actions are kept that succeeded.
    // +kubebuilder:default=3
    // +kubebuilder:validation:Maximum=1000
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_actions_history_limit: Option<u32>,
    /// How many Actions are kept that failed or were cancelled.
    // +kubebuilder:default=1
    // +kubebuilder:validation:Maximum=1000
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_actions_history_limit: Option<u32>,
    /// The Action.
    // +required
    pub template: ActionSpec,
    /// Who requests it. Set at admission; a request that names another user is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<ActionRequester>,
}

/// What a schedule has made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronActionStatus {
    /// The latest time of the schedule that was acted on; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Timestamp>,
    /// When an Action of it succeeded last; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Timestamp>,
    /// Names of its Actions that have not ended.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<String>,
    /// What is wrong with the schedule or the time zone; empty if nothing is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Makes Actions when something changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventActionSpec {
    /// What is looked at.
    // +required
    // +kubebuilder:validation:XValidation:rule="(self.kind == 'Object') == has(self.object)",
    //  message="kind Object and object need each other"
    pub on: EventSource,
    /// Whether no Actions are made; what changes meanwhile is not made up for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// How many Actions are kept that succeeded.
    // +kubebuilder:default=3
    // +kubebuilder:validation:Maximum=1000
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_actions_history_limit: Option<u32>,
    /// How many Actions are kept that failed or were cancelled.
    // +kubebuilder:default=1
    // +kubebuilder:validation:Maximum=1000
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_actions_history_limit: Option<u32>,
    /// The Action.
    // +required
    pub template: ActionSpec,
    /// Who requests it. Set at admission; a request that names another user is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<ActionRequester>,
}

/// What changes are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventSource {
    /// The kind: the content of a `Catalog`, the installed version of an `Operator`, the completed
    /// version of the `ClusterVersion`, or an `Object` of any other kind.
    // +required
    // +kubebuilder:validation:Enum=Catalog;Operator;ClusterVersion;Object
    pub kind: EventSourceKind,
    /// Which objects, if the kind is `Object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<SelectedObjects>,
    /// The names of the objects; none for all.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=64
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A kind whose changes make Actions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventSourceKind {
    /// The content of catalogs.
    #[default]
    Catalog,
    /// The installed versions of Operators.
    Operator,
    /// The release that was completed.
    ClusterVersion,
    /// Objects of any other kind.
    Object,
}

/// Objects of a kind, of the namespace of who selects them unless the kind is cluster-scoped.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectedObjects {
    /// Group and version of the kind, such as `apps/v1`.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=317
    pub api_version: String,
    /// The kind, such as `Deployment`.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=63
    pub kind: String,
    /// Labels that the objects have; none for all objects.
    // +kubebuilder:validation:MaxProperties=16
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
}

/// What changes have been acted on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventActionStatus {
    /// What has been looked at; absent before the first time. What there was at the first look makes no
    /// Action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<EventSource>,
    /// What was seen last, by name.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedContent>,
    /// When a change was seen last that makes an Action; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event_time: Option<Timestamp>,
    /// Name of the Action that `observed` makes and that may not have been created yet; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pending: String,
    /// Why the objects cannot be looked at; empty if they can.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What was seen of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedContent {
    /// Its name.
    // +required
    pub name: String,
    /// Digest, version or generation of its content.
    // +required
    pub content: String,
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

/// The installed version that an Operator reports; empty for none.
pub fn installed_version(status: &OperatorStatus) -> &str {
    status.bundle.as_ref().map_or("", |it| it.version.as_str())
}
