//! The kinds of Actions, in `olm.io/v1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use serde::Deserialize;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::resource;
use crate::olm::action::{
    ActionClassSpec, ActionClassStatus, ActionPartSpec, ActionSpec, ActionStatus, CronActionSpec,
    CronActionStatus, EventActionSpec, EventActionStatus, RetryActionSpec, RetryActionStatus,
};
use crate::olm::policy::{ActionPolicySpec, ActionPolicyStatus};
use crate::olm::window::{MaintenanceWindowSpec, MaintenanceWindowStatus};

/// A request for one change, which the controller of its class carries out.
// +kubebuilder:resource:path=actions,scope=Namespaced,shortName=operatoraction;operatoractions
// +kubebuilder:printcolumn:name=Outcome,type=string,
//  JSONPath=`.status.outcome`,description="How it ended, or how far it is"
// +kubebuilder:printcolumn:name=Class,type=string,priority=1,
//  JSONPath=`.spec.actionClass`,description="What it does"
// +kubebuilder:printcolumn:name=Package,type=string,priority=1,
//  JSONPath=`.spec.package`,description="Package that it is about"
// +kubebuilder:printcolumn:name=Requester,type=string,priority=1,
//  JSONPath=`.status.requester.username`,description="Who requested it"
// +kubebuilder:printcolumn:name=Plan,type=string,priority=1,
//  JSONPath=`.status.planSummary`,description="What it changes"
// +kubebuilder:printcolumn:name=Message,type=string,priority=1,
//  JSONPath=`.status.conditions[?(@.type=="ActionSucceeded")].message`,
//  description="What became of it"
// +kubebuilder:printcolumn:name=Age,type=date,priority=1,
//  JSONPath=`.metadata.creationTimestamp`,description="When it was requested"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Action {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The request.
    // +required
    #[serde(default)]
    pub spec: ActionSpec,
    /// What became of it; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<ActionStatus>,
}

/// A part of what is too large for the status of an Action.
// +kubebuilder:resource:path=actionparts,scope=Namespaced
// +kubebuilder:printcolumn:name=Action,type=string,
//  JSONPath=`.spec.action`,description="Action that it belongs to"
// +kubebuilder:printcolumn:name=Index,type=integer,
//  JSONPath=`.spec.index`,description="Its position"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ActionPart {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The part.
    // +required
    #[serde(default)]
    pub spec: ActionPartSpec,
}

/// An Action that is tried until it succeeds, or too many attempts failed.
// +kubebuilder:resource:path=retryactions,scope=Namespaced
// +kubebuilder:printcolumn:name=Succeeded,type=integer,
//  JSONPath=`.status.succeeded`,description="Number of attempts that succeeded"
// +kubebuilder:printcolumn:name=Failed,type=integer,
//  JSONPath=`.status.failed`,description="Number of attempts that failed"
// +kubebuilder:printcolumn:name=BackoffLimit,type=integer,
//  JSONPath=`.spec.backoffLimit`,description="Number of attempts that may fail"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RetryAction {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is tried, and how often.
    // +required
    #[serde(default)]
    pub spec: RetryActionSpec,
    /// How the attempts went; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<RetryActionStatus>,
}

/// Actions on a schedule.
// +kubebuilder:resource:path=cronactions,scope=Namespaced,
//  shortName=cronoperatoraction;cronoperatoractions
// +kubebuilder:printcolumn:name=Schedule,type=string,
//  JSONPath=`.spec.schedule`,description="When Actions are made"
// +kubebuilder:printcolumn:name=Timezone,type=string,
//  JSONPath=`.spec.timeZone`,description="Time zone of the schedule"
// +kubebuilder:printcolumn:name=Suspend,type=boolean,
//  JSONPath=`.spec.suspend`,description="Whether none are made"
// +kubebuilder:printcolumn:name=Last Schedule,type=date,
//  JSONPath=`.status.lastScheduleTime`,description="The latest time of the schedule that was acted on"
// +kubebuilder:printcolumn:name=Age,type=date,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct CronAction {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is made, and when.
    // +required
    #[serde(default)]
    pub spec: CronActionSpec,
    /// What was made; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<CronActionStatus>,
}

