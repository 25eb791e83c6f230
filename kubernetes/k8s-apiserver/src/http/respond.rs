//! HTTP responses.
use std::collections::BTreeSet;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    RETRY_AFTER, VARY, WARNING,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::http::body::Body;
use crate::json::to_bytes;
use crate::request::accept::{Format, accepts_gzip};
use crate::status::ApiError;

/// Responses from this size in bytes on are compressed for clients that accept it.
const GZIP_LEN_MIN: usize = 128 << 10;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A response of encoded JSON.
pub(crate) fn bytes(status: StatusCode, body: Bytes) -> Response<Body> {
    let length = body.len();
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(CONTENT_LENGTH, length.into());
    response
}

/// A response with an entity tag, or `304` if the client has the tagged response.
pub(crate) fn tagged(
    request: &HeaderMap,
    tag: &str,
    answer: impl FnOnce() -> Response<Body>,
) -> Response<Body> {
    let tag = format!("\"{tag}\"");
    let is_known =
        request.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if is_known {
        // Headers of a `304` replace those of the cached response.
        let mut response = Response::new(Body::whole(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        answer()
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// A response of `length` bytes of JSON that is encoded in pieces.
pub(crate) fn pieces(
    length: usize,
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
) -> Response<Body> {
    let mut response = bytes(StatusCode::OK, Bytes::new());
    *response.body_mut() = Body::pieces(length, pieces);
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

/// A response of JSON, or of YAML if the format is not JSON.
pub(crate) fn document(status: StatusCode, format: Format, value: &Value) -> Response<Body> {
    match format {
        Format::Json => bytes(status, to_bytes(value)),
        Format::Yaml | Format::Protobuf => yaml(status, value),
    }
}

/// A response of YAML.
pub(crate) fn yaml(status: StatusCode, value: &Value) -> Response<Body> {
    match serde_saphyr::to_string(value) {
        Ok(text) => {
            let mut response = bytes(status, Bytes::from(text));
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
            response
        }
        Err(why) => error(&ApiError::internal(why)),
    }
}

/// A response of plain text.
pub(crate) fn text(text: &'static str) -> Response<Body> {
    let mut response = bytes(StatusCode::OK, Bytes::from_static(text.as_bytes()));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// The response of a failed request.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: ErrorNegotiated
pub(crate) fn error(error: &ApiError) -> Response<Body> {
    let mut response = bytes(error.code(), to_bytes(&error.to_status()));
    let seconds = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Number of characters of all warnings from which on each is truncated.
const WARNINGS_LEN_MAX: usize = 4 * 1024;

/// Length of a truncated warning, in characters.
const WARNING_LEN_CUT: usize = 256;

/// Adds `Warning` headers, without duplicates.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/filters/warning.go: AddWarning
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let mut seen = BTreeSet::new();
    let distinct: Vec<&str> = warnings
        .iter()
        .map(String::as_str)
        .filter(|warning| !warning.is_empty() && seen.insert(*warning))
        .collect();
    let is_long =
        distinct.iter().map(|text| text.chars().count()).sum::<usize>() > WARNINGS_LEN_MAX;
    let mut written = 0;
    for warning in distinct {
        let cut: String = if is_long {
            warning.chars().take(WARNING_LEN_CUT).collect()
        } else {
            warning.to_owned()
        };
        // Headers cannot contain control characters.
        if written >= WARNINGS_LEN_MAX || cut.chars().any(char::is_control) {
            continue;
        }
        written += cut.chars().count();
        let escaped = cut.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

/// A response of encoded JSON, compressed if it is large and the client accepts that.
pub(crate) fn compressed(request: &HeaderMap, status: StatusCode, body: Bytes) -> Response<Body> {
    let compressed = is_worth_compressing(request, &body).then(|| compress(&body)).flatten();
    match compressed {
        Some(compressed) => gzip(status, compressed),
        None => bytes(status, body),
    }
}

/// Whether a body is large, and the client accepts compression.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: SerializeObject
pub(crate) fn is_worth_compressing(request: &HeaderMap, body: &[u8]) -> bool {
    body.len() >= GZIP_LEN_MIN && accepts_gzip(request)
}

/// Compresses a body; none if that fails.
pub(crate) fn compress(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).and_then(|()| encoder.finish()).map(Bytes::from).ok()
}

/// A response of a compressed body.
pub(crate) fn gzip(status: StatusCode, compressed: Bytes) -> Response<Body> {
    let mut response = bytes(status, compressed);
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}
