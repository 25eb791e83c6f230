//! What the server fills in, on the way to storage.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_schema::{encode_string_data, generate_job_selector};
use serde_json::{Map, Value, json};

use super::pod;
use crate::semantics::cluster::Cluster;
use crate::semantics::metadata;
use crate::semantics::part::ObjectPart;
use crate::semantics::registry::{ApiResource, ResourceOrigin};
use crate::semantics::settings::{AdmissionPlugin, ClusterSettings};
use crate::status::{ApiError, Result};

/// The finalizer of namespaces, in their spec.
const NAMESPACE_FINALIZER: &str = "kubernetes";

/// The annotation that holds the template generation of a DaemonSet.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Rewrites what is only a convenience of the input: part of decoding, so before ownership.
///
/// # Errors
/// When the input cannot be rewritten.
pub(crate) fn convert_input(resource: &ApiResource, object: &mut Value) -> Result<()> {
    if resource.is("", "Namespace") {
        let name = metadata::text(object, "name").to_owned();
        if !name.is_empty() {
            let labels = metadata::of(object).entry("labels").or_insert_with(|| json!({}));
            if let Some(labels) = labels.as_object_mut() {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
            }
        }
    }
    if resource.is("", "Secret") {
        convert_secret(resource, object)?;
    }
    if resource.is("", "Pod") {
        pod::settle_addresses(object);
    }
    if resource.is("apps", "DaemonSet") {
        let annotations = metadata::of(object).entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "1".into());
        }
    }
    Ok(())
}

/// Counts changes of a DaemonSet's template in an annotation, where the removed field
/// `spec.templateGeneration` is kept.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/apps/daemonset/strategy.go: PrepareForUpdate
fn count_template(live: &Value, object: &mut Value) {
    let before = live["metadata"]["annotations"][TEMPLATE_GENERATION]
        .as_str()
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(1);
    let changed = live["spec"]["template"] != object["spec"]["template"];
    let next = if changed { before + 1 } else { before };
    object["metadata"]["annotations"][TEMPLATE_GENERATION] = next.to_string().into();
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/conversion.go: Convert_v1_Secret_To_core_Secret
fn convert_secret(resource: &ApiResource, object: &mut Value) -> Result<()> {
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    encode_string_data(fields);
    if let Some(data) = fields.get("data").and_then(Value::as_object) {
        for value in data.values() {
            if STANDARD.decode(value.as_str().unwrap_or_default()).is_err() {
                return Err(ApiError::bad_request(format!(
                    "{kind} in version \"{version}\" cannot be handled as a {kind}: illegal base64 data at input byte 0",
                    kind = resource.kind,
                    version = resource.version
                )));
            }
        }
    }
    fields.entry("type").or_insert_with(|| "Opaque".into());
    Ok(())
}

/// Applies built-in admission plugins to a new object, before any webhook is called.
///
/// # Errors
/// When it needs something that does not exist.
pub(crate) fn admit_create(
    cluster: &mut Cluster,
    resource: &ApiResource,
    object: &mut Value,
) -> Result<()> {
    if resource.is("", "Pod") {
        let name = metadata::text(object, "name").to_owned();
        let namespace = metadata::text(object, "namespace").to_owned();
        if let Some(fields) = object.as_object_mut() {
            if cluster.settings.has(AdmissionPlugin::ServiceAccount) {
                pod::check_account(cluster, &namespace, &name, fields)?;
            }
            pod::prepare(cluster, fields);
        }
    }
    Ok(())
}

/// Fills in what a new object gets.
///
/// # Errors
/// When the kind cannot be created this way.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/create.go: BeforeCreate
pub(crate) fn prepare_create(
    settings: &ClusterSettings,
    resource: &ApiResource,
    object: &mut Value,
) -> Result<()> {
    if super::has_generation(resource) {
        metadata::of(object).insert("generation".to_owned(), 1.into());
    }
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    if let ResourceOrigin::Custom(_) = resource.origin {
        if resource.has_status() {
            fields.remove("status");
        }
        return Ok(());
    }
    if let Some(status) = first_status(resource, fields) {
        fields.insert("status".to_owned(), status);
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => {
            let spec = fields.entry("spec").or_insert_with(|| json!({}));
            let finalizers = spec
                .as_object_mut()
                .map(|spec| spec.entry("finalizers").or_insert_with(|| json!([])));
            if let Some(Value::Array(finalizers)) = finalizers
                && !finalizers.iter().any(|finalizer| finalizer == NAMESPACE_FINALIZER)
            {
                finalizers.push(NAMESPACE_FINALIZER.into());
            }
        }
        ("", "PersistentVolume") => protect(settings, fields, "kubernetes.io/pv-protection"),
        ("", "PersistentVolumeClaim") => {
            protect(settings, fields, "kubernetes.io/pvc-protection");
        }
        ("", "Node") => {
            let spec = fields.entry("spec").or_insert_with(|| json!({}));
            if spec.get("taints").is_none() {
                spec["taints"] =
                    json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
            }
        }
        ("batch", "Job") => generate_job_selector(fields),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let stored =
                Some(crate::semantics::registry::custom::storage_version(fields.get("spec")))
                    .filter(|version| !version.is_empty());
            fields.insert(
                "status".to_owned(),
                json!({
                    "conditions": null,
                    "acceptedNames": {"plural": "", "kind": ""},
                    "storedVersions": stored.iter().collect::<Vec<_>>(),
                }),
            );
        }
        _ => {}
    }
    Ok(())
}

