//! The services of deployments that serve something, and the APIs.

use serde_json::{Value, json};

use super::certificates::{mark_caller, mark_service};
use super::lists::list;
use super::serving::{ServingDeployment, port};
use super::{Installation, metadata, names};
use crate::bundle::BundleObject;
use crate::csv::ClusterServiceVersion;

/// Where the API server looks for the namespaces of requests' authentication.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Whether an object of a bundle is a service of the name that a generated one has.
pub(super) fn is_generated(object: &BundleObject, serving: &[ServingDeployment<'_>]) -> bool {
    is_service(object) && serving.iter().any(|it| it.service == object.name())
}

fn is_service(object: &BundleObject) -> bool {
    object.kind() == "Service" && object.value["apiVersion"] == "v1"
}

/// The services. One of the same name in `others`, which are the bundle's objects, adds to what is
/// generated.
pub(super) fn services(
    serving: &[ServingDeployment<'_>],
    others: &[BundleObject],
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
        let own = others.iter().find(|it| is_service(it) && it.name() == serving.service);
        if let Some(own) = own {
            add_own(&mut object, &own.value);
        }
        mark_service(&mut object, &serving.service, installation);
        object
    };
    serving.iter().map(object).collect()
}

/// Adds the labels, the annotations and the further ports of a service that a bundle brings to the
/// generated one.
fn add_own(object: &mut Value, own: &Value) {
    for field in ["labels", "annotations"] {
        let entries = own["metadata"][field].as_object().filter(|it| !it.is_empty());
        if let Some(entries) = entries {
            object["metadata"][field] = entries.clone().into();
        }
    }
    let ports = list(&mut object["spec"], "ports");
    let is_tcp = |port: &Value| port["protocol"].as_str().is_none_or(|it| it == "TCP");
    for port in own["spec"]["ports"].as_array().into_iter().flatten() {
        let Some(number) = port["port"].as_i64() else { continue };
        let is_same = |it: &Value| it["port"] == port["port"] && is_tcp(it) == is_tcp(port);
        if ports.iter().any(is_same) {
            continue;
        }
        let mut port = port.clone();
        // A port of several has a name.
        if port["name"].as_str().is_none_or(str::is_empty) {
            port["name"] = number.to_string().into();
        }
        ports.push(port);
    }
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
