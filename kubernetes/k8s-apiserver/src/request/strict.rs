//! What strict field validation reports of a document: fields that occur twice, of which the last one
//! wins, and unknown fields.
use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use http::request::Parts;
use k8s_yaml::{YamlWarning, YamlWarningKind};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::content::MediaType;
use super::parameters::{FieldValidation, Parameters};

/// Number of errors of one document; further ones are not reported.
///
/// Upstream: sigs.k8s.io/json/internal/golang/encoding/json/kubernetes_patch.go: saveStrictError
const ERRORS_MAX: usize = 100;

/// The errors of strict decoding in the body of a request.
#[derive(Debug, Default)]
pub(crate) struct StrictErrors {
    /// The messages about duplicate keys of YAML, each with its line.
    repeated: Vec<String>,
    /// The messages about duplicate fields of JSON.
    duplicates: Vec<String>,
    /// The JSON document in whose order all errors are reported. Without one, duplicate fields come
    /// before unknown ones.
    document: Option<Bytes>,
}

impl StrictErrors {
    /// The duplicate fields in the body of a request, unless field validation ignores them. `is_typed`
    /// says whether a document is decoded as a built-in type, which finds unknown fields in the same pass.
    pub(crate) fn of(parts: &Parts, body: &Bytes, parameters: &Parameters, is_typed: bool) -> Self {
        if parameters.field_validation == FieldValidation::Ignore {
            return Self::default();
        }
        let media_type = MediaType::of(&parts.headers);
        let mut repeated = Vec::new();
        let duplicates = match media_type {
            Some(MediaType::Json | MediaType::MergePatch | MediaType::StrategicMergePatch) => {
                errors_in_order(body, &BTreeSet::new())
            }
            Some(MediaType::JsonPatch) => errors_in_order(body, &BTreeSet::new())
                .iter()
                .map(|field| format!("json patch {field}"))
                .collect(),
            Some(MediaType::Yaml | MediaType::ApplyPatch) => {
                repeated = repeated_keys(body);
                Vec::new()
            }
            Some(MediaType::Protobuf) | None => Vec::new(),
        };
        let is_ordered = is_typed && media_type == Some(MediaType::Json);
        Self { repeated, duplicates, document: is_ordered.then(|| body.clone()) }
    }

    /// The messages about duplicate keys of an applied document.
    pub(crate) fn into_repeated(self) -> Vec<String> {
        self.repeated
    }

    /// All messages, `unknown` being the paths of the unknown fields.
    pub(crate) fn with_unknown(self, unknown: &[String]) -> ListedErrors {
        let fields = match self.document {
            Some(document) if !unknown.is_empty() => {
                errors_in_order(&document, &unknown.iter().map(String::as_str).collect())
            }
            _ => {
                let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
                self.duplicates.into_iter().chain(unknown).collect()
            }
        };
        ListedErrors { repeated: self.repeated, fields }
    }
}

/// The fields that a JSON document has twice, as messages of strict decoding.
pub(crate) fn duplicate_fields(json: &[u8]) -> Vec<String> {
    errors_in_order(json, &BTreeSet::new())
}

/// The messages of strict decoding.
pub(crate) struct ListedErrors {
    repeated: Vec<String>,
    fields: Vec<String>,
}

impl ListedErrors {
    /// One warning for each.
    pub(crate) fn into_warnings(self) -> impl Iterator<Item = String> {
        self.repeated.into_iter().chain(self.fields)
    }

    /// One error for all; nothing without any.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/runtime/error.go: strictDecodingError
    pub(crate) fn message(&self) -> Option<String> {
        let repeated = (!self.repeated.is_empty()).then(|| unmarshal_errors(&self.repeated));
        let errors: Vec<&str> = repeated.iter().chain(&self.fields).map(String::as_str).collect();
        (!errors.is_empty()).then(|| errors.join(", "))
    }
}

/// The messages about a YAML document as one.
///
/// Upstream: go.yaml.in/yaml/v2/yaml.go: TypeError
pub(crate) fn unmarshal_errors(errors: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", errors.join("\n  "))
}

/// The duplicate keys of a YAML document.
fn repeated_keys(bytes: &[u8]) -> Vec<String> {
    // JSON is YAML, and decoded much faster as JSON.
    let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
    if is_json && errors_in_order(bytes, &BTreeSet::new()).is_empty() {
        return Vec::new();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Vec::new() };
    let message = |note: YamlWarning| {
        let key = match note.oddity {
            YamlWarningKind::DuplicateKey(key) => format!("{key:?}"),
            YamlWarningKind::DuplicateScalar(key) => key,
            YamlWarningKind::IgnoredText => return None,
        };
        Some(format!("line {}: key {key} already set in map", note.line.unwrap_or(1)))
    };
    k8s_yaml::first_document(text).notes.into_iter().filter_map(message).collect()
}

