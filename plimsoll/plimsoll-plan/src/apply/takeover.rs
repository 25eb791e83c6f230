//! Takeover of fields from earlier managers.
//!
//! Server-side apply removes a field that a manifest drops only if no other manager owns it. An object
//! that another program applied before would keep such fields for ever, since an entry in
//! `managedFields` outlives its program. So the fields of earlier managers become ours, and the next
//! apply removes those that the manifest lacks.
//!
//! Earlier managers are programs that apply whole manifests, as a release or an Operator does in their
//! place. What controllers and unknown managers own stays theirs, as does what was written after our
//! last change.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::fingerprint::FIELD_MANAGER;
use crate::plan::GroupVersionKind;

/// Managers that apply whole manifests by create, update and patch: Helm 3 (named after its binary or
/// its user agent), the two operators of OLM (`catalog` applies the definitions, `olm` the rest), the
/// Cluster Version Operator, and the verbs of kubectl that take a whole manifest. Its other verbs, such
/// as `kubectl-edit`, `kubectl-label` or `kubectl-rollout`, change parts of an object.
const EARLIER_MANAGERS: [&str; 8] = [
    "Helm",
    "catalog",
    "cluster-version-operator",
    "helm",
    "kubectl-client-side-apply",
    "kubectl-create",
    "kubectl-replace",
    "olm",
];

/// What kubectl was called before its verbs had managers of their own: only `kubectl apply` writes
/// [`LAST_APPLIED`].
const EARLIER_KUBECTL: &str = "kubectl";

/// Where an entry has the annotation of a client-side apply.
const LAST_APPLIED: &str = "/fieldsV1/f:metadata/f:annotations/\
     f:kubectl.kubernetes.io~1last-applied-configuration";

/// Managers that apply whole manifests server-side: Helm 4. Others that apply server-side, as
/// `kubectl apply --server-side` does, share the object knowingly.
const EARLIER_APPLIERS: [&str; 2] = ["Helm", "helm"];

/// Fields that stay with their manager: a finalizer guards what is outside of the object, and replicas
/// that a manifest does not name are not changed.
const KEPT: [(&str, &str); 2] = [("f:metadata", "f:finalizers"), ("f:spec", "f:replicas")];

/// What is taken over of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Takeover {
    /// The earlier managers.
    pub managers: BTreeSet<String>,
    /// The entries of `managedFields` in which their fields are ours.
    pub managed_fields: Vec<Value>,
    /// The fields that only they own, in the form of `fieldsV1`. If our entry is that of an apply, the
    /// manifest lacks them.
    dropped: Map<String, Value>,
}

/// Returns what is taken over of an object of a kind with these `managedFields`; `None` if no earlier
/// manager owns any of its fields.
///
/// Only entries in the version of the kind are taken over: paths of another version may have another
/// meaning. The labels and annotations of a namespace are settings of those who work in it, so that a
/// namespace is never taken over.
pub fn takeover(kind: &GroupVersionKind, managed_fields: &[Value]) -> Option<Takeover> {
    if kind.group.is_empty() && kind.kind == "Namespace" {
        return None;
    }
    let api_version = api_version(kind);
    let position = managed_fields.iter().position(is_ours);
    let ours = position.map(|it| &managed_fields[it]);
    let mut managers = BTreeSet::new();
    let (mut taken, mut owned) = (Map::new(), Map::new());
    let (mut own, mut others) = (None, Vec::new());
    for (index, entry) in managed_fields.iter().enumerate() {
        let fields = entry["fieldsV1"].as_object().cloned().unwrap_or_default();
        if Some(index) == position {
            unite(&mut owned, &fields);
            own = Some(fields);
            continue;
        }
        let is_taken =
            is_earlier(entry) && entry["apiVersion"] == api_version && !is_newer(entry, ours);
        let (theirs, kept) = if is_taken { split(fields) } else { (Map::new(), fields) };
        unite(&mut owned, &kept);
        if !theirs.is_empty() {
            managers.insert(text(entry, "manager").to_owned());
            unite(&mut taken, &theirs);
        }
        if theirs.is_empty() || !kept.is_empty() {
            let mut entry = entry.clone();
            entry["fieldsV1"] = kept.into();
            others.push(entry);
        }
    }
    if managers.is_empty() {
        return None;
    }
    let dropped = subtract(&taken, &owned);
    let mut united = own.unwrap_or_default();
    unite(&mut united, &taken);
    let mut entry = ours.cloned().unwrap_or_else(|| {
        json!({
            "manager": FIELD_MANAGER,
            "operation": "Apply",
            "apiVersion": api_version,
            "fieldsType": "FieldsV1",
        })
    });
    entry["fieldsV1"] = united.into();
    others.insert(0, entry);
    Some(Takeover { managers, managed_fields: others, dropped })
}

