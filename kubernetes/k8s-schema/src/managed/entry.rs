//! The entries of `managedFields`.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go: encodeManagedFields
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/buildmanagerinfo.go: buildManagerInfo
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::fields::{FieldSet, FieldsError, PathElement};

/// Updates by more managers than this are merged, oldest first, into one entry: without a bound
/// every client that ever touched an object would stay in it.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager of merged entries.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    /// Its name in `managedFields`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What identifies an entry. An applier has one entry whatever version it applies; an updater
/// has one for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for appliers.
    version: String,
    pub(super) subresource: String,
}

impl Identity {
    pub(super) fn new(
        manager: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        Self {
            manager: manager.to_owned(),
            operation,
            version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => api_version.to_owned(),
            },
            subresource: subresource.to_owned(),
        }
    }
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnedFields {
    pub(super) api_version: String,
    pub(super) time: Option<String>,
    pub(super) set: FieldSet,
}

/// All owners of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managers(pub(super) BTreeMap<Identity, OwnedFields>);

impl Managers {
    /// Reads the `managedFields` of an object; malformed ones count as none.
    pub(super) fn of(object: &Value) -> Self {
        object
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array)
            .and_then(|entries| Self::read(entries).ok())
            .unwrap_or_default()
    }

    fn read(entries: &[Value]) -> Result<Self, FieldsError> {
        let malformed = || FieldsError::NotAnObject { key: "managedFields".to_owned() };
        let mut out = BTreeMap::new();
        for entry in entries {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or("");
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err(malformed()),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
                return Err(malformed());
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields) => FieldSet::from_fields_v1(fields)?,
            };
            let identity =
                Identity::new(text("manager"), operation, api_version, text("subresource"));
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            out.insert(identity, OwnedFields { api_version: api_version.to_owned(), time, set });
        }
        Ok(Self(out))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, owned| !owned.set.is_empty());
    }

    /// Keeps the number of updaters within bounds.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/capmanagers.go: capUpdateManagers
    pub(super) fn cap_updates(&mut self) {
        let mut updaters: Vec<(String, Identity)> = self
            .0
            .iter()
            .filter(|(identity, _)| identity.operation == Operation::Update)
            .map(|(identity, owned)| (owned.time.clone().unwrap_or_default(), identity.clone()))
            .collect();
        updaters.sort();
        let mut count = updaters.len();
        let mut first_of_version: BTreeMap<String, Identity> = BTreeMap::new();
        let mut merging: BTreeMap<Identity, (OwnedFields, Vec<FieldSet>)> = BTreeMap::new();
        for (_, identity) in updaters {
            if count <= MAX_UPDATE_MANAGERS {
                break;
            }
            let version = identity.version.clone();
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, identity);
                continue;
            };
            let bucket = Identity::new(ANCIENT_CHANGES, Operation::Update, &version, "");
            let Some(mut merged) = self.0.remove(&identity) else { continue };
            let set = std::mem::take(&mut merged.set);
            let (newest, sets) = merging.entry(bucket.clone()).or_insert_with(|| {
                let known = self.0.remove(&bucket).or_else(|| self.0.remove(first));
                (merged.clone(), known.map(|known| known.set).into_iter().collect())
            });
            *newest = merged;
            sets.push(set);
            count -= 1;
        }
        for (bucket, (newest, sets)) in merging {
            self.0.insert(bucket, OwnedFields { set: FieldSet::union_of(sets), ..newest });
        }
    }

    /// Writes the entries in the order of kube-apiserver: appliers before updaters, then by time.
    pub(super) fn to_value(&self) -> Value {
        let mut entries: Vec<(&Identity, &OwnedFields)> = self.0.iter().collect();
        entries.sort_by_key(|(identity, owned)| {
            let time = owned.time.as_deref().unwrap_or("");
            let Identity { manager, operation, subresource, .. } = *identity;
            (*operation, time, manager, &owned.api_version, subresource)
        });
        let values = entries.into_iter().map(|(identity, owned)| {
            let mut entry = Map::new();
            entry.insert("apiVersion".to_owned(), json!(owned.api_version));
            entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
            entry.insert("fieldsV1".to_owned(), owned.set.to_fields_v1());
            if !identity.manager.is_empty() {
                entry.insert("manager".to_owned(), json!(identity.manager));
            }
            entry.insert("operation".to_owned(), json!(identity.operation.as_str()));
            if !identity.subresource.is_empty() {
                entry.insert("subresource".to_owned(), json!(identity.subresource));
            }
            if let Some(time) = &owned.time {
                entry.insert("time".to_owned(), json!(time));
            }
            Value::Object(entry)
        });
        Value::Array(values.collect())
    }
}

/// Puts the entries into the object; an object without owners has no such field.
pub(super) fn write_managers(object: &mut Value, managers: &Managers) {
    let Some(object) = object.as_object_mut() else { return };
    if managers.is_empty() {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        return;
    }
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), managers.to_value());
    }
}

/// The fields that have no owner, however they are written: identity and what the server maintains.
///
/// Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/stripmeta.go: stripFields
pub(super) fn unowned_fields() -> FieldSet {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[PathElement::Field(name.to_owned())]);
    }
    for name in METADATA {
        let metadata = PathElement::Field("metadata".to_owned());
        set.insert(&[metadata, PathElement::Field(name.to_owned())]);
    }
    set
}

/// Dotted paths as a set.
pub(super) fn dotted(paths: &[&str]) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        let path: Vec<PathElement> =
            path.split('.').map(|name| PathElement::Field(name.to_owned())).collect();
        set.insert(&path);
    }
    set
}

/// Puts the fields that an endpoint resets back to what they are in the live object.
pub(super) fn put_back(live: Option<&Value>, new: &mut Value, reset: &[&str]) {
    for path in reset {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", path));
        let Some(Value::Object(parent)) = new.pointer_mut(parent) else { continue };
        match live.and_then(|live| live.pointer(&pointer)) {
            Some(value) => parent.insert(name.to_owned(), value.clone()),
            None => parent.remove(name),
        };
    }
}

/// Gives `new` the times of `live` where those are all that differs, so that a write that changes
/// nothing is seen to change nothing.
pub(super) fn keep_times(live: &Value, new: &mut Value) {
    if is_same_but_times(live, new) {
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
    }
}

/// Whether two objects with owners differ in nothing but the times of ownership.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/equality.go: IgnoreManagedFieldsTimestampsTransformer
pub fn is_same_but_times(left: &Value, right: &Value) -> bool {
    fn entries(object: &Value) -> Option<&Vec<Value>> {
        object.pointer("/metadata/managedFields").and_then(Value::as_array)
    }
    let (Some(before), Some(after)) = (entries(left), entries(right)) else { return false };
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| same_but_time(before, after))
        && same_but_managers(left, right)
}

fn same_but_time(left: &Value, right: &Value) -> bool {
    same_except(left, right, "time", |_, _| true)
}

fn same_but_managers(left: &Value, right: &Value) -> bool {
    same_except(left, right, "metadata", |left, right| {
        same_except(left, right, "managedFields", |_, _| true)
    })
}

/// Whether two maps are equal, `key` compared by `compare`.
fn same_except(
    left: &Value,
    right: &Value,
    key: &str,
    compare: impl Fn(&Value, &Value) -> bool,
) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return false };
    let others = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(key));
    let null = Value::Null;
    others(left) == others(right)
        && left.iter().all(|(name, value)| name == key || right.get(name) == Some(value))
        && compare(left.get(key).unwrap_or(&null), right.get(key).unwrap_or(&null))
}
