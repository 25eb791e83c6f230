//! Whether a document belongs to a cluster, and if not, why (CV-3, CV-7).
//!
//! The checks run in a fixed order and the first that fails decides. A filter that its
//! [`Context`] leaves open is not applied. A payload may say that its manifests without a profile are for
//! clusters of any ([`Manifest::any_profile`]): those that are built of sources without profiles do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use plimsoll_api::{GroupKind, ObjectKey};
use serde_json::Value;

use crate::capability;
use crate::hash::manifest_hash;
use crate::{Manifest, Packed};

mod major_version;

pub use major_version::MajorVersionError;
pub(crate) use major_version::problem as major_version_problem;

/// Prefix of the annotation that includes a manifest in a cluster profile.
pub const INCLUDE_PREFIX: &str = "include.release.openshift.io/";
/// Prefix of the annotation that keeps a manifest out of clusters with an exclude identifier.
pub const EXCLUDE_PREFIX: &str = "exclude.release.openshift.io/";
/// Annotation: the feature sets that a manifest is for, separated by commas.
pub const FEATURE_SET: &str = "release.openshift.io/feature-set";
/// Annotation: the feature gates that must be on or (with a leading `-`) off.
pub const FEATURE_GATE: &str = "release.openshift.io/feature-gate";
/// Annotation: the major versions that a manifest is for or (with a leading `-`) not for.
pub const MAJOR_VERSION: &str = "release.openshift.io/major-version";

/// The profile of a cluster that names none.
pub const DEFAULT_PROFILE: &str = "self-managed-high-availability";
/// How annotations spell the empty feature set.
pub const DEFAULT_FEATURE_SET: &str = "Default";
/// The feature sets that annotations may name.
pub const FEATURE_SETS: [&str; 5] =
    [DEFAULT_FEATURE_SET, "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade", "OKD"];

/// What the cluster chose, as far as inclusion depends on it. The default filters nothing but
/// manifests without annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// Cluster profile; `None` does not filter by profile.
    pub profile: Option<String>,
    /// Feature set, the default one empty or `Default`; `None` does not filter by feature set.
    pub feature_set: Option<String>,
    /// The enabled feature gates; `None` does not filter by feature gate.
    pub feature_gates: Option<BTreeSet<String>>,
    /// The identifier whose exclude annotation keeps manifests out.
    pub exclude_identifier: Option<String>,
    /// Major version of the release; `None` does not filter by it.
    pub major_version: Option<u64>,
    /// Capabilities; `None` does not consider them.
    pub capabilities: Option<EnabledCapabilities>,
    /// Objects that the administrator took out of management.
    pub overrides: Vec<UnmanagedObject>,
    /// The kinds known to have no namespace: see [`crate::Payload::cluster_kinds`].
    pub cluster_kinds: BTreeSet<GroupKind>,
}

impl Context {
    /// Filters by profile and feature set, the two that every cluster has.
    pub fn new(profile: impl Into<String>, feature_set: impl Into<String>) -> Self {
        Self {
            profile: Some(profile.into()),
            feature_set: Some(feature_set.into()),
            ..Self::default()
        }
    }
}

/// The capabilities of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnabledCapabilities {
    /// Names that exist; a manifest that names another one is excluded.
    pub known: BTreeSet<String>,
    /// Names that are enabled.
    pub enabled: BTreeSet<String>,
}

/// An object that the administrator took out of management: an entry of `spec.overrides` with
/// `unmanaged: true`. Entries with `unmanaged: false` have no effect and have no value here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmanagedObject {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in CamelCase.
    pub kind: String,
    /// Namespace; ignored for objects without one, since the API demands some value.
    pub namespace: String,
    /// Object name.
    pub name: String,
}

impl UnmanagedObject {
    /// Whether the override is for an object. All four parts must be equal, except that the
    /// namespace is ignored for an object without one: whose manifest names none, or whose kind
    /// is among `cluster_kinds`.
    pub fn matches(&self, key: &ObjectKey, cluster_kinds: &BTreeSet<GroupKind>) -> bool {
        self.group == key.group
            && self.kind == key.kind
            && self.name == key.name
            && (self.namespace == key.namespace
                || key.namespace.is_empty()
                || cluster_kinds.contains(&key.group_kind()))
    }
}

/// What becomes of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It belongs to the cluster.
    Included,
    /// It does not.
    Excluded(ExclusionReason),
}