impl Takeover {
    /// Returns an applied object as the takeover leaves it: without the fields that only earlier managers
    /// own. The API server sets the defaults of some of them again.
    #[must_use]
    pub fn completed(&self, applied: &Value) -> Value {
        let mut object = applied.clone();
        remove(&mut object, &self.dropped);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("managedFields".to_owned(), self.managed_fields.clone().into());
        }
        object
    }
}

/// Returns the earlier managers that own fields of an object.
pub fn earlier_managers(object: &Value) -> BTreeSet<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter(|it| is_earlier(it)).map(|it| text(it, "manager").to_owned()).collect()
}

pub(super) fn api_version(kind: &GroupVersionKind) -> String {
    match kind.group.as_str() {
        "" => kind.version.clone(),
        group => format!("{group}/{}", kind.version),
    }
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_default()
}

pub(super) fn is_ours(entry: &Value) -> bool {
    text(entry, "manager") == FIELD_MANAGER
        && text(entry, "operation") == "Apply"
        && text(entry, "subresource").is_empty()
}

fn is_earlier(entry: &Value) -> bool {
    let manager = text(entry, "manager");
    let is_listed = match text(entry, "operation") {
        "Apply" => EARLIER_APPLIERS.contains(&manager),
        _ if manager == EARLIER_KUBECTL => entry.pointer(LAST_APPLIED).is_some(),
        _ => EARLIER_MANAGERS.contains(&manager),
    };
    is_listed && text(entry, "subresource").is_empty()
}

/// Returns whether an entry is of a write after our last change. Times are in whole seconds of UTC, which
/// are in order as text.
fn is_newer(entry: &Value, ours: Option<&Value>) -> bool {
    let ours = ours.map_or("", |it| text(it, "time"));
    !ours.is_empty() && text(entry, "time") > ours
}

/// Splits the fields of an earlier manager into those that are taken over and those that stay with it.
fn split(fields: Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let (mut taken, mut kept) = (fields, Map::new());
    if let Some(status) = taken.remove("f:status") {
        kept.insert("f:status".to_owned(), status);
    }
    for (parent, field) in KEPT {
        let Some(inside) = taken.get_mut(parent).and_then(Value::as_object_mut) else { continue };
        let Some(found) = inside.remove(field) else { continue };
        if inside.is_empty() {
            taken.remove(parent);
        }
        kept.insert(parent.to_owned(), json!({ (field): found }));
    }
    (taken, kept)
}

/// Adds fields to others.
pub(super) fn unite(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (element, theirs) in more {
        match fields.get_mut(element) {
            Some(Value::Object(ours)) => {
                let Value::Object(theirs) = theirs else { continue };
                // An empty set means the field itself; beside others that is a dot.
                if ours.is_empty() != theirs.is_empty() {
                    ours.insert(".".to_owned(), json!({}));
                }
                unite(ours, theirs);
            }
            Some(_) => {}
            None => {
                fields.insert(element.clone(), theirs.clone());
            }
        }
    }
}

/// Returns the fields that are not among those owned. A field stays if something in it is owned.
pub(super) fn subtract(
    fields: &Map<String, Value>,
    owned: &Map<String, Value>,
) -> Map<String, Value> {
    let mut rest = Map::new();
    for (element, below) in fields {
        match (owned.get(element).and_then(Value::as_object), below.as_object()) {
            (Some(owned), Some(below)) => {
                let mut left = subtract(below, owned);
                left.remove(".");
                if !left.is_empty() {
                    rest.insert(element.clone(), left.into());
                }
            }
            _ => {
                rest.insert(element.clone(), below.clone());
            }
        }
    }
    rest
}

/// Removes fields from a value, and maps that become empty by that.
pub(super) fn remove(value: &mut Value, fields: &Map<String, Value>) {
    for (element, below) in fields {
        let inside = below.as_object().filter(|it| !it.is_empty() && !it.contains_key("."));
        match (element.split_once(':'), &mut *value) {
            (Some(("f", name)), Value::Object(map)) => {
                let Some(inside) = inside else {
                    map.remove(name);
                    continue;
                };
                let Some(field) = map.get_mut(name) else { continue };
                let is_filled = field.as_object().is_some_and(|it| !it.is_empty());
                remove(field, inside);
                if is_filled && field.as_object().is_some_and(Map::is_empty) {
                    map.remove(name);
                }
            }
            (Some(("k" | "v", selector)), Value::Array(items)) => {
                let Ok(selector) = serde_json::from_str::<Value>(selector) else { continue };
                let Some(inside) = inside else {
                    items.retain(|item| !is_selected(item, &selector));
                    continue;
                };
                if let Some(item) = items.iter_mut().find(|item| is_selected(item, &selector)) {
                    remove(item, inside);
                }
            }
            _ => {}
        }
    }
}

/// Returns whether an item of a list has some keys, or is a value.
pub(super) fn is_selected(item: &Value, selector: &Value) -> bool {
    match selector {
        Value::Object(keys) => keys.iter().all(|(key, value)| item.get(key) == Some(value)),
        value => item == value,
    }
}

#[cfg(test)]
mod tests;
