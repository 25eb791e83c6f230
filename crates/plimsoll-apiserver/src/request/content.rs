//! Request bodies: media types and decoding.
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use plimsoll_schema::protobuf::{self, ProtobufError};
use serde_json::Value;

use super::accept::PROTOBUF;
use crate::status::{ApiError, Result, StatusReason};

/// How much of an unreadable body an error repeats.
const SHOWN_LEN_MAX: usize = 30;

/// The media types of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    Yaml,
    Protobuf,
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
            "" | "application/json" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            PROTOBUF => Some(Self::Protobuf),
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
        Some(MediaType::Protobuf) => match protobuf::decode(bytes) {
            Err(ProtobufError::UnknownKind { kind: given, .. }) if given == kind => {
                return Err(unknown_format("application/json, application/yaml"));
            }
            decoded => decoded.map_err(|error| error.to_string()),
        },
        Some(
            MediaType::JsonPatch
            | MediaType::MergePatch
            | MediaType::StrategicMergePatch
            | MediaType::ApplyPatch,
        )
        | None => {
            return Err(unknown_format(
                "application/json, application/yaml, application/vnd.kubernetes.protobuf",
            ));
        }
    };
    decoded.map_err(|error| {
        if kind == "DeleteOptions" {
            return ApiError::bad_request(error);
        }
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error} ({})",
            summary(bytes)
        ))
    })
}

fn unknown_format(accepted: &str) -> ApiError {
    ApiError::new(
        StatusReason::UnsupportedMediaType,
        format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {accepted}"
        ),
    )
}

/// The beginning of a body that could not be read, in hexadecimal unless it looks like JSON.
fn summary(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN_LEN_MAX)];
    let rest = if bytes.len() > SHOWN_LEN_MAX { " ..." } else { "" };
    match shown {
        [] => "<empty>".to_owned(),
        [b'{', ..] => format!("{}{rest}", String::from_utf8_lossy(shown)),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + rest,
    }
}

/// The cause of unreadable JSON, in the words that clients of Kubernetes know for the usual one.
fn explain(error: &serde_json::Error) -> String {
    let why =
        if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
    format!("couldn't get version/kind; json parse error: {why}")
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
    // Of a field that is there twice, the last one counts.
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}