/// Why a document does not belong to a cluster. Variants stand in the order of evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExclusionReason {
    /// The document declares capabilities: it is read and never applied.
    Declaration,
    /// The document has no annotations at all.
    NoAnnotations,
    /// The exclude annotation of the cluster's identifier is `true`.
    ExcludedIdentifier(String),
    /// Feature set and feature gate are both restricted, which is contradictory.
    FeatureSetAndGate,
    /// The feature-set annotation names a set that does not exist.
    UnknownFeatureSet {
        /// The feature set that does not exist.
        name: String,
        /// The sets of the annotation, sorted.
        value: String,
    },
    /// The feature-set annotation does not list the cluster's set.
    FeatureSet {
        /// The cluster's set.
        required: String,
        /// The sets of the annotation, sorted.
        value: String,
    },
    /// A gate that must be on is off.
    FeatureGateDisabled(String),
    /// A gate that must be off is on.
    FeatureGateEnabled(String),
    /// The major-version annotation cannot be honoured.
    InvalidMajorVersion(MajorVersionError),
    /// The manifest is for other major versions.
    MajorVersion {
        /// The release's major version.
        version: u64,
        /// The whole annotation.
        value: String,
    },
    /// The profile annotation has a value other than `true`.
    UnrecognizedProfileValue {
        /// The cluster profile that the annotation is for.
        profile: String,
        /// The value of the annotation, as it is written.
        value: String,
    },
    /// There is no annotation for the profile.
    ProfileUnset(String),
    /// Capabilities that do not exist.
    UnrecognizedCapabilities(Vec<String>),
    /// Capabilities that are not enabled.
    DisabledCapabilities(Vec<String>),
    /// The administrator took the object out of management.
    Overridden,
}

impl fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declaration => f.write_str("declares capabilities: read, never applied"),
            Self::NoAnnotations => f.write_str("no annotations"),
            Self::ExcludedIdentifier(identifier) => write!(f, "{EXCLUDE_PREFIX}{identifier}=true"),
            Self::FeatureSetAndGate => {
                write!(f, "both {FEATURE_SET} and {FEATURE_GATE} are set, at most one may be")
            }
            Self::UnknownFeatureSet { name, value } => {
                write!(f, "unrecognized value {name:?} in {FEATURE_SET}={value}")
            }
            Self::FeatureSet { required, value } => {
                write!(f, "{required:?} is required, and {FEATURE_SET}={value}")
            }
            Self::FeatureGateDisabled(gate) => {
                write!(f, "feature gate {gate} is required but not enabled")
            }
            Self::FeatureGateEnabled(gate) => {
                write!(f, "feature gate {gate} is enabled but manifest requires it to be disabled")
            }
            Self::InvalidMajorVersion(problem) => problem.fmt(f),
            Self::MajorVersion { version, value } => {
                write!(f, "major version {version} is not among {MAJOR_VERSION}={value}")
            }
            Self::UnrecognizedProfileValue { profile, value } => {
                write!(f, "unrecognized value {INCLUDE_PREFIX}{profile}={value}")
            }
            Self::ProfileUnset(profile) => write!(f, "{INCLUDE_PREFIX}{profile} unset"),
            Self::UnrecognizedCapabilities(names) => {
                write!(f, "unrecognized capability names: {}", names.join(", "))
            }
            Self::DisabledCapabilities(names) => {
                write!(f, "disabled capabilities: {}", names.join(", "))
            }
            Self::Overridden => f.write_str("overridden"),
        }
    }
}

/// Decides whether a document belongs to a cluster.
pub fn decide(manifest: &Manifest, context: &Context) -> Decision {
    match exclusion(manifest, context) {
        Some(reason) => Decision::Excluded(reason),
        None => Decision::Included,
    }
}

fn exclusion(manifest: &Manifest, context: &Context) -> Option<ExclusionReason> {
    let annotations = &manifest.annotations;
    if capability::is_declaration(manifest) {
        return Some(ExclusionReason::Declaration);
    }
    if !manifest.may_be_included() {
        return Some(ExclusionReason::NoAnnotations);
    }
    excluded_by_identifier(annotations, context)
        .or_else(|| excluded_by_feature_set_and_gate(annotations, context))
        .or_else(|| excluded_by_feature_set(annotations, context))
        .or_else(|| excluded_by_feature_gate(annotations, context))
        .or_else(|| major_version::exclusion(manifest, context.major_version?))
        .or_else(|| excluded_by_profile(manifest, context))
        .or_else(|| excluded_by_capability(annotations, context))
        .or_else(|| {
            let is_overridden =
                |entry: &UnmanagedObject| entry.matches(&manifest.key, &context.cluster_kinds);
            context.overrides.iter().any(is_overridden).then_some(ExclusionReason::Overridden)
        })
}

type Annotations = BTreeMap<String, String>;

