//! What a CustomResourceDefinition may say.
use plimsoll_schema::{FieldError, FieldErrorKind};
use serde_json::Value;

use crate::registry::custom::schema_of;
use crate::verbs::metadata;

/// Groups that belong to the Kubernetes project; definitions in them carry its approval.
const PROTECTED_SUFFIXES: [&str; 2] = [".k8s.io", ".kubernetes.io"];
const APPROVAL: &str = "api-approved.kubernetes.io";

fn required(path: impl Into<String>) -> FieldError {
    FieldError::new(path, FieldErrorKind::Required, "")
}

fn invalid(path: impl Into<String>, value: &Value, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, FieldErrorKind::Invalid, detail).with_value(value.clone())
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Everything wrong with a definition; `live` is the definition before an update.
pub(crate) fn validate(live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let names = &spec["names"];
    let name = metadata::text(object, "name");
    if name != format!("{}.{}", text(names, "plural"), text(spec, "group")) {
        errors.push(invalid(
            "metadata.name",
            &name.into(),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    validate_approval(object, &mut errors);
    for (path, value) in [
        ("spec.group", text(spec, "group")),
        ("spec.scope", text(spec, "scope")),
        ("spec.names.plural", text(names, "plural")),
        ("spec.names.singular", text(names, "singular")),
        ("spec.names.kind", text(names, "kind")),
        ("spec.names.listKind", text(names, "listKind")),
    ] {
        if value.is_empty() {
            errors.push(required(path));
        }
    }
    if !matches!(text(spec, "scope"), "Cluster" | "Namespaced" | "") {
        errors.push(
            FieldError::new(
                "spec.scope",
                FieldErrorKind::NotSupported,
                "supported values: \"Cluster\", \"Namespaced\"",
            )
            .with_value(spec["scope"].clone()),
        );
    }
    validate_versions(live, object, &mut errors);
    if let Some(live) = live {
        validate_update(live, object, &mut errors);
    }
    errors
}

fn validate_approval(object: &Value, errors: &mut Vec<FieldError>) {
    let group = text(&object["spec"], "group");
    let is_protected =
        PROTECTED_SUFFIXES.iter().any(|suffix| group.ends_with(suffix) || group == &suffix[1..]);
    let approval = text(&object["metadata"]["annotations"], APPROVAL);
    if is_protected && approval.is_empty() {
        errors.push(FieldError::new(
            format!("metadata.annotations[{APPROVAL}]"),
            FieldErrorKind::Required,
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
}

fn validate_versions(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let storage = versions.iter().filter(|version| version["storage"] == true).count();
    if storage != 1 {
        errors.push(invalid(
            "spec.versions",
            &spec["versions"],
            "must have exactly one version marked as storage version",
        ));
    }
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let duplicate = versions[..index].iter().any(|other| other["name"] == version["name"]);
        if duplicate {
            errors.push(invalid(format!("{path}.name"), &version["name"], "must be unique"));
        }
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            if spec["preserveUnknownFields"] != true {
                errors.push(required(format!("{path}.schema.openAPIV3Schema")));
            }
            continue;
        }
        let unchanged = live.is_some_and(|live| live["spec"]["versions"][index] == *version);
        if unchanged {
            continue;
        }
        let prefix = if versions.len() == 1 {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("{path}.schema.openAPIV3Schema")
        };
        if let Err(found) = schema_of(object, version) {
            errors.extend(found.into_iter().map(|error| rooted(&prefix, error)));
        } else {
            let declared = &version["schema"]["openAPIV3Schema"];
            errors.extend(plimsoll_schema::check_definition(declared, &prefix));
        }
    }
}

/// Puts the place of the schema in front of an error's own path.
fn rooted(prefix: &str, mut error: FieldError) -> FieldError {
    if error.path.starts_with("spec.") {
        return error;
    }
    let own = error
        .path
        .trim_start_matches("openAPIV3Schema")
        .trim_start_matches("<nil>")
        .trim_start_matches('.');
    error.path = match own {
        "" => prefix.to_owned(),
        own if own.starts_with('[') => format!("{prefix}{own}"),
        own => format!("{prefix}.{own}"),
    };
    error
}

fn validate_update(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    let established = live["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let (before, after) = (&live["spec"], &object["spec"]);
    if established {
        for (path, old, new) in [
            ("spec.scope", &before["scope"], &after["scope"]),
            ("spec.names.kind", &before["names"]["kind"], &after["names"]["kind"]),
        ] {
            if old != new {
                errors.push(invalid(path, new, "field is immutable"));
            }
        }
    }
    for (path, old, new) in [
        ("spec.group", &before["group"], &after["group"]),
        ("spec.names.plural", &before["names"]["plural"], &after["names"]["plural"]),
    ] {
        if old != new {
            errors.push(invalid(path, new, "field is immutable"));
        }
    }
    let stored = object["status"]["storedVersions"].as_array();
    for (index, version) in stored.into_iter().flatten().enumerate() {
        let known = after["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|candidate| candidate["name"] == *version);
        if !known {
            errors.push(invalid(
                format!("status.storedVersions[{index}]"),
                version,
                format!(
                    "missing from spec.versions; {} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {} and removes {} from status.storedVersions",
                    version.as_str().unwrap_or_default(),
                    version.as_str().unwrap_or_default(),
                    version.as_str().unwrap_or_default()
                ),
            ));
        }
    }
}
