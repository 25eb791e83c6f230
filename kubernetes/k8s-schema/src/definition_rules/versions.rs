//! Versions: schemas, subresources, printer columns, selectable fields.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{UpdateLeniency, invalid, list, required, text};
use crate::names::label_1035;
use crate::{
    FieldError, FieldErrorKind, check_definition, check_definition_schema, selectable_field,
};

/// Largest number of selectable fields of a version.
const SELECTABLE_MAX: usize = 8;
/// Longest warning of a deprecated version, in bytes.
const WARNING_LEN_MAX: usize = 256;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// The fields of a version that kube-apiserver moves to the top level if all versions share them.
fn common<'a>(spec: &'a Value, field: &str) -> Option<&'a Value> {
    let versions = list(spec, "versions");
    let first = &versions.first()?[field];
    versions.iter().all(|version| version[field] == *first).then_some(first)
}

fn has_defaults(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("default").is_some_and(|default| !default.is_null())
                || fields.values().any(has_defaults)
        }
        Value::Array(items) => items.iter().any(has_defaults),
        _ => false,
    }
}

/// Checks the versions, without the fields that all share.
pub(super) fn check(spec: &Value, leniency: UpdateLeniency, errors: &mut Vec<FieldError>) {
    let versions = list(spec, "versions");
    for (index, version) in versions.iter().enumerate() {
        let has_schema = version["schema"]["openAPIV3Schema"].is_object();
        if !has_schema && !leniency.missing_schemas {
            let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(required(at, ""));
        } else if !has_schema && version["served"] == true && spec["preserveUnknownFields"] != true
        {
            let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(required(at, "because otherwise all fields are pruned"));
        }
    }
    if spec["preserveUnknownFields"] == true && versions.iter().any(has_defaults) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let problems = label_1035(text(version, "name"));
        if !problems.is_empty() {
            errors.push(invalid(format!("{path}.name"), &version["name"], problems.join(",")));
        }
        check_version(spec, version, &path, leniency, errors);
    }
    check_set(spec, versions, errors);
}

