//! The API of Plimsoll: the types that its other crates share with each other and with users.
//!
//! - How objects are identified ([`ObjectKey`]), what conditions say ([`Condition`]) and why
//!   ([`Reason`], the one list), and the health of an object ([`Verdict`]).
//! - The wire types of the kinds that Plimsoll serves and installs: `config.openshift.io/v1`
//!   (ClusterVersion, ClusterOperator), schema-compatible with the published API, and
//!   `plimsoll.io/v1alpha1` (ReleaseProgress), our own; `olm.io/v1` (Operator, OperatorRevision,
//!   Catalog), the add-on layer, with its Actions.
//!
//! There is no client and no IO here.

pub mod classes;
mod condition;
pub mod config;
pub mod crd;
pub mod duration;
mod key;
#[cfg(feature = "objects")]
mod objects;
pub mod olm;
pub mod policies;
pub mod progress;
mod reason;
mod usable;
mod verdict;

pub use condition::{
    Condition, ConditionStatus, MESSAGE_LENGTH_MAX, limited_message, merge_conditions,
    whole_seconds,
};
pub use key::{CompactName, GroupKind, NamespacedName, ObjectKey};
#[cfg(feature = "objects")]
pub use objects::{
    Action, ActionClass, ActionPart, ActionPolicy, Catalog, ClusterOperator, ClusterVersion,
    CronAction, EventAction, MaintenanceWindow, Operator, OperatorRevision, ReleaseProgress,
    RetryAction,
};
pub use reason::Reason;
pub use usable::read_usable;
pub use verdict::{Effect, Verdict};

/// A reference to a kind: everything a client needs to address its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiKind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind in CamelCase.
    pub kind: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
}

impl ApiKind {
    /// Group and version, as `apiVersion` has them.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// The ClusterVersion kind; its one object is called [`CLUSTER_VERSION_NAME`].
pub const CLUSTER_VERSION: ApiKind = ApiKind {
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterVersion",
    plural: "clusterversions",
};
/// The ClusterOperator kind.
pub const CLUSTER_OPERATOR: ApiKind = ApiKind {
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterOperator",
    plural: "clusteroperators",
};
/// The ReleaseProgress kind; its one object has the ClusterVersion's name.
pub const RELEASE_PROGRESS: ApiKind = ApiKind {
    group: "plimsoll.io",
    version: "v1alpha1",
    kind: "ReleaseProgress",
    plural: "releaseprogresses",
};
/// The FeatureGate kind, which releases bring; the features of a cluster are in the one called
/// `cluster`.
pub const FEATURE_GATE: ApiKind = ApiKind {
    group: "config.openshift.io",
    version: "v1",
    kind: "FeatureGate",
    plural: "featuregates",
};
/// The Operator kind: an installed package.
pub const OPERATOR: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "Operator", plural: "operators" };
/// The OperatorRevision kind: the objects of one installation of an Operator.
pub const OPERATOR_REVISION: ApiKind = ApiKind {
    group: "olm.io",
    version: "v1",
    kind: "OperatorRevision",
    plural: "operatorrevisions",
};
/// The Catalog kind: a collection of packages.
pub const CATALOG: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "Catalog", plural: "catalogs" };
/// The Action kind: a request for one change.
pub const ACTION: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "Action", plural: "actions" };
/// The RetryAction kind: an Action that is tried until it succeeds.
pub const RETRY_ACTION: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "RetryAction", plural: "retryactions" };
/// The CronAction kind: Actions on a schedule.
pub const CRON_ACTION: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "CronAction", plural: "cronactions" };
/// The EventAction kind: Actions when something changes.
pub const EVENT_ACTION: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "EventAction", plural: "eventactions" };
/// The kind of what is too large for the status of an Action.
pub const ACTION_PART: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "ActionPart", plural: "actionparts" };
/// The ActionClass kind: what Actions do, and who does it.
pub const ACTION_CLASS: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "ActionClass", plural: "actionclasses" };
/// The ActionPolicy kind: who may request which Actions.
pub const ACTION_POLICY: ApiKind =
    ApiKind { group: "olm.io", version: "v1", kind: "ActionPolicy", plural: "actionpolicies" };
/// The MaintenanceWindow kind: times at which changes may begin.
pub const MAINTENANCE_WINDOW: ApiKind = ApiKind {
    group: "olm.io",
    version: "v1",
    kind: "MaintenanceWindow",
    plural: "maintenancewindows",
};
/// Name of the one ClusterVersion of a cluster.
pub const CLUSTER_VERSION_NAME: &str = "version";
