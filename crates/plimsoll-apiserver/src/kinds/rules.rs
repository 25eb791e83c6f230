//! What the built-in kinds refuse.
use plimsoll_schema::{FieldError, FieldErrorKind};
use serde_json::Value;

use crate::controllers::definition;
use crate::registry::ApiResource;
use crate::verbs::update::Part;

const IMMUTABLE: &str = "field is immutable";

/// Everything wrong with an object; `live` is the object before an update.
pub(crate) fn validate(
    resource: &ApiResource,
    part: Part,
    live: Option<&Value>,
    object: &Value,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "ConfigMap") => frozen(live, object, &["data", "binaryData"], &mut errors),
        ("", "Secret") => {
            frozen(live, object, &["data"], &mut errors);
            unchanged(live, object, "type", &mut errors);
        }
        ("", "Service") => service(live, object, &mut errors),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet") => {
            workload(live, object, &mut errors);
        }
        ("batch", "Job") => {
            unchanged(live, object, "spec.selector", &mut errors);
            unchanged(live, object, "spec.template", &mut errors);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            role_reference(live, object, &mut errors);
        }
        ("storage.k8s.io", "StorageClass") => {
            for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
                unchanged(live, object, field, &mut errors);
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            unchanged(live, object, "value", &mut errors);
            unchanged(live, object, "preemptionPolicy", &mut errors);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            errors.extend(match part {
                Part::Status => definition::validate_status(object),
                _ => definition::validate(live, object),
            });
        }
        _ => {}
    }
    errors
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, segment| &value[segment])
}

fn unchanged(live: Option<&Value>, object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(live) = live else { return };
    if at(live, path) != at(object, path) {
        errors.push(
            FieldError::new(path, FieldErrorKind::Invalid, IMMUTABLE)
                .with_value(at(object, path).clone()),
        );
    }
}

/// `immutable: true` cannot be taken back, and nothing under it changes.
fn frozen(live: Option<&Value>, object: &Value, fields: &[&str], errors: &mut Vec<FieldError>) {
    let Some(live) = live.filter(|live| live["immutable"] == true) else {
        return;
    };
    if object["immutable"] != true {
        errors.push(FieldError::new(
            "immutable",
            FieldErrorKind::Forbidden,
            "field is immutable when `immutable` is set",
        ));
    }
    for field in fields {
        if live[*field] != object[*field] {
            errors.push(FieldError::new(
                *field,
                FieldErrorKind::Forbidden,
                "field is immutable when `immutable` is set",
            ));
        }
    }
}

fn service(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let headless = spec["clusterIP"] == "None";
    let external = spec["type"] == "ExternalName";
    if ports.is_empty() && !headless && !external {
        errors.push(FieldError::new("spec.ports", FieldErrorKind::Required, ""));
    }
    if external && spec["externalName"].as_str().unwrap_or_default().is_empty() {
        errors.push(FieldError::new("spec.externalName", FieldErrorKind::Required, ""));
    }
    for (index, port) in ports.iter().enumerate() {
        if ports.len() > 1 && port["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::new(
                format!("spec.ports[{index}].name"),
                FieldErrorKind::Required,
                "",
            ));
        }
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65_535).contains(&number) {
            errors.push(
                FieldError::new(
                    format!("spec.ports[{index}].port"),
                    FieldErrorKind::Invalid,
                    "must be between 1 and 65535, inclusive",
                )
                .with_value(number.into()),
            );
        }
    }
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

fn workload(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    if let Some(replicas) = spec["replicas"].as_i64()
        && replicas < 0
    {
        errors.push(
            FieldError::new(
                "spec.replicas",
                FieldErrorKind::Invalid,
                "must be greater than or equal to 0",
            )
            .with_value(replicas.into()),
        );
    }
    let wanted = spec["selector"]["matchLabels"].as_object();
    let expressions = spec["selector"]["matchExpressions"].as_array();
    if spec.get("selector").is_none_or(Value::is_null) {
        errors.push(FieldError::new("spec.selector", FieldErrorKind::Required, ""));
    } else if wanted.is_none_or(serde_json::Map::is_empty) && expressions.is_none_or(Vec::is_empty)
    {
        errors.push(
            FieldError::new(
                "spec.selector",
                FieldErrorKind::Invalid,
                "empty selector is invalid for deployment",
            )
            .with_value(spec["selector"].clone()),
        );
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let matches = wanted
        .is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    if !matches && expressions.is_none_or(Vec::is_empty) {
        errors.push(
            FieldError::new(
                "spec.template.metadata.labels",
                FieldErrorKind::Invalid,
                "`selector` does not match template `labels`",
            )
            .with_value(labels.clone()),
        );
    }
    let containers = spec["template"]["spec"]["containers"].as_array();
    if containers.is_none_or(Vec::is_empty) {
        errors.push(FieldError::new("spec.template.spec.containers", FieldErrorKind::Required, ""));
    }
    unchanged(live, object, "spec.selector", errors);
}

/// The role of a binding cannot be exchanged.
fn role_reference(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let Some(live) = live else { return };
    let (before, after) = (&live["roleRef"], &object["roleRef"]);
    if before != after {
        // The internal type of the reference has no JSON names, hence the capitals.
        let shown = serde_json::json!({
            "APIGroup": after["apiGroup"],
            "Kind": after["kind"],
            "Name": after["name"],
        });
        errors
            .push(FieldError::new("roleRef", FieldErrorKind::Invalid, IMMUTABLE).with_value(shown));
    }
}