/// Checks that version names are unique, and that there is one storage version.
fn check_set(spec: &Value, versions: &[Value], errors: &mut Vec<FieldError>) {
    let names: BTreeSet<&str> = versions.iter().map(|version| text(version, "name")).collect();
    let mut wrong = |detail: &str| {
        let error = FieldError::new("spec.versions", FieldErrorKind::Invalid, detail);
        errors.push(error.with_shown(shown(spec)));
    };
    if names.len() < versions.len() {
        wrong("must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    if let Some(version) = versions.first() {
        let problems = label_1035(text(version, "name"));
        if !problems.is_empty() {
            errors.push(invalid("spec.version", &version["name"], problems.join(",")));
        }
    }
}

/// The versions in error messages: Go's internal type has no JSON names.
fn shown(spec: &Value) -> String {
    let versions = list(spec, "versions");
    if versions.is_empty() {
        return spec.get("versions").unwrap_or(&Value::Null).to_string();
    }
    let each = |version: &Value| {
        let own = |field: &str| match common(spec, field) {
            Some(_) => Value::Null,
            None => version[field].clone(),
        };
        format!(
            "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
            json!(text(version, "name")),
            version["served"] == true,
            version["storage"] == true,
            version["deprecated"] == true,
            version["deprecationWarning"],
            own("schema"),
            own("subresources"),
            own("additionalPrinterColumns"),
            own("selectableFields"),
        )
    };
    format!("[{}]", versions.iter().map(each).collect::<Vec<_>>().join(","))
}

fn has_status(subresources: &Value) -> bool {
    subresources.get("status").is_some_and(|status| !status.is_null())
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: validateCustomResourceDefinitionVersion
fn check_version(
    spec: &Value,
    version: &Value,
    path: &str,
    leniency: UpdateLeniency,
    errors: &mut Vec<FieldError>,
) {
    check_warning(version, path, errors);
    if common(spec, "schema").is_none() {
        let at = format!("{path}.schema.openAPIV3Schema");
        let status = has_status(&version["subresources"]);
        check_schema(&version["schema"], &at, status, leniency, errors);
    }
    if common(spec, "subresources").is_none() {
        check_subresources(&version["subresources"], &format!("{path}.subresources"), errors);
    }
    if common(spec, "additionalPrinterColumns").is_none() {
        check_columns(version, path, errors);
    }
    if common(spec, "selectableFields").is_none() {
        check_selectable(version, path, errors);
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: validateDeprecationWarning
fn check_warning(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let mut wrong = |detail: String| {
        let at = format!("{path}.deprecationWarning");
        errors.push(invalid(at, &warning.into(), detail));
    };
    if version["deprecated"] != true {
        return wrong("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > WARNING_LEN_MAX {
        wrong(format!("must be <= {WARNING_LEN_MAX} characters long"));
    }
    if warning.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        ));
    }
}

/// Checks the fields that all versions share.
pub(super) fn check_common(spec: &Value, leniency: UpdateLeniency, errors: &mut Vec<FieldError>) {
    let versions = list(spec, "versions");
    if let Some(schema) = common(spec, "schema") {
        let status = versions.iter().any(|version| has_status(&version["subresources"]));
        check_schema(schema, "spec.validation.openAPIV3Schema", status, leniency, errors);
    }
    if let Some(subresources) = common(spec, "subresources") {
        check_subresources(subresources, "spec.subresources", errors);
    }
    if let (Some(_), Some(first)) = (common(spec, "additionalPrinterColumns"), versions.first()) {
        check_columns(first, "spec", errors);
    }
    if let (Some(_), Some(first)) = (common(spec, "selectableFields"), versions.first()) {
        check_selectable(first, "spec", errors);
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: validateCustomResourceDefinitionValidation
fn check_schema(
    validation: &Value,
    path: &str,
    has_status: bool,
    leniency: UpdateLeniency,
    errors: &mut Vec<FieldError>,
) {
    let schema = &validation["openAPIV3Schema"];
    if schema.is_object() {
        let found = check_definition_schema(schema, path, has_status, leniency.tolerance);
        // Expressions are only compiled if the schema is valid.
        if found.is_empty() {
            errors.extend(check_definition(schema, path));
        }
        errors.extend(found);
    }
}

/// Checks that a path is simple; returns whether it is.
fn check_path(path: &str, at: &str, errors: &mut Vec<FieldError>) -> bool {
    let is_simple = path.starts_with('.');
    if !is_simple {
        let detail = "must be a simple json path starting with .";
        errors.push(invalid(at, &path.into(), detail));
    }
    is_simple
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinitionSubresources
fn check_subresources(subresources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let scale = &subresources["scale"];
    if scale.is_null() {
        return;
    }
    for (field, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let (at, given) = (format!("{path}.scale.{field}"), text(scale, field));
        if given.is_empty() {
            errors.push(required(at, ""));
        } else if check_path(given, &at, errors) && !given.starts_with(root) {
            let detail = format!("should be a json path under {}", root.trim_end_matches('.'));
            errors.push(invalid(at, &given.into(), detail));
        }
    }
    let (at, given) = (format!("{path}.scale.labelSelectorPath"), text(scale, "labelSelectorPath"));
    let fits = |given: &str| given.starts_with(".spec.") || given.starts_with(".status.");
    if !given.is_empty() && check_path(given, &at, errors) && !fits(given) {
        let detail = "should be a json path under either .spec or .status";
        errors.push(invalid(at, &given.into(), detail));
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceColumnDefinition
fn check_columns(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let at = |field: &str| format!("{path}.additionalPrinterColumns[{index}].{field}");
        if text(column, "name").is_empty() {
            errors.push(required(at("name"), ""));
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(column, "type") {
            "" => errors.push(required(at("type"), &types)),
            known if COLUMN_TYPES.contains(&known) => {}
            _ => errors.push(invalid(at("type"), &column["type"], types)),
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(invalid(at("format"), &column["format"], detail));
        }
        match text(column, "jsonPath") {
            "" => errors.push(required(at("JSONPath"), "")),
            given => {
                check_path(given, &at("JSONPath"), errors);
            }
        }
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceSelectableFields
fn check_selectable(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let fields = list(version, "selectableFields");
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = format!("{path}.selectableFields[{index}].jsonPath");
        let given = text(field, "jsonPath");
        if given.is_empty() {
            errors.push(required(at, ""));
            continue;
        }
        match selectable_field(given, schema) {
            Err(problems) => errors
                .extend(problems.into_iter().map(|problem| invalid(&at, &given.into(), problem))),
            Ok(found) if !seen.insert(found.clone()) => errors
                .push(FieldError::new(at, FieldErrorKind::Duplicate, "").with_value(given.into())),
            Ok(_) => {}
        }
    }
    if seen.len() > SELECTABLE_MAX {
        let detail = format!("must have at most {SELECTABLE_MAX} items");
        let at = format!("{path}.selectableFields");
        let error = FieldError::new(at, FieldErrorKind::TooMany, detail);
        errors.push(error.with_value(seen.len().into()));
    }
}

/// Checks that `storedVersions` only has versions of the definition.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinitionStoredVersions
pub(super) fn check_stored(object: &Value, errors: &mut Vec<FieldError>) {
    let stored = list(&object["status"], "storedVersions");
    let at = "status.storedVersions";
    if stored.is_empty() {
        errors.push(invalid(at, &Value::Null, "must have at least one stored version"));
        return;
    }
    let versions = list(&object["spec"], "versions");
    let mut left: BTreeSet<&str> = stored.iter().filter_map(Value::as_str).collect();
    for version in versions {
        // Each version matches one entry only.
        let known = left.remove(text(version, "name"));
        if version["storage"] == true && !known {
            let detail = format!("must have the storage version {}", text(version, "name"));
            errors.push(invalid(at, &json!(stored), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if versions.iter().any(|version| version["name"] == *name) {
            continue;
        }
        let name_text = name.as_str().unwrap_or_default();
        let detail = format!(
            "missing from spec.versions; {name_text} was previously a storage version, and must \
             remain in spec.versions until a storage migration ensures no data remains persisted \
             in {name_text} and removes {name_text} from status.storedVersions"
        );
        errors.push(invalid(format!("{at}[{index}]"), name, detail));
    }
}
