//! The services of deployments that serve something, and the APIs.

use serde_json::{Value, json};

use super::certificates::{mark_caller, mark_service};
use super::serving::{ServingDeployment, port};
use super::{Installation, metadata, names};
use crate::csv::ClusterServiceVersion;

/// Where the API server looks for the namespaces of requests' authentication.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// The services.
pub(super) fn services(
    serving: &[ServingDeployment<'_>],
    installation: &Installation<'_>,
) -> Vec<Value> {
    let object = |serving: &ServingDeployment<'_>| {
        let ports = serving.ports.iter().map(|(port, target)| {
            json!({ "name": port.to_string(), "port": port, "targetPort": target })
        });
        let mut spec = json!({ "ports": ports.collect::<Vec<Value>>() });
        let labels = &serving.deployment.spec["selector"]["matchLabels"];
        if labels.is_object() {
            spec["selector"] = labels.clone();
        }
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(&serving.service, installation.namespace()),
            "spec": spec,
            "status": { "loadBalancer": {} },
        });
        mark_service(&mut object, &serving.service, installation);
        object
    };
    serving.iter().map(object).collect()
}

/// The APIs that the operator serves itself, and what its service accounts need for that.
///
/// Upstream: github.com/operator-framework/operator-lifecycle-manager/pkg/controller/install/apiservice.go: createOrUpdateAPIService
pub(super) fn api_services(
    csv: &ClusterServiceVersion,
    installation: &Installation<'_>,
) -> Vec<Value> {
    let mut objects = Vec::new();
    for owned in &csv.owned_api_services {
        let Some(deployment) = csv.deployments.iter().find(|it| it.name == owned.deployment) else {
            continue;
        };
        let service = names::service(&deployment.name);
        let account = deployment.spec["template"]["spec"]["serviceAccountName"].as_str();
        let account = account.filter(|name| !name.is_empty()).unwrap_or("default");
        objects.extend(delegated(&service, account, installation.namespace()));
        let mut object = json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": metadata(&format!("{}.{}", owned.version, owned.group), ""),
            "spec": {
                "group": &owned.group,
                "version": &owned.version,
                "groupPriorityMinimum": 2000,
                "versionPriority": 20,
                "service": {
                    "name": &service,
                    "namespace": installation.namespace(),
                    "port": port(owned.container_port),
                },
            },
        });
        mark_caller(&mut object, &service, installation);
        objects.push(object);
    }
    objects
}

/// An API behind the API server asks that one who a caller is and what that one may do.
fn delegated(service: &str, account: &str, namespace: &str) -> [Value; 2] {
    let binding = |kind: &str, metadata: Value, role_kind: &str, role: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": metadata,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": role_kind,
                "name": role,
            },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
        })
    };
    [
        binding(
            "ClusterRoleBinding",
            json!({ "name": format!("{service}-system:auth-delegator") }),
            "ClusterRole",
            "system:auth-delegator",
        ),
        binding(
            "RoleBinding",
            json!({ "name": format!("{service}-auth-reader"), "namespace": SYSTEM_NAMESPACE }),
            "Role",
            "extension-apiserver-authentication-reader",
        ),
    ]
}
