//! Merging the configuration of a mutating policy into an object.
use serde_json::Value;

use super::check::{check, check_live, defect_list};
use super::merge::merge;
use crate::Schema;
use crate::schema::node::{Edge, Relationship, Shape};

/// Why a configuration cannot be merged. The texts are those of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The configuration does not fit the schema; one text for each defect, such as
    /// `.spec.size: field not declared in schema`.
    #[error("failed to convert patch object to typed object: {}", defect_list(.0))]
    Configuration(Vec<String>),
    /// The object does not fit the schema.
    #[error("failed to convert original object to typed object: {}", defect_list(.0))]
    Object(Vec<String>),
    /// The configuration has lists or maps at these paths that can only be set as a whole.
    #[error(
        "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
        .0.join(", ")
    )]
    Atomic(Vec<String>),
}

/// An object with a configuration merged into it; nothing is removed, and nobody comes to own
/// anything.
///
/// # Errors
/// When one of the two does not fit the schema, or the configuration has a list or a map that can only
/// be set as a whole.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go: ApplyStructuredMergeDiff
pub fn merge_configuration(
    schema: &Schema,
    object: &Value,
    configuration: &Value,
) -> Result<Value, ConfigurationError> {
    let defects = check(schema, configuration);
    if !defects.is_empty() {
        return Err(ConfigurationError::Configuration(defects));
    }
    let mut atomics = Vec::new();
    find_atomics(schema, &schema.root_edge(), configuration, &mut String::new(), &mut atomics);
    if !atomics.is_empty() {
        return Err(ConfigurationError::Atomic(atomics));
    }
    let defects = check_live(schema, object);
    if !defects.is_empty() {
        return Err(ConfigurationError::Object(defects));
    }
    Ok(merge(schema, object, configuration))
}

/// Finds the lists and maps that are owned as a whole. As kube-apiserver does, it inspects declared
/// fields and items of lists, but not the other values of a map.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go: findAtomics
fn find_atomics(
    schema: &Schema,
    edge: &Edge,
    value: &Value,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let length = path.len();
    match (schema.shape(edge, Some(value)), value) {
        (Shape::Map(map, is_atomic), Value::Object(entries)) => {
            if is_atomic {
                found.push(path.clone());
            }
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in sorted {
                let Some(edge) = map.fields.get(key) else { continue };
                path.push('.');
                path.push_str(key);
                find_atomics(schema, edge, value, path, found);
                path.truncate(length);
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            if list.relationship == Relationship::Atomic {
                found.push(path.clone());
            }
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_atomics(schema, &list.items, item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::merge_configuration;
    use crate::Schema;

    fn schema() -> Schema {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "open": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                      "properties": {"a": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "named": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "items": {"type": "object", "required": ["name"], "properties": {
                          "name": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}}}}},
        }}}});
        Schema::from_crd(&schema, false).expect("the schema is structural")
    }

    #[test]
    fn a_configuration_is_merged_or_refused() {
        let object =
            r#"{"spec": {"size": 1, "open": {"a": "x"}, "set": ["a"], "named": [{"name": "n"}]}}"#;
        let object: Value = serde_json::from_str(object).unwrap();
        for (configuration, expected) in [
            (
                r#"{"size": 2}"#,
                r#"Ok {"size": 2, "open": {"a": "x"}, "set": ["a"], "named": [{"name": "n"}]}"#,
            ),
            (
                r#"{"open": {"b": "y"}}"#,
                r#"Ok {"size": 1, "open": {"a": "x", "b": "y"}, "set": ["a"], "named": [{"name": "n"}]}"#,
            ),
            (
                r#"{"set": ["b"]}"#,
                r#"Ok {"size": 1, "open": {"a": "x"}, "set": ["a", "b"], "named": [{"name": "n"}]}"#,
            ),
            (
                r#"{"named": [{"name": "m"}]}"#,
                r#"Ok {"size": 1, "open": {"a": "x"}, "set": ["a"], "named": [{"name": "n"}, {"name": "m"}]}"#,
            ),
            (
                r#"{"whole": {"a": "x"}, "list": ["a"], "named": [{"name": "m", "list": []}]}"#,
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.list, .spec.named[0].list, .spec.whole",
            ),
            (
                r#"{"size": "x"}"#,
                "failed to convert patch object to typed object: .spec.size: expected numeric (int or float), got string",
            ),
            (
                r#"{"other": 1}"#,
                "failed to convert patch object to typed object: .spec.other: field not declared in schema",
            ),
        ] {
            let spec: Value = serde_json::from_str(configuration).unwrap();
            let merged = merge_configuration(&schema(), &object, &json!({"spec": spec}));
            match (merged, expected.strip_prefix("Ok ")) {
                (Ok(merged), Some(expected)) => {
                    let expected: Value = serde_json::from_str(expected).unwrap();
                    assert_eq!(merged["spec"], expected, "{configuration}");
                }
                (Err(error), None) => assert_eq!(error.to_string(), expected),
                (merged, _) => panic!("{configuration}: {merged:?}"),
            }
        }
    }
}
