//! RetryActions, CronActions and EventActions: what makes Actions again, on a schedule, or when something
//! changes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ActionRequester, ActionSpec};
use crate::config::MetaCondition;

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
    /// How many seconds it may take from its creation, whatever the number of attempts; absent for any.
    /// Then the attempt that runs is cancelled.
    // +kubebuilder:validation:Minimum=1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// How many ended attempts are kept, those that ended last; absent for all of them.
    // +kubebuilder:validation:Minimum=1
    // +kubebuilder:validation:Maximum=1000
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_limit: Option<u32>,
    /// How long it is kept after it ended, with its attempts, such as `24h`; empty for ever.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ttl_after_finished: String,
    /// Whether no further attempt is made, and the one that runs is cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
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
    /// Name of the latest attempt; empty before the first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub latest_attempt: String,
    /// When the first attempt was made; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When it ended; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// When the next attempt begins; absent if none is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Timestamp>,
    /// How many names of its Actions were taken; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<u32>,
}

/// What happens when an Action is due while the one before has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    /// Both run.
    #[default]
    Allow,
    /// The new one is left out.
    Forbid,
    /// Those before are cancelled, and stop before their next change.
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
    /// Name of the MaintenanceWindow that has to be open for an Action to be made; empty for any time.
    // +kubebuilder:validation:MaxLength=253
    #[serde(skip_serializing_if = "String::is_empty")]
    pub maintenance_window: String,
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
    /// The latest time of the schedule that was acted on, or at which a clock that was ahead was set back; absent
    /// before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Timestamp>,
    /// The times of the schedule for which no Action was made last; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedTimes>,
    /// When an Action of it succeeded last; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Timestamp>,
    /// Names of its Actions that have not ended.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<String>,
    /// What is wrong with the schedule or the time zone, or why no Action can be made; empty if nothing is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How many names of its Actions were taken; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<u32>,
}

/// Times of a schedule, or of changes, for which no Action was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MissedTimes {
    /// Why: of a schedule ScheduleMissed, StartingDeadlineExceeded, MaintenanceWindowClosed,
    /// InvalidMaintenanceWindow, ActionAlreadyActive or ClockSetBack, of changes FilterFailed, EventActionCircle or
    /// RateLimited.
    // +required
    pub reason: String,
    /// How many; of a schedule 100 if there are more.
    // +required
    pub count: u32,
    /// The first of them.
    // +required
    pub first_time: Timestamp,
    /// The last of them.
    // +required
    pub last_time: Timestamp,
    /// What prevented it.
    // +required
    pub message: String,
}

/// Makes Actions when something changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventActionSpec {
    /// What is looked at, and which changes count.
    // +required
    // +kubebuilder:validation:XValidation:rule="(self.kind == 'Object') == has(self.object)",
    //  message="kind Object and object need each other"
    // +kubebuilder:validation:XValidation:rule="!has(self.events) || self.events.all(it, it in {'Catalog':
    //  ['ContentChanged'], 'Operator': ['Installed', 'Unsatisfied', 'UpdateAvailable'], 'ClusterVersion': ['Updated',
    //  'Failing', 'UpdateAvailable'], 'Object': ['Changed']}[self.kind])",
    //  message="a Catalog has the event ContentChanged, an Operator Installed, Unsatisfied and UpdateAvailable, the
    //  ClusterVersion Updated, Failing and UpdateAvailable, an Object Changed"
    pub trigger: EventTrigger,
    /// How many Actions are made at most; absent for any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
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

/// The changes that make Actions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventTrigger {
    /// The kind: `Catalog`, `Operator`, `ClusterVersion`, or an `Object` of any other kind.
    // +required
    // +kubebuilder:validation:Enum=Catalog;Operator;ClusterVersion;Object
    pub kind: EventSourceKind,
    /// What happens to the objects; none for the first one of their kind: `ContentChanged` of a Catalog;
    /// `Installed`, `Unsatisfied` and `UpdateAvailable` of an Operator; `Updated`, `Failing` and
    /// `UpdateAvailable` of the ClusterVersion; `Changed` of an Object.
    // +listType=set
    // +kubebuilder:validation:MaxItems=3
    // +kubebuilder:validation:items:Enum=ContentChanged;Installed;Unsatisfied;Updated;Failing;UpdateAvailable;Changed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventType>,
    /// Which objects, if the kind is `Object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<SelectedObjects>,
    /// The names of the objects; none for all.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=64
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// An expression of the Common Expression Language that is true for the changes that make Actions, over `object`,
    /// the object as it is now, `event`, the name of the event, and `old` and `new`, what `status.observed` has of it
    /// before and after; empty for all changes.
    // +kubebuilder:validation:MaxLength=2048
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter: String,
}

