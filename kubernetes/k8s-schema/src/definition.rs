//! Validation of the schema in a CustomResourceDefinition, by apiextensions' rules.
//!
//! [`check_definition_schema`] reports, in kube-apiserver's order, what keeps a schema from being
//! structural, defaults that do not fit, and keywords that are not supported or do not go
//! together. Expressions are another module's business.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinitionOpenAPISchema

mod defaults;
mod field_path;
mod open_api;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::structural;
use crate::{FieldError, FieldErrorKind};

pub use field_path::selectable_field;

/// The errors that an update of a definition may leave because the stored definition has them
/// already: validation is ratcheting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// Sets whose items are not atomic.
    pub non_atomic_sets: bool,
    /// Keys of list maps that are neither required nor have a default, items that may be null.
    pub loose_map_keys: bool,
    /// Types that OpenAPI does not know.
    pub unknown_types: bool,
    /// Defaults with unknown fields.
    pub unpruned_defaults: bool,
}

impl Tolerance {
    /// What `schema` has of these faults.
    #[must_use]
    pub fn of(self, schema: &Value) -> Self {
        let found = open_api::faults(schema);
        Self {
            non_atomic_sets: self.non_atomic_sets || found.non_atomic_sets,
            loose_map_keys: self.loose_map_keys || found.loose_map_keys,
            unknown_types: self.unknown_types || found.unknown_types,
            unpruned_defaults: self.unpruned_defaults
                || (structural::check(schema, "").is_empty() && defaults::has_unpruned(schema)),
        }
    }
}

/// Fields that the root of a schema may have if the status has an endpoint of its own.
const AT_ROOT_WITH_STATUS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Everything wrong with the schema of a definition that stands at `path`.
pub fn check_definition_schema(
    schema: &Value,
    path: &str,
    has_status: bool,
    tolerance: Tolerance,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status {
        check_root_with_status(schema, path, &mut errors);
    }
    if schema["nullable"] == true {
        let detail = "nullable cannot be true at the root";
        let at = format!("{path}.nullable");
        errors.push(FieldError::new(at, FieldErrorKind::Forbidden, detail));
    }
    let unsupported = open_api::unsupported(schema);
    if unsupported.is_none() {
        let found = structural::check(schema, path);
        if found.is_empty() {
            errors.extend(defaults::check(schema, path, tolerance.unpruned_defaults));
        }
        errors.extend(found);
    }
    errors.extend(open_api::check(schema, path, tolerance));
    // Expressions have their place here: they are looked at only if nothing else is wrong.
    if let (true, Some(detail)) = (errors.is_empty(), unsupported) {
        let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
        errors.push(error.with_value("".into()));
    }
    errors
}

fn check_root_with_status(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let declared = schema["type"].as_str().unwrap_or_default();
    if !declared.is_empty() && declared != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                      status subresource is enabled";
        let error = FieldError::new(format!("{path}.type"), FieldErrorKind::Invalid, detail);
        return errors.push(error.with_value(declared.into()));
    }
    let says_something = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    let other =
        schema.as_object().into_iter().flatten().any(|(key, value)| {
            says_something(value) && !AT_ROOT_WITH_STATUS.contains(&key.as_str())
        });
    if other {
        let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum \
                      ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
                      MultipleOf Required Items Properties ExternalDocs Example \
                      XPreserveUnknownFields XValidations] fields are allowed at the root of the \
                      schema if the status subresource is enabled";
        let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
        errors.push(error.with_value(schema.clone()));
    }
}

/// Formats of texts and numbers that kube-apiserver does not check, in the order it names them.
pub fn unrecognized_formats(schema: &Value) -> Vec<String> {
    open_api::unrecognized_formats(schema)
}

/// The types of items, other than scalars, that lists which are sets have.
pub fn compound_set_items(schema: &Value) -> Vec<&'static str> {
    open_api::compound_set_items(schema)
}
