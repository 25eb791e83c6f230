//! Validation of CustomResourceDefinitions, with the messages and the order of apiextensions.
//!
//! Fields that are equal in all versions are reported at the top level (`spec.validation`), because
//! kube-apiserver moves them there before validation.

pub mod approval;
mod conversion;
mod names;
mod versions;

use serde_json::Value;

use crate::{FieldError, FieldErrorKind, Tolerance, names as text_rules};
use approval::Approval;

/// The defects of a stored definition that its updates may retain.
#[derive(Clone, Copy, Debug, Default)]
struct UpdateLeniency {
    tolerance: Tolerance,
    /// Some version had no schema.
    missing_schemas: bool,
}

fn required(path: impl Into<String>, detail: &str) -> FieldError {
    FieldError::new(path, FieldErrorKind::Required, detail)
}

fn forbidden(path: impl Into<String>, detail: &str) -> FieldError {
    FieldError::new(path, FieldErrorKind::Forbidden, detail)
}

fn invalid(path: impl Into<String>, value: &Value, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, FieldErrorKind::Invalid, detail).with_value(value.clone())
}

fn not_supported(path: &str, value: &str, supported: &[&str]) -> FieldError {
    let listed: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let detail = format!("supported values: {}", listed.join(", "));
    FieldError::new(path, FieldErrorKind::NotSupported, detail).with_value(value.into())
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// The errors of the name of a definition.
pub fn name_problems(object: &Value) -> Vec<FieldError> {
    let name = text(&object["metadata"], "name");
    let spec = &object["spec"];
    let mut problems = text_rules::subdomain(name);
    if name != format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group")) {
        problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
    }
    let error = |problem| invalid("metadata.name", &name.into(), problem);
    problems.into_iter().map(error).collect()
}

/// The errors of a definition, without its metadata; `live` is the definition before an update.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinition
pub fn validate(live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    // A stored spec was validated when it was written; validating schemas is expensive.
    if live.is_none_or(|live| live["spec"] != *spec) {
        validate_spec(spec, live.map(leniency_of).unwrap_or_default(), &mut errors);
    }
    if let Some(live) = live {
        validate_update(live, object, &mut errors);
    }
    names::check(&object["status"]["acceptedNames"], "status.acceptedNames", &mut errors);
    versions::check_stored(object, &mut errors);
    validate_approval(live, object, &mut errors);
    let keeps_unknown = |spec: &Value| spec["preserveUnknownFields"] == true;
    if keeps_unknown(spec) && !live.is_some_and(|live| keeps_unknown(&live["spec"])) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
    errors
}

/// The errors of an update of a definition's status.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinitionStatus
pub fn validate_status(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    names::check(&object["status"]["acceptedNames"], "status.acceptedNames", &mut errors);
    errors
}

fn leniency_of(live: &Value) -> UpdateLeniency {
    let schemas = || {
        list(&live["spec"], "versions").iter().map(|version| &version["schema"]["openAPIV3Schema"])
    };
    UpdateLeniency {
        tolerance: schemas()
            .filter(|schema| schema.is_object())
            .fold(Tolerance::default(), Tolerance::of),
        missing_schemas: schemas().any(|schema| !schema.is_object()),
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: validateCustomResourceDefinitionSpec
fn validate_spec(spec: &Value, leniency: UpdateLeniency, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let problems = text_rules::subdomain(group);
    if group.is_empty() {
        errors.push(required("spec.group", ""));
    } else if !problems.is_empty() {
        errors.push(invalid("spec.group", &group.into(), problems.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(invalid("spec.group", &group.into(), detail));
    }
    match text(spec, "scope") {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(required("spec.scope", "")),
        other => errors.push(not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    versions::check(spec, leniency, errors);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"], name).is_empty() {
            errors.push(required(format!("spec.names.{name}"), ""));
        }
    }
    names::check(&spec["names"], "spec.names", errors);
    versions::check_common(spec, leniency, errors);
    conversion::check(spec, errors);
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: validateAPIApproval
fn validate_approval(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    if !approval::is_protected(text(&object["spec"], "group")) {
        return;
    }
    let (state, reason) = approval::of(object);
    if live.is_some_and(|live| approval::of(live).0 == state) {
        return;
    }
    let at = format!("metadata.annotations[{}]", approval::ANNOTATION);
    match state {
        Approval::Approved | Approval::Bypassed => {}
        Approval::Missing => errors.push(required(at, &reason)),
        Approval::Invalid => {
            let given = &object["metadata"]["annotations"][approval::ANNOTATION];
            errors.push(invalid(at, given, reason));
        }
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinitionUpdate
fn validate_update(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    let established = list(&live["status"], "conditions")
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let (before, after) = (&live["spec"], &object["spec"]);
    let stored: &[&str] = if established { &["/scope", "/names/kind"] } else { &[] };
    for pointer in stored.iter().chain(&["/group", "/names/plural"]) {
        let (old, new) = (before.pointer(pointer), after.pointer(pointer));
        if old != new {
            let path = format!("spec{}", pointer.replace('/', "."));
            errors.push(invalid(path, new.unwrap_or(&"".into()), "field is immutable"));
        }
    }
}
