//! Discovery of everything that is served, and of what is missing in it.

use kube::Client;
use kube::core::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};
use plimsoll_plan::progress::Scope;
use plimsoll_plan::reconciler::discovery::GroupVersion;

use super::Resources;

/// The kinds that are served at this moment, as far as all API servers respond.
#[derive(Debug)]
pub(crate) struct Discovered {
    pub(crate) resources: Resources,
    /// The group versions whose kinds are not known.
    pub(crate) unknown: Vec<UnknownVersion>,
}

/// A group version whose kinds are not known, since what serves them does not respond.
#[derive(Debug)]
pub(crate) struct UnknownVersion {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) error: kube::Error,
}

impl Discovered {
    /// Requests from the server what it serves.
    ///
    /// # Errors
    ///
    /// When the server does not answer or rejects discovery.
    pub(crate) async fn read(client: &Client) -> Result<Self, kube::Error> {
        let mut resources = Resources::default();
        let versions = match aggregated(client).await {
            Some(groups) => stale(groups, &mut resources),
            None => listed(client).await?,
        };
        let mut unknown = Vec::new();
        for (group, version) in versions {
            match Resources::discover_version(client, &group, &version).await {
                Ok(found) => resources.extend(found),
                Err(error) => unknown.push(UnknownVersion { group, version, error }),
            }
        }
        Ok(Self { resources, unknown })
    }
}

/// Returns all groups with their kinds; `None` from a server without aggregated discovery, which sends
/// another kind of list.
async fn aggregated(client: &Client) -> Option<Vec<APIGroupDiscovery>> {
    let core = client.list_core_api_versions_aggregated().await.ok()?.items;
    let groups = client.list_api_groups_aggregated().await.ok()?.items;
    (!core.is_empty() && !groups.is_empty()).then(|| core.into_iter().chain(groups).collect())
}

/// Adds the kinds of groups. Returns the group versions whose kinds may be outdated in the aggregated
/// document: what serves them did not respond when it was made.
fn stale(groups: Vec<APIGroupDiscovery>, resources: &mut Resources) -> Vec<GroupVersion> {
    let mut stale = Vec::new();
    for group in groups {
        let name = group.metadata.and_then(|it| it.name).unwrap_or_default();
        for found in group.versions {
            let version = found.version.unwrap_or_default();
            if found.freshness.as_deref() == Some("Stale") {
                stale.push((name.clone(), version));
                continue;
            }
            for resource in found.resources {
                insert(resources, &name, &version, resource);
            }
        }
    }
    stale
}

fn insert(resources: &mut Resources, group: &str, version: &str, resource: APIResourceDiscovery) {
    let kind = resource.response_kind.and_then(|it| it.kind);
    let (Some(kind), Some(plural)) = (kind, resource.resource) else { return };
    let scope = match resource.scope.as_deref() {
        Some("Namespaced") => Scope::Namespaced,
        _ => Scope::Cluster,
    };
    let gvk = kube::core::GroupVersionKind::gvk(group, version, &kind);
    resources.insert(ApiResource::from_gvk_with_plural(&gvk, &plural), scope);
}

/// Returns all group versions that are served.
async fn listed(client: &Client) -> Result<Vec<GroupVersion>, kube::Error> {
    let core = client.list_core_api_versions().await?.versions;
    let mut versions: Vec<GroupVersion> = core.into_iter().map(|it| (String::new(), it)).collect();
    for group in client.list_api_groups().await?.groups {
        let name = group.name;
        versions.extend(group.versions.into_iter().map(|it| (name.clone(), it.version)));
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    //! Tests of discovery where an API server does not respond.

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// A server whose group `broken.example.com` is served by another one that does not respond; with
    /// `is_aggregated` it has aggregated discovery.
    fn server(is_aggregated: bool) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let accepts = request.headers().get("accept").is_some_and(|it| {
                it.to_str().is_ok_and(|it| it.contains("as=APIGroupDiscoveryList"))
            });
            let found = answer(request.uri().path(), accepts && is_aggregated);
            let code: u16 = if found.is_null() { 503 } else { 200 };
            let found = match code {
                503 => json!({ "kind": "Status", "code": 503, "message": "no endpoints" }),
                _ => found,
            };
            let body = Body::from(found.to_string().into_bytes());
            let response = Response::builder().status(code).body(body).unwrap();
            Ok::<_, std::convert::Infallible>(response)
        });
        Client::new(service, "default")
    }

    fn answer(path: &str, is_aggregated: bool) -> Value {
        let resource = |plural: &str, kind: &str| {
            let response_kind = json!({ "group": "", "version": "", "kind": kind });
            json!({ "resource": plural, "scope": "Namespaced", "responseKind": response_kind })
        };
        let group = |name: &str, freshness: &str, resources: &[Value]| {
            let version =
                json!({ "version": "v1", "freshness": freshness, "resources": resources });
            json!({ "metadata": { "name": name }, "versions": [version] })
        };
        let listed = |name: &str| {
            let version = json!({ "groupVersion": format!("{name}/v1"), "version": "v1" });
            json!({ "name": name, "versions": [version] })
        };
        let kinds = |version: &str, plural: &str, kind: &str| {
            let resource = json!({
                "name": plural, "singularName": "", "namespaced": true, "kind": kind,
                "verbs": ["list"],
            });
            json!({ "groupVersion": version, "resources": [resource] })
        };
        match (path, is_aggregated) {
            ("/api", true) => {
                json!({ "items": [group("", "Current", &[resource("pods", "Pod")])] })
            }
            ("/apis", true) => {
                let ours = group("example.com", "Current", &[resource("things", "Thing")]);
                json!({ "items": [ours, group("broken.example.com", "Stale", &[])] })
            }
            ("/api", false) => json!({ "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
            ("/apis", false) => {
                json!({ "groups": [listed("example.com"), listed("broken.example.com")] })
            }
            ("/api/v1", _) => kinds("v1", "pods", "Pod"),
            ("/apis/example.com/v1", _) => kinds("example.com/v1", "things", "Thing"),
            _ => Value::Null,
        }
    }

    #[tokio::test]
    async fn what_does_not_respond_is_named() {
        for is_aggregated in [true, false] {
            let found = Discovered::read(&server(is_aggregated)).await.unwrap();
            let kinds = found.resources.iter().map(|(_, it)| it.resource.plural.as_str());
            assert_eq!(kinds.collect::<Vec<_>>(), ["pods", "things"], "{is_aggregated}");
            let unknown = found.unknown.iter().map(|it| format!("{}/{}", it.group, it.version));
            let unknown: Vec<String> = unknown.collect();
            assert_eq!(unknown, ["broken.example.com/v1"], "{is_aggregated}");
        }
    }
}
