//! Bundles, as far as the resolver has to know them: identity, provided APIs, requirements.

use semver::Version;
use serde::{Deserialize, Serialize};

/// An API, identified as resolution does: by group, version and kind, all of them in their case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Api {
    /// The group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version, such as `v1beta1`.
    pub version: String,
    /// The kind, such as `EtcdCluster`.
    pub kind: String,
}

impl std::fmt::Display for Api {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { group, version, kind } = self;
        match group.as_str() {
            "" => write!(to, "{kind} ({version})"),
            _ => write!(to, "{kind} ({group}/{version})"),
        }
    }
}

/// A property as a catalog states it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Its type, such as `olm.gvk`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its value; the form depends on the type.
    pub value: serde_json::Value,
}

/// One version of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    /// Its name, unique in its package: that of its ClusterServiceVersion.
    pub name: String,
    /// Its version; build metadata does not count when versions are compared.
    pub version: Version,
    /// The APIs that it provides (`olm.gvk`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<Api>,
    /// Its requirements; each must be satisfied by one bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Requirement>,
    /// `olm.label`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The install modes that it supports; none when it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_modes: Option<Vec<InstallMode>>,
    /// The lowest version of Kubernetes that it runs on, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_kube_version: Option<String>,
    /// The highest minor version of OpenShift that it runs on, as it is written
    /// (`olm.maxOpenShiftVersion`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_openshift_version: Option<String>,
    /// APIs that the cluster itself must serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub native_apis: Vec<Api>,
    /// The architectures that it runs on; it does not say when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// Capabilities that must be enabled in the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// It carries `olm.deprecated` and is not to be chosen any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// The message of its deprecation (`olm.deprecations`); none when it is not deprecated. It can
    /// still be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
    /// What is wrong with it: each as a sentence without a stop. A bundle with defects is never
    /// selected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defects: Vec<String>,
    /// All of its properties, for expressions; only filled in where expressions can reach it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
}

impl Bundle {
    /// A bundle that provides and needs nothing.
    pub fn new(name: impl Into<String>, version: Version) -> Self {
        Self {
            name: name.into(),
            version,
            provides: Vec::new(),
            requires: Vec::new(),
            labels: Vec::new(),
            install_modes: None,
            min_kube_version: None,
            max_openshift_version: None,
            native_apis: Vec::new(),
            architectures: Vec::new(),
            capabilities: Vec::new(),
            deprecated: false,
            deprecation: None,
            defects: Vec::new(),
            properties: Vec::new(),
        }
    }
}

/// How an operator may watch namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InstallMode {
    /// Only the namespace that it runs in.
    OwnNamespace,
    /// One other namespace.
    SingleNamespace,
    /// Several namespaces.
    MultiNamespace,
    /// The whole cluster.
    AllNamespaces,
}

impl std::fmt::Display for InstallMode {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{self:?}")
    }
}

/// Something that one bundle of the solution must satisfy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// What its author wants people to read when it cannot be satisfied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The condition on the bundle that satisfies it.
    #[serde(flatten)]
    pub constraint: Constraint,
}

impl From<Constraint> for Requirement {
    fn from(constraint: Constraint) -> Self {
        Self { message: None, constraint }
    }
}

/// A condition on one bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Constraint {
    /// It provides the API.
    Api(Api),
    /// It is of the package, in a range of [`crate::range::blang`].
    Package {
        /// The package, by name.
        name: String,
        /// The range, as it is written.
        range: String,
    },
    /// It has the label.
    Label(String),
    /// All of them hold for it.
    All(Vec<Requirement>),
    /// One of them holds for it.
    Any(Vec<Requirement>),
    /// None of them holds for it.
    Not(Vec<Requirement>),
    /// An expression over its properties is true (see [`crate::Expressions`]).
    Cel {
        /// The expression.
        rule: String,
    },
}
