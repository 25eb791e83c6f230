//! Strategic merge patch: a merge patch whose lists merge by the keys that the type names.
//!
//! Besides values a patch holds directives: `$patch: replace | delete | merge` in a map or a list
//! item, `$deleteFromPrimitiveList/field`, `$setElementOrder/field` and `$retainKeys`.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go: StrategicMergeMapPatchUsingLookupPatchMeta
use serde_json::{Map, Value};

use super::PatchError;
use crate::Schema;
use crate::go::{go_kind, go_text};
use crate::schema::node::{Edge, PatchStrategy};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const ELEMENT_ORDER_NAME: &str = "$setElementOrder";

type Entries = Map<String, Value>;

/// Applies a strategic merge patch.
///
/// # Errors
/// When a directive is malformed or a list item lacks its merge key.
pub fn strategic_merge_patch(
    schema: &Schema,
    object: &Value,
    patch: &Value,
) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_kind(patch)
        )));
    };
    let original = object.as_object().cloned().unwrap_or_default();
    let applier = PatchApplier { schema };
    applier.map(Some(&schema.root_edge()), original, patch.clone()).map(Value::Object)
}

struct PatchApplier<'a> {
    schema: &'a Schema,
}

impl PatchApplier<'_> {
    fn field(&self, edge: Option<&Edge>, name: &str) -> Option<&Edge> {
        self.schema.node(edge?.node).map.as_ref()?.value(name)
    }

    fn items(&self, edge: Option<&Edge>) -> Option<&Edge> {
        self.schema.node(edge?.node).list.as_ref().map(|list| &list.items)
    }

    fn map(
        &self,
        edge: Option<&Edge>,
        mut original: Entries,
        mut patch: Entries,
    ) -> Result<Entries, PatchError> {
        match patch.get(DIRECTIVE) {
            None => {}
            Some(Value::String(kind)) if kind == "replace" => {
                patch.remove(DIRECTIVE);
                return Ok(patch);
            }
            Some(Value::String(kind)) if kind == "delete" => return Ok(Entries::new()),
            Some(_) => return Err(bad_directive(&patch)),
        }
        retain_keys(&mut original, &mut patch)?;
        self.ordered_lists(edge, &mut original, &mut patch)?;
        for (key, value) in patch {
            if let Some(name) = key.strip_prefix(DELETE_FROM_LIST) {
                delete_scalars(&mut original, name, &value)?;
                continue;
            }
            let merged = match (original.remove(&key), value) {
                (_, Value::Null) => continue,
                (Some(Value::Object(old)), Value::Object(new)) => {
                    let field = self.field(edge, &key);
                    Some(Value::Object(self.map(field, old, new)?))
                }
                (Some(Value::Array(old)), Value::Array(new)) => {
                    Some(Value::Array(self.list(self.field(edge, &key), &key, old, new)?))
                }
                (_, new) => without_directives(new),
            };
            if let Some(merged) = merged {
                original.insert(key, merged);
            }
        }
        Ok(original)
    }

    /// Merges the lists whose order the patch sets.
    fn ordered_lists(
        &self,
        edge: Option<&Edge>,
        original: &mut Entries,
        patch: &mut Entries,
    ) -> Result<(), PatchError> {
        let keys: Vec<String> =
            patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
        for key in keys {
            let Some(Value::Array(order)) = patch.remove(&key) else {
                return Err(PatchError::Malformed(format!("{key} does not hold a list")));
            };
            let name = &key[ELEMENT_ORDER.len()..];
            let field = self.field(edge, name);
            let (old, new) = (as_list(original.get(name), name)?, as_list(patch.get(name), name)?);
            let merge_key = strategy(field).merge_key;
            check_order(new.as_deref().unwrap_or_default(), &order, merge_key.as_deref())?;
            let none = |list: &Option<Vec<Value>>| list.as_ref().is_none_or(Vec::is_empty);
            if none(&old) && none(&new) && (old.is_some() || new.is_some()) {
                let text = "no elements in any of the given slices";
                return Err(PatchError::Internal(text.to_owned()));
            }
            let merged = match (old.clone(), new) {
                (None, None) => continue,
                (Some(old), None) => old,
                (None, Some(new)) => match without_directives(Value::Array(new)) {
                    Some(Value::Array(new)) => new,
                    _ => continue,
                },
                (Some(old), Some(new)) => self.list(field, name, old, new)?,
            };
            patch.remove(name);
            let server_order = old.unwrap_or_default();
            let ordered = arrange(merged, &order, &server_order, merge_key.as_deref());
            original.insert(name.to_owned(), Value::Array(ordered));
        }
        Ok(())
    }

    fn list(
        &self,
        edge: Option<&Edge>,
        name: &str,
        original: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<Vec<Value>, PatchError> {
        let strategy = strategy(edge);
        if !strategy.merge {
            return Ok(patch);
        }
        let of_maps = original.iter().chain(&patch).any(Value::is_object);
        if !of_maps {
            let mut merged: Vec<Value> = Vec::new();
            for item in original.iter().chain(&patch) {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            return Ok(arrange(merged, &patch, &original, None));
        }
        let Some(merge_key) = strategy.merge_key else {
            let text = format!("cannot merge lists without merge key for {name}");
            return Err(PatchError::Internal(text));
        };
        self.keyed_list(edge, original, patch, &merge_key)
    }

    fn keyed_list(
        &self,
        edge: Option<&Edge>,
        mut original: Vec<Value>,
        patch: Vec<Value>,
        merge_key: &str,
    ) -> Result<Vec<Value>, PatchError> {
        let mut items = Vec::with_capacity(patch.len());
        let mut replace = false;
        for item in patch {
            match item.get(DIRECTIVE).and_then(Value::as_str) {
                None if item.get(DIRECTIVE).is_none() => items.push(item),
                Some("delete") => {
                    let key = key_of(&item, merge_key)?;
                    original.retain(|other| other.get(merge_key) != Some(&key));
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    let text = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Internal(text.to_owned()));
                }
                _ => return Err(bad_directive(item.as_object().unwrap_or(&Entries::new()))),
            }
        }
        if replace {
            check_keys(&items, merge_key)?;
            return Ok(items);
        }
        let server_order = original.clone();
        let order = items.clone();
        for item in items {
            let key = key_of(&item, merge_key)?;
            let known = original.iter_mut().find(|other| other.get(merge_key) == Some(&key));
            match (known, item) {
                (Some(known), Value::Object(item)) => {
                    let old = known.as_object_mut().map(std::mem::take).unwrap_or_default();
                    *known = Value::Object(self.map(self.items(edge), old, item)?);
                }
                (_, item) => original.push(item),
            }
        }
        check_keys(&original, merge_key)?;
        Ok(arrange(original, &order, &server_order, Some(merge_key)))
    }
}

