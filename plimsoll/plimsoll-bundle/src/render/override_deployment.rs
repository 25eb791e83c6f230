//! What a configuration changes about deployments.
//!
//! Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/registryv1/generators/generators.go: applyCustomConfigToDeployment

use serde_json::{Map, Value, json};

use super::lists::{items, list};
use crate::config::DeploymentConfig;

/// Applies a configuration to a Deployment.
pub(super) fn apply(config: &DeploymentConfig, object: &mut Value) {
    for metadata in ["/metadata", "/spec/template/metadata"] {
        if let Some(metadata) = object.pointer_mut(metadata) {
            annotate(metadata, &config.annotations);
        }
    }
    let pod = &mut object["spec"]["template"]["spec"];
    if !config.volumes.is_empty() {
        replace_by_name(list(pod, "volumes"), &config.volumes);
    }
    if !config.tolerations.is_empty() {
        append_new(list(pod, "tolerations"), &config.tolerations);
    }
    if let Some(selector) = &config.node_selector {
        set(pod, "nodeSelector", selector.clone());
    }
    if let Some(affinity) = &config.affinity {
        override_affinity(pod, affinity);
    }
    for container in items(pod, "containers") {
        if !config.env.is_empty() {
            replace_by_name(list(container, "env"), &config.env);
        }
        if !config.env_from.is_empty() {
            append_new(list(container, "envFrom"), &config.env_from);
        }
        if !config.volume_mounts.is_empty() {
            replace_by_name(list(container, "volumeMounts"), &config.volume_mounts);
        }
        if let Some(resources) = &config.resources {
            container["resources"] = resources.clone();
        }
    }
}

/// Adds the annotations whose keys are not there.
fn annotate(metadata: &mut Value, given: &Map<String, Value>) {
    if given.is_empty() {
        return;
    }
    let mut annotations = given.clone();
    if let Some(Value::Object(own)) = metadata.get_mut("annotations").map(Value::take) {
        annotations.extend(own);
    }
    metadata["annotations"] = annotations.into();
}

/// Replaces the last item of the same name, or appends.
fn replace_by_name(items: &mut Vec<Value>, given: &[Value]) {
    let own = items.len();
    for item in given {
        match items[..own].iter().rposition(|it| it["name"] == item["name"]) {
            Some(position) => items[position] = item.clone(),
            None => items.push(item.clone()),
        }
    }
}

/// Appends the items that are not there.
fn append_new(items: &mut Vec<Value>, given: &[Value]) {
    for item in given {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
}

/// Sets a field, or removes it when there is nothing in it.
fn set(object: &mut Value, field: &str, value: Value) {
    let Some(entries) = object.as_object_mut() else { return };
    if value.as_object().is_some_and(Map::is_empty) {
        entries.remove(field);
    } else {
        entries.insert(field.to_owned(), value);
    }
}

/// Each kind of affinity that is given takes the place of what is there, or removes it if it says
/// nothing.
fn override_affinity(pod: &mut Value, given: &Map<String, Value>) {
    let mut affinity = match pod.get_mut("affinity").map(Value::take) {
        Some(Value::Object(own)) if !given.is_empty() => own,
        _ => Map::new(),
    };
    for (kind, value) in given {
        if says_nothing(value) {
            affinity.remove(kind);
        } else {
            affinity.insert(kind.clone(), value.clone());
        }
    }
    set(pod, "affinity", json!(affinity));
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Object(entries) => entries.values().all(says_nothing),
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
