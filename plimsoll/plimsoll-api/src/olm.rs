//! `olm.io/v1`: Operator, the objects that install it (OperatorRevision), and the catalogs that it
//! comes from (Catalog) (OPR-7 to OPR-14).
//!
//! The definitions in `crds/` are generated from these types; see [`crate::config`] on how.

pub mod action;
mod catalog;
mod certificates;
pub mod policy;
mod readiness;
mod revision;
mod selector;
mod status;
pub mod window;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::catalog::{
    CatalogAvailability, CatalogDefect, CatalogDefects, CatalogSource, CatalogSourceType,
    CatalogSpec, CatalogStatus,
};
pub use self::certificates::CertificateProvider;
pub use self::readiness::ReadinessRule;
pub use self::revision::{BundleProperty, OperatorRevisionSpec, RevisionObject, RevisionPart};
pub use self::selector::{LabelOperator, LabelRequirement, LabelSelector};
pub use self::status::{
    BundleReference, DeletionProgress, Dependant, DependencyStatus, InstalledApi, OperatorHistory,
    OperatorStatus, PlatformRequirements, RemainingObjects,
};

/// Label of every object of an Operator: the Operator's name.
pub const OPERATOR_LABEL: &str = "olm.io/operator";
/// Label of an Operator: whether a person asked for it, or another Operator needed it
/// ([`INSTALLED_AS_USER`], [`INSTALLED_AS_DEPENDENCY`]). Without it a person did.
pub const INSTALLED_AS_LABEL: &str = "olm.io/installed-as";
/// Value of [`INSTALLED_AS_LABEL`]: a person asked for it.
pub const INSTALLED_AS_USER: &str = "user";
/// Value of [`INSTALLED_AS_LABEL`]: another Operator needed it.
pub const INSTALLED_AS_DEPENDENCY: &str = "dependency";
/// Annotation of an Operator: `ID/MEMBERS`, the set of Operators that are changed together, and the
/// number of its members.
pub const CHANGE_SET_ANNOTATION: &str = "olm.io/change-set";
/// Annotation of an Operator that was created again and is not complete yet: the uid of its predecessor.
pub const ABORT_OF_ANNOTATION: &str = "olm.io/abort-of";
/// Annotation of an OperatorRevision: `UID/CODE`, the uid of the Operator that the controller made it for, and
/// the code by which the controller recognizes that.
pub const SIGNATURE_ANNOTATION: &str = "olm.io/signature";
/// Finalizer of an Operator: its objects are deleted in order before it goes. Its OperatorRevisions have it
/// too, so that they stay until then.
pub const DELETION_FINALIZER: &str = "olm.io/delete-objects";

/// What of a package is installed, and how it is kept up to date. The name of an Operator is the
/// name of its package.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorSpec {
    /// Version to install: one version pins it, a range such as `~1.2` or `>=1.2.5, <1.3` is followed
    /// within itself; empty for any version.
    // +kubebuilder:validation:MaxLength=256
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Channel that versions are taken from; empty for the package's default channel, or for the one
    /// that the installed bundle came from.
    // +kubebuilder:validation:MaxLength=256
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the Catalog that bundles are taken from; empty for any.
    // +kubebuilder:validation:MaxLength=253
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// Namespace that the operator is installed into; empty for the one that the bundle suggests, else
    /// for the package's name. It is created if it is missing.
    // +kubebuilder:validation:MaxLength=63
    // +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// What requirements that are not satisfied do to an installation and to an upgrade.
    pub constraint_policy: ConstraintPolicy,
    /// Which versions an installed one may be upgraded to: `Graph` follows the edges of the channel,
    /// `Semver` any higher version, `Any` any other version, lower ones included.
    // +kubebuilder:validation:Enum=Graph;Semver;Any
    pub upgrade_policy: UpgradePolicy,
    /// What a CustomResourceDefinition does that its users cannot follow: `Enforce` blocks the upgrade,
    /// `Warn` reports it, `Off` does not look.
    // +kubebuilder:validation:Enum=Enforce;Warn;Off
    pub crd_upgrade_safety: CrdUpgradeSafety,
    /// Which existing objects are taken over: `Prevent` none, `IfNoController` those that no
    /// controller owns, `None` all.
    // +kubebuilder:validation:Enum=Prevent;IfNoController;None
    pub collision_protection: CollisionProtection,
    /// Configuration of the operator, such as `watchNamespace` and `deploymentConfig`; what is possible
    /// depends on the bundle. Absent for none.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// Who issues the certificates of the operator's webhooks and API services: `BuiltIn` this controller,
    /// `CertManager` cert-manager, `ServiceCa` the service CA of OpenShift, `None` another client.
    // +kubebuilder:validation:Enum=BuiltIn;CertManager;ServiceCa;None
    #[serde(skip_serializing_if = "CertificateProvider::is_default")]
    pub certificates: CertificateProvider,
    /// When objects of the bundle are ready, beside what is known of their kinds: a rollout waits for that. The
    /// first rule that selects an object counts, in place of the one that the bundle has for it.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=32
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ready_when: Vec<ReadinessRule>,
    /// What becomes of definitions, their objects and workloads when the Operator is deleted.
    pub deletion: DeletionPolicy,
    /// What follows a failed rollout: `Automatic` returns to the revision before, `Manual` stops.
    // +kubebuilder:validation:Enum=Automatic;Manual
    pub rollback: RollbackPolicy,
    /// Number of a kept OperatorRevision to return to; absent to follow `version`.
    // +kubebuilder:validation:Minimum=1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Whether the Operator is left as it is: nothing is installed, upgraded, repaired or deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// How long a rollout may take before it counts as failed, such as `10m`, without the migration of objects
    /// at its end; empty for no limit, or for 10 minutes with `rollback: Automatic`.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub progress_deadline: String,
}

