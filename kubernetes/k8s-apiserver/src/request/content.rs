//! Request bodies: media types and decoding.
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use k8s_schema::protobuf::{self, ProtobufError};
use k8s_schema::{canonicalize_numbers, go_kind};
use k8s_yaml::{NESTING_MAX, YamlError, YamlErrorKind};
use serde_json::Value;

use super::accept::PROTOBUF;
use crate::status::{ApiError, StatusReason};

mod syntax;

/// Limit of the nodes that a YAML document with aliases may expand to.
const TOO_MANY_ALIASES: &str = "document contains excessive aliasing";

/// Number of bytes of a malformed body that an error repeats.
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
        let mut parts = text.trim_end().trim_end_matches(';').split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        // Parameters are ignored, but have to be well-formed (RFC 2045, section 5.1).
        if !parts
            .all(|parameter| parameter.split_once('=').is_some_and(|(name, _)| !name.is_empty()))
        {
            return None;
        }
        match name.as_str() {
            "" if !text.is_empty() => None,
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
/// When the media type is not supported, or the text cannot be decoded.
///
/// Upstream: k8s.io/apimachinery/pkg/runtime/serializer/json/json.go: Decode
pub(crate) fn decode_object(
    headers: &HeaderMap,
    bytes: &[u8],
    kind: &str,
) -> Result<Value, ApiError> {
    let decoded = match MediaType::of(headers) {
        Some(MediaType::Json) => read_json(bytes).and_then(typed),
        Some(MediaType::Yaml) => read_yaml(bytes).and_then(typed),
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
        unrecognized(kind, &error, bytes)
    })
}

/// The body of a create or update of a custom `kind`, which has to name it.
///
/// # Errors
/// As [`decode_object`], and when no kind is named.
///
/// Upstream: k8s.io/apimachinery/pkg/runtime/serializer/json/json.go: Decode
pub(crate) fn decode_custom(
    headers: &HeaderMap,
    bytes: &[u8],
    kind: &str,
) -> Result<Value, ApiError> {
    let document = decode_object(headers, bytes, kind)?;
    if document["kind"].as_str().unwrap_or_default().is_empty() {
        let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(bytes));
        return Err(unrecognized(kind, &why, bytes));
    }
    Ok(document)
}

fn unrecognized(kind: &str, why: &str, bytes: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(bytes)
    ))
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

/// The beginning of a body that could not be decoded, in hexadecimal unless it looks like JSON.
fn summary(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN_LEN_MAX)];
    let rest = if bytes.len() > SHOWN_LEN_MAX { " ..." } else { "" };
    match shown {
        [] => "<empty>".to_owned(),
        [b'{', ..] => format!("{}{rest}", String::from_utf8_lossy(shown)),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + rest,
    }
}

/// Why the type of a document cannot be determined.
fn untyped(why: impl std::fmt::Display) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

/// The Go type that the type of a document is decoded into.
const TYPE: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                    Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Checks that `apiVersion` and `kind` of a document can be decoded.
fn typed(document: Value) -> Result<Value, String> {
    if !document.is_object() && !document.is_null() {
        let given = go_kind(&document);
        return Err(untyped(format!(
            "json: cannot unmarshal {given} into Go value of type {TYPE}"
        )));
    }
    for field in ["apiVersion", "kind"] {
        let value = &document[field];
        if !value.is_string() && !value.is_null() {
            let given = go_kind(value);
            return Err(untyped(format!(
                "json: cannot unmarshal {given} into Go struct field .{field} of type string"
            )));
        }
    }
    match document["apiVersion"].as_str() {
        Some(version) if version.matches('/').count() > 1 => {
            Err(format!("unexpected GroupVersion string: {version}"))
        }
        _ => Ok(document),
    }
}

fn read_json(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).or_else(|error| match syntax::error(bytes) {
        Some(why) => Err(untyped(why)),
        None => serde_json::from_str(&syntax::repaired(bytes))
            .map_err(|_| too_deep(bytes).unwrap_or_else(|| untyped(error))),
    })
}

/// What is wrong with JSON that is nested deeper than this server takes; nothing if it is not.
fn too_deep(bytes: &[u8]) -> Option<String> {
    let why = || format!("the document is nested more than {NESTING_MAX} levels deep");
    (syntax::depth(bytes) > NESTING_MAX).then(why)
}

/// Upstream: sigs.k8s.io/yaml/yaml.go: YAMLToJSON
fn read_yaml(bytes: &[u8]) -> Result<Value, String> {
    let mut document = read_yaml_as_written(bytes)?;
    // It becomes JSON, in which a float without a fraction looks like an integer.
    canonicalize_numbers(&mut document);
    Ok(document)
}

fn read_yaml_as_written(bytes: &[u8]) -> Result<Value, String> {
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return read_json(bytes).or_else(|why| flow_yaml(bytes).ok_or(why));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| format!("yaml: {error}"))?;
    if text.trim_start_matches([' ', '\r', '\n']).starts_with('\t') {
        return Err("yaml: found character that cannot start any token".to_owned());
    }
    k8s_yaml::first_document(text).value.map_err(|error| conversion_error(&error))
}

/// What begins as JSON does and is YAML nevertheless: with a comma after the last item, plain keys or
/// comments.
fn flow_yaml(bytes: &[u8]) -> Option<Value> {
    k8s_yaml::first_document(std::str::from_utf8(bytes).ok()?).value.ok()
}

