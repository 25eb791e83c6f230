//! HTTP responses.
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY, WARNING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::body::Body;
use crate::encode;
use crate::request::accept::{Format, accepts_gzip};
use crate::status::ApiError;

/// Answers from this size on are compressed for clients that can read it.
const GZIP_LEN_MIN: usize = 128 << 10;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer of bytes that are JSON already.
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

/// An answer of JSON, or YAML if the client prefers that.
pub(crate) fn document(status: StatusCode, format: Format, value: &Value) -> Response<Body> {
    match format {
        Format::Json => bytes(status, encode::json(value)),
        Format::Yaml | Format::Protobuf => yaml(status, value),
    }
}

/// An answer of YAML.
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

/// An answer of text.
pub(crate) fn text(text: &'static str) -> Response<Body> {
    let mut response = bytes(StatusCode::OK, Bytes::from_static(text.as_bytes()));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// The answer to a refused request.
pub(crate) fn error(error: &ApiError) -> Response<Body> {
    bytes(error.code(), encode::json(&error.to_status()))
}

/// Adds warnings for the person at the client.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

/// Compresses a large answer for a client that can read it.
pub(crate) fn compressed(request: &HeaderMap, status: StatusCode, body: Bytes) -> Response<Body> {
    if body.len() < GZIP_LEN_MIN || !accepts_gzip(request) {
        return bytes(status, body);
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    match encoder.write_all(&body).and_then(|()| encoder.finish()) {
        Ok(compressed) => {
            let mut response = bytes(status, compressed.into());
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
            response
        }
        Err(_) => bytes(status, body),
    }
}
