//! The objects that every cluster contains from the beginning.
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::Controllers;
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::settings::ClusterSettings;
use crate::verbs::create::{CreateSource, create};

mod roles;
mod template;

use template::BootstrapTemplate;

/// Creates the first objects of a cluster.
pub(crate) fn bootstrap(cluster: &mut Cluster, authority: &str, now: &str) {
    static PREPARED: OnceLock<BootstrapTemplate> = OnceLock::new();
    if cluster.settings != ClusterSettings::default() {
        return populate(cluster, authority, now);
    }
    PREPARED.get_or_init(|| BootstrapTemplate::record(populate)).install(cluster, authority, now);
}

/// Creates the first objects one after the other, as requests would.
fn populate(cluster: &mut Cluster, authority: &str, now: &str) {
    bootstrap_objects(&mut Controllers::new(authority), cluster, now);
    roles::install(cluster, now);
}

/// Upstream: k8s.io/kubernetes/pkg/controlplane/controller/systemnamespaces/system_namespaces_controller.go: createNamespaceIfNeeded
fn bootstrap_objects(controllers: &mut Controllers, cluster: &mut Cluster, now: &str) {
    for namespace in ["kube-system", "kube-public", "kube-node-lease", "default"] {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace},
        });
        begin_with(controllers, cluster, now, None, object);
    }
    begin_with(
        controllers,
        cluster,
        now,
        Some("default"),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "ports": [{"name": "https", "port": 443, "targetPort": 443, "protocol": "TCP"}],
            },
        }),
    );
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000_u32,
            "For pods that the cluster needs, and that may move to another node if they have to.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "For pods that their node needs, and that must not leave it.",
        ),
    ] {
        let object = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
        });
        begin_with(controllers, cluster, now, None, object);
    }
    super::services::bootstrap(cluster, now);
    controllers.settle(cluster, now);
}

/// Creates an object of the type that it names.
fn begin_with(
    controllers: &mut Controllers,
    cluster: &mut Cluster,
    now: &str,
    namespace: Option<&str>,
    object: Value,
) {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let Some(resource) = cluster.registry.find_kind(text("apiVersion"), text("kind")).cloned()
    else {
        return;
    };
    let mut context = RequestContext {
        manager: "kube-apiserver".to_owned(),
        now: now.to_owned(),
        ..RequestContext::default()
    };
    let created = create(cluster, &mut context, &resource, namespace, object, CreateSource::Create);
    if let Err(error) = created {
        let plural = &*resource.plural;
        tracing::warn!(%error, plural, "could not create a part of a new cluster");
    }
    controllers.settle(cluster, now);
}