/// The duplicate and the unknown fields of a JSON document in its order, as messages of strict
/// decoding. Nothing is reported of what is in an unknown field.
///
/// Upstream: sigs.k8s.io/json/internal/golang/encoding/json/decode.go: object
fn errors_in_order(bytes: &[u8], unknown: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Document { path: String::new(), unknown, found: &mut found };
    // Malformed JSON is rejected elsewhere.
    let _ = seed.deserialize(&mut deserializer);
    found
}

/// A part of a document at a path.
struct Document<'a> {
    path: String,
    unknown: &'a BTreeSet<&'a str>,
    found: &'a mut Vec<String>,
}

impl Document<'_> {
    fn report(&mut self, error: &str, path: &str) {
        let message = format!("{error} field {path:?}");
        if self.found.len() < ERRORS_MAX && !self.found.contains(&message) {
            self.found.push(message);
        }
    }

    fn below(&mut self, path: String) -> Document<'_> {
        Document { path, unknown: self.unknown, found: &mut *self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let path = format!("{}[{index}]", self.path);
            if items.next_element_seed(self.below(path))?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            let path = match self.path.as_str() {
                "" => key.clone(),
                outer => format!("{outer}.{key}"),
            };
            if self.unknown.contains(path.as_str()) {
                self.report("unknown", &path);
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            if !seen.insert(key) {
                self.report("duplicate", &path);
            }
            fields.next_value_seed(self.below(path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_and_unknown_fields_are_reported_once_in_the_order_of_the_document() {
        let check = |text: &str, unknown: &[&str], expected: &[&str]| {
            let unknown = unknown.iter().copied().collect();
            assert_eq!(errors_in_order(text.as_bytes(), &unknown), expected, "{text}");
        };
        let nested = r#"{"a": 1, "b": {"c": [{"d": 1, "d": 2}]}, "a": 2, "a": {"e": 1, "e": 2}}"#;
        check(
            nested,
            &[],
            &["duplicate field \"b.c[0].d\"", "duplicate field \"a\"", "duplicate field \"a.e\""],
        );
        check(
            nested,
            &["b", "a.e"],
            &["unknown field \"b\"", "duplicate field \"a\"", "unknown field \"a.e\""],
        );
        check("{\"a\": [1, 2.5, true, \"x\"]}", &[], &[]);
        check("not JSON", &[], &[]);
    }

    #[test]
    fn the_number_of_errors_is_bounded() {
        let fields: Vec<String> =
            (0..=ERRORS_MAX).map(|n| format!("\"f{n}\":1,\"f{n}\":2")).collect();
        let text = format!("{{{}}}", fields.join(","));
        assert_eq!(errors_in_order(text.as_bytes(), &BTreeSet::new()).len(), ERRORS_MAX);
    }

    #[test]
    fn the_duplicate_keys_of_yaml_are_reported_by_their_lines() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(repeated_keys(text.as_bytes()), expected, "{text}");
        };
        check("a: 1\nb:\n  k: v\n  k: w\n", &["line 4: key \"k\" already set in map"]);
        check("a: 1\nb: 1\n", &[]);
        check(" {\"a\": {\"k\": 1,\n\"k\": 2}}", &["line 2: key \"k\" already set in map"]);
        check("{\"a\": 1}", &[]);
        check(
            "v: {a: 1, a: 2, a: 3}\nv:\n  1: x\n  1: y\n  true: x\n  yes: y\n",
            &[
                "line 1: key \"a\" already set in map",
                "line 1: key \"a\" already set in map",
                "line 4: key 1 already set in map",
                "line 6: key true already set in map",
                "line 2: key \"v\" already set in map",
            ],
        );
    }

    #[test]
    fn the_errors_of_yaml_stand_together_in_a_message() {
        let listed = ListedErrors {
            repeated: vec!["line 1: a".to_owned(), "line 2: b".to_owned()],
            fields: vec!["unknown field \"c\"".to_owned()],
        };
        let expected = "yaml: unmarshal errors:\n  line 1: a\n  line 2: b, unknown field \"c\"";
        assert_eq!(listed.message().as_deref(), Some(expected));
        assert_eq!(listed.into_warnings().count(), 3);
        assert_eq!(ListedErrors { repeated: Vec::new(), fields: Vec::new() }.message(), None);
    }
}
