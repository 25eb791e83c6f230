//! The deployments of an operator.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::certificates::secret;
use super::lists::{items, list};
use super::override_deployment::apply;
use super::serving::ServingDeployment;
use super::{Installation, metadata};
use crate::csv::{ClusterServiceVersion, StrategyDeployment};

/// The volumes that hold a certificate: name, where it is mounted, and the names of its files.
const VOLUMES: [(&str, &str, [&str; 2]); 2] = [
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", ["tls.crt", "tls.key"]),
    ("apiservice-cert", "/apiserver.local.config/certificates", ["apiserver.crt", "apiserver.key"]),
];

/// The deployments, as the install strategy has them and as the configuration wants them.
pub(super) fn deployments(
    csv: &ClusterServiceVersion,
    serving: &[ServingDeployment<'_>],
    installation: &Installation<'_>,
) -> Vec<Value> {
    let object = |deployment: &StrategyDeployment| {
        let mut spec = deployment.spec.clone();
        annotate_pods(&mut spec, csv, installation);
        spec["revisionHistoryLimit"] = 1.into();
        let service = serving.iter().find(|it| it.deployment.name == deployment.name);
        if let Some(secret) = service.and_then(|it| secret(&it.service, installation)) {
            mount_certificates(&mut spec["template"]["spec"], &secret);
        }
        let mut metadata = metadata(&deployment.name, installation.namespace());
        if !deployment.labels.is_empty() {
            metadata.insert("labels".to_owned(), deployment.labels.clone().into());
        }
        let mut object = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": spec,
            "status": {},
        });
        apply(&installation.options.deployment_config, &mut object);
        object
    };
    csv.deployments.iter().map(object).collect()
}

/// Pods carry the annotations of the ClusterServiceVersion, and learn which namespaces to watch
/// from one of their own.
fn annotate_pods(spec: &mut Value, csv: &ClusterServiceVersion, installation: &Installation<'_>) {
    let own = spec["template"]["metadata"]["annotations"].take();
    let of_csv = csv.annotations.iter().map(|(key, text)| (key.clone(), text.clone().into()));
    let mut annotations: Map<String, Value> = of_csv.collect();
    if let Value::Object(own) = own {
        annotations.extend(own);
    }
    annotations.insert("olm.targetNamespaces".to_owned(), installation.targets.join(",").into());
    annotations.insert("olm.operatorNamespace".to_owned(), installation.namespace().into());
    spec["template"]["metadata"]["annotations"] = annotations.into();
}

/// Puts the volumes of a certificate in the place of those of the same name, and of those that are
/// mounted where they are.
fn mount_certificates(pod: &mut Value, secret: &str) {
    let is_place = |mount: &Value| VOLUMES.iter().any(|(_, path, _)| mount["mountPath"] == *path);
    let mut replaced: BTreeSet<String> =
        VOLUMES.iter().map(|(name, _, _)| (*name).to_owned()).collect();
    for container in list(pod, "containers") {
        let mounts = container["volumeMounts"].as_array().into_iter().flatten();
        let names = mounts.filter(|mount| is_place(mount)).filter_map(|it| it["name"].as_str());
        replaced.extend(names.map(str::to_owned));
    }
    let is_replaced =
        |named: &Value| named["name"].as_str().is_some_and(|name| replaced.contains(name));
    let volumes = list(pod, "volumes");
    volumes.retain(|volume| !is_replaced(volume));
    volumes.extend(VOLUMES.iter().map(|(name, _, [certificate, key])| {
        let items = [("tls.crt", certificate), ("tls.key", key)];
        let items = items.map(|(key, path)| json!({ "key": key, "path": path }));
        json!({ "name": name, "secret": { "secretName": secret, "items": items } })
    }));
    for container in list(pod, "containers") {
        let mounts = list(container, "volumeMounts");
        mounts.retain(|mount| !is_replaced(mount));
        let certificates =
            VOLUMES.iter().map(|(name, path, _)| json!({ "name": name, "mountPath": path }));
        mounts.extend(certificates);
    }
    for container in items(pod, "initContainers") {
        for mount in items(container, "volumeMounts").filter(|mount| is_replaced(mount)) {
            // The volume is gone: the one that took its place is mounted there.
            let of_path = VOLUMES.iter().find(|(_, path, _)| mount["mountPath"] == *path);
            let is_kept = VOLUMES.iter().any(|(name, _, _)| mount["name"] == *name);
            if let Some((name, _, _)) = of_path.or((!is_kept).then_some(&VOLUMES[0])) {
                mount["name"] = (*name).into();
            }
        }
    }
}
