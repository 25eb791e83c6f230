//! OpenAPI documents.
//!
//! Those of the built-in kinds are what a real server published, kept compressed and sent as they
//! are. Those of custom resources are built from their definitions.
use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, EXPIRES, LOCATION, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use plimsoll_schema::builtin::{self, Document};
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::cluster::Cluster;
use crate::encode;
use crate::request::accept::accepts_gzip;
use crate::respond;
use crate::server::Shared;
use crate::status::{ApiError, Result, StatusReason};

mod binary;
mod custom;
mod version_2;

/// The media types under which clients ask for the binary forms.
const VERSION_2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// What an answer is called that was asked for under [`VERSION_2_PROTOBUF`].
const VERSION_2_PROTOBUF_ANSWER: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const VERSION_3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

const ROOT: &str = "/openapi/v3/";

fn info() -> Value {
    let version = builtin::kubernetes_version().trim_start_matches('v');
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    json!({"title": "Kubernetes", "version": minor})
}

/// A document to answer with.
enum Found {
    Packed(Document),
    Built(Bytes),
}

impl Found {
    fn digest(&self) -> String {
        match self {
            Self::Packed(document) => document.digest.to_owned(),
            Self::Built(text) => encode::digest(text),
        }
    }
}

/// Answers `/openapi/v2` and everything below `/openapi/v3`.
///
/// # Errors
/// When there is no such document, or not in the form that the client accepts.
pub(crate) fn answer(shared: &Shared, parts: &Parts) -> Result<Response<Body>> {
    let path = parts.uri.path().trim_end_matches('/');
    if path == "/openapi/v3" {
        let index = shared.read(index);
        let mut response = respond::bytes(StatusCode::OK, encode::json(&index));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        return Ok(response);
    }
    let accepted = |media_type: &str| {
        parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|value| {
            value.split(',').next().is_some_and(|first| first.trim().starts_with(media_type))
        })
    };
    if path == "/openapi/v2" {
        let document = shared.read(version_2::document);
        if accepted(VERSION_2_PROTOBUF) {
            return Ok(binary(version_2::protobuf(&document)));
        }
        let found = if document.is_packed { packed("v2")? } else { built(&document.value) };
        return Ok(send(&parts.headers, &found));
    }
    if accepted(VERSION_3_PROTOBUF) {
        return Err(ApiError::new(StatusReason::NotAcceptable, "only JSON is served here"));
    }
    let name = path.strip_prefix(ROOT).ok_or_else(ApiError::no_such_path)?;
    match shared.read(|cluster| version_3(cluster, name)) {
        Some(found) => Ok(with_hash(parts, &found)),
        None => Ok(nothing()),
    }
}

/// A document that is not there is not even talked about.
fn nothing() -> Response<Body> {
    let mut response = respond::bytes(StatusCode::NOT_FOUND, Bytes::new());
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

fn packed(name: &str) -> Result<Found> {
    builtin::document(name).map(Found::Packed).ok_or_else(ApiError::no_such_path)
}

fn built(value: &Value) -> Found {
    Found::Built(encode::json(value))
}

fn version_3(cluster: &Cluster, name: &str) -> Option<Found> {
    if let Some(document) = builtin::document(&format!("v3/{name}")) {
        return Some(Found::Packed(document));
    }
    let value = match name.strip_prefix("apis/")?.split_once('/') {
        Some((group, version)) => custom::document(cluster, group, version)?,
        None => return None,
    };
    Some(built(&value))
}

/// `/openapi/v3`: where the documents are.
fn index(cluster: &Cluster) -> Value {
    let mut paths = Map::new();
    for document in builtin::documents() {
        if let Some(name) = document.name.strip_prefix("v3/") {
            paths.insert(name.to_owned(), url(name, document.digest));
        }
    }
    for resource in cluster.registry.all().filter(|resource| resource.custom().is_some()) {
        let name = format!("apis/{}/{}", resource.group, resource.version);
        if !paths.contains_key(&name)
            && let Some(found) = version_3(cluster, &name)
        {
            let entry = url(&name, &found.digest());
            paths.insert(name, entry);
        }
    }
    json!({"paths": paths})
}

fn url(name: &str, digest: &str) -> Value {
    json!({"serverRelativeURL": format!("{ROOT}{name}?hash={digest}")})
}

/// A document whose address may name its digest: then it may be kept for good.
fn with_hash(parts: &Parts, found: &Found) -> Response<Body> {
    let digest = found.digest();
    let query = parts.uri.query().unwrap_or_default();
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("hash="));
    if asked.is_some_and(|asked| asked != digest) {
        let location = format!("{}?hash={digest}", parts.uri.path());
        let mut response = respond::bytes(StatusCode::MOVED_PERMANENTLY, Bytes::new());
        if let Ok(location) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(LOCATION, location);
        }
        return response;
    }
    let mut response = send(&parts.headers, found);
    if asked.is_some() {
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        headers.insert(EXPIRES, HeaderValue::from_static("Thu, 31 Dec 2099 23:59:59 GMT"));
    }
    response
}

fn send(request: &HeaderMap, found: &Found) -> Response<Body> {
    let mut response = respond::tagged(request, &found.digest(), || match found {
        Found::Packed(document) if accepts_gzip(request) => {
            let mut response = respond::bytes(StatusCode::OK, Bytes::from_static(document.gzip));
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        Found::Packed(document) => respond::bytes(StatusCode::OK, document.text().into()),
        Found::Built(text) => respond::compressed(request, StatusCode::OK, text.clone()),
    });
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
    response
}

fn binary(bytes: Vec<u8>) -> Response<Body> {
    let mut response = respond::bytes(StatusCode::OK, bytes.into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(VERSION_2_PROTOBUF_ANSWER));
    response
}