/// Why YAML cannot be converted to JSON.
fn conversion_error(error: &YamlError) -> String {
    match &error.problem {
        YamlErrorKind::NotFinite(text) => format!("json: unsupported value: {}", infinity(text)),
        YamlErrorKind::Copies => format!("yaml: {TOO_MANY_ALIASES}"),
        // Messages about the first line have no line number.
        problem if error.line == 1 => format!("yaml: {problem}"),
        problem => format!("yaml: line {}: {problem}", error.line),
    }
}

/// A number that is not finite, as Go shows it.
fn infinity(text: &str) -> &'static str {
    match text {
        _ if text.eq_ignore_ascii_case(".nan") => "NaN",
        _ if text.starts_with('-') => "-Inf",
        _ => "+Inf",
    }
}

/// Reads JSON.
///
/// # Errors
/// When it is not JSON, or nested too deeply.
pub(crate) fn decode_json(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request(format!("error decoding request body: {error}")))
}

/// Decodes a patch in JSON.
///
/// # Errors
/// When it is not JSON, or nested too deeply.
pub(crate) fn decode_patch(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes).map_err(|_| {
        let why = too_deep(bytes);
        ApiError::bad_request(why.unwrap_or_else(|| "invalid JSON patch".to_owned()))
    })
}

/// Decodes an applied document; of duplicate keys the last one wins.
///
/// # Errors
/// When it is neither YAML nor an object.
pub(crate) fn decode_applied(bytes: &[u8]) -> Result<Value, ApiError> {
    let refused = |why: String| ApiError::bad_request(format!("error decoding patch: {why}"));
    let malformed = |why: String| refused(format!("error converting YAML to JSON: yaml: {why}"));
    let mut document: Value = if bytes.trim_ascii_start().first() == Some(&b'{') {
        serde_json::from_slice(bytes).or_else(|error: serde_json::Error| {
            flow_yaml(bytes).ok_or_else(|| {
                if let Some(why) = too_deep(bytes) {
                    return refused(why);
                }
                malformed(if error.is_eof() {
                    format!("line {}: did not find expected node content", error.line())
                } else {
                    error.to_string()
                })
            })
        })?
    } else {
        let text = std::str::from_utf8(bytes).map_err(|error| malformed(error.to_string()))?;
        k8s_yaml::first_document(text).value.map_err(|error| match &error.problem {
            YamlErrorKind::Copies | YamlErrorKind::NotFinite(_) => {
                ApiError::bad_request(format!("error encoding patch: {}", conversion_error(&error)))
            }
            _ => refused(format!("error converting YAML to JSON: {}", conversion_error(&error))),
        })?
    };
    if document.is_object() || document.is_null() {
        canonicalize_numbers(&mut document);
        return Ok(document);
    }
    let kind = go_kind(&document);
    Err(refused(format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go \
         value of type map[string]interface {{}}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(depth: usize) -> Vec<u8> {
        format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1)).into_bytes()
    }

    #[test]
    fn bodies_that_are_nested_too_deeply_are_refused_with_the_bound() {
        let headers = HeaderMap::new();
        let why = "the document is nested more than 120 levels deep";
        for depth in [128, 1_000, 10_000] {
            let deep = body(depth);
            for refused in [
                decode_object(&headers, &deep, "Widget"),
                decode_custom(&headers, &deep, "Widget"),
                decode_patch(&deep),
                decode_applied(&deep),
            ] {
                let message = refused.expect_err("it is too deep").message;
                assert!(message.contains(why), "{depth}: {message}");
            }
        }
        assert!(decode_object(&headers, &body(NESTING_MAX), "Widget").is_ok());
        let error = decode_patch(b"{").expect_err("it is no JSON");
        assert_eq!(error.message, "invalid JSON patch");
    }

    #[test]
    fn floats_of_yaml_are_those_of_the_json_it_becomes() {
        let mut yaml = HeaderMap::new();
        yaml.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/yaml"));
        let json = HeaderMap::new();
        let text = br#"{"a": 3.0}"#;
        let number = |decoded: Result<Value, ApiError>| decoded.expect("it is JSON")["a"].is_i64();
        assert!(number(decode_object(&yaml, text, "Deep")));
        assert!(number(decode_object(&yaml, b"a: 30e-1", "Deep")));
        assert!(number(decode_applied(text)));
        assert!(!number(decode_object(&json, text, "Deep")));
        assert!(!number(decode_patch(text)));
    }

    #[test]
    fn a_custom_object_without_a_kind_is_shown_as_it_was_sent() {
        let mut yaml = HeaderMap::new();
        yaml.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/yaml"));
        let check = |headers: &HeaderMap, text: &str, summary: &str| {
            let error = decode_custom(headers, text.as_bytes(), "Deep").expect_err("no kind");
            let expected = format!(
                "the object provided is unrecognized (must be of type Deep): Object 'Kind' is \
                 missing in '{text}' ({summary})"
            );
            assert_eq!(error.message, expected);
        };
        let json = HeaderMap::new();
        check(&json, " {\"b\":1,\"a\":2}", "207b2262223a312c2261223a327d");
        check(&json, "null", "6e756c6c");
        check(&json, "{\"kind\":\"\",  \"v\": 1.50}", "{\"kind\":\"\",  \"v\": 1.50}");
        check(&yaml, "b: 1\na: \"<é>\"\n", "623a20310a613a20223cc3a93e220a");
        check(&yaml, "{b: 1,  a: 2}", "{b: 1,  a: 2}");
        check(&yaml, "", "<empty>");
    }
}
