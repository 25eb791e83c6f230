//! OpenAPI documents, as far as `kubectl` reads them.
//!
//! Version 3 has the paths with their kinds (so that `kubectl apply` leaves validation to the
//! server, and `kubectl explain` finds the type) and the types without descriptions. Version 2 is
//! only a shell: whoever reads it falls back on version 3 or on the server.
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::registry::{ApiResource, Registry, Scope};
use crate::store::{ObjectKey, StorageId};

/// The media type under which `kubectl` asks for version 2.
pub(crate) const VERSION_2_PROTOBUF: &str =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

fn info() -> Value {
    json!({"title": "Kubernetes", "version": plimsoll_schema::builtin::kubernetes_version()})
}

/// `/openapi/v2`.
pub(crate) fn version_2() -> Value {
    json!({"swagger": "2.0", "info": info(), "paths": {}, "definitions": {}})
}

/// `/openapi/v2` in the binary form of gnostic's `Document`: its version, its info, no paths.
pub(crate) fn version_2_protobuf() -> Bytes {
    const SWAGGER: u8 = 1;
    const INFO: u8 = 2;
    const PATHS: u8 = 8;
    let mut title = field(1, b"Kubernetes");
    title.extend(field(2, plimsoll_schema::builtin::kubernetes_version().as_bytes()));
    let mut document = field(SWAGGER, b"2.0");
    document.extend(field(INFO, &title));
    document.extend(field(PATHS, b""));
    document.into()
}

/// A length-delimited field of a protocol buffer; all of ours are shorter than 128 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    const LENGTH_DELIMITED: u8 = 2;
    let length = u8::try_from(content.len()).unwrap_or_default();
    let mut out = vec![number << 3 | LENGTH_DELIMITED, length];
    out.extend_from_slice(content);
    out
}

/// `/openapi/v3`.
pub(crate) fn version_3_index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for resource in registry.all() {
        let path = base_path(resource).trim_start_matches('/').to_owned();
        let url = format!("/openapi/v3/{path}");
        paths.entry(path).or_insert_with(|| json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn base_path(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    }
}

/// `/openapi/v3/...` of one group-version.
pub(crate) fn version_3(cluster: &Cluster, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<_> = cluster
        .registry
        .all()
        .filter(|resource| resource.group == group && resource.version == version)
        .collect();
    if resources.is_empty() {
        return None;
    }
    let mut schemas =
        plimsoll_schema::builtin::openapi_definitions(group, version).unwrap_or_else(|| json!({}));
    let mut paths = Map::new();
    for resource in resources {
        add_paths(&mut paths, resource);
        if resource.custom().is_some()
            && let Some(schema) = custom_schema(cluster, resource)
        {
            schemas[custom_name(resource)] = schema;
        }
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// The name of a custom type: the group backwards, the version, the kind.
fn custom_name(resource: &ApiResource) -> String {
    let mut labels: Vec<&str> = resource.group.split('.').collect();
    labels.reverse();
    format!("{}.{}.{}", labels.join("."), resource.version, resource.kind)
}

fn custom_schema(cluster: &Cluster, resource: &ApiResource) -> Option<Value> {
    let name = format!("{}.{}", resource.plural, resource.group);
    let definition = cluster
        .store
        .find(
            &StorageId::new("apiextensions.k8s.io", "customresourcedefinitions"),
            &ObjectKey::new("", &name),
        )?
        .decode();
    let mut schema = definition["spec"]["versions"]
        .as_array()?
        .iter()
        .find(|version| version["name"] == *resource.version)?
        .pointer("/schema/openAPIV3Schema")?
        .clone();
    schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource)]);
    Some(schema)
}

fn kind_of(resource: &ApiResource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn add_paths(paths: &mut Map<String, Value>, resource: &ApiResource) {
    let base = base_path(resource);
    let all = format!("{base}/{}", resource.plural);
    let collection = match resource.scope {
        Scope::Namespaced => format!("{base}/namespaces/{{namespace}}/{}", resource.plural),
        Scope::Cluster => all.clone(),
    };
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
            .collect();
        json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind_of(resource),
        })
    };
    let written = ["dryRun", "fieldManager", "fieldValidation"];
    let mut many = Map::new();
    for (verb, method, action, parameters) in [
        ("list", "get", "list", &["labelSelector", "fieldSelector"][..]),
        ("create", "post", "post", &written[..]),
        ("deletecollection", "delete", "deletecollection", &["dryRun"][..]),
    ] {
        if resource.serves(verb) {
            many.insert(method.to_owned(), operation(action, parameters));
        }
    }
    if resource.scope == Scope::Namespaced && resource.serves("list") {
        paths.insert(all, json!({"get": operation("list", &[])}));
    }
    let mut one = Map::new();
    for (verb, method, action, parameters) in [
        ("get", "get", "get", &[][..]),
        ("update", "put", "put", &written[..]),
        ("patch", "patch", "patch", &["dryRun", "fieldManager", "fieldValidation", "force"][..]),
        ("delete", "delete", "delete", &["dryRun"][..]),
    ] {
        if resource.serves(verb) {
            one.insert(method.to_owned(), operation(action, parameters));
        }
    }
    if !one.is_empty() {
        paths.insert(format!("{collection}/{{name}}"), Value::Object(one));
    }
    paths.insert(collection, Value::Object(many));
}
