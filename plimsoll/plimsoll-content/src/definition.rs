//! What a CustomResourceDefinition says of the kind that it defines, without its schemas, which are
//! most of it.

use plimsoll_api::GroupKind;
use serde_json::Value;

/// Whether the objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// A kind that a CustomResourceDefinition defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Group and kind of the objects.
    pub kind: GroupKind,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// Its versions, in the order of the definition.
    pub versions: Vec<DefinedVersion>,
}

/// A version of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedVersion {
    /// Its name, such as `v1`.
    pub name: String,
    /// Whether the API server serves it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
}

impl Definition {
    /// What a document defines; `None` if it is no CustomResourceDefinition, or one that does not
    /// say of which kind.
    pub(crate) fn of(document: &Value) -> Option<Self> {
        let api_version = document["apiVersion"].as_str()?;
        if document["kind"] != "CustomResourceDefinition"
            || !api_version.starts_with("apiextensions.k8s.io/")
        {
            return None;
        }
        let spec = &document["spec"];
        let kind = GroupKind::new(spec["group"].as_str()?, spec["names"]["kind"].as_str()?);
        let scope = if spec["scope"] == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
        let version = |version: &Value| {
            Some(DefinedVersion {
                name: version["name"].as_str()?.to_owned(),
                served: version["served"] == true,
                storage: version["storage"] == true,
            })
        };
        let versions = spec["versions"].as_array().into_iter().flatten();
        Some(Self { kind, scope, versions: versions.filter_map(version).collect() })
    }

    /// The names of the versions that the API server serves.
    pub fn served(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().filter(|version| version.served).map(|version| version.name.as_str())
    }
}
