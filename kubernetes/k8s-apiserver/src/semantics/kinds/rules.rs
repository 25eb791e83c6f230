//! What the built-in kinds refuse.
use k8s_schema::{FieldError, FieldErrorKind, validate_builtin};
use serde_json::Value;

use crate::semantics::definition;
use crate::semantics::part::ObjectPart;
use crate::semantics::registry::ApiResource;

/// Everything wrong with an object; `live` is the object before an update.
pub(crate) fn validate(
    resource: &ApiResource,
    part: ObjectPart,
    live: Option<&Value>,
    object: &Value,
) -> Vec<FieldError> {
    let mut errors = match part {
        ObjectPart::Status => Vec::new(),
        ObjectPart::Subresource("ephemeralcontainers") => {
            let mut errors = validate_builtin(&resource.group, &resource.kind, None, object);
            ephemeral_containers(live, object, &mut errors);
            errors
        }
        ObjectPart::Main | ObjectPart::Subresource(_) => {
            validate_builtin(&resource.group, &resource.kind, live, object)
        }
    };
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Service") => service_addresses(live, object, &mut errors),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            errors.extend(match part {
                ObjectPart::Status => definition::validate_status(object),
                _ => definition::validate(live, object),
            });
        }
        _ => {}
    }
    errors
}

/// The first cluster IP of a service is immutable.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateServiceClusterIPsRelatedFields
fn service_addresses(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let external = object["spec"]["type"] == "ExternalName";
    let addresses = |object: &Value| object["spec"]["clusterIPs"].as_array().cloned();
    if let Some(live) = live
        && let (Some(before), Some(after)) = (addresses(live), addresses(object))
        && before.first() != after.first()
        && live["spec"]["type"] != "ExternalName"
        && !external
    {
        errors.push(
            FieldError::new(
                "spec.clusterIPs[0]",
                FieldErrorKind::Invalid,
                "may not change once set",
            )
            .with_value(Value::Array(after)),
        );
    }
}

/// Existing ephemeral containers can be neither changed nor removed.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodEphemeralContainersUpdate
fn ephemeral_containers(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let of = |pod: &'_ Value| -> Vec<Value> {
        pod["spec"]["ephemeralContainers"].as_array().cloned().unwrap_or_default()
    };
    let after = of(object);
    for old in live.map(of).unwrap_or_default() {
        let name = old["name"].as_str().unwrap_or_default();
        let problem = match after.iter().find(|new| new["name"] == old["name"]) {
            None => "removed",
            Some(new) if *new != old => "changed",
            Some(_) => continue,
        };
        errors.push(FieldError::new(
            "spec.ephemeralContainers",
            FieldErrorKind::Forbidden,
            format!("existing ephemeral containers {name:?} may not be {problem}\n"),
        ));
    }
}
