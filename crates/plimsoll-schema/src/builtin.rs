//! The kinds that kube-apiserver serves by itself, from generated data.
use crate::Schema;

/// A resource of the API: one line of discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind of the objects.
    pub kind: String,
    /// Resource name in URLs.
    pub plural: String,
    /// Name of one object of it, for people.
    pub singular: String,
    /// Abbreviations that kubectl accepts.
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Supported verbs, sorted.
    pub verbs: Vec<String>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
}

/// A subresource such as `status` or `scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Its name in URLs.
    pub name: String,
    /// Group of its kind.
    pub group: String,
    /// Version of its kind.
    pub version: String,
    /// Kind it reads and writes.
    pub kind: String,
    /// Supported verbs, sorted.
    pub verbs: Vec<String>,
}

/// The Kubernetes version of the data, such as `v1.37.1`.
pub fn kubernetes_version() -> &'static str {
    "v1.37.1"
}

/// All built-in resources in discovery order; of one group the preferred version comes first.
pub fn resources() -> &'static [Resource] {
    &[]
}

/// The schema of a built-in kind.
pub fn schema(_group: &str, _version: &str, _kind: &str) -> Option<Schema> {
    None
}

/// The OpenAPI v3 `components.schemas` of a group-version, without descriptions.
pub fn openapi_definitions(_group: &str, _version: &str) -> Option<serde_json::Value> {
    None
}
