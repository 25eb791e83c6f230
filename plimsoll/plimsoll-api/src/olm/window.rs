//! Maintenance windows: the times at which changes may begin.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::MetaCondition;

/// When changes may begin: while one of the windows is open and no exclusion is in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MaintenanceWindowSpec {
    /// The windows. Those that overlap or follow one another without a pause are one opening.
    // +required
    // +listType=atomic
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=64
    pub windows: Vec<WindowTimes>,
    /// Times at which it is closed, whatever the windows say.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=256
    // +kubebuilder:validation:XValidation:rule="self.all(it, it.from < it.until)",
    //  message="each exclusion needs an until that is after its from"
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<WindowExclusion>,
}

/// A window that opens on a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WindowTimes {
    /// When it opens, in the format of cron.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=256
    pub schedule: String,
    /// Time zone of the schedule, such as `Europe/Madrid`; empty for UTC.
    // +kubebuilder:validation:MaxLength=64
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time_zone: String,
    /// How long it is open, such as `4h`.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    pub duration: String,
}

/// A time at which a MaintenanceWindow is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowExclusion {
    /// The moment from which on it is closed.
    // +required
    pub from: Timestamp,
    /// The moment up to which it is closed.
    // +required
    pub until: Timestamp,
    /// Why, in a sentence; empty for no reason.
    // +kubebuilder:validation:MaxLength=1024
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Whether changes may begin now, and when that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceWindowStatus {
    /// Whether it is open.
    pub open: bool,
    /// When it opens next; absent if it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_opening: Option<Timestamp>,
    /// When it closes next; absent if it never does, or not for a long time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_closing: Option<Timestamp>,
    /// Accepted: whether its windows and exclusions can be read.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<MetaCondition>,
}

/// A MaintenanceWindow by its name, or a window that opens on a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WindowReference {
    /// Name of a MaintenanceWindow; empty for the window of the other fields.
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=253
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// When the window opens, in the format of cron; empty with a name.
    // +kubebuilder:validation:MaxLength=256
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// Time zone of the schedule, such as `Europe/Madrid`; empty for UTC.
    // +kubebuilder:validation:MaxLength=64
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time_zone: String,
    /// How long the window is open, such as `4h`; empty with a name.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duration: String,
}
