//! Aggregated discovery: all groups, versions and resources in one document.
//!
//! The fields are in the order of kube-apiserver's, whose ETag is a digest of that text.
use bytes::Bytes;
use serde::Serialize;

use super::{ApiGroup, groups};
use crate::http::encode;
use crate::json::to_bytes;
use crate::semantics::registry::{ApiResource, Registry, Scope, Subresource};

/// The media type of aggregated discovery.
pub(crate) const MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The document of aggregated discovery and its entity tag.
pub(crate) struct AggregatedDiscovery {
    /// The document as JSON.
    pub(crate) text: Bytes,
    /// The entity tag: a digest of the document, without quotes.
    pub(crate) tag: String,
}

/// `/api` or `/apis` with everything below it.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go: calculateAPIGroupsLocked
pub(crate) fn aggregated(registry: &Registry, core: bool) -> AggregatedDiscovery {
    let items = groups(registry)
        .iter()
        .filter(|group| group.name.is_empty() == core)
        .map(DiscoveredGroup::of)
        .collect();
    let mut list = List { kind: None, api_version: None, metadata: Metadata::default(), items };
    // The digest is of the list without `kind` and `apiVersion`.
    let tag = encode::digest(&to_bytes(&list));
    list.kind = Some("APIGroupDiscoveryList");
    list.api_version = Some("apidiscovery.k8s.io/v2");
    AggregatedDiscovery { text: to_bytes(&list), tag }
}

#[derive(Default, Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    metadata: Metadata<'a>,
    items: Vec<DiscoveredGroup<'a>>,
}

#[derive(Serialize)]
struct DiscoveredGroup<'a> {
    metadata: Metadata<'a>,
    versions: Vec<DiscoveredVersion<'a>>,
}

#[derive(Serialize)]
struct DiscoveredVersion<'a> {
    version: &'a str,
    resources: Vec<DiscoveredResource<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredResource<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<DiscoveredSubresource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredSubresource<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: &'a [String],
}

#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl<'a> DiscoveredGroup<'a> {
    fn of(group: &ApiGroup<'a>) -> Self {
        let versions = group.versions.iter().map(|version| DiscoveredVersion {
            version: version.name,
            resources: version
                .resources
                .iter()
                .map(|resource| DiscoveredResource::of(resource))
                .collect(),
            freshness: "Current",
        });
        Self { metadata: Metadata { name: group.name }, versions: versions.collect() }
    }
}

impl<'a> DiscoveredResource<'a> {
    fn of(resource: &'a ApiResource) -> Self {
        let own = ResponseKind {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
        };
        let subresource = |shown: &'a Subresource| DiscoveredSubresource {
            subresource: &shown.name,
            response_kind: ResponseKind {
                group: &shown.group,
                version: &shown.version,
                kind: &shown.kind,
            }
            .shortened(resource),
            verbs: &shown.verbs,
        };
        Self {
            resource: &resource.plural,
            response_kind: own.shortened(resource),
            scope: match resource.scope {
                Scope::Namespaced => "Namespaced",
                Scope::Cluster => "Cluster",
            },
            singular_resource: &resource.singular,
            verbs: &resource.verbs,
            short_names: &resource.short_names,
            categories: &resource.categories,
            subresources: resource.subresources.iter().map(subresource).collect(),
        }
    }
}

impl ResponseKind<'_> {
    /// Empty for built-in resources whose kind is of the same group and version.
    fn shortened(self, resource: &ApiResource) -> Self {
        let is_own = self.group == resource.group && self.version == resource.version;
        if is_own && resource.custom().is_none() {
            return Self { group: "", version: "", ..self };
        }
        self
    }
}
