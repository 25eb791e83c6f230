//! OpenAPI documents: valid, and for now without the types.
//!
//! The server checks every object itself, so clients lose nothing but `kubectl explain`.
use serde_json::{Value, json};

use crate::registry::Registry;

fn info() -> Value {
    json!({"title": "Kubernetes", "version": plimsoll_schema::builtin::kubernetes_version()})
}

/// `/openapi/v2`.
pub(crate) fn version_2() -> Value {
    json!({"swagger": "2.0", "info": info(), "paths": {}, "definitions": {}})
}

/// `/openapi/v3`.
pub(crate) fn version_3_index(registry: &Registry) -> Value {
    let mut paths = serde_json::Map::new();
    for resource in registry.all() {
        let path = if resource.group.is_empty() {
            format!("api/{}", resource.version)
        } else {
            format!("apis/{}/{}", resource.group, resource.version)
        };
        let url = format!("/openapi/v3/{path}");
        paths
            .entry(path)
            .or_insert_with(|| json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// `/openapi/v3/...` of one group-version.
pub(crate) fn version_3(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let exists = registry
        .all()
        .any(|resource| resource.group == group && resource.version == version);
    let schemas =
        plimsoll_schema::builtin::openapi_definitions(group, version).unwrap_or_else(|| json!({}));
    exists.then(|| {
        json!({
            "openapi": "3.0.0",
            "info": info(),
            "paths": {},
            "components": {"schemas": schemas},
        })
    })
}
