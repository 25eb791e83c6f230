//! Deployments that serve webhooks or APIs, and at which ports.

use serde_json::Value;

use super::names;
use crate::csv::{ClusterServiceVersion, StrategyDeployment};

/// The port of a service when a bundle does not say.
const DEFAULT_PORT: i64 = 443;
/// A deployment that serves webhooks or APIs.
pub(super) struct ServingDeployment<'c> {
    pub(super) deployment: &'c StrategyDeployment,
    /// The name of its service.
    pub(super) service: String,
    /// Port and target, in order.
    pub(super) ports: Vec<(i64, Value)>,
}

/// The port of the service that a webhook or an API has.
pub(super) fn port(container_port: Option<i64>) -> i64 {
    container_port.filter(|port| *port > 0).unwrap_or(DEFAULT_PORT)
}

/// The deployments that serve something, in the order of the ClusterServiceVersion.
pub(super) fn serving_deployments(csv: &ClusterServiceVersion) -> Vec<ServingDeployment<'_>> {
    let webhooks = csv.webhooks.iter().map(|webhook| {
        let port = port(webhook.container_port);
        (&webhook.deployment, port, webhook.target_port.clone().unwrap_or(port.into()))
    });
    let services = csv.owned_api_services.iter().map(|service| {
        let port = port(service.container_port);
        (&service.deployment, port, Value::from(port))
    });
    let served: Vec<(&String, i64, Value)> = webhooks.chain(services).collect();
    let mut serving = Vec::new();
    for deployment in &csv.deployments {
        let mut ports: Vec<(i64, Value)> = served
            .iter()
            .filter(|(name, _, _)| **name == deployment.name)
            .map(|(_, port, target)| (*port, target.clone()))
            .collect();
        ports.sort_by_cached_key(|(port, target)| (*port, target.to_string()));
        ports.dedup();
        if !ports.is_empty() {
            let service = names::service(&deployment.name);
            serving.push(ServingDeployment { deployment, service, ports });
        }
    }
    serving
}