/// Actions when something changes.
// +kubebuilder:resource:path=eventactions,scope=Namespaced,
//  shortName=eventoperatoraction;eventoperatoractions
// +kubebuilder:printcolumn:name=Trigger,type=string,
//  JSONPath=`.spec.trigger.kind`,description="Kind whose changes make Actions"
// +kubebuilder:printcolumn:name=Suspend,type=boolean,
//  JSONPath=`.spec.suspend`,description="Whether none are made"
// +kubebuilder:printcolumn:name=Last Event,type=date,
//  JSONPath=`.status.lastEventTime`,description="When an Action was made last"
// +kubebuilder:printcolumn:name=Age,type=date,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct EventAction {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is made, and upon which changes.
    // +required
    #[serde(default)]
    pub spec: EventActionSpec,
    /// What was acted on; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<EventActionStatus>,
}

/// What Actions do, and which controller does it.
// +kubebuilder:resource:path=actionclasses,scope=Cluster
// +kubebuilder:printcolumn:name=Controller,type=string,
//  JSONPath=`.spec.controller`,description="Controller that serves it"
// +kubebuilder:printcolumn:name=Accepted,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether it can be served"
// +kubebuilder:printcolumn:name=Description,type=string,
//  JSONPath=`.spec.description`,description="What its Actions do"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ActionClass {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The class.
    // +required
    #[serde(default)]
    pub spec: ActionClassSpec,
    /// Whether it can be served; absent before its controller's first write.
    #[serde(default)]
    pub status: Option<ActionClassStatus>,
}

/// Who may request which Actions.
// +kubebuilder:resource:path=actionpolicies,scope=Cluster
// +kubebuilder:printcolumn:name=Classes,type=string,
//  JSONPath=`.spec.classes`,description="Classes that it is about"
// +kubebuilder:printcolumn:name=Accepted,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether it can do what it says"
// +kubebuilder:printcolumn:name=Age,type=date,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ActionPolicy {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The policy.
    // +required
    #[serde(default)]
    pub spec: ActionPolicySpec,
    /// Whether it can do what it says; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<ActionPolicyStatus>,
}

/// Times at which changes may begin.
// +kubebuilder:resource:path=maintenancewindows,scope=Cluster
// +kubebuilder:printcolumn:name=Open,type=boolean,
//  JSONPath=`.status.open`,description="Whether it is open"
// +kubebuilder:printcolumn:name=Next Opening,type=string,
//  JSONPath=`.status.nextOpening`,description="When it opens next"
// +kubebuilder:printcolumn:name=Next Closing,type=string,
//  JSONPath=`.status.nextClosing`,description="When it closes next"
// +kubebuilder:printcolumn:name=Accepted,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether it can be read"
// +kubebuilder:printcolumn:name=Age,type=date,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct MaintenanceWindow {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The times.
    // +required
    #[serde(default)]
    pub spec: MaintenanceWindowSpec,
    /// Whether it is open; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<MaintenanceWindowStatus>,
}

resource!(NamespaceResourceScope, Action, ACTION, "olm.io/v1", [spec], [status]);
resource!(NamespaceResourceScope, ActionPart, ACTION_PART, "olm.io/v1", [spec], []);
resource!(NamespaceResourceScope, RetryAction, RETRY_ACTION, "olm.io/v1", [spec], [status]);
resource!(NamespaceResourceScope, CronAction, CRON_ACTION, "olm.io/v1", [spec], [status]);
resource!(NamespaceResourceScope, EventAction, EVENT_ACTION, "olm.io/v1", [spec], [status]);
resource!(ClusterResourceScope, ActionClass, ACTION_CLASS, "olm.io/v1", [spec], [status]);
resource!(ClusterResourceScope, ActionPolicy, ACTION_POLICY, "olm.io/v1", [spec], [status]);
resource!(
    ClusterResourceScope,
    MaintenanceWindow,
    MAINTENANCE_WINDOW,
    "olm.io/v1",
    [spec],
    [status]
);
