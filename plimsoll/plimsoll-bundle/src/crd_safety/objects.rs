//! Existing objects under a new schema.

use k8s_schema::{FieldError, Schema, apply_defaults, prune, validate, validate_lists};
use serde_json::Value;

use super::definition::{self, DefinitionError, ReplacedDefinition};

/// An object that the new definition would not accept.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidatedObject {
    /// The version that it was read in.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; absent if it has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub errors: Vec<FieldError>,
}

/// Those of `objects`, custom resources of the definition `old`, that are valid by it and would not
/// be by `new`.
///
/// An object in a version that `new` lacks is validated in its storage version, as the API server
/// would have it without a conversion webhook.
///
/// # Errors
///
/// When either is no CustomResourceDefinition, or they define two resources.
pub fn invalidated(
    old: &Value,
    new: &Value,
    objects: &[Value],
) -> Result<Vec<InvalidatedObject>, DefinitionError> {
    let (old, new) = definition::pair(old, new)?;
    let (old, new) = (VersionSchemas::of(&old), VersionSchemas::of(&new));
    let mut found = Vec::new();
    for object in objects {
        let errors = new.errors(object);
        if errors.is_empty() || !old.errors(object).is_empty() {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        found.push(InvalidatedObject {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: metadata["namespace"].as_str().map(str::to_owned),
            name: text(&metadata["name"]),
            errors,
        });
    }
    Ok(found)
}

/// The schemas of a definition.
struct VersionSchemas {
    /// By name, in the order of the definition. One that is not structural accepts everything.
    versions: Vec<(String, Schema)>,
    /// The storage version's place; the first if there is none.
    storage: usize,
}

impl VersionSchemas {
    fn of(definition: &ReplacedDefinition) -> Self {
        let schema = |written: &Value| {
            Schema::from_crd(written, definition.preserves_unknown_fields)
                .unwrap_or_else(|_| Schema::untyped())
        };
        let versions = &definition.versions;
        Self {
            storage: versions.iter().position(|version| version.storage).unwrap_or(0),
            versions: versions
                .iter()
                .map(|version| (version.name.clone(), schema(&version.written_schema)))
                .collect(),
        }
    }

    /// What is wrong with an object.
    fn errors(&self, object: &Value) -> Vec<FieldError> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let own = self.versions.iter().find(|(name, _)| name == version);
        let Some((_, schema)) = own.or_else(|| self.versions.get(self.storage)) else {
            return Vec::new();
        };
        let mut object = object.clone();
        prune(schema, &mut object);
        apply_defaults(schema, &mut object);
        let mut errors = validate(schema, &object);
        errors.extend(validate_lists(schema, &object, None));
        // The rules expect an object that is valid otherwise.
        if errors.is_empty() {
            errors = schema.evaluate_rules(&object, None).errors;
        }
        errors
    }
}