/// How many Actions are made at most within a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RateLimit {
    /// How many.
    // +required
    // +kubebuilder:validation:Minimum=1
    // +kubebuilder:validation:Maximum=100
    pub count: u32,
    /// Within which time, such as `1h`.
    // +required
    // +kubebuilder:validation:MinLength=2
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    pub period: String,
}

/// A kind whose changes make Actions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventSourceKind {
    /// Catalogs.
    #[default]
    Catalog,
    /// Operators.
    Operator,
    /// The ClusterVersion.
    ClusterVersion,
    /// Objects of any other kind.
    Object,
}

impl EventSourceKind {
    /// Returns the events of the kind; the first one is meant if none is named.
    pub fn events(self) -> &'static [EventType] {
        match self {
            Self::Catalog => &[EventType::ContentChanged],
            Self::Operator => {
                &[EventType::Installed, EventType::Unsatisfied, EventType::UpdateAvailable]
            }
            Self::ClusterVersion => {
                &[EventType::Updated, EventType::Failing, EventType::UpdateAvailable]
            }
            Self::Object => &[EventType::Changed],
        }
    }
}

/// What happens to an object.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum EventType {
    /// A Catalog has another content.
    #[default]
    ContentChanged,
    /// Another version of an Operator is installed.
    Installed,
    /// What an Operator requires is not satisfied any more.
    Unsatisfied,
    /// Another release was completed.
    Updated,
    /// The ClusterVersion began to fail.
    Failing,
    /// The ClusterVersion has another available update.
    UpdateAvailable,
    /// The generation of an object has changed, or its revision if its kind has no generations.
    Changed,
}

impl EventType {
    /// Returns the name, as specs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContentChanged => "ContentChanged",
            Self::Installed => "Installed",
            Self::Unsatisfied => "Unsatisfied",
            Self::Updated => "Updated",
            Self::Failing => "Failing",
            Self::UpdateAvailable => "UpdateAvailable",
            Self::Changed => "Changed",
        }
    }
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
    /// What has been looked at, but for the filter; absent before the first time. What there was at the first look
    /// makes no Action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<EventTrigger>,
    /// What was seen last, by name and event.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedContent>,
    /// When changes were seen last, whether they make an Action or not; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_change_time: Option<Timestamp>,
    /// When a change was seen last that makes an Action; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event_time: Option<Timestamp>,
    /// Name of the Action that `observed` makes and that may not have been created yet; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pending: String,
    /// The EventActions that led to the pending Action, each as `NAMESPACE/NAME`, in order, with this one at the end;
    /// absent if none is pending.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending_chain: Vec<String>,
    /// When the Actions that count for the rate limit were made, the first one in front; absent without a limit.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent_times: Vec<Timestamp>,
    /// The changes that made no Action although they are no others than those that do, by reason; absent if there
    /// were none.
    // +listType=map
    // +listMapKey=reason
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<MissedTimes>,
    /// What is wrong with the filter, the events or the rate limit, why the objects cannot be looked at, or no Action can be made;
    /// empty otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How many names of its Actions were taken; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<u32>,
}

/// What was seen of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedContent {
    /// Its name.
    // +required
    pub name: String,
    /// The event.
    // +required
    // +kubebuilder:validation:Enum=ContentChanged;Installed;Unsatisfied;Updated;Failing;UpdateAvailable;Changed
    pub event: EventType,
    /// What tells one change from another: the digest of a Catalog, the version of an Operator or a release, the
    /// versions of the available updates, since when an Operator is unsatisfied or the ClusterVersion fails, the uid
    /// and the generation or revision of another object.
    // +required
    pub content: String,
}
