//! Warnings about fields and versions that are accepted but deprecated or without effect.
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::semantics::part::ObjectPart;
use crate::semantics::registry::ApiResource;

mod definitions;
mod finalizers;
mod pods;

/// What a user of a deprecated version is warned with.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/deprecation/deprecation.go: WarningMessage
pub(crate) fn of_resource(resource: &ApiResource) -> Option<String> {
    if let Some(custom) = resource.custom() {
        return custom.deprecation_warning.clone();
    }
    let text = match (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str()) {
        ("", "v1", "ComponentStatus") => "v1 ComponentStatus is deprecated in v1.19+",
        ("", "v1", "Endpoints") => {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Removes repeated owner references; returns their uids, `None` if there are none.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: dedupOwnerReferencesAndAddWarning
pub(crate) fn drop_duplicate_owners(metadata: &mut Map<String, Value>) -> Option<String> {
    let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut)?;
    let mut seen = BTreeSet::new();
    let mut duplicates = Vec::new();
    owners.retain(|owner| {
        let is_new = seen.insert(owner.to_string());
        if !is_new {
            duplicates.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_new
    });
    (!duplicates.is_empty()).then(|| duplicates.join(", "))
}

/// The warning about owner references that were there twice.
pub(crate) fn about_owners(uids: &str, when: &str) -> String {
    format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: {uids}"
    )
}

/// Warnings about an object that is about to be stored, where `before` is the stored one and the
/// part of it that the request replaces. Status subresources of built-in kinds have none.
pub(crate) fn of_object(
    resource: &ApiResource,
    before: Option<(&Value, ObjectPart)>,
    object: &Value,
) -> Vec<String> {
    let live = before.map(|(live, _)| live);
    if resource.custom().is_some() {
        return finalizers::warnings(live, object);
    }
    if before.is_some_and(|(_, part)| part != ObjectPart::Main) {
        return Vec::new();
    }
    let template = match (resource.group.as_str(), resource.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            return definitions::warnings(live, object);
        }
        ("", "Pod") if live.is_none() => return pods::warnings("", object),
        ("", "Service") => return of_service(object),
        ("", "PodTemplate") => "/template",
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => "/spec/template",
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template",
        _ => return Vec::new(),
    };
    let is_changed = live.is_none_or(|live| live.get("spec") != object.get("spec"));
    let template_found = object.pointer(template).filter(|_| is_changed);
    let mut warnings = template_found
        .map(|found| pods::warnings(&template.replace('/', ".")[1..], found))
        .unwrap_or_default();
    if resource.is("apps", "StatefulSet")
        && object["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0)
    {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a \
             value >= 0 is recommended"
                .to_owned(),
        );
    }
    warnings
}

/// Upstream: k8s.io/kubernetes/pkg/api/service/warnings.go: GetWarningsForService
fn of_service(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let is_set = |field: &str| match &spec[field] {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    };
    let mut warnings = Vec::new();
    if object["metadata"]["annotations"].get("service.kubernetes.io/topology-aware-hints").is_some()
    {
        warnings.push(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead"
                .to_owned(),
        );
    }
    let is_external = spec["type"] == "ExternalName";
    if spec["clusterIP"] == "None" {
        for field in ["loadBalancerIP", "externalIPs"] {
            if is_set(field) {
                warnings.push(format!("spec.{field} is ignored for headless services"));
            }
        }
        if is_set("sessionAffinity") && spec["sessionAffinity"] != "None" {
            warnings.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    } else if is_set("externalIPs") && !is_external {
        warnings.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned(),
        );
    }
    if is_external && is_set("externalIPs") {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_external && is_set("externalName") {
        warnings
            .push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    warnings
}
