//! Warnings about the schemas of custom resources.
use std::collections::BTreeSet;

use k8s_schema as schema;
use serde_json::Value;

/// Everything to warn of in a definition that was not in it before.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go: WarningsOnCreate
pub(super) fn warnings(live: Option<&Value>, object: &Value) -> Vec<String> {
    let before = live.map(of_definition).unwrap_or_default();
    let mut found = of_definition(object);
    found.retain(|warning| !before.contains(warning));
    found
}

fn of_definition(object: &Value) -> Vec<String> {
    let versions = object["spec"]["versions"].as_array();
    let mut schemas: Vec<&Value> = versions
        .into_iter()
        .flatten()
        .map(|version| &version["schema"]["openAPIV3Schema"])
        .collect();
    // A schema that several versions share is checked once.
    schemas.dedup();
    let mut found: Vec<String> = schemas
        .iter()
        .flat_map(|schema| schema::unrecognized_formats(schema))
        .map(|format| format!("unrecognized format {format:?}"))
        .collect();
    let mut sets: Vec<String> = schemas
        .iter()
        .flat_map(|schema| schema::compound_set_items(schema))
        .map(|items| {
            format!(
                "x-kubernetes-list-type: set for items of type {items:?} is not supported by \
                 server-side apply or CEL validation rules"
            )
        })
        .collect();
    sets.sort();
    found.extend(sets);
    // Each warning is sent once.
    let mut told = BTreeSet::new();
    found.retain(|warning| told.insert(warning.clone()));
    found
}
