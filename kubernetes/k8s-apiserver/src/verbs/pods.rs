//! The `binding` and `eviction` subresources of pods.
use std::sync::Arc;

use k8s_schema::{FieldError, FieldErrorKind, builtin, decoding_error};
use serde_json::{Value, json};

use super::delete::{self, DeleteOptions};
use super::update;
use crate::request::parameters::DryRun;
use crate::request::selector::LabelSelector;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{self, Operation, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::metadata;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, Result, StatusCause, StatusReason, Subject};
use crate::storage::{ObjectKey, StorageId};

/// Binds a pod to the node that `binding` names.
///
/// # Errors
/// When the binding is invalid, or the pod does not exist or is assigned to a node already.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/storage/storage.go: assignPod
pub(crate) fn bind(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    binding: &Value,
) -> Result<Value> {
    let attributes =
        WriteAttributes::new(context, Operation::Create, resource, &key.namespace, &key.name)
            .of("binding", None);
    let binding = &admitted(cluster, context, &attributes, binding)?;
    check_name(key, binding, "Binding")?;
    let node = check_target(binding)?.to_owned();
    admission::validate(cluster, context, &attributes, Some(binding))?;
    let Some(mut pod) = update::find(cluster, context, resource, key)? else {
        return Err(ApiError::not_found(resource.subject(), &key.name));
    };
    metadata::check_uid(resource, key, metadata::text(&pod, "uid"), binding)?;
    if let Some(problem) = unbindable(&pod) {
        let subject = Subject { group: "", noun: "pods/binding" };
        return Err(ApiError::conflict(subject, &key.name, &format!("pod {}{problem}", key.name)));
    }
    pod["spec"]["nodeName"] = node.into();
    for field in ["annotations", "labels"] {
        for (name, value) in binding["metadata"][field].as_object().into_iter().flatten() {
            pod["metadata"][field][name] = value.clone();
        }
    }
    set_condition(&mut pod, json!({"type": "PodScheduled", "status": "True"}), &context.now);
    let is_dry = context.parameters.dry_run == DryRun::All;
    store(cluster, resource, key, pod, is_dry);
    Ok(success())
}

/// Deletes a pod, if its disruption budget allows that.
///
/// # Errors
/// When the pod does not exist, or its disruption budget does not allow the eviction.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go: Create
pub(crate) fn evict(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    eviction: &Value,
) -> Result<Value> {
    let attributes =
        WriteAttributes::new(context, Operation::Create, resource, &key.namespace, &key.name)
            .of("eviction", None);
    let eviction = &admitted(cluster, context, &attributes, eviction)?;
    check_name(key, eviction, "Eviction")?;
    admission::validate(cluster, context, &attributes, Some(eviction))?;
    let mut options = DeleteOptions::read(&context.parameters, Some(&eviction["deleteOptions"]))?;
    if context.parameters.dry_run == DryRun::All {
        options.dry_run = DryRun::All;
    }
    let is_dry = options.dry_run == DryRun::All;
    let Some(mut pod) = update::find(cluster, context, resource, key)? else {
        return Err(ApiError::not_found(resource.subject(), &key.name));
    };
    let is_ending = !metadata::text(&pod, "deletionTimestamp").is_empty();
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if !is_ending && !matches!(phase, "Succeeded" | "Failed" | "Pending") {
        spend_budget(cluster, key, &pod, is_dry)?;
    }
    delete::check_live(cluster, resource, key, &options)?;
    if !is_dry && options.resource_version.is_none() {
        let target = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        });
        set_condition(&mut pod, target, &context.now);
        store(cluster, resource, key, pod, is_dry);
    }
    delete::delete(cluster, &context.now, resource, key, &options)?;
    Ok(success())
}

/// Runs mutating admission for a binding or an eviction.
fn admitted(
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    given: &Value,
) -> Result<Value> {
    let mut object = given.clone();
    let [group, version, kind] = attributes.kind();
    let undecodable =
        builtin::schema(group, version, kind).and_then(|schema| decoding_error(&schema, &object));
    if let Some(why) = undecodable {
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        )));
    }
    metadata::set_namespace(attributes.resource, Some(&attributes.namespace), &mut object)?;
    let slash = if group.is_empty() { "" } else { "/" };
    object["apiVersion"] = format!("{group}{slash}{version}").into();
    object["kind"] = kind.into();
    admission::admit(cluster, context, attributes, &mut object)?;
    Ok(object)
}

