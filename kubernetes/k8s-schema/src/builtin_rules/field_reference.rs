//! References to fields of a pod, as environment variables and projected files have them.

use serde_json::Value;

use super::check::{invalid, required, text};
use crate::FieldError;

/// Fields of a pod that environment variables may refer to.
const POD_FIELDS: [&str; 10] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels",
    "metadata.annotations",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
];

/// Checks a reference to a field of the pod.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateObjectFieldSelector
pub(super) fn field_reference(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() {
        return;
    }
    let field = text(value, "fieldPath");
    let at = format!("{path}.fieldPath");
    let is_known = POD_FIELDS.contains(&field)
        || field == "status.podIPs"
        || ["metadata.labels['", "metadata.annotations['"]
            .iter()
            .any(|prefix| field.starts_with(prefix) && field.ends_with("']"));
    if field.is_empty() {
        errors.push(required(at, ""));
    } else if !is_known {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        errors.push(invalid(at, &field.into(), &detail));
    }
}
