//! Protected API groups: definitions in them need the approval of the Kubernetes project.
use serde_json::Value;

/// The annotation with the approval.
pub const ANNOTATION: &str = "api-approved.kubernetes.io";

/// The state of the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// There is no annotation.
    Missing,
    /// The annotation says why there is no approval.
    Bypassed,
    /// The annotation names the approval.
    Approved,
    /// The annotation says neither.
    Invalid,
}

/// Whether a group is protected.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apihelpers/helpers.go: IsProtectedCommunityGroup
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|suffix| {
        group.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// The approval of a definition, and the message about it.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apihelpers/helpers.go: GetAPIApprovalState
pub fn of(object: &Value) -> (Approval, String) {
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let given = object["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    let has_host = given
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.starts_with(['/', '?', '#']))
        && !given.ends_with("://")
        && !given.contains(' ');
    if given.is_empty() {
        let reason =
            format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}");
        (Approval::Missing, reason)
    } else if given.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {given:?}"))
    } else if has_host {
        (Approval::Approved, format!("approved in {given}"))
    } else {
        let reason = format!(
            "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a \
             reason starting with \"unapproved\", {SEE}"
        );
        (Approval::Invalid, reason)
    }
}

/// The status, reason and message of the approval condition; none for unprotected groups.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/apiapproval/apiapproval_controller.go: calculateCondition
pub fn condition(object: &Value) -> Option<(&'static str, &'static str, String)> {
    if !is_protected(object["spec"]["group"].as_str().unwrap_or_default()) {
        return None;
    }
    let (state, message) = of(object);
    let (status, reason) = match state {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    Some((status, reason, message))
}
