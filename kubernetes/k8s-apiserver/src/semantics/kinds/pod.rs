//! Pods: their class, and what admission gives them.
use serde_json::{Map, Value, json};

use crate::semantics::cluster::Cluster;
use crate::semantics::settings::{AdmissionPlugin, ClusterSettings};
use crate::status::{ApiError, Result, Subject};
use crate::storage::{ObjectKey, StorageId};

/// Where a pod finds the token of its service account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The quality-of-service class of a pod, from its requests and limits.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/helper/qos/qos.go: ComputePodQOS
pub(super) fn quality_of_service(fields: &Map<String, Value>) -> &'static str {
    let containers = || {
        ["containers", "initContainers"]
            .into_iter()
            .filter_map(|list| fields.get("spec")?.get(list)?.as_array())
            .flatten()
    };
    let amount = |container: &Value, which: &str, what: &str| -> Option<Value> {
        container.get("resources")?.get(which)?.get(what).cloned()
    };
    let any = containers().any(|container| {
        ["requests", "limits"].iter().any(|which| {
            ["cpu", "memory"].iter().any(|what| amount(container, which, what).is_some())
        })
    });
    if !any {
        return "BestEffort";
    }
    let all = containers().all(|container| {
        ["cpu", "memory"].iter().all(|what| {
            let limit = amount(container, "limits", what);
            let request = amount(container, "requests", what);
            limit.is_some() && (request.is_none() || request == limit)
        })
    });
    if all { "Guaranteed" } else { "Burstable" }
}

/// Checks that the service account of a new pod exists.
///
/// # Errors
/// When it does not.
///
/// Upstream: k8s.io/kubernetes/plugin/pkg/admission/serviceaccount/admission.go: Admit
pub(super) fn check_account(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    fields: &Map<String, Value>,
) -> Result<()> {
    let spec = fields.get("spec").unwrap_or(&Value::Null);
    let account = ["serviceAccountName", "serviceAccount"]
        .into_iter()
        .find_map(|field| spec[field].as_str().filter(|account| !account.is_empty()))
        .unwrap_or("default");
    let accounts = StorageId::new("", "serviceaccounts");
    if cluster.store.find(&accounts, &ObjectKey::new(namespace, account)).is_some() {
        return Ok(());
    }
    Err(ApiError::forbidden(
        Subject { group: "", noun: "pods" },
        name,
        &format!(
            "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
        ),
    ))
}

/// Keeps `podIP` and the first of `podIPs` equal; `podIP`, the only field that older clients write,
/// wins.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/zz_generated.conversion.go: Convert_v1_PodStatus_To_core_PodStatus
pub(super) fn settle_addresses(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let first = status.get("podIPs").and_then(|all| all.pointer("/0/ip")).cloned();
    let given = status.get("podIP").filter(|address| address.as_str() != Some("")).cloned();
    match (given, first) {
        (Some(given), first) if first.as_ref() != Some(&given) => {
            status.insert("podIPs".to_owned(), serde_json::json!([{"ip": given}]));
        }
        (None, Some(first)) => {
            status.insert("podIP".to_owned(), first);
        }
        _ => {}
    }
}

/// Applies the built-in admission plugins to a new pod.
///
/// Upstream: k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go: admitPod
pub(super) fn prepare(cluster: &mut Cluster, fields: &mut Map<String, Value>) {
    let has_accounts = cluster.settings.has(AdmissionPlugin::ServiceAccount);
    if has_accounts {
        mount_token(cluster, fields);
    }
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if has_accounts {
        spec.entry("serviceAccountName").or_insert_with(|| "default".into());
        let account = spec["serviceAccountName"].clone();
        spec.entry("serviceAccount").or_insert(account);
    }
    spec.entry("priority").or_insert_with(|| 0.into());
    spec.entry("preemptionPolicy").or_insert_with(|| "PreemptLowerPriority".into());
    tolerate_unready_nodes(&cluster.settings, spec);
}

/// Adds tolerations of 300 s for nodes that are not ready or unreachable.
///
/// Upstream: k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds/admission.go: Admit
pub(super) fn tolerate_unready_nodes(settings: &ClusterSettings, spec: &mut Map<String, Value>) {
    if !settings.has(AdmissionPlugin::DefaultTolerationSeconds) {
        return;
    }
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(tolerations) = tolerations.as_array_mut() {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let tolerated = tolerations.iter().any(|toleration| {
                (toleration["key"] == key || toleration.get("key").is_none())
                    && matches!(toleration["effect"].as_str(), Some("NoExecute") | None)
            });
            if !tolerated {
                tolerations.push(json!({
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }));
            }
        }
    }
}

/// Mounts the token of the service account, unless the pod opts out or mounts something there.
///
/// Upstream: k8s.io/kubernetes/plugin/pkg/admission/serviceaccount/admission.go: mountServiceAccountToken
fn mount_token(cluster: &mut Cluster, fields: &mut Map<String, Value>) {
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let has_mount = |container: &Value| {
        container["volumeMounts"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|mount| mount["mountPath"] == TOKEN_PATH)
    };
    let lists = ["containers", "initContainers"];
    let all_have =
        lists.iter().filter_map(|list| spec.get(*list)?.as_array()).flatten().all(has_mount);
    if spec.get("automountServiceAccountToken") == Some(&Value::Bool(false)) || all_have {
        return;
    }
    let name = format!("kube-api-access-{}", cluster.ids.next_suffix());
    for list in lists {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if has_mount(container) {
                continue;
            }
            let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
            match container["volumeMounts"].as_array_mut() {
                Some(mounts) => mounts.push(mount),
                None => container["volumeMounts"] = json!([mount]),
            }
        }
    }
    let volume = json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    });
    match spec.get_mut("volumes").and_then(Value::as_array_mut) {
        Some(volumes) => volumes.push(volume),
        None => {
            spec.insert("volumes".to_owned(), json!([volume]));
        }
    }
}
