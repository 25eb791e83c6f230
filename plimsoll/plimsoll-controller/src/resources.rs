//! Kinds that the API server serves, and their names.

mod discovered;

use std::collections::BTreeMap;

use kube::Client;
use kube::core::ApiResource;
use kube::discovery::{self, Discovery};
use plimsoll_api::ApiKind;
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use serde_json::Value;

pub(crate) use self::discovered::{Discovered, UnknownVersion};

/// The resource of definitions.
pub(crate) fn definitions() -> ApiResource {
    ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    }
}

/// The resource that a definition defines, in the version that it serves and that ranks least; `None` if
/// it serves none.
pub(crate) fn defined_resource<K: Ord>(
    definition: &Value,
    rank: impl Fn(&Value) -> K,
) -> Option<ApiResource> {
    let spec = &definition["spec"];
    let served = spec["versions"].as_array()?.iter().filter(|it| it["served"] == true);
    let version = served.min_by_key(|it| rank(it))?["name"].as_str()?;
    let (group, names) = (spec["group"].as_str()?, &spec["names"]);
    let gvk = kube::core::GroupVersionKind::gvk(group, version, names["kind"].as_str()?);
    Some(ApiResource::from_gvk_with_plural(&gvk, names["plural"].as_str()?))
}

/// A kind that is served.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) resource: ApiResource,
    pub(crate) scope: Scope,
}

/// The kinds that are served, as far as they have been discovered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources(BTreeMap<GroupVersionKind, Served>);

impl Resources {
    /// Discovers everything that is served.
    ///
    /// # Errors
    ///
    /// When the server does not answer or rejects discovery.
    pub(crate) async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let discovery = match Discovery::new(client.clone()).run_aggregated().await {
            Ok(discovery) => discovery,
            // A server without aggregated discovery; or one that has trouble, which shows again.
            Err(_) => Discovery::new(client.clone()).run().await?,
        };
        let mut found = Self::default();
        for group in discovery.groups() {
            for version in group.versions() {
                for (resource, capabilities) in group.versioned_resources(version) {
                    let scope = match capabilities.scope {
                        discovery::Scope::Cluster => Scope::Cluster,
                        discovery::Scope::Namespaced => Scope::Namespaced,
                    };
                    found.insert(resource, scope);
                }
            }
        }
        Ok(found)
    }

    /// Discovers the kinds of one group version; none when it is not served at all.
    ///
    /// # Errors
    ///
    /// When the server does not answer or rejects the request.
    pub(crate) async fn discover_version(
        client: &Client,
        group: &str,
        version: &str,
    ) -> Result<Self, kube::Error> {
        let listed = if group.is_empty() {
            client.list_core_api_resources(version).await
        } else {
            client.list_api_group_resources(&format!("{group}/{version}")).await
        };
        let mut found = Self::default();
        let resources = match listed {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(found),
            Err(error) => return Err(error),
        };
        for resource in resources.into_iter().filter(|resource| !resource.name.contains('/')) {
            let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
            let gvk = kube::core::GroupVersionKind::gvk(group, version, &resource.kind);
            found.insert(ApiResource::from_gvk_with_plural(&gvk, &resource.name), scope);
        }
        Ok(found)
    }

    pub(crate) fn insert(&mut self, resource: ApiResource, scope: Scope) {
        let kind = GroupVersionKind {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
        };
        self.0.insert(kind, Served { resource, scope });
    }

    pub(crate) fn get(&self, kind: &GroupVersionKind) -> Option<&Served> {
        self.0.get(kind)
    }

    /// Returns whether a kind of ours is served.
    pub(crate) fn serves(&self, kind: ApiKind) -> bool {
        let is_it = |it: &GroupVersionKind| it.group == kind.group && it.kind == kind.kind;
        self.0.keys().any(is_it)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&GroupVersionKind, &Served)> {
        self.0.iter()
    }

    /// The kinds, each with its scope.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = (GroupVersionKind, Scope)> {
        self.0.iter().map(|(kind, served)| (kind.clone(), served.scope))
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl FromIterator<(GroupVersionKind, Served)> for Resources {
    fn from_iter<T: IntoIterator<Item = (GroupVersionKind, Served)>>(kinds: T) -> Self {
        Self(kinds.into_iter().collect())
    }
}

/// Names a kind of ours for the client.
pub fn api_resource(kind: ApiKind) -> ApiResource {
    let gvk = kube::core::GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}
