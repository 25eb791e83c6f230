//! Documents about the API itself: groups, versions and resources.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use k8s_schema::versions;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::json::to_bytes;
use crate::request::path::{ISSUER_CONFIGURATION, ISSUER_KEYS};
use crate::semantics::registry::{ApiResource, Registry, Scope, Subresource};

mod aggregated;

pub(crate) use aggregated::{AggregatedDiscovery, MEDIA_TYPE, aggregated};

/// The versions of a group, the preferred one first.
struct ApiGroup<'a> {
    name: &'a str,
    versions: Vec<ApiVersion<'a>>,
}

struct ApiVersion<'a> {
    name: &'a str,
    resources: Vec<&'a ApiResource>,
}

impl ApiGroup<'_> {
    fn is_custom(&self) -> bool {
        let mut resources = self.versions.iter().flat_map(|version| &version.resources);
        resources.all(|resource| resource.custom().is_some())
    }

    /// The first name of the APIServices of its versions.
    fn first_service(&self) -> Option<String> {
        self.versions.iter().map(|version| format!("{}.{}", version.name, self.name)).min()
    }
}

/// All groups: the built-in ones in their order, then the others by name.
fn groups(registry: &Registry) -> Vec<ApiGroup<'_>> {
    let mut groups: Vec<ApiGroup<'_>> = Vec::new();
    let mut custom: Vec<ApiGroup<'_>> = Vec::new();
    for resource in registry.all() {
        let place = if resource.custom().is_some()
            && !groups.iter().any(|group| group.name == resource.group)
        {
            &mut custom
        } else {
            &mut groups
        };
        add(place, resource);
    }
    custom.sort_by(|left, right| left.name.cmp(right.name));
    for group in &mut custom {
        group.versions.sort_by(|left, right| versions::compare(left.name, right.name));
        for version in &mut group.versions {
            version.resources.sort_by(|left, right| left.plural.cmp(&right.plural));
        }
    }
    groups.extend(custom);
    groups
}

fn add<'a>(groups: &mut Vec<ApiGroup<'a>>, resource: &'a ApiResource) {
    let group = match groups.iter_mut().position(|group| group.name == resource.group) {
        Some(index) => &mut groups[index],
        None => {
            groups.push(ApiGroup { name: &resource.group, versions: Vec::new() });
            groups.last_mut().expect("a group was pushed above")
        }
    };
    match group.versions.iter_mut().find(|version| version.name == resource.version) {
        Some(version) => version.resources.push(resource),
        None => {
            group.versions.push(ApiVersion { name: &resource.version, resources: vec![resource] })
        }
    }
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `/api`.
pub(crate) fn core_versions() -> Bytes {
    to_bytes(&CoreVersions {
        kind: "APIVersions",
        versions: ["v1"],
        addresses: [ServerAddress { clients: "0.0.0.0/0", server: "127.0.0.1" }],
    })
}

/// `/apis`.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/root.go: ServeHTTP
pub(crate) fn group_list(registry: &Registry) -> Bytes {
    let mut groups = groups(registry);
    let built_in = groups.iter().filter(|group| !group.is_custom()).count();
    // Groups of definitions are in the order of the services of their versions.
    groups[built_in..].sort_by_cached_key(ApiGroup::first_service);
    to_bytes(&GroupList {
        kind: "APIGroupList",
        api_version: "v1",
        groups: groups
            .iter()
            .filter(|group| !group.name.is_empty())
            .map(|group| GroupDocument::of(group, None))
            .collect(),
    })
}

/// `/apis/GROUP`.
pub(crate) fn one_group(registry: &Registry, name: &str) -> Option<Bytes> {
    let groups = groups(registry);
    let group = groups.iter().find(|group| group.name == name)?;
    Some(to_bytes(&GroupDocument::of(group, Some(("APIGroup", "v1")))))
}

/// `/apis/GROUP/VERSION` and `/api/VERSION`.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: registerResourceHandlers
pub(crate) fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Bytes> {
    let groups = groups(registry);
    let found = groups
        .iter()
        .find(|candidate| candidate.name == group)?
        .versions
        .iter()
        .find(|candidate| candidate.name == version)?;
    let mut resources = Vec::new();
    for resource in &found.resources {
        resources.push(ResourceDocument::of(resource));
        let subresources = resource.subresources.iter();
        resources.extend(subresources.map(|part| ResourceDocument::of_subresource(resource, part)));
    }
    Some(to_bytes(&ResourceList {
        kind: "APIResourceList",
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: group_version(group, version),
        resources,
    }))
}

// The fields of these documents are in the order of kube-apiserver's: scripts compare the text.

#[derive(Serialize)]
struct CoreVersions {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [ServerAddress; 1],
}

