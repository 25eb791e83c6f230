//! Webhooks, as requests see them: where they are, and what they answered.
pub(crate) mod endpoint;
pub(crate) mod replay;

pub(crate) use endpoint::Endpoint;

use serde_json::Value;

use crate::json::texts;

/// The version of reviews that a webhook prefers, of those that this server writes.
///
/// `versions` is its `admissionReviewVersions` or `conversionReviewVersions`.
pub(crate) fn review_version(versions: &Value) -> &'static str {
    let known = texts(versions).find_map(|version| match version {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    });
    known.unwrap_or("v1")
}