/// What requirements that are not satisfied do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConstraintPolicy {
    /// To an installation: `Warn` goes ahead and reports them, `Enforce` waits for them.
    // +kubebuilder:validation:Enum=Warn;Enforce
    pub install: InstallConstraints,
    /// To an upgrade: `Enforce` waits for them, `Warn` goes ahead and reports them.
    // +kubebuilder:validation:Enum=Warn;Enforce
    pub upgrade: UpgradeConstraints,
}

/// What an unmet requirement does to an installation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InstallConstraints {
    /// It is reported.
    #[default]
    Warn,
    /// The installation waits.
    Enforce,
}

/// What an unmet requirement does to an upgrade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpgradeConstraints {
    /// The upgrade waits.
    #[default]
    Enforce,
    /// It is reported.
    Warn,
}

/// Which versions an installed one may be upgraded to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpgradePolicy {
    /// Those that the channel's graph leads to.
    #[default]
    Graph,
    /// Any higher one.
    Semver,
    /// Any other one.
    Any,
}

/// What is done about a definition that would break what uses it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrdUpgradeSafety {
    /// The upgrade is blocked.
    #[default]
    Enforce,
    /// It is reported.
    Warn,
    /// It is not checked.
    Off,
}

/// Which existing objects are taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CollisionProtection {
    /// None: an object that exists and is not the Operator's stops the rollout.
    #[default]
    Prevent,
    /// Those without a controller among their owners.
    IfNoController,
    /// All of them.
    None,
}

/// What follows a failed rollout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RollbackPolicy {
    /// A person decides.
    #[default]
    Manual,
    /// The last revision that was complete is applied again.
    Automatic,
}

/// What becomes of what an Operator brought when it is deleted (OPR-11).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionPolicy {
    /// CustomResourceDefinitions: `Delete` with all of their objects, `Orphan` keeps both.
    // +kubebuilder:validation:Enum=Delete;Orphan
    pub crds: CrdDeletion,
    /// Objects of the operator's kinds: `Delete` them while the operator runs, `Refuse` to delete the
    /// Operator as long as there are any, `Orphan` keeps them and with them their definitions.
    // +kubebuilder:validation:Enum=Delete;Refuse;Orphan
    pub workloads: WorkloadDeletion,
    /// When a request to delete the Operator is refused: `None` never, `Dependants` while others depend
    /// on it, `Workloads` and `All` always, so that objects of its kinds go only once this is changed.
    // +kubebuilder:validation:Enum=None;Dependants;Workloads;All
    pub protect: DeletionProtection,
}

/// What becomes of definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrdDeletion {
    /// They are deleted, with their objects.
    #[default]
    Delete,
    /// They stay.
    Orphan,
}

/// What becomes of objects of the operator's kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkloadDeletion {
    /// They are deleted while the operator runs.
    #[default]
    Delete,
    /// Nothing is deleted as long as there are any.
    Refuse,
    /// They stay, and their definitions too.
    Orphan,
}

/// When a request to delete an Operator is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionProtection {
    /// Never.
    #[default]
    None,
    /// While others depend on it.
    Dependants,
    /// Always, for the sake of the objects of its kinds. A deletion that was requested all the same, without
    /// the admission policy, waits while there are any.
    Workloads,
    /// As both of them.
    All,
}