#[derive(Serialize)]
struct ServerAddress {
    #[serde(rename = "clientCIDR")]
    clients: &'static str,
    #[serde(rename = "serverAddress")]
    server: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<GroupDocument<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<GroupVersion<'a>>,
    preferred_version: Option<GroupVersion<'a>>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion<'a> {
    group_version: String,
    version: &'a str,
}

impl<'a> GroupDocument<'a> {
    fn of(group: &ApiGroup<'a>, document_type: Option<(&'static str, &'static str)>) -> Self {
        let versions: Vec<_> = group
            .versions
            .iter()
            .map(|version| GroupVersion {
                group_version: group_version(group.name, version.name),
                version: version.name,
            })
            .collect();
        Self {
            kind: document_type.map(|(kind, _)| kind),
            api_version: document_type.map(|(_, version)| version),
            name: group.name,
            preferred_version: versions.first().cloned(),
            versions,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ResourceDocument<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDocument<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

impl<'a> ResourceDocument<'a> {
    fn of(resource: &'a ApiResource) -> Self {
        let is_stored = resource.serves("get") && resource.kind != "ComponentStatus";
        Self {
            name: resource.plural.clone(),
            singular_name: &resource.singular,
            namespaced: resource.scope == Scope::Namespaced,
            group: "",
            version: "",
            kind: &resource.kind,
            verbs: &resource.verbs,
            short_names: &resource.short_names,
            categories: &resource.categories,
            storage_version_hash: is_stored.then(|| storage_version_hash(resource)),
        }
    }

    fn of_subresource(resource: &'a ApiResource, part: &'a Subresource) -> Self {
        let is_of_other = part.group != resource.group || part.version != resource.version;
        let (group, version) =
            if is_of_other { (part.group.as_str(), part.version.as_str()) } else { ("", "") };
        Self {
            name: format!("{}/{}", resource.plural, part.name),
            singular_name: "",
            namespaced: resource.scope == Scope::Namespaced,
            group,
            version,
            kind: &part.kind,
            verbs: &part.verbs,
            short_names: &[],
            categories: &[],
            storage_version_hash: None,
        }
    }
}

/// Kinds whose storage version is not their preferred version.
const STORED_OTHERWISE: [(&str, &str, &str); 7] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition", "apiextensions.k8s.io/v1beta1"),
    ("autoscaling", "HorizontalPodAutoscaler", "autoscaling/v2"),
    ("certificates.k8s.io", "ClusterTrustBundle", "certificates.k8s.io/v1beta1"),
    ("certificates.k8s.io", "PodCertificateRequest", "certificates.k8s.io/v1beta1"),
    ("events.k8s.io", "Event", "/v1"),
    ("resource.k8s.io", "DeviceTaintRule", "resource.k8s.io/v1beta2"),
    ("storagemigration.k8s.io", "StorageVersionMigration", "storagemigration.k8s.io/v1beta1"),
];

/// The hash of the storage version, which storage migrators compare.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go: StorageVersionHash
fn storage_version_hash(resource: &ApiResource) -> String {
    let special = STORED_OTHERWISE.iter().find(|(group, kind, _)| resource.is(group, kind));
    let version = match (special, resource.custom()) {
        (Some((_, _, version)), _) => (*version).to_owned(),
        (None, Some(custom)) => format!("{}/{}", resource.group, custom.storage_version),
        (None, None) => format!("{}/{}", resource.group, resource.version),
    };
    let digest = Sha256::digest(format!("{version}/{}", resource.kind));
    STANDARD.encode(&digest[..8])
}

/// `/version`.
///
/// Upstream: k8s.io/apiserver/pkg/server/routes/version.go: handleVersion
pub(crate) fn server_version() -> Value {
    let version = k8s_schema::builtin::kubernetes_version();
    let mut numbers = version.trim_start_matches('v').split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    let before = minor.parse::<u32>().unwrap_or(1).saturating_sub(1).to_string();
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": before,
        "gitVersion": version,
        "gitCommit": "embedded",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The processor architecture under its name in Go.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/`.
///
/// Upstream: k8s.io/apiserver/pkg/server/routes/index.go: ListedPaths
pub(crate) fn paths(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for group in groups(registry).iter().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        for version in &group.versions {
            paths.push(format!("/apis/{}/{}", group.name, version.name));
        }
    }
    paths.extend(crate::http::health::paths());
    paths.extend(["/metrics", "/openapi/v2", "/openapi/v3", "/version"].map(str::to_owned));
    paths.extend([ISSUER_CONFIGURATION, ISSUER_KEYS].map(str::to_owned));
    paths.sort();
    json!({"paths": paths})
}