fn success() -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    })
}

fn check_name(key: &ObjectKey, object: &Value, kind: &str) -> Result<()> {
    if metadata::text(object, "name") == &*key.name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// The node that a binding names.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodBinding
fn check_target(binding: &Value) -> Result<&str> {
    let text = |field: &str| binding["target"][field].as_str().unwrap_or_default();
    let refuse = |field: &str, kind, detail: &str, value: &str| {
        let error = FieldError::new(format!("target.{field}"), kind, detail);
        // kube-apiserver answers with this error in plain form here.
        let message = error.with_value(value.into()).to_string();
        Err(ApiError::new(StatusReason::Unknown, message))
    };
    let (kind, name) = (text("kind"), text("name"));
    if !matches!(kind, "" | "Node") {
        let detail = r#"supported values: "Node", "<empty>""#;
        return refuse("kind", FieldErrorKind::NotSupported, detail, kind);
    }
    if name.is_empty() {
        return refuse("name", FieldErrorKind::Required, "", "");
    }
    Ok(name)
}

/// Why a pod cannot be bound; none if it can.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/storage/storage.go: setPodNodeAndMetadata
fn unbindable(pod: &Value) -> Option<String> {
    if !metadata::text(pod, "deletionTimestamp").is_empty() {
        return Some(" is being deleted, cannot be assigned to a host".to_owned());
    }
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !node.is_empty() {
        return Some(format!(" is already assigned to node {node:?}"));
    }
    let gates = pod["spec"]["schedulingGates"].as_array();
    gates
        .is_some_and(|gates| !gates.is_empty())
        .then(|| " has non-empty .spec.schedulingGates".to_owned())
}

/// Sets a condition in the status of a pod.
fn set_condition(pod: &mut Value, mut condition: Value, now: &str) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = now.into();
    let conditions = &mut pod["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(conditions) => {
            conditions.retain(|present| present["type"] != condition["type"]);
            conditions.push(condition);
        }
        None => *conditions = json!([condition]),
    }
}

fn store(
    cluster: &mut Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    mut object: Value,
    is_dry: bool,
) {
    if !is_dry {
        crate::semantics::convert::to_storage(resource, &mut object);
        cluster.put(&resource.storage, key, object, resource.schema_id);
    }
}

/// Uses up a disruption of the budget that selects a pod.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go: checkAndDecrement
fn spend_budget(cluster: &mut Cluster, key: &ObjectKey, pod: &Value, is_dry: bool) -> Result<()> {
    let storage = StorageId::new("policy", "poddisruptionbudgets");
    let label = |name: &str| pod["metadata"]["labels"][name].as_str();
    let guards: Vec<_> = cluster
        .store
        .list(&storage, Some(&key.namespace))
        .filter(|stored| {
            let selector = &stored.decode()["spec"]["selector"];
            selector.is_object()
                && LabelSelector::of_object(selector)
                    .is_some_and(|selector| selector.matches(label))
        })
        .map(|stored| (stored.key.clone(), stored.decode(), stored.schema_id))
        .collect();
    if guards.len() > 1 {
        return Err(ApiError::new(
            StatusReason::Unknown,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
             not support.",
        ));
    }
    let Some((guard, mut budget, schema_id)) = guards.into_iter().next() else { return Ok(()) };
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    let allowed = number("disruptionsAllowed");
    if allowed <= 0 {
        let message = format!(
            "The disruption budget {} needs {} healthy pods and has {} currently",
            guard.name,
            number("desiredHealthy"),
            number("currentHealthy")
        );
        return Err(ApiError::new(
            StatusReason::TooManyRequests,
            "Cannot evict pod as it would violate the pod's disruption budget.",
        )
        .with_causes([StatusCause {
            reason: "DisruptionBudget".to_owned(),
            message,
            field: String::new(),
        }]));
    }
    if !is_dry {
        budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
        cluster.put(&storage, &guard, budget, schema_id);
    }
    Ok(())
}