fn excluded_by_identifier(annotations: &Annotations, context: &Context) -> Option<ExclusionReason> {
    let identifier = context.exclude_identifier.as_ref()?;
    let value = annotations.get(&format!("{EXCLUDE_PREFIX}{identifier}"))?;
    (value == "true").then(|| ExclusionReason::ExcludedIdentifier(identifier.clone()))
}

fn excluded_by_feature_set_and_gate(
    annotations: &Annotations,
    context: &Context,
) -> Option<ExclusionReason> {
    let active = context.feature_set.is_some() && context.feature_gates.is_some();
    let both = annotations.contains_key(FEATURE_SET) && annotations.contains_key(FEATURE_GATE);
    (active && both).then_some(ExclusionReason::FeatureSetAndGate)
}

fn excluded_by_feature_set(
    annotations: &Annotations,
    context: &Context,
) -> Option<ExclusionReason> {
    let required = match context.feature_set.as_deref()? {
        "" => DEFAULT_FEATURE_SET,
        name => name,
    };
    let listed: BTreeSet<&str> = annotations.get(FEATURE_SET)?.split(',').collect();
    let value = || listed.iter().copied().collect::<Vec<_>>().join(",");
    if let Some(name) = listed.iter().find(|name| !FEATURE_SETS.contains(name)) {
        return Some(ExclusionReason::UnknownFeatureSet {
            name: (*name).to_owned(),
            value: value(),
        });
    }
    (!listed.contains(required))
        .then(|| ExclusionReason::FeatureSet { required: required.to_owned(), value: value() })
}

fn excluded_by_feature_gate(
    annotations: &Annotations,
    context: &Context,
) -> Option<ExclusionReason> {
    let enabled = context.feature_gates.as_ref()?;
    let value = annotations.get(FEATURE_GATE)?;
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).find_map(|name| {
        match name.strip_prefix('-') {
            Some(gate) => {
                enabled.contains(gate).then(|| ExclusionReason::FeatureGateEnabled(gate.to_owned()))
            }
            None => (!enabled.contains(name))
                .then(|| ExclusionReason::FeatureGateDisabled(name.to_owned())),
        }
    })
}

fn excluded_by_profile(manifest: &Manifest, context: &Context) -> Option<ExclusionReason> {
    let profile = context.profile.as_ref()?;
    if is_for_any_profile(manifest) {
        return None;
    }
    match manifest.annotations.get(&format!("{INCLUDE_PREFIX}{profile}")) {
        None => Some(ExclusionReason::ProfileUnset(profile.clone())),
        Some(value) if value == "true" => None,
        Some(value) => Some(ExclusionReason::UnrecognizedProfileValue {
            profile: profile.clone(),
            value: value.clone(),
        }),
    }
}

/// Whether a manifest is for clusters of any profile: its payload says so, and its annotations name none.
pub(crate) fn is_for_any_profile(manifest: &Manifest) -> bool {
    let names_one = || manifest.annotations.keys().any(|key| key.starts_with(INCLUDE_PREFIX));
    manifest.any_profile && !names_one() && !capability::is_declaration(manifest)
}

/// Whether two manifests differ at most in the profiles that they name.
pub fn is_same_but_for_profiles(one: &Manifest, other: &Manifest) -> bool {
    one.raw == other.raw || without_profiles(one) == without_profiles(other)
}

/// Hash of a manifest without the profiles that it names.
pub fn hash_but_for_profiles(manifest: &Manifest) -> String {
    let document = Packed::from(without_profiles(manifest).to_string().into_bytes());
    manifest_hash([&document])
}

fn without_profiles(manifest: &Manifest) -> Value {
    let mut object = manifest.written();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.retain(|key, _| !key.starts_with(INCLUDE_PREFIX));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

fn excluded_by_capability(annotations: &Annotations, context: &Context) -> Option<ExclusionReason> {
    let capabilities = context.capabilities.as_ref()?;
    let names = capability_names(annotations);
    let missing_from = |set: &BTreeSet<String>| -> Vec<String> {
        names.iter().filter(|name| !set.contains(**name)).map(|name| (*name).to_owned()).collect()
    };
    let unknown = missing_from(&capabilities.known);
    if !unknown.is_empty() {
        return Some(ExclusionReason::UnrecognizedCapabilities(unknown));
    }
    let disabled = missing_from(&capabilities.enabled);
    (!disabled.is_empty()).then_some(ExclusionReason::DisabledCapabilities(disabled))
}

/// The capabilities that annotations name, in their order and untrimmed; an empty annotation
/// names none.
pub fn capability_names(annotations: &Annotations) -> Vec<&str> {
    match annotations.get(capability::ANNOTATION) {
        None => Vec::new(),
        Some(value) if value.is_empty() => Vec::new(),
        Some(value) => value.split('+').collect(),
    }
}

#[cfg(test)]
mod tests;
