//! The status of an Action: its state, its plan, and what policies decided.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ActionRequester;
use super::change::PlannedChange;
use super::part::PartReference;
use crate::config::MetaCondition;

/// How far an Action is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionState {
    /// It waits to be planned, or for another Action.
    #[default]
    Pending,
    /// Its plan waits for an approval.
    WaitingForApproval,
    /// Its plan is executed.
    Running,
    /// All of its plan was done.
    Succeeded,
    /// It ended otherwise.
    Failed,
    /// It was cancelled before all of its plan was done.
    Cancelled,
}

impl ActionState {
    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// The state as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::WaitingForApproval => "WaitingForApproval",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }

    /// The state as lists of Actions print it.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::WaitingForApproval => "APPROVAL",
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
    // +kubebuilder:validation:Enum=Pending;WaitingForApproval;Running;Succeeded;Failed;Cancelled
    pub state: ActionState,
    /// The state as lists print it: `PENDING`, `APPROVAL`, `RUNNING`, `SUCCEEDED`, `FAILED` or
    /// `CANCELLED`; empty if the controller of a class does not set it.
    // +kubebuilder:validation:MaxLength=32
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// ActionSucceeded, then one ConstraintSatisfied for each dependency that was created.
    // +listType=atomic
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
    /// The plan: what is done, in this order, and how far each change is. If the plan is in `parts`, only the
    /// changes that have begun are here, without what they write: all others are `Planned`.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlannedChange>,
    /// Number of changes of the plan by operation, such as `2 to create, 1 to update`; empty before there
    /// is a plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plan_summary: String,
    /// Digest of the plan; empty before there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plan_digest: String,
    /// What a person should know of the plan, a line each.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
    /// The dependencies that the plan creates, each with how far it is.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<ActionDependency>,
    /// What a query answered; the first part of it if it is in `parts`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// Digest of the whole answer; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result_digest: String,
    /// The ActionParts with what is too large for this status; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartReference>,
    /// Why it failed or was cancelled, and what is left to do; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDetails>,
    /// How often its execution was begun or, after another controller had stopped, continued.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// When its execution began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A dependency that an Action creates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionDependency {
    /// Package, which is the name of its Operator.
    // +required
    pub package: String,
    /// The version that is installed.
    // +required
    pub version: String,
    /// `DependencyCreated` once it is installed, until then why it is not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Why an Action failed or was cancelled, and what a person needs to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureDetails {
    /// The Operator, `release` or the capability that it failed on; empty for the request itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub item: String,
    /// Name of the precondition that the plan violates, such as `noOrphans`; empty if none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub precondition: String,
    /// The changes that were made, a line each.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// The changes that were not made, a line each: what they are about is left as it was.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// The changes of which it is not known whether they were made, or that were made and of which the cluster has
    /// nothing any more after it was restored to an earlier state, a line each.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// The command that does the same by hand; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
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
    /// The first rule that does not hold, as the field of the policy, such as `packages` or
    /// `attributes[version].range`; empty if all hold, and for a request that is wrong itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// Why.
    // +required
    pub message: String,
}
