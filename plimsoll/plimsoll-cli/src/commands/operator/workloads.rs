//! The workloads of Operators: objects of the kinds that they define.

use std::collections::BTreeMap;

use anyhow::Context as _;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Error};
use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::{ApiKind, Operator};
use plimsoll_simulation::cluster_state::api;
use serde_json::Value;

use super::deletion_plan::definitions;

/// The kind of definitions.
pub(crate) const DEFINITION: ApiKind = ApiKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
/// Objects of one answer of the API server.
const PAGE: u32 = 500;

/// Counts the objects of the kinds of an Operator, by kind and namespace.
///
/// # Errors
///
/// When a request fails.
pub(crate) async fn workloads(
    client: &Client,
    operator: &Operator,
) -> Result<Vec<RemainingObjects>, anyhow::Error> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for name in definitions(operator) {
        let definition = api(client, DEFINITION).get_opt(&name).await;
        let definition = definition.with_context(|| format!("failed to read definition {name}"))?;
        let Some((kind, resource)) = definition.as_ref().and_then(resource) else { continue };
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = match objects.list_metadata(&parameters).await {
                Ok(page) => page,
                // Nothing is there of a kind that is not served yet, or any more.
                Err(Error::Api(status)) if status.code == 404 => break,
                Err(error) => return Err(error).with_context(|| format!("failed to list {kind}")),
            };
            for object in page.items {
                let namespace = object.metadata.namespace.unwrap_or_default();
                *counts.entry((kind.clone(), namespace)).or_default() += 1;
            }
            match page.metadata.continue_.filter(|it| !it.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => break,
            }
        }
    }
    let counts = counts.into_iter();
    Ok(counts
        .map(|((kind, namespace), count)| RemainingObjects { kind, namespace, count })
        .collect())
}

/// The kind that a definition defines, as people write it, and how to address its objects; `None` if no
/// version is served.
fn resource(definition: &DynamicObject) -> Option<(String, ApiResource)> {
    let spec = definition.data.get("spec")?;
    let group = spec["group"].as_str()?;
    let names = &spec["names"];
    let (kind, plural) = (names["kind"].as_str()?, names["plural"].as_str()?);
    let versions = spec["versions"].as_array()?;
    let served = versions.iter().find(|it| it["served"] == Value::Bool(true))?;
    let kind_of = GroupVersionKind::gvk(group, served["name"].as_str()?, kind);
    Some((format!("{kind}.{group}"), ApiResource::from_gvk_with_plural(&kind_of, plural)))
}
