//! Request bodies: media types and decoding.
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::status::{ApiError, Result, StatusReason};

/// How much of an unreadable body an error repeats.
const SHOWN_LEN_MAX: usize = 100;

/// The media types of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    Yaml,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    ApplyPatch,
}

impl MediaType {
    /// Reads the header; without one the body is JSON.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let Some(value) = headers.get(CONTENT_TYPE) else {
            return Some(Self::Json);
        };
        let text = value.to_str().unwrap_or_default();
        match text.split(';').next().unwrap_or_default().trim() {
            "" | "application/json" | "text/json" => Some(Self::Json),
            "application/yaml" | "text/yaml" => Some(Self::Yaml),
            "application/json-patch+json" => Some(Self::JsonPatch),
            "application/merge-patch+json" => Some(Self::MergePatch),
            "application/strategic-merge-patch+json" => Some(Self::StrategicMergePatch),
            "application/apply-patch+yaml" => Some(Self::ApplyPatch),
            _ => None,
        }
    }
}

/// The body of a create, update or delete of a `kind`.
///
/// # Errors
/// When the media type is not one of whole objects, or the text cannot be read.
pub(crate) fn decode_object(headers: &HeaderMap, bytes: &[u8], kind: &str) -> Result<Value> {
    let decoded = match MediaType::of(headers) {
        Some(MediaType::Json) => serde_json::from_slice(bytes).map_err(|error| explain(&error)),
        Some(MediaType::Yaml) => decode_yaml(bytes).map_err(|error| error.message),
        Some(
            MediaType::JsonPatch
            | MediaType::MergePatch
            | MediaType::StrategicMergePatch
            | MediaType::ApplyPatch,
        )
        | None => {
            return Err(ApiError::new(
                StatusReason::UnsupportedMediaType,
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/yaml, application/vnd.kubernetes.protobuf",
            ));
        }
    };
    decoded.map_err(|error| {
        let text = String::from_utf8_lossy(bytes);
        let shown: String = text.chars().take(SHOWN_LEN_MAX).collect();
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get \
             version/kind; json parse error: {error} ({})",
            if shown.is_empty() { "<empty>" } else { &shown }
        ))
    })
}

/// The cause of unreadable JSON, in the words that clients of Kubernetes know for the usual one.
fn explain(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

/// Reads JSON.
///
/// # Errors
/// When it is not JSON, or nested too deeply.
pub(crate) fn decode_json(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request(format!("error decoding request body: {error}")))
}

/// Reads YAML, of which JSON is a part.
///
/// # Errors
/// When it is not YAML.
pub(crate) fn decode_yaml(bytes: &[u8]) -> Result<Value> {
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return decode_json(bytes);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}
