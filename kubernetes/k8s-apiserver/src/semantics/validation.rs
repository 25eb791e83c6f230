//! Validation of an object before it is stored.
use k8s_schema::{self as schema, FieldError, FieldErrorKind, ObjectKind};
use serde_json::Value;

use super::metadata;
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::part::ObjectPart;
use crate::semantics::registry::{ApiResource, CustomVersion, ScalePaths, Scope};
use crate::semantics::{kinds, warnings};
use crate::status::{ApiError, Result};

/// Validates an object; `before` is the object before an update and the part that is updated.
///
/// # Errors
/// With everything that is wrong with it.
pub(crate) fn check(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &ApiResource,
    before: Option<(&Value, ObjectPart)>,
    object: &Value,
) -> Result<()> {
    let live = before.map(|(live, _)| live);
    let errors = match resource.custom() {
        Some(custom) => {
            let mut errors = check_custom(resource, custom, before, object);
            if !errors.iter().any(|error| error.kind.blocks_expressions()) {
                let verdict = resource.schema().evaluate_rules(object, live);
                errors.extend(verdict.errors);
                context.warnings.extend(verdict.warnings);
            }
            errors
        }
        None => {
            let mut errors = check_metadata(resource, live, object);
            let part = before.map_or(ObjectPart::Main, |(_, part)| part);
            errors.extend(kinds::validate(resource, part, live, object));
            errors.extend(cluster.admission.problems(resource, object, live.is_none()));
            errors
        }
    };
    if errors.is_empty() {
        context.warnings.extend(warnings::of_object(resource, before, object));
        return Ok(());
    }
    let mut subject = resource.kind_subject();
    if resource.is("events.k8s.io", "Event") {
        // Errors about events name the core group.
        subject.group = "";
    }
    Err(ApiError::invalid(subject, metadata::text(object, "name"), &errors))
}

fn check_metadata(resource: &ApiResource, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let kind = ObjectKind {
        group: &resource.group,
        kind: &resource.kind,
        is_namespaced: resource.scope == Scope::Namespaced,
        is_custom: resource.custom().is_some(),
    };
    schema::validate_object_metadata(kind, live, object)
}

/// Validates a custom object in kube-apiserver's order: metadata, schema, scale, list keys.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: Validate
fn check_custom(
    resource: &ApiResource,
    custom: &CustomVersion,
    before: Option<(&Value, ObjectPart)>,
    object: &Value,
) -> Vec<FieldError> {
    let live = before.map(|(live, _)| live);
    let kind_schema = resource.schema();
    let mut errors = check_metadata(resource, live, object);
    match before {
        Some((live, ObjectPart::Status)) => {
            errors.extend(schema::validate_status(kind_schema, object, live));
            scale_status(custom.scale.as_ref(), object, &mut errors);
        }
        _ => {
            errors.extend(match live {
                Some(live) => schema::validate_update(kind_schema, object, live),
                None => schema::validate(kind_schema, object),
            });
            scale_spec(custom.scale.as_ref(), object, &mut errors);
            scale_status(custom.scale.as_ref(), object, &mut errors);
            errors.extend(schema::validate_lists(kind_schema, object, live));
        }
    }
    errors.extend(schema::blocked_expressions(kind_schema, &errors));
    errors
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateScaleSpec
fn scale_spec(paths: Option<&ScalePaths>, object: &Value, errors: &mut Vec<FieldError>) {
    if let Some(paths) = paths {
        replicas(&paths.spec_replicas, object, errors);
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateScaleStatus
fn scale_status(paths: Option<&ScalePaths>, object: &Value, errors: &mut Vec<FieldError>) {
    let Some(paths) = paths else { return };
    replicas(&paths.status_replicas, object, errors);
    let Some(path) = paths.label_selector.as_deref() else { return };
    let (_, wrong) = nested(object, path, "string", Value::is_string);
    if let Some(detail) = wrong {
        let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
        errors.push(error.with_value("".into()));
    }
}

fn replicas(path: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let (found, wrong) = nested(object, path, "int64", Value::is_i64);
    let count = found.and_then(Value::as_i64).unwrap_or_default();
    let detail = match wrong {
        Some(detail) => detail,
        None if count < 0 => "should be a non-negative integer".to_owned(),
        None if count > i64::from(i32::MAX) => {
            format!("should be less than or equal to {}", i32::MAX)
        }
        None => return,
    };
    let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
    errors.push(error.with_value(count.into()));
}

/// The value at a path of fields, or why it does not have the expected Go type.
pub(crate) fn nested<'a>(
    object: &'a Value,
    path: &str,
    expected: &str,
    fits: fn(&Value) -> bool,
) -> (Option<&'a Value>, Option<String>) {
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let mut at = object;
    for (index, name) in names.iter().enumerate() {
        // A null on the way means that the field is missing.
        if at.is_null() {
            return (None, None);
        }
        if !at.is_object() {
            let detail = format!(
                ".{} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                names[..=index].join("."),
                schema::go_text(at),
                schema::go_type(at)
            );
            return (None, Some(detail));
        }
        match at.get(name) {
            None => return (None, None),
            Some(value) => at = value,
        }
    }
    if fits(at) {
        return (Some(at), None);
    }
    let detail = format!(
        ".{} accessor error: {} is of the type {}, expected {expected}",
        names.join("."),
        schema::go_text(at),
        schema::go_type(at)
    );
    (None, Some(detail))
}
