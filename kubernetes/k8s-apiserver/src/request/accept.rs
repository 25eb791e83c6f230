//! Content negotiation: the form of the response.
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderMap, HeaderValue};

use crate::status::{ApiError, Result, StatusReason};

/// The media type of protocol buffers.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The additional media type of watches in the message that no media type is acceptable.
const STREAMS: &str =
    ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// The view of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The whole objects.
    Full,
    /// Only their metadata.
    Metadata(MetaVersion),
    /// Rows and columns.
    Table(MetaVersion),
}

/// A version of the group `meta.k8s.io`, whose kinds are views of other objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    /// That of older clients; its documents differ in their `apiVersion` only.
    V1Beta1,
}

impl MetaVersion {
    /// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: AllowsMediaTypeTransform
    fn read(group: &str, version: &str) -> Option<Self> {
        match (group, version) {
            ("meta.k8s.io", "v1") => Some(Self::V1),
            ("meta.k8s.io", "v1beta1") => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// The `apiVersion` of a document.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The negotiated form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) format: Format,
    pub(crate) view: View,
}

/// One alternative of an `Accept` header.
struct Alternative<'a> {
    media_type: &'a str,
    as_kind: &'a str,
    group: &'a str,
    version: &'a str,
}

fn alternatives(headers: &HeaderMap) -> Vec<Alternative<'_>> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|alternative| {
            let mut parts = alternative.split(';').map(str::trim);
            let mut read = Alternative {
                media_type: parts.next().unwrap_or_default(),
                as_kind: "",
                group: "",
                version: "",
            };
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name {
                    "as" => read.as_kind = value,
                    "g" => read.group = value,
                    "v" => read.version = value,
                    _ => {}
                }
            }
            read
        })
        .filter(|alternative| !alternative.media_type.is_empty())
        .collect()
}

impl Accept {
    /// What an answer shows; its form has been settled before. What can be watched says so when
    /// nothing suits the client; what has no tables cannot be shown as one.
    ///
    /// # Errors
    /// When no accepted media type can be served.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateMediaTypeOptions
    pub(crate) fn negotiate(
        headers: &HeaderMap,
        is_watchable: bool,
        has_tables: bool,
    ) -> Result<Self> {
        Self::choose_of(headers, false, has_tables).map_err(|mut error| {
            if is_watchable && error.details.is_some() {
                error.message.push_str(STREAMS);
            }
            error
        })
    }

    /// Picks the first alternative that the server can serve. Custom objects have no protocol
    /// buffers, only their metadata has.
    ///
    /// # Errors
    /// When no alternative can be served.
    pub(crate) fn choose(headers: &HeaderMap, has_protobuf: bool) -> Result<Self> {
        Self::choose_of(headers, has_protobuf, true)
    }

    /// Checks that a client accepts JSON.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn only_json(headers: &HeaderMap) -> Result<()> {
        let says_nothing =
            |value: &HeaderValue| value.to_str().is_ok_and(|value| value.trim().is_empty());
        let accepts = |alternative: &Alternative<'_>| {
            matches!(alternative.media_type, "application/json" | "application/*" | "*/*")
        };
        if headers.get_all(ACCEPT).iter().all(says_nothing)
            || alternatives(headers).iter().any(accepts)
        {
            return Ok(());
        }
        Err(not_acceptable("application/json"))
    }

    fn choose_of(headers: &HeaderMap, has_protobuf: bool, has_tables: bool) -> Result<Self> {
        let alternatives = alternatives(headers);
        let says_nothing =
            |value: &HeaderValue| value.to_str().is_ok_and(|value| value.trim().is_empty());
        if headers.get_all(ACCEPT).iter().all(says_nothing) {
            return Ok(Self { format: Format::Json, view: View::Full });
        }
        let mut is_known_type = false;
        for alternative in &alternatives {
            let format = match alternative.media_type {
                "application/json" | "*/*" => Format::Json,
                "application/yaml" => Format::Yaml,
                PROTOBUF => Format::Protobuf,
                _ => continue,
            };
            is_known_type = true;
            let meta = MetaVersion::read(alternative.group, alternative.version);
            let view = match (alternative.as_kind, meta) {
                ("", _) if has_protobuf || format != Format::Protobuf => View::Full,
                ("Table", Some(version)) if has_tables && format != Format::Protobuf => {
                    View::Table(version)
                }
                ("PartialObjectMetadata" | "PartialObjectMetadataList", Some(version)) => {
                    View::Metadata(version)
                }
                _ => continue,
            };
            return Ok(Self { format, view });
        }
        let listed = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        if is_known_type {
            return Err(ApiError::new(
                StatusReason::NotAcceptable,
                format!("only the following media types are accepted: {listed}"),
            ));
        }
        Err(not_acceptable(listed))
    }
}

/// The error that none of the accepted media types is among those that are listed.
fn not_acceptable(listed: &str) -> ApiError {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {listed}");
    let error = ApiError::new(StatusReason::NotAcceptable, message);
    ApiError { details: Some(Box::default()), ..error }
}

/// Whether the client requests aggregated discovery.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/wrapper.go: ServeHTTP
pub(crate) fn wants_aggregated_discovery(headers: &HeaderMap) -> bool {
    alternatives(headers)
        .iter()
        .find(|alternative| matches!(alternative.media_type, "application/json" | "*/*"))
        .is_some_and(|alternative| {
            alternative.as_kind == "APIGroupDiscoveryList"
                && alternative.group == "apidiscovery.k8s.io"
                && alternative.version == "v2"
        })
}

/// Whether the client accepts gzip.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/compression.go: responseContentEncodingSupported
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
        })
}
