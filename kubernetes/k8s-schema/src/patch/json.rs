//! JSON patches as kube-apiserver applies them.
//!
//! It is laxer than RFC 6902 in that a member which is not there reads as null: it can be replaced,
//! copied, and tested to be null. Negative indices count from the end.
//!
//! Upstream: gopkg.in/evanphx/json-patch.v4/patch.go: Apply
use serde_json::{Map, Value};

use super::PatchError;
use crate::go::go_kind;

/// More operations than this are too many for one patch.
pub const OPERATIONS_MAX: usize = 10_000;

/// Most bytes of JSON that the copies of one patch may have in all: a copy of what was copied before
/// would double the document each time.
///
/// Upstream: k8s.io/apiserver/pkg/server/config.go: NewConfig
pub const COPIED_LEN_MAX: usize = 3 << 20;

/// Most levels of a patched document: as many as a document may have that is parsed (`serde_json`).
pub const DEPTH_MAX: usize = 127;

/// Applies a JSON patch.
///
/// # Errors
/// When the patch is malformed, a path is missing or a test fails.
pub fn json_patch(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let wrong = |value: &Value, wanted: &str| {
        PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type {wanted}",
            go_kind(value)
        ))
    };
    let operations = patch.as_array().ok_or_else(|| wrong(patch, "[]handlers.jsonPatchOp"))?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooMany(operations.len()));
    }
    let mut parsed = Vec::with_capacity(operations.len());
    for operation in operations {
        parsed.push(operation.as_object().ok_or_else(|| wrong(operation, "handlers.jsonPatchOp"))?);
    }
    let mut patcher = JsonPatcher::new(object.clone());
    for operation in parsed {
        patcher.apply(operation)?;
    }
    Ok(patcher.document)
}

/// A document to which the operations of a JSON patch are applied one by one.
#[derive(Clone, Debug)]
pub struct JsonPatcher {
    /// The document after the operations so far.
    pub document: Value,
    /// The length of what the operations so far have copied, in bytes of JSON.
    copied: usize,
}

impl JsonPatcher {
    /// Begins with a document.
    pub fn new(document: Value) -> Self {
        Self { document, copied: 0 }
    }

    /// Applies one operation. After an error the document is unusable.
    ///
    /// # Errors
    /// When a path is missing, a test fails, or the document would become too large or too deep.
    pub fn apply(&mut self, operation: &Map<String, Value>) -> Result<(), PatchError> {
        let text = |field: &str| {
            operation
                .get(field)
                .and_then(Value::as_str)
                .ok_or_else(|| PatchError::Failed(format!("operation missing {field} field")))
        };
        let value = || operation.get("value").cloned().unwrap_or_default();
        let document = &mut self.document;
        let done = match operation.get("op").and_then(Value::as_str).unwrap_or("unknown") {
            "add" => add(document, text("path")?, value()),
            "remove" => remove(document, text("path")?).map(drop),
            "replace" => replace(document, text("path")?, value()),
            "move" => {
                let moved = remove(document, text("from")?).map_err(PatchError::Failed)?;
                add(document, text("path")?, moved)
            }
            "copy" => {
                let copied = read(document, text("from")?).map_err(PatchError::Failed)?;
                let copied = copied.cloned().unwrap_or_default();
                self.copied += copied.to_string().len();
                if self.copied > COPIED_LEN_MAX {
                    return Err(PatchError::CopiesTooMuch(self.copied));
                }
                add(document, text("path")?, copied)
            }
            "test" => {
                let path = text("path")?;
                let found = if path.is_empty() {
                    Some(&*document)
                } else {
                    read(document, path).map_err(PatchError::Failed)?
                };
                let wanted = operation.get("value").unwrap_or(&Value::Null);
                if found.unwrap_or(&Value::Null) == wanted {
                    Ok(())
                } else {
                    Err(format!("testing value {path} failed"))
                }
            }
            other => Err(format!("Unexpected kind: {other}")),
        };
        done.map_err(PatchError::Failed)
    }
}

/// Checks that a value fits at a path without making the document too deep.
fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    let steps = path.matches('/').count();
    if steps <= DEPTH_MAX && depth_within(value, DEPTH_MAX - steps) {
        return Ok(());
    }
    Err(format!("the result would be nested more than {DEPTH_MAX} levels deep"))
}

fn depth_within(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit > 0 && items.iter().all(|item| depth_within(item, limit - 1)),
        Value::Object(entries) => {
            limit > 0 && entries.values().all(|value| depth_within(value, limit - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// What holds the last step of a path, and that step.
fn holder<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let missing = || format!("doc is missing path: {path}");
    let unescape = |step: &str| step.replace("~1", "/").replace("~0", "~");
    let mut steps: Vec<String> = path.split('/').skip(1).map(unescape).collect();
    let last = steps.pop().ok_or_else(missing)?;
    let mut at = document;
    for step in steps {
        at = match at {
            Value::Object(entries) => entries.get_mut(&step).ok_or_else(missing)?,
            Value::Array(items) => {
                let index = index(&step, items.len())?;
                items.get_mut(index).ok_or_else(missing)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(missing());
            }
        };
    }
    if at.is_object() || at.is_array() { Ok((at, last)) } else { Err(missing()) }
}

/// An index into a list of which `length` places can be addressed; the result may be one of them or
/// beyond.
fn index(step: &str, length: usize) -> Result<usize, String> {
    let invalid = || format!("Unable to access invalid index: {step}");
    let number: i64 = step.parse().map_err(|_| invalid())?;
    let number =
        if number < 0 { number + i64::try_from(length).map_err(|_| invalid())? } else { number };
    usize::try_from(number).map_err(|_| invalid())
}

/// The value at a path; none for a member that is missing.
fn read<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, String> {
    let (holder, last) = holder(document, path)?;
    match holder {
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            items.get(index).map(Some).ok_or_else(|| format!("invalid index: {last}"))
        }
        other => Ok(other.get(&last)),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    check_depth(path, &value)?;
    let (holder, last) = holder(document, path)?;
    match holder {
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(&last, items.len() + 1)?;
            if index > items.len() {
                return Err(format!("Unable to access invalid index: {index}"));
            }
            items.insert(index, value);
        }
        other => {
            if let Some(entries) = other.as_object_mut() {
                entries.insert(last, value);
            }
        }
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    let (holder, last) = holder(document, path)?;
    let missing = || format!("Unable to remove nonexistent key: {last}");
    match holder {
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            if index >= items.len() {
                return Err(format!("Unable to access invalid index: {index}"));
            }
            Ok(items.remove(index))
        }
        other => {
            other.as_object_mut().and_then(|entries| entries.remove(&last)).ok_or_else(missing)
        }
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    check_depth(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let (holder, last) = holder(document, path)?;
    match holder {
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            let item = items.get_mut(index).ok_or_else(|| format!("doc is missing key: {path}"))?;
            *item = value;
        }
        other => {
            if let Some(entries) = other.as_object_mut() {
                entries.insert(last, value);
            }
        }
    }
    Ok(())
}
