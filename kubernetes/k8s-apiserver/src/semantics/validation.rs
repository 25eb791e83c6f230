//! Validation of an object before it is stored.
use k8s_schema::{self as schema, FieldError, FieldErrorKind, MetadataOwner};
use serde_json::Value;

use super::metadata;
use crate::names::NameRule;
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::part::ObjectPart;
use crate::semantics::registry::{ApiResource, CustomVersion, ScalePaths, Scope};
use crate::semantics::{definition, kinds, warnings};
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

/// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateObjectMetaAccessor
fn check_metadata(resource: &ApiResource, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let is_definition = resource.is("apiextensions.k8s.io", "CustomResourceDefinition");
    let rule = NameRule::of(&resource.group, &resource.kind);
    let owner = MetadataOwner {
        name: if is_definition { |_| Vec::new() } else { rule.problems() },
        namespaced: resource.scope == Scope::Namespaced,
    };
    let mut errors = Vec::new();
    if is_definition && live.is_none() {
        errors.extend(definition::name_problems(object));
    }
    let before = live.map(|live| &live["metadata"]);
    errors.extend(schema::validate_metadata(owner, before, &object["metadata"], "metadata"));
    // The finalizers of definitions and disruption budgets are not validated.
    let is_lenient = is_definition || resource.is("policy", "PodDisruptionBudget");
    if resource.custom().is_none() && !is_lenient {
        plain_finalizers(object, &mut errors);
    }
    errors
}

/// Rejects unknown finalizers without a domain: these are reserved for Kubernetes.
///
/// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateFinalizers
fn plain_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    let finalizers = object["metadata"]["finalizers"].as_array();
    for (index, finalizer) in finalizers.into_iter().flatten().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        let is_known = matches!(name, "orphan" | "foregroundDeletion" | "kubernetes");
        if !name.contains('/') && !is_known {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let at = format!("metadata.finalizers[{index}]");
            let error = FieldError::new(at, FieldErrorKind::Invalid, detail);
            errors.push(error.with_value(finalizer.clone()));
        }
    }
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
fn nested<'a>(
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
                go_value(at),
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
        go_value(at),
        schema::go_type(at)
    );
    (None, Some(detail))
}

fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
