//! What is accepted with a warning.
use plimsoll_schema::{self as schema, names};
use serde_json::Value;

use crate::cluster::Call;
use crate::registry::ApiResource;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Adds the warnings about an object that is about to be stored.
pub(super) fn collect(
    call: &mut Call,
    resource: &ApiResource,
    live: Option<&Value>,
    object: &Value,
) {
    if resource.custom().is_some() {
        call.warnings.extend(finalizers(live, object));
    } else if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        call.warnings.extend(definition(live, object));
    } else if resource.is("apps", "StatefulSet")
        && object["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0)
    {
        call.warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a \
             value >= 0 is recommended"
                .to_owned(),
        );
    }
}

fn finalizers(live: Option<&Value>, object: &Value) -> Vec<String> {
    let of = |object: &Value| -> Vec<String> {
        let list = object["metadata"]["finalizers"].as_array();
        list.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let before = live.map(of).unwrap_or_default();
    let mut added = of(object);
    added.retain(|finalizer| !before.contains(finalizer));
    added.sort();
    added.dedup();
    let mut warnings = Vec::new();
    for finalizer in added {
        let prefix = format!("metadata.finalizers: {finalizer:?}: ");
        warnings.extend(
            names::qualified(&finalizer).into_iter().map(|problem| format!("{prefix}{problem}")),
        );
        if finalizer.contains('/') || STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            continue;
        }
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        warnings.push(format!(
            "{prefix}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
    warnings
}

fn definition(live: Option<&Value>, object: &Value) -> Vec<String> {
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
    // A schema that all versions share is looked at once.
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
    sets.dedup();
    found.extend(sets);
    found
}
