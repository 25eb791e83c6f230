//! Creates what no manifest creates: namespaces, and kinds that the server does not serve.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::MANAGER;
use super::roles::ExternalKind;

/// Label on everything that the simulation creates.
const SIMULATED: &str = "plimsoll.io/simulated";

/// Namespaces and kinds that no manifest creates but a release needs.
#[derive(Debug, Clone, Default)]
pub(super) struct Fixtures {
    /// Names of namespaces.
    pub(super) namespaces: BTreeSet<String>,
    /// Kinds that the server may or may not serve.
    pub(super) external_kinds: BTreeSet<ExternalKind>,
}

/// Creates what is not there yet.
///
/// # Errors
///
/// At the first thing that cannot be created; what was created stays, and trying again goes on.
pub(super) async fn create_fixtures(client: Client, fixtures: Fixtures) -> Result<(), kube::Error> {
    let namespaces = fixtures.namespaces.iter().map(|name| create(&client, namespace(name)));
    try_join_all(namespaces).await?;
    let group_versions: BTreeSet<(&str, &str)> = fixtures
        .external_kinds
        .iter()
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let served = group_versions.into_iter().map(|(group, version)| served(&client, group, version));
    let served: BTreeSet<ServedKind> = try_join_all(served).await?.into_iter().flatten().collect();
    let mut unserved: BTreeMap<(&str, &str), Vec<&ExternalKind>> = BTreeMap::new();
    for kind in &fixtures.external_kinds {
        let names = (kind.group.clone(), kind.version.clone(), kind.kind.clone());
        if !served.contains(&names) {
            unserved.entry((&kind.group, &kind.kind)).or_default().push(kind);
        }
    }
    let definitions = unserved.values().map(|versions| create(&client, definition(versions)));
    try_join_all(definitions).await?;
    Ok(())
}

/// Group, version and kind.
type ServedKind = (String, String, String);

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name, "labels": { SIMULATED: "true" } },
    })
}

/// A definition that allows everything, for the versions of one kind that manifests use.
fn definition(versions: &[&ExternalKind]) -> Value {
    let ExternalKind { group, version, kind, .. } = versions[0];
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let names: BTreeSet<&str> = versions.iter().map(|it| it.version.as_str()).collect();
    let served: Vec<Value> = names
        .into_iter()
        .map(|name| {
            json!({
                "name": name,
                "served": true,
                "storage": name == version,
                "schema": { "openAPIV3Schema": {
                    "description": "Simulated: takes whatever it is given.",
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                } },
            })
        })
        .collect();
    let namespaced = versions.iter().any(|it| it.namespaced);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{group}", resource.plural),
            "labels": { SIMULATED: "true" },
            // Servers insist on it for groups of the Kubernetes project.
            "annotations": { "api-approved.kubernetes.io": "unapproved, simulated" },
        },
        "spec": {
            "group": group,
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": resource.plural,
                "singular": kind.to_lowercase(),
            },
            "versions": served,
        },
    })
}

/// Creates an object; one that exists is left as it is.
async fn create(client: &Client, object: Value) -> Result<(), kube::Error> {
    let object: DynamicObject =
        serde_json::from_value(object).expect("what we create has the form of an object");
    let types = object.types.clone().expect("what we create names its kind");
    let gvk = GroupVersionKind::try_from(&types).expect("what we create names its kind");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&params, &object).await {
        Ok(created) => {
            let name = created.metadata.name.unwrap_or_default();
            tracing::info!(kind = types.kind, name, "created, since no manifest creates it");
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == ALREADY_EXISTS => Ok(()),
        Err(error) => Err(error),
    }
}

/// HTTP status of an attempt to create what exists.
const ALREADY_EXISTS: u16 = 409;
/// HTTP status of a question for what does not exist.
const NOT_FOUND: u16 = 404;

/// The kinds that the server has in a version of a group; none where it has no such version.
async fn served(
    client: &Client,
    group: &str,
    version: &str,
) -> Result<Vec<ServedKind>, kube::Error> {
    let resources = match client.list_api_group_resources(&format!("{group}/{version}")).await {
        Ok(list) => list.resources,
        Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Vec::new(),
        Err(error) => return Err(error),
    };
    let names = |kind: String| (group.to_owned(), version.to_owned(), kind);
    Ok(resources.into_iter().map(|resource| names(resource.kind)).collect())
}
