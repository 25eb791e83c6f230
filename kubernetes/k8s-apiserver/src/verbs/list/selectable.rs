//! The selectable fields of each kind.
use serde_json::Value;

use crate::request::selector::field_text;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, Result};

/// Fields of built-in kinds that selectors may use besides name and namespace: group, kind, paths.
const SELECTABLE: [(&str, &str, &[&str]); 13] = [
    (
        "",
        "Pod",
        &[
            "spec.nodeName",
            "spec.host",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    (
        "",
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    (
        "events.k8s.io",
        "Event",
        &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
    ),
    ("", "Secret", &["type"]),
    ("", "Namespace", &["status.phase"]),
    ("", "Node", &["spec.unschedulable"]),
    ("", "Service", &["spec.clusterIP", "spec.type"]),
    ("", "ReplicationController", &["status.replicas"]),
    ("batch", "Job", &["status.successful"]),
    ("certificates.k8s.io", "CertificateSigningRequest", &["spec.signerName"]),
    ("certificates.k8s.io", "ClusterTrustBundle", &["spec.signerName"]),
    (
        "certificates.k8s.io",
        "PodCertificateRequest",
        &["spec.signerName", "spec.podName", "spec.nodeName"],
    ),
    ("resource.k8s.io", "ResourceSlice", &["spec.nodeName", "spec.driver"]),
];

/// Checks that a field is selectable.
///
/// # Errors
/// When they may not.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/conversion.go: AddFieldLabelConversionsForEvent
pub(super) fn check(resource: &ApiResource, path: &str) -> Result<()> {
    if matches!(path, "metadata.name" | "metadata.namespace") {
        return Ok(());
    }
    if let Some(custom) = resource.custom() {
        if custom.selectable_fields.iter().any(|field| field == path) {
            return Ok(());
        }
        return Err(unsupported(path));
    }
    let fields = SELECTABLE.iter().find(|(group, kind, _)| resource.is(group, kind));
    match fields {
        Some((_, _, paths)) if paths.contains(&path) => Ok(()),
        Some((_, "Job", _)) => {
            Err(ApiError::bad_request(format!("field label {path:?} not supported for Job")))
        }
        Some(_) => Err(unsupported(path)),
        None => Err(ApiError::bad_request(format!(
            "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ))),
    }
}

fn unsupported(path: &str) -> ApiError {
    ApiError::bad_request(format!("field label not supported: {path}"))
}

/// The value of a field as selectors compare it.
pub(super) fn value(resource: &ApiResource, object: &Value, path: &str) -> String {
    let first_of = |paths: [&str; 2]| {
        paths.map(|path| field_text(object, path)).into_iter().find(|text| !text.is_empty())
    };
    let text = match (resource.kind.as_str(), path) {
        ("Event", "source") => {
            first_of(["source.component", "reportingComponent"]).unwrap_or_default()
        }
        ("Pod", "spec.host") => field_text(object, "spec.nodeName"),
        _ => field_text(object, path),
    };
    // Missing numbers and booleans compare as their zero values.
    match (text.as_str(), path) {
        ("", "status.replicas" | "status.successful") => "0".to_owned(),
        ("", "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ => text,
    }
}
