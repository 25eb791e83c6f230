//! Duplicate fields of a document: the last one wins, and strict validation reports them.
use std::collections::BTreeSet;
use std::fmt;

use http::request::Parts;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::content::MediaType;
use super::parameters::{FieldValidation, Parameters};

/// The duplicate fields in the body of a request, unless field validation ignores them; of YAML
/// only the first.
pub(crate) fn duplicates_of(parts: &Parts, body: &[u8], parameters: &Parameters) -> Vec<String> {
    let asked = parameters.field_validation != FieldValidation::Ignore;
    match MediaType::of(&parts.headers) {
        Some(MediaType::Json | MediaType::MergePatch | MediaType::StrategicMergePatch) if asked => {
            duplicate_fields(body)
        }
        Some(MediaType::JsonPatch) if asked => {
            duplicate_fields(body).iter().map(|field| format!("json patch {field}")).collect()
        }
        Some(MediaType::Yaml | MediaType::ApplyPatch) if asked => {
            duplicate_key(body).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The first duplicate key of a YAML document.
fn duplicate_key(bytes: &[u8]) -> Option<String> {
    // JSON is YAML, and decoded much faster as JSON.
    let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
    if is_json && duplicate_fields(bytes).is_empty() {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let error = serde_saphyr::from_str::<serde_json::Value>(text).err()?;
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location } => {
            Some(format!("line {}: key {key:?} already set in map", location.line()))
        }
        _ => None,
    }
}

/// The duplicate fields of a JSON document, as messages of strict decoding.
///
/// Upstream: sigs.k8s.io/json/internal/golang/encoding/json/kubernetes_patch.go: saveStrictError
fn duplicate_fields(bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Document { path: String::new(), found: &mut found };
    // Malformed JSON is rejected elsewhere.
    let _ = seed.deserialize(&mut deserializer);
    found.iter().map(|path| format!("duplicate field {path:?}")).collect()
}

/// A part of a document at a path.
struct Document<'a> {
    path: String,
    found: &'a mut Vec<String>,
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let path = format!("{}[{index}]", self.path);
            if items.next_element_seed(Document { path, found: &mut *self.found })?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            let path = match self.path.as_str() {
                "" => key.clone(),
                outer => format!("{outer}.{key}"),
            };
            if seen.insert(key) {
                fields.next_value_seed(Document { path, found: &mut *self.found })?;
            } else {
                if !self.found.contains(&path) {
                    self.found.push(path);
                }
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_fields_are_reported_once_by_their_path() {
        let text = r#"{"a": 1, "b": {"c": [{"d": 1, "d": 2}]}, "a": 2, "a": 3, "e": null}"#;
        assert_eq!(
            duplicate_fields(text.as_bytes()),
            ["duplicate field \"b.c[0].d\"", "duplicate field \"a\""]
        );
        assert!(duplicate_fields(b"{\"a\": [1, 2.5, true, \"x\"]}").is_empty());
        assert!(duplicate_fields(b"not JSON").is_empty());
    }

    #[test]
    fn the_first_duplicate_key_of_yaml_is_reported_by_its_line() {
        assert_eq!(
            duplicate_key(b"a: 1\nb:\n  k: v\n  k: w\n").as_deref(),
            Some("line 4: key \"k\" already set in map")
        );
        assert_eq!(duplicate_key(b"a: 1\nb: 1\n"), None);
        let json = b" {\"a\": {\"k\": 1,\n\"k\": 2}}";
        assert_eq!(duplicate_key(json).as_deref(), Some("line 2: key \"k\" already set in map"));
        assert_eq!(duplicate_key(b"{\"a\": 1}"), None);
    }
}
