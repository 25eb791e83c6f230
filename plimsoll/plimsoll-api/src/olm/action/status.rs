//! The status of an Action: its state, its plan, and what policies decided.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ActionRequester;
use super::change::PlannedChange;
use crate::config::MetaCondition;

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