fn strategy(edge: Option<&Edge>) -> PatchStrategy {
    edge.and_then(|edge| edge.patch.clone()).unwrap_or_default()
}

fn bad_directive(patch: &Entries) -> PatchError {
    let directive = patch.get(DIRECTIVE).map(go_text).unwrap_or_default();
    PatchError::Internal(format!("unknown patch type: {directive} in map: {}", go_map(patch)))
}

fn go_map(entries: &Entries) -> String {
    go_text(&Value::Object(entries.clone()))
}

fn key_of(item: &Value, merge_key: &str) -> Result<Value, PatchError> {
    item.get(merge_key).cloned().ok_or_else(|| {
        PatchError::Internal(format!(
            "map: {} does not contain declared merge key: {merge_key}",
            go_text(item)
        ))
    })
}

/// Without their keys items cannot be put in order.
fn check_keys(items: &[Value], merge_key: &str) -> Result<(), PatchError> {
    items.iter().try_for_each(|item| key_of(item, merge_key).map(drop))
}

/// Holds the order that a patch sets against the items it brings: each of them, but those with a
/// directive, has its place in the order, and in the same sequence.
fn check_order(
    patch: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let same = |left: &Value, right: &Value| match merge_key {
        Some(key) => left.get(key) == right.get(key),
        None => left == right,
    };
    if let Some(key) = merge_key {
        for item in order.iter().chain(patch.iter().filter(|item| item.get(DIRECTIVE).is_none())) {
            key_of(item, key)?;
        }
    }
    let mut places = order.iter();
    let in_order = patch
        .iter()
        .filter(|item| item.get(DIRECTIVE).is_none())
        .all(|item| places.any(|place| same(place, item)));
    if in_order {
        return Ok(());
    }
    Err(PatchError::Internal(format!(
        "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER_NAME} list:\n{}\n",
        go_text(&Value::Array(patch.to_vec())),
        go_text(&Value::Array(order.to_vec()))
    )))
}

fn as_list(value: Option<&Value>, name: &str) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(_) => Err(PatchError::Malformed(format!("{name} does not hold a list"))),
    }
}

/// Drops the fields of the original that the patch does not name as kept.
fn retain_keys(original: &mut Entries, patch: &mut Entries) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let is_directive =
        |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_directive(key) && !kept(key)) {
        return Err(malformed());
    }
    original.retain(|key, _| kept(key));
    Ok(())
}

fn delete_scalars(original: &mut Entries, name: &str, values: &Value) -> Result<(), PatchError> {
    let values = values.as_array().ok_or_else(|| {
        PatchError::Malformed(format!("{DELETE_FROM_LIST}{name} does not hold a list"))
    })?;
    if let Some(Value::Array(items)) = original.get_mut(name) {
        items.retain(|item| !values.contains(item));
    }
    Ok(())
}

/// A value that is new to the object: directives and nulls in it have nothing to act on.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(entries) => {
            if entries.contains_key(DIRECTIVE) {
                return None;
            }
            let entries = entries
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(entries.collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        other => Some(other),
    }
}

/// Orders a merged list: items of the patch as the patch has them, the others as the server had
/// them; between the two, as the server had them where it knows both.
fn arrange(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let place = |order: &[Value], item: &Value| match merge_key {
        Some(key) => order.iter().position(|other| other.get(key) == item.get(key)),
        None => order.iter().position(|other| other == item),
    };
    let (mut of_patch, mut of_server): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(patch_order, item).is_some());
    of_patch.sort_by_key(|item| place(patch_order, item));
    of_server.sort_by_key(|item| place(server_order, item).unwrap_or(usize::MAX));
    let mut out = Vec::with_capacity(of_patch.len() + of_server.len());
    let (mut server, mut patch) =
        (of_server.into_iter().peekable(), of_patch.into_iter().peekable());
    loop {
        let take_server = match (server.peek(), patch.peek()) {
            (None, None) => return out,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(left), Some(right)) => {
                match (place(server_order, left), place(server_order, right)) {
                    (Some(left), Some(right)) => left < right,
                    _ => false,
                }
            }
        };
        out.extend(if take_server { server.next() } else { patch.next() });
    }
}
