//! What of a CustomResourceDefinition is compared.

use k8s_schema::versions;
use serde_json::{Map, Value};

use super::canonical::{Detail, canonical};

/// Why two documents are not two states of one definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A document is no CustomResourceDefinition.
    #[error("{0} is no CustomResourceDefinition of apiextensions.k8s.io/v1 or v1beta1")]
    Kind(DefinitionSide),
    /// A definition has no name.
    #[error("{0} has no metadata.name")]
    Name(DefinitionSide),
    /// A definition has no versions.
    #[error("{0} has no spec.versions")]
    Versions(DefinitionSide),
    /// They define two resources.
    #[error("they define two resources, {old} and {new}: compare definitions of one name")]
    Names {
        /// The name of the old definition.
        old: String,
        /// The name of the new one.
        new: String,
    },
}

/// One of the two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionSide {
    /// The one that is replaced.
    Old,
    /// The one that replaces it.
    New,
}

impl std::fmt::Display for DefinitionSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Old => "the old document",
            Self::New => "the new document",
        })
    }
}

/// A definition before or after it is replaced.
#[derive(Debug)]
pub(super) struct ReplacedDefinition {
    pub(super) name: String,
    pub(super) scope: String,
    /// In the order of the document.
    pub(super) versions: Vec<DefinitionVersion>,
    /// Versions that there may be stored objects of.
    pub(super) stored_versions: Vec<String>,
    pub(super) has_conversion_webhook: bool,
    pub(super) preserves_unknown_fields: bool,
}

/// A version of a definition.
#[derive(Debug)]
pub(super) struct DefinitionVersion {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) storage: bool,
    /// In canonical form; absent if it has none.
    pub(super) schema: Option<Map<String, Value>>,
    /// As it is written; null if it has none.
    pub(super) written_schema: Value,
}

impl ReplacedDefinition {
    pub(super) fn version(&self, name: &str) -> Option<&DefinitionVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Each served version with each that is preferred to it.
    pub(super) fn served_pairs(&self) -> Vec<(&DefinitionVersion, &DefinitionVersion)> {
        let mut served: Vec<_> = self.versions.iter().filter(|version| version.served).collect();
        served.sort_by(|left, right| versions::compare(&right.name, &left.name));
        let mut pairs = Vec::new();
        for (index, older) in served.iter().enumerate() {
            pairs.extend(served[index + 1..].iter().map(|newer| (*older, *newer)));
        }
        pairs
    }
}

/// Reads two states of one definition.
pub(super) fn pair(
    old: &Value,
    new: &Value,
) -> Result<(ReplacedDefinition, ReplacedDefinition), DefinitionError> {
    let (old, new) = (read(old, DefinitionSide::Old)?, read(new, DefinitionSide::New)?);
    if old.name != new.name {
        return Err(DefinitionError::Names { old: old.name, new: new.name });
    }
    Ok((old, new))
}

fn read(document: &Value, side: DefinitionSide) -> Result<ReplacedDefinition, DefinitionError> {
    let api_version = document["apiVersion"].as_str().unwrap_or_default();
    let known = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"];
    if document["kind"] != "CustomResourceDefinition" || !known.contains(&api_version) {
        return Err(DefinitionError::Kind(side));
    }
    let name = text(&document["metadata"]["name"]);
    if name.is_empty() {
        return Err(DefinitionError::Name(side));
    }
    let spec = &document["spec"];
    // v1beta1 has one schema for all versions, and may have one version only.
    let common = &spec["validation"]["openAPIV3Schema"];
    let listed = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut versions: Vec<DefinitionVersion> = listed
        .iter()
        .map(|version| {
            let own = &version["schema"]["openAPIV3Schema"];
            let schema = if own.is_null() { common } else { own };
            defined(text(&version["name"]), version["served"] == true, version, schema)
        })
        .collect();
    if versions.is_empty() {
        let name = text(&spec["version"]);
        if name.is_empty() {
            return Err(DefinitionError::Versions(side));
        }
        versions.push(DefinitionVersion { storage: true, ..defined(name, true, spec, common) });
    }
    let stored = document["status"]["storedVersions"].as_array();
    Ok(ReplacedDefinition {
        name,
        scope: text(&spec["scope"]),
        versions,
        stored_versions: stored.into_iter().flatten().map(text).collect(),
        has_conversion_webhook: spec["conversion"]["strategy"] == "Webhook",
        preserves_unknown_fields: spec["preserveUnknownFields"] == true,
    })
}

fn defined(name: String, served: bool, version: &Value, schema: &Value) -> DefinitionVersion {
    DefinitionVersion {
        name,
        served,
        storage: version["storage"] == true,
        schema: schema.is_object().then(|| canonical(schema, Detail::All)),
        written_schema: schema.clone(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
