//! Ownership of replicas, in the `managedFields` of an object and of its scale.
//!
//! A scale is not stored: its entries are derived from those of the object that own the replicas.
//! A manager that sets the replicas through the scale takes them from the other managers.
use k8s_schema::fields::{FieldSet, PathElement};
use serde_json::{Value, json};

use super::API_VERSION;

/// The identity of a manager's entry.
#[derive(PartialEq, Eq)]
struct Identity<'a> {
    manager: &'a str,
    operation: &'a str,
    subresource: &'a str,
    /// The time of the entry; empty for entries of applies.
    api_version: &'a str,
}

fn identity(entry: &Value) -> Identity<'_> {
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    let operation = text("operation");
    Identity {
        manager: text("manager"),
        operation,
        subresource: text("subresource"),
        api_version: if operation == "Apply" { "" } else { text("apiVersion") },
    }
}

/// The elements of a dotted path.
fn elements(path: &str) -> Vec<PathElement> {
    path.split('.')
        .filter(|name| !name.is_empty())
        .map(|name| PathElement::Field(name.to_owned()))
        .collect()
}

fn owned(entry: &Value) -> FieldSet {
    FieldSet::from_fields_v1(&entry["fieldsV1"]).unwrap_or_default()
}

/// The entries of the scale of an object; `path` is that of the replicas in a version of the
/// object.
///
/// Upstream: k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go: ToSubresource
pub(super) fn of_scale(entries: &[Value], path: impl Fn(&str) -> Option<String>) -> Vec<Value> {
    entries
        .iter()
        .filter(|entry| {
            path(entry["apiVersion"].as_str().unwrap_or_default())
                .is_some_and(|path| owned(entry).contains(&elements(&path)))
        })
        .map(|entry| {
            let mut entry = entry.clone();
            entry["apiVersion"] = API_VERSION.into();
            entry["fieldsV1"] = json!({"f:spec": {"f:replicas": {}}});
            entry
        })
        .collect()
}

/// The entries of an object after its scale was written with the entries `scale`.
///
/// Upstream: k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go: ToParent
pub(super) fn of_parent(
    parent: &[Value],
    scale: &[Value],
    api_version: &str,
    path: impl Fn(&str) -> Option<String>,
) -> Vec<Value> {
    let mut out = Vec::new();
    let mut left: Vec<&Value> = scale.iter().collect();
    for entry in parent {
        let Some(path) = path(entry["apiVersion"].as_str().unwrap_or_default()) else { continue };
        let path = elements(&path);
        let set = owned(entry);
        if !set.contains(&path) {
            out.push(entry.clone());
        } else if let Some(kept) = left.iter().position(|other| identity(other) == identity(entry))
        {
            left.remove(kept);
            out.push(entry.clone());
        } else {
            let rest = set.difference(&FieldSet::from_paths([path.as_slice()]));
            if !rest.is_empty() {
                let mut entry = entry.clone();
                entry["fieldsV1"] = rest.to_fields_v1();
                out.push(entry);
            }
        }
    }
    let replicas = path(api_version).map(|path| elements(&path)).unwrap_or_default();
    let taken = FieldSet::from_paths([replicas.as_slice()]).to_fields_v1();
    for entry in left {
        let mut entry = entry.clone();
        entry["apiVersion"] = api_version.into();
        entry["fieldsV1"] = taken.clone();
        if let Some(fields) = entry.as_object_mut() {
            fields.remove("time");
        }
        out.push(entry);
    }
    out.sort_by_key(|entry| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        (text("operation"), text("time"), text("manager"), text("apiVersion"), text("subresource"))
    });
    out
}
