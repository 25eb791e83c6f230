//! What is known of the cluster that bundles make demands of.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use plimsoll_api::{CLUSTER_VERSION_NAME, ClusterVersion};
use plimsoll_resolve::ClusterFacts;
use plimsoll_resolve::version::parse_tolerant;

/// Reads the version of Kubernetes, the architectures of the nodes, and what the ClusterVersion says
/// of the release and of capabilities.
///
/// # Errors
///
/// When the server does not answer. What may not be read, or is not there, is left out.
pub async fn read(client: &Client) -> Result<ClusterFacts, kube::Error> {
    let version = client.apiserver_version().await?;
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = allowed(nodes.list(&ListParams::default()).await)?;
    let architectures: BTreeSet<String> = nodes
        .into_iter()
        .flat_map(|list| list.items)
        .filter_map(|node| Some(node.status?.node_info?.architecture))
        .collect();
    let versions: Api<ClusterVersion> = Api::all(client.clone());
    let found = allowed(versions.get_opt(CLUSTER_VERSION_NAME).await)?.flatten();
    let status = found.and_then(|it| it.status);
    let desired = status.as_ref().map(|it| it.desired.version.as_str());
    let capabilities = status.as_ref().map(|it| it.capabilities.enabled_capabilities.clone());
    Ok(ClusterFacts {
        kubernetes: parse_tolerant(&version.git_version).ok(),
        openshift: desired.and_then(|it| parse_tolerant(it).ok()),
        apis: None,
        capabilities,
        architectures: architectures.into_iter().collect(),
    })
}

/// What was read; `None` for what is not there or may not be read.
fn allowed<T>(read: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match read {
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(None),
        other => other.map(Some),
    }
}
