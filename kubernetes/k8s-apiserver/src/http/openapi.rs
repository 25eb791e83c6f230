//! OpenAPI documents.
//!
//! Those of the built-in kinds were recorded from kube-apiserver; they are stored and sent
//! compressed. Those of custom resources are built from their definitions.
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, EXPIRES, LOCATION, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use k8s_schema::builtin::{self, Document};
use serde_json::{Map, Value, json};

use crate::http::body::Body;
use crate::http::respond;
use crate::json::to_bytes;
use crate::request::accept::accepts_gzip;
use crate::request::info::RequestInfo;
use crate::semantics::cluster::Cluster;
use crate::semantics::registry::ApiResource;
use crate::shared_cluster::SharedCluster;
use crate::status::{ApiError, Result, StatusReason};

mod binary;
mod cache;
mod custom;
mod version_2;

use cache::BuiltDocument;
pub(crate) use cache::DocumentCache;

/// The media types of requests for the binary forms.
const VERSION_2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The media type of responses to requests for [`VERSION_2_PROTOBUF`].
const VERSION_2_PROTOBUF_ANSWER: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const VERSION_3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

const ROOT: &str = "/openapi/v3/";

fn info() -> Value {
    let version = builtin::kubernetes_version().trim_start_matches('v');
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    json!({"title": "Kubernetes", "version": minor})
}

/// A document: recorded or built.
enum OpenApiDocument {
    Packed(Document),
    BuiltDocument(Arc<BuiltDocument>),
}

impl OpenApiDocument {
    fn digest(&self) -> String {
        match self {
            Self::Packed(document) => document.digest.to_owned(),
            Self::BuiltDocument(built) => built.digest.clone(),
        }
    }
}

/// Handles `/openapi/v2` and everything below `/openapi/v3`.
///
/// # Errors
/// When there is no such document, or not in an accepted media type.
pub(crate) fn answer(
    cluster: &SharedCluster,
    documents: &DocumentCache,
    parts: &Parts,
    info: &RequestInfo,
) -> Result<Response<Body>> {
    let path = info.path.trim_end_matches('/');
    if path == "/openapi/v3" {
        let found = cluster.read(|cluster| {
            let build = || Some(to_bytes(&index(documents, cluster)));
            Ok(documents.find("v3", schema_ids(cluster, |_| true), build))
        })?;
        let index = found.map(|built| built.text.clone()).unwrap_or_default();
        let mut response = respond::bytes(StatusCode::OK, index);
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
        return version_2(cluster, documents, parts, accepted(VERSION_2_PROTOBUF));
    }
    if accepted(VERSION_3_PROTOBUF) {
        return Err(ApiError::new(StatusReason::NotAcceptable, "only JSON is served here"));
    }
    let name = path.strip_prefix(ROOT).ok_or_else(ApiError::no_such_path)?;
    match cluster.read(|cluster| Ok(version_3(documents, cluster, name)))? {
        Some(found) => Ok(with_hash(parts, info, &found)),
        None => Ok(nothing()),
    }
}

/// The empty `404` of documents that do not exist.
fn nothing() -> Response<Body> {
    let mut response = respond::bytes(StatusCode::NOT_FOUND, Bytes::new());
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

fn packed(name: &str) -> Result<OpenApiDocument> {
    builtin::document(name).map(OpenApiDocument::Packed).ok_or_else(ApiError::no_such_path)
}

/// The ids of the custom schemas in a document, which stays the same as long as they do.
fn schema_ids(cluster: &Cluster, is_described: impl Fn(&ApiResource) -> bool) -> Vec<u64> {
    let custom = cluster.registry.all().filter(|resource| resource.custom().is_some());
    custom.filter(|resource| is_described(resource)).map(|resource| resource.schema_id).collect()
}

/// The document of all kinds, in JSON or in its binary form.
fn version_2(
    cluster: &SharedCluster,
    documents: &DocumentCache,
    parts: &Parts,
    is_binary: bool,
) -> Result<Response<Body>> {
    let found = cluster.read(|cluster| {
        let schema_ids = schema_ids(cluster, |_| true);
        let document = || version_2::document(cluster);
        Ok(if is_binary {
            let build = || Some(version_2::protobuf(&document()).into());
            documents.find("v2.protobuf", schema_ids, build)
        } else if schema_ids.is_empty() {
            None
        } else {
            documents.find("v2", schema_ids, || Some(to_bytes(&document().value)))
        })
    })?;
    Ok(match found {
        Some(built) if is_binary => binary(built.text.clone()),
        Some(built) => send(&parts.headers, &OpenApiDocument::BuiltDocument(built)),
        None => send(&parts.headers, &packed("v2")?),
    })
}

fn version_3(documents: &DocumentCache, cluster: &Cluster, name: &str) -> Option<OpenApiDocument> {
    if let Some(document) = builtin::document(&format!("v3/{name}")) {
        return Some(OpenApiDocument::Packed(document));
    }
    let (group, version) = name.strip_prefix("apis/")?.split_once('/')?;
    let schema_ids = schema_ids(cluster, |of| of.group == group && of.version == version);
    let build = || custom::document(cluster, group, version).map(|value| to_bytes(&value));
    documents.find(&format!("v3/{name}"), schema_ids, build).map(OpenApiDocument::BuiltDocument)
}

/// `/openapi/v3`: the paths of the documents.
fn index(documents: &DocumentCache, cluster: &Cluster) -> Value {
    let mut paths = Map::new();
    for document in builtin::documents() {
        if let Some(name) = document.name.strip_prefix("v3/") {
            paths.insert(name.to_owned(), url(name, document.digest));
        }
    }
    for resource in cluster.registry.all().filter(|resource| resource.custom().is_some()) {
        let name = format!("apis/{}/{}", resource.group, resource.version);
        if !paths.contains_key(&name)
            && let Some(found) = version_3(documents, cluster, &name)
        {
            let entry = url(&name, &found.digest());
            paths.insert(name, entry);
        }
    }
    documents.retain(|name| name.strip_prefix("v3/").is_none_or(|name| paths.contains_key(name)));
    json!({"paths": paths})
}

/// Upstream: k8s.io/kube-openapi/pkg/handler3/handler.go: constructServerRelativeURL
fn url(name: &str, digest: &str) -> Value {
    json!({"serverRelativeURL": format!("{ROOT}{name}?hash={digest}")})
}

/// The response with a document; one that is requested by its digest can be cached forever.
fn with_hash(parts: &Parts, info: &RequestInfo, found: &OpenApiDocument) -> Response<Body> {
    let digest = found.digest();
    let asked = info.query.get("hash");
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

fn send(request: &HeaderMap, found: &OpenApiDocument) -> Response<Body> {
    let mut response = respond::tagged(request, &found.digest(), || match found {
        OpenApiDocument::Packed(document) if accepts_gzip(request) => {
            let mut response = respond::bytes(StatusCode::OK, Bytes::from_static(document.gzip));
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        OpenApiDocument::Packed(document) => respond::bytes(StatusCode::OK, document.text().into()),
        OpenApiDocument::BuiltDocument(built) => {
            let is_worth_it = respond::is_worth_compressing(request, &built.text);
            match is_worth_it.then(|| built.gzip()).flatten() {
                Some(gzip) => respond::gzip(StatusCode::OK, gzip.clone()),
                None => respond::bytes(StatusCode::OK, built.text.clone()),
            }
        }
    });
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
    response
}

fn binary(bytes: Bytes) -> Response<Body> {
    let mut response = respond::bytes(StatusCode::OK, bytes);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(VERSION_2_PROTOBUF_ANSWER));
    response
}
