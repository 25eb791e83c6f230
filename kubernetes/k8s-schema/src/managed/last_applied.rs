//! Taking over from client-side apply: what `kubectl apply` once wrote and noted in its annotation
//! is no conflict for `kubectl apply --server-side`.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/lastappliedmanager.go: allowedConflictsFromLastApplied
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/lastappliedupdater.go: buildLastApplied
use serde_json::Value;

use super::conflict::LocatedConflict;
use crate::Schema;
use crate::fields::FieldSet;
use crate::typed::{check, compare, field_set};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|t| !t.is_empty())
}

/// The conflicts that the annotation of `live` does not explain; nothing when it explains none.
pub(super) fn unexplained(
    schema: &Schema,
    live: &Value,
    conflicts: &[LocatedConflict],
    api_version: &str,
) -> Option<Vec<LocatedConflict>> {
    let explained = applied_before(schema, live, api_version)?;
    Some(conflicts.iter().filter(|(_, path)| !explained.contains(path)).cloned().collect())
}

/// The fields that the annotation holds with the values they still have.
fn applied_before(schema: &Schema, live: &Value, api_version: &str) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    let same_version = last.get("apiVersion").and_then(Value::as_str) == Some(api_version);
    if !same_version || !check(schema, &last).is_empty() {
        return None;
    }
    let comparison = compare(schema, &last, live);
    Some(
        field_set(schema, &last)
            .difference(&comparison.modified)
            .difference(&comparison.added)
            .difference(&comparison.removed),
    )
}

/// Brings the annotation of `object`, if it has one, up to date with what was applied now.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        // Go's encoder ends the document with a newline.
        annotations.insert(ANNOTATION.to_owned(), Value::String(format!("{applied}\n")));
    }
}
