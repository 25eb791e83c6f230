//! The form of responses: JSON, indented JSON, YAML or protocol buffers.
//!
//! The handlers of requests produce JSON. The form is negotiated before a request is handled, and
//! the response is rendered in that form afterwards, errors and watches included.
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use k8s_schema::protobuf;
use serde::Deserialize;
use serde_json::Value;

use crate::http::body::Body;
use crate::http::respond;
use crate::json::to_indented_bytes;
use crate::request::accept::{Accept, Format, MetaVersion, PROTOBUF, View};
use crate::request::info::RequestInfo;
use crate::request::path::{ResourcePath, Route};
use crate::shared_cluster::SharedCluster;
use crate::status::ApiError;

/// User agents of interactive clients, which get indented JSON.
const PEOPLE: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// The form that a response has to be rendered in.
#[derive(Clone, Debug)]
pub(crate) struct ResponseForm {
    format: Format,
    is_indented: bool,
    /// Whether only the headers are sent.
    is_head: bool,
    /// The accepted encodings of a rendered response.
    encodings: HeaderMap,
}

/// The media type of a view in JSON.
fn json_of(view: View) -> HeaderValue {
    HeaderValue::from_static(match view {
        View::Full => "application/json",
        View::Metadata(MetaVersion::V1) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        }
        View::Metadata(MetaVersion::V1Beta1) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1"
        }
        View::Table(MetaVersion::V1) => "application/json;as=Table;g=meta.k8s.io;v=v1",
        View::Table(MetaVersion::V1Beta1) => "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
    })
}

/// One event of a watch.
#[derive(Deserialize)]
struct WatchEvent {
    r#type: String,
    object: Value,
}

impl ResponseForm {
    /// Negotiates the form, and turns the request into one for JSON.
    pub(crate) fn negotiate(
        cluster: &SharedCluster,
        parts: &mut Parts,
        info: &RequestInfo,
    ) -> Self {
        let mut form = Self {
            format: Format::Json,
            is_indented: is_for_people(&parts.headers, info),
            is_head: parts.method == Method::HEAD,
            encodings: HeaderMap::new(),
        };
        if info.path.starts_with("/openapi/") {
            // OpenAPI documents negotiate their media types themselves.
            form.is_indented = false;
            return form;
        }
        if info.route.is_raw() {
            // JSON or nothing, but what is not acceptable is refused in an acceptable form.
            if Accept::only_json(&parts.headers).is_err()
                && let Ok(accept) = Accept::choose(&parts.headers, true)
            {
                form.format = accept.format;
            }
            return form;
        }
        let mut has_protobuf = accepts_protobuf(&parts.headers);
        if has_protobuf && let Route::Resource(target) = &info.route {
            has_protobuf = is_built_in(cluster, target);
        }
        let chosen = Accept::choose(&parts.headers, has_protobuf);
        if chosen.is_err() && Accept::choose(&parts.headers, true).is_ok() {
            // The error of a type without protocol buffers is sent as protocol buffers.
            form.format = Format::Protobuf;
        }
        if let Ok(accept) = chosen {
            form.format = accept.format;
            if accept.format != Format::Json {
                parts.headers.insert(ACCEPT, json_of(accept.view));
            }
        }
        if !form.is_plain() {
            for encoding in parts.headers.get_all(ACCEPT_ENCODING) {
                form.encodings.append(ACCEPT_ENCODING, encoding.clone());
            }
            parts.headers.remove(ACCEPT_ENCODING);
        }
        form
    }

    fn is_plain(&self) -> bool {
        self.format == Format::Json && !self.is_indented
    }

    /// Renders a JSON response in this form; other responses stay as they are.
    pub(crate) fn render(&self, response: Response<Body>) -> Response<Body> {
        let rendered = self.render_body(response);
        if self.is_head { rendered.map(|_| Body::whole(Bytes::new())) } else { rendered }
    }

    fn render_body(&self, response: Response<Body>) -> Response<Body> {
        let is_json = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|media_type| media_type.to_str().ok())
            .is_some_and(|media_type| media_type.starts_with("application/json"));
        if self.is_plain() || !is_json {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let body = match body.into_whole() {
            Ok(body) => body,
            Err(stream) => return self.render_stream(parts, stream),
        };
        match self.document(&body) {
            Ok(rendered) => {
                let mut compressed = respond::compressed(&self.encodings, StatusCode::OK, rendered);
                parts.headers.remove(CONTENT_LENGTH);
                for (name, value) in compressed.headers_mut().drain() {
                    if let Some(name) = name.filter(|name| *name != CONTENT_TYPE) {
                        parts.headers.insert(name, value);
                    }
                }
                if let Some(media_type) = self.media_type() {
                    parts.headers.insert(CONTENT_TYPE, media_type);
                }
                Response::from_parts(parts, compressed.into_body())
            }
            Err(error) => respond::error(&error),
        }
    }

    fn media_type(&self) -> Option<HeaderValue> {
        match self.format {
            Format::Json => None,
            Format::Yaml => Some(HeaderValue::from_static("application/yaml")),
            Format::Protobuf => Some(HeaderValue::from_static(PROTOBUF)),
        }
    }

    fn document(&self, json: &[u8]) -> Result<Bytes, ApiError> {
        let value: Value = serde_json::from_slice(json).map_err(ApiError::internal)?;
        let rendered = match self.format {
            Format::Json => {
                let mut text = to_indented_bytes(&value).to_vec();
                text.push(b'\n');
                text
            }
            Format::Yaml => {
                serde_saphyr::to_string(&value).map_err(ApiError::internal)?.into_bytes()
            }
            Format::Protobuf => protobuf::encode(&value).map_err(|error| ApiError {
                message: error.to_string(),
                ..ApiError::internal("")
            })?,
        };
        Ok(rendered.into())
    }

    fn render_stream(&self, mut parts: http::response::Parts, stream: Body) -> Response<Body> {
        if self.format != Format::Protobuf {
            return Response::from_parts(parts, stream);
        }
        parts.headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch"),
        );
        Response::from_parts(parts, stream.map(|lines| watch_frames(&lines)))
    }
}

/// Whether the client wants indented JSON: by parameter, or by its user agent.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: isPrettyPrint
fn is_for_people(headers: &HeaderMap, info: &RequestInfo) -> bool {
    if let Some(value) = info.query.get("pretty") {
        return !matches!(value, "0" | "f" | "F" | "false" | "FALSE" | "False");
    }
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or("");
    let agent = text(USER_AGENT);
    PEOPLE.iter().any(|name| agent.starts_with(name)) || text(ACCEPT).contains("pretty=1")
}

fn accepts_protobuf(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.contains(PROTOBUF)))
}

/// Whether a resource is built in; custom objects have no protocol buffers.
fn is_built_in(cluster: &SharedCluster, target: &ResourcePath) -> bool {
    let is_built_in = cluster.read(|cluster| {
        let found = cluster.registry.find(&target.group, &target.version, &target.resource);
        Ok(found.is_none_or(|resource| resource.custom().is_none()))
    });
    is_built_in.unwrap_or(true)
}

/// The protocol buffer frames of a piece of a watch, which consists of whole lines.
fn watch_frames(lines: &[u8]) -> Bytes {
    let mut frames = Vec::with_capacity(lines.len());
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let frame = serde_json::from_slice::<WatchEvent>(line)
            .ok()
            .and_then(|event| protobuf::encode_watch_event(&event.r#type, &event.object).ok());
        match frame {
            Some(frame) => frames.extend(frame),
            None => tracing::warn!("an event of a watch could not be encoded"),
        }
    }
    frames.into()
}
