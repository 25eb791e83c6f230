//! Policies of Actions: who may have what done for them (OPR-25).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LabelSelector;
use super::action::ActionPreconditions;
use crate::config::MetaCondition;

/// Who may request which Actions. Policies grant, as roles do: an Action is allowed if one policy allows
/// it, or if the requester may do by hand what it does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionPolicySpec {
    /// Whom it is about.
    // +required
    // +listType=atomic
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=64
    pub subjects: Vec<PolicySubject>,
    /// The namespaces of Actions that it is about; none for all. A name may end in `*`.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=64
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Labels of the namespaces that it is about, beside their names; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// The classes that it is about.
    // +required
    // +listType=atomic
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=64
    pub classes: Vec<String>,
    /// What is allowed; absent if the policy allows nothing, and only reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce: Option<PolicyRules>,
    /// What the requester is warned of if it does not hold; absent for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<PolicyRules>,
    /// What is on record if it does not hold; absent for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<PolicyRules>,
}

/// Whether a policy can do what it says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionPolicyStatus {
    /// Accepted: whether its subjects, ranges, expressions and windows can be read, and its classes exist.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<MetaCondition>,
}

/// A subject of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicySubject {
    /// `User`, `Group` or `ServiceAccount`.
    // +required
    // +kubebuilder:validation:Enum=User;Group;ServiceAccount
    pub kind: SubjectKind,
    /// Name.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=512
    pub name: String,
    /// Namespace of a ServiceAccount; empty for others.
    // +kubebuilder:validation:MaxLength=63
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// What a subject is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubjectKind {
    /// A user.
    #[default]
    User,
    /// A group.
    Group,
    /// A service account.
    ServiceAccount,
}

/// What has to hold of an Action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRules {
    /// Rules of single attributes.
    // +listType=map
    // +listMapKey=name
    // +kubebuilder:validation:MaxItems=32
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeRule>,
    /// The packages that a plan may create, change or delete Operators of; none for all. A name may end
    /// in `*`.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=256
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// The Catalogs that Operators of a plan may be taken from, dependencies included; none for all. A name
    /// may end in `*`. What is created or updated then names its Catalog in `spec.repository`.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=256
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub catalogs: Vec<String>,
    /// The channels that Operators of a plan may be taken from, dependencies included; none for all. A name
    /// may end in `*`. What is created or updated then names its channel in `spec.channel`.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=256
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
    /// What has to hold of the plan beside what the Action demands itself.
    pub preconditions: ActionPreconditions,
    /// Whether the plan has to be approved, by another user than the requester.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_approval: bool,
    /// How many users have to approve it, if it has to be approved; absent for one.
    // +kubebuilder:validation:Minimum=1
    // +kubebuilder:validation:Maximum=16
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_count: Option<u32>,
    /// Whose approvals count; none for those of all who have the verb `approve` on the Action, which is needed in
    /// any case.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=64
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<PolicySubject>,
    /// How many Actions of a namespace may not have ended, this one included; absent for any number.
    // +kubebuilder:validation:Minimum=1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_active: Option<u32>,
    /// How many Operators may exist that Actions of a namespace have created, dependencies and those that the plan
    /// creates included; absent for any number. It limits plans that create some.
    // +kubebuilder:validation:Minimum=1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_operators: Option<u32>,
}

impl PolicyRules {
    /// Returns whether the plan has to be approved.
    pub fn is_approval_required(&self) -> bool {
        self.requires_approval || self.approval_count.is_some() || !self.approvers.is_empty()
    }
}

/// What has to hold of an attribute. In the texts of `default`, `fixed` and `values`, `$(namespace)` is the namespace
/// of the Action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttributeRule {
    /// Its name, such as `version`, or `parameters.NAME`.
    // +required
    // +kubebuilder:validation:MaxLength=253
    // +kubebuilder:validation:Pattern=`^(package|version|channel|repository|installDependencies|ensureConstraintSatisfiability|dryRun|parameters\..+)$`
    pub name: String,
    /// Whether it has to be given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Whether it may not be given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forbidden: bool,
    /// The value of one that is not given; absent for that of the class.
    // +kubebuilder:validation:Schemaless
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only value that it has, whether it is given or not; absent for any. An Action that gives another one
    /// is denied.
    // +kubebuilder:validation:Schemaless
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Value>,
    /// The values that it may have, as texts; none for all. A value may end in `*`. An attribute that is
    /// not given and has no default has none of them.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=256
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The range that the versions of the plan are to be in, for `version`; empty for any.
    // +kubebuilder:validation:MaxLength=256
    #[serde(skip_serializing_if = "String::is_empty")]
    pub range: String,
}