/// The initial status of a new object, where the kind has a status.
fn first_status(resource: &ApiResource, fields: &Map<String, Value>) -> Option<Value> {
    if !resource.has_status() {
        return None;
    }
    let status = match (resource.group.as_str(), resource.kind.as_str()) {
        // Nodes report their own status, also on creation.
        ("", "Node") => fields.get("status").cloned().unwrap_or_else(|| json!({})),
        ("", "Namespace") => json!({"phase": "Active"}),
        ("", "Pod") => json!({"phase": "Pending", "qosClass": pod::quality_of_service(fields)}),
        ("", "PersistentVolume") => json!({
            "phase": "Pending",
            "lastPhaseTransitionTime": fields["metadata"]["creationTimestamp"],
        }),
        ("apiregistration.k8s.io", "APIService") if fields["spec"]["service"].is_null() => json!({
            "conditions": [{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": fields["metadata"]["creationTimestamp"],
                "reason": "Local",
                "message": "Local APIServices are always available",
            }],
        }),
        ("", "PersistentVolumeClaim") => json!({"phase": "Pending"}),
        ("", "ReplicationController") | ("apps", "ReplicaSet") => json!({"replicas": 0}),
        ("", "Service") | ("networking.k8s.io", "Ingress") => json!({"loadBalancer": {}}),
        ("apps", "DaemonSet") => json!({
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        }),
        ("apps", "StatefulSet") => json!({"replicas": 0, "availableReplicas": 0}),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            json!({"desiredReplicas": 0, "currentMetrics": null})
        }
        ("policy", "PodDisruptionBudget") => json!({
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        }),
        _ => json!({}),
    };
    Some(status)
}

/// Adds the finalizer that delays the deletion of a volume or claim while it is in use.
///
/// Upstream: k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go: Admit
fn protect(settings: &ClusterSettings, fields: &mut Map<String, Value>, finalizer: &str) {
    if !settings.has(AdmissionPlugin::StorageObjectInUseProtection) {
        return;
    }
    let finalizers = fields["metadata"]
        .as_object_mut()
        .map(|metadata| metadata.entry("finalizers").or_insert_with(|| json!([])));
    if let Some(Value::Array(finalizers)) = finalizers
        && !finalizers.iter().any(|found| found == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

/// Keeps what an update may not change although it is neither metadata nor status.
///
/// # Errors
/// None so far; updates that may not be are refused by the rules.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: BeforeUpdate
pub(crate) fn prepare_update(
    settings: &ClusterSettings,
    resource: &ApiResource,
    part: ObjectPart,
    live: &Value,
    object: &mut Value,
) -> Result<()> {
    match (resource.group.as_str(), resource.kind.as_str(), part) {
        ("", "Namespace", ObjectPart::Main) => {
            object["spec"]["finalizers"] = live["spec"]["finalizers"].clone();
        }
        ("", "Namespace", ObjectPart::Subresource(_)) => {
            let finalizers = object["spec"]["finalizers"].clone();
            *object = live.clone();
            object["spec"]["finalizers"] = finalizers;
        }
        ("", "Pod", ObjectPart::Main) => {
            // Upstream: k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go: admitPod
            keep_missing(live, object, &["spec", "priority"]);
            keep_missing(live, object, &["spec", "preemptionPolicy"]);
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                pod::tolerate_unready_nodes(settings, spec);
            }
        }
        ("", "Pod", ObjectPart::Subresource("ephemeralcontainers")) => only_ephemeral(live, object),
        ("batch", "Job", ObjectPart::Main) => keep_missing(live, object, &["spec", "selector"]),
        ("apps", "DaemonSet", _) => count_template(live, object),
        ("", "Service", ObjectPart::Main) => {
            let addresses = &live["spec"]["clusterIPs"];
            let asked = object["spec"]["clusterIP"].clone();
            if asked.is_string()
                && asked != live["spec"]["clusterIP"]
                && object["spec"]["clusterIPs"] == *addresses
            {
                object["spec"]["clusterIPs"] = json!([asked]);
            }
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                keep_missing(live, object, &["spec", field]);
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition", ObjectPart::Main) => {
            crate::semantics::definition::note_storage_version(object);
        }
        _ => {}
    }
    Ok(())
}

/// Takes nothing but the ephemeral containers, and what metadata a write of them changes.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go: dropNonEphemeralContainerUpdates
fn only_ephemeral(live: &Value, object: &mut Value) {
    let containers = object["spec"].get("ephemeralContainers").cloned();
    object["spec"] = live["spec"].clone();
    object["status"] = live["status"].clone();
    if let (Some(containers), Some(spec)) = (containers, object["spec"].as_object_mut()) {
        spec.insert("ephemeralContainers".to_owned(), containers);
    } else if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("ephemeralContainers");
    }
}

fn keep_missing(live: &Value, object: &mut Value, path: &[&str; 2]) {
    let [outer, inner] = path;
    if let Some(value) = live[*outer].get(*inner)
        && let Some(fields) = object[*outer].as_object_mut()
    {
        fields.entry(*inner).or_insert_with(|| value.clone());
    }
}
