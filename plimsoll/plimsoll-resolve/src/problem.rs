//! A problem: everything that a solution depends on, as a value that can be written to a file.

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::bundle::{Api, Bundle};
use crate::package::Package;

/// The format of a written problem.
pub const FORMAT: u32 = 1;

/// A query together with the parts of the catalogs that it can collector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// [`FORMAT`].
    pub format: u32,
    /// What to resolve.
    #[serde(flatten)]
    pub query: Query,
    /// The catalogs, each with the packages that the query can collector.
    #[serde(default)]
    pub catalogs: Vec<CatalogPart>,
}

/// What to resolve, whatever the catalogs: requests, and the state of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Query {
    /// What is known of the cluster.
    pub facts: ClusterFacts,
    /// The namespaces that operators are installed into, with what they are to watch. In a
    /// namespace that is not listed every install mode is fine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operator_groups: Vec<OperatorGroup>,
    /// Namespaces whose catalogs every namespace sees. When there are none, every namespace sees
    /// every catalog; otherwise these and its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub global_namespaces: Vec<String>,
    /// The bundles that are installed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub installed: Vec<InstalledBundle>,
    /// The packages to install or update.
    pub requests: Vec<PackageRequest>,
    /// Which channels fresh installs and dependencies may come from.
    #[serde(skip_serializing_if = "is_default")]
    pub channels: ChannelPolicy,
    /// Decisions that the resolver has to respect.
    #[serde(skip_serializing_if = "is_default")]
    pub overrides: ResolutionOverrides,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What is known of a cluster. What is not known rules nothing out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ClusterFacts {
    /// The version of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Version>,
    /// The version of OpenShift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift: Option<Version>,
    /// The APIs that are served although no operator brings them. They satisfy requirements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apis: Option<Vec<Api>>,
    /// The capabilities that are enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// The architectures of the nodes; an operator must run on all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
}

/// What the operators of a namespace watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperatorGroup {
    /// The namespace that the operators run in.
    pub namespace: String,
    /// The namespaces that they watch; the whole cluster when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
}

/// The namespace and name of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogName {
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for CatalogName {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(to, "{}", self.name),
            namespace => write!(to, "{namespace}/{}", self.name),
        }
    }
}

/// A bundle that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstalledBundle {
    /// The namespace that it is installed in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its package, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The channel and catalog that it follows. It is updated when a request names its package,
    /// or when something else needs it to be; without a channel it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<FollowedChannel>,
    /// The catalog that it came from, whose updates are preferred to those of others; absent when it
    /// is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogName>,
    /// It was installed without its dependencies: they are not required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_dependencies: bool,
    /// The bundle itself, with what it provides and requires.
    pub bundle: Bundle,
}

/// The channel that updates of an installed bundle come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FollowedChannel {
    /// The channel, by name.
    pub channel: String,
    /// The catalog; any when it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogName>,
}

/// A request to install or update a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackageRequest {
    /// The namespace to install into.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The package to install or update, by name.
    pub package: String,
    /// The channel; that which the installed bundle follows, or else the default one, when it is
    /// not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The versions that will do, a range of [`crate::range::masterminds`]; any when there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The bundle to begin with, by name, when nothing is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The catalog that it must come from; any when it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogName>,
    /// The bundle, by name, that this request has installed. When it is not named and the
    /// package is installed in the namespace, that is it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// Install it without its dependencies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_dependencies: bool,
    /// The name of the request, for messages; empty when it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Which channels a fresh install or a dependency may come from when none is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChannelPolicy {
    /// The package's default channel and no other (DEP-12).
    #[default]
    DefaultOnly,
    /// The default channel first, then the others by name.
    PreferDefault,
}

/// Decisions that the resolver has to respect. Each one that had an effect is named in the result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResolutionOverrides {
    /// Who is to satisfy which requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderChoice>,
    /// Bundles that are not to be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<BundleExclusion>,
    /// Catalogs that come before all others, the first before the second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefer_catalogs: Vec<CatalogName>,
}

/// Only this package may satisfy requirements on an API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderChoice {
    /// The API that bundles require.
    pub api: Api,
    /// The package that is to provide it.
    pub package: String,
    /// The catalog that it must come from; any when it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogName>,
}

/// Bundles that are not to be chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleExclusion {
    /// The package, by name.
    pub package: String,
    /// The versions, a range of [`crate::range::blang`]; all when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
    /// The bundle's name; all when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// The packages of a catalog that a query can reach. A written one may have upstream's `priority`, the
/// negative of its weight, in the place of `weight`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "file::WrittenCatalog")]
pub struct CatalogPart {
    /// Its name.
    #[serde(flatten)]
    pub name: CatalogName,
    /// Rank among catalogs: lower values are preferred.
    pub weight: i64,
    /// The packages that can be reached.
    pub packages: Vec<Package>,
}

impl CatalogPart {
    /// The package of a name.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The bundle of a name, of a package.
    pub fn bundle(&self, package: &str, name: &str) -> Option<&Bundle> {
        self.package(package)?.bundles.iter().find(|bundle| bundle.name == name)
    }
}

mod canonical;
mod file;

pub use file::ProblemError;
