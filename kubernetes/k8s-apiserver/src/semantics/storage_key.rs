//! Keys in the storage: which names of namespaces and objects have one.
//!
//! In etcd a key is a path, in which `.` and `..` are no names.
use k8s_cel::go::quote;
use k8s_schema::names;

use super::registry::ApiResource;
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::ObjectKey;

/// The built-in resources whose keys have another prefix than their name.
///
/// Upstream: k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go: SpecialDefaultResourcePrefixes
const PREFIXES: [(&str, &str, &str); 4] = [
    ("", "endpoints", "services/endpoints"),
    ("", "replicationcontrollers", "controllers"),
    ("", "services", "services/specs"),
    ("networking.k8s.io", "ingresses", "ingress"),
];

/// Checks that an object of this key can be stored.
///
/// # Errors
/// When its name or its namespace is not one that a path can have.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: NamespaceKeyFunc
pub(crate) fn check(resource: &ApiResource, key: &ObjectKey) -> Result<()> {
    let problems = names::path_segment(&key.name);
    if !problems.is_empty() {
        let (name, why) = (quote(&key.name), problems.join(";"));
        return Err(ApiError::bad_request(format!("Name parameter invalid: {name}: {why}")));
    }
    check_path(resource, &key.namespace, &key.name)
}

/// Checks that objects of a namespace can be stored; `name` is that of a single one, or empty.
///
/// # Errors
/// When the namespace is not one that a path can have.
///
/// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: prepareKey
pub(crate) fn check_path(resource: &ApiResource, namespace: &str, name: &str) -> Result<()> {
    if !matches!(namespace, "." | "..") {
        return Ok(());
    }
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    let prefix = if resource.custom().is_some() {
        format!("{group}/{plural}")
    } else {
        let special = PREFIXES.iter().find(|(of, name, _)| (*of, *name) == (group, plural));
        special.map_or(plural, |(_, _, prefix)| *prefix).to_owned()
    };
    let slash = if name.is_empty() { "" } else { "/" };
    let path = quote(&format!("/{prefix}/{namespace}{slash}{name}"));
    Err(ApiError::new(StatusReason::Unknown, format!("invalid key: {path}")))
}

/// Checks that a namespace that something is created in can be looked up.
///
/// # Errors
/// When its name is not one that a path can have.
///
/// Upstream: k8s.io/client-go/rest/request.go: Name
pub(crate) fn check_parent(namespace: &str) -> Result<()> {
    let problems = names::path_segment(namespace);
    if problems.is_empty() {
        return Ok(());
    }
    let (name, why) = (quote(namespace), problems.join(" "));
    Err(ApiError::internal(format!("invalid resource name {name}: [{why}]")))
}
