//! Version 2 in the binary form that `kubectl` asks for, gnostic's `openapi.v2.Document`.
//!
//! It has what clients read there: definitions, and paths with their operations and parameters.
use serde_json::{Map, Value};

mod paths;

/// Numbers of fields, by message.
mod number {
    pub(super) const DOCUMENT_SWAGGER: u32 = 1;
    pub(super) const DOCUMENT_INFO: u32 = 2;
    pub(super) const DOCUMENT_PATHS: u32 = 8;
    pub(super) const DOCUMENT_DEFINITIONS: u32 = 9;
    pub(super) const DOCUMENT_PARAMETERS: u32 = 10;
    pub(super) const INFO_TITLE: u32 = 1;
    pub(super) const INFO_VERSION: u32 = 2;
    pub(super) const SCHEMA_REFERENCE: u32 = 1;
    pub(super) const SCHEMA_FORMAT: u32 = 2;
    pub(super) const SCHEMA_DESCRIPTION: u32 = 4;
    pub(super) const SCHEMA_REQUIRED: u32 = 19;
    pub(super) const SCHEMA_ENUM: u32 = 20;
    pub(super) const SCHEMA_ADDITIONAL: u32 = 21;
    pub(super) const SCHEMA_TYPE: u32 = 22;
    pub(super) const SCHEMA_ITEMS: u32 = 23;
    pub(super) const SCHEMA_PROPERTIES: u32 = 25;
    pub(super) const SCHEMA_EXTENSION: u32 = 31;
    pub(super) const NAMED_NAME: u32 = 1;
    pub(super) const NAMED_VALUE: u32 = 2;
    pub(super) const ANY_YAML: u32 = 2;
    /// Of messages that only wrap others.
    pub(super) const ONLY: u32 = 1;
    pub(super) const ADDITIONAL_BOOLEAN: u32 = 2;
}

/// Encodes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut info = Vec::new();
    text(&mut info, number::INFO_TITLE, &document["info"]["title"]);
    text(&mut info, number::INFO_VERSION, &document["info"]["version"]);
    let mut out = Vec::new();
    text(&mut out, number::DOCUMENT_SWAGGER, &document["swagger"]);
    bytes(&mut out, number::DOCUMENT_INFO, &info);
    if let Some(paths) = document["paths"].as_object() {
        bytes(&mut out, number::DOCUMENT_PATHS, &paths::paths(paths));
    }
    if let Some(definitions) = document["definitions"].as_object() {
        bytes(&mut out, number::DOCUMENT_DEFINITIONS, &named_schemas(definitions));
    }
    if let Some(parameters) = document["parameters"].as_object() {
        bytes(&mut out, number::DOCUMENT_PARAMETERS, &paths::definitions(parameters));
    }
    out
}

fn named_schemas(schemas: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in schemas {
        bytes(&mut out, number::ONLY, &entry(name, &schema(value)));
    }
    out
}

/// A value under a name.
fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, number::NAMED_NAME, name.as_bytes());
    bytes(&mut out, number::NAMED_VALUE, value);
    out
}

/// A message with one field.
fn wrap(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, number, content);
    out
}

/// What a document says besides what OpenAPI knows.
fn extensions(out: &mut Vec<u8>, number: u32, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten() {
        if name.starts_with("x-") {
            bytes(out, number, &entry(name, &any(value)));
        }
    }
}

fn schema(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, number::SCHEMA_REFERENCE, &value["$ref"]);
    text(&mut out, number::SCHEMA_FORMAT, &value["format"]);
    text(&mut out, number::SCHEMA_DESCRIPTION, &value["description"]);
    for name in value["required"].as_array().into_iter().flatten() {
        text(&mut out, number::SCHEMA_REQUIRED, name);
    }
    for allowed in value["enum"].as_array().into_iter().flatten() {
        bytes(&mut out, number::SCHEMA_ENUM, &any(allowed));
    }
    match &value["additionalProperties"] {
        allowed @ Value::Bool(_) => {
            let mut wrapped = Vec::new();
            flag(&mut wrapped, number::ADDITIONAL_BOOLEAN, allowed);
            bytes(&mut out, number::SCHEMA_ADDITIONAL, &wrapped);
        }
        value @ Value::Object(_) => {
            bytes(&mut out, number::SCHEMA_ADDITIONAL, &wrap(number::ONLY, &schema(value)));
        }
        _ => {}
    }
    if let Some(name) = value["type"].as_str() {
        bytes(&mut out, number::SCHEMA_TYPE, &wrap(number::ONLY, name.as_bytes()));
    }
    if value["items"].is_object() {
        let items = schema(&value["items"]);
        bytes(&mut out, number::SCHEMA_ITEMS, &wrap(number::ONLY, &items));
    }
    if let Some(properties) = value["properties"].as_object() {
        bytes(&mut out, number::SCHEMA_PROPERTIES, &named_schemas(properties));
    }
    extensions(&mut out, number::SCHEMA_EXTENSION, value);
    out
}

/// Any value, as YAML, of which JSON is a part.
fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, number::ANY_YAML, value.to_string().as_bytes());
    out
}

fn text(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(value) = value.as_str() {
        bytes(out, number, value.as_bytes());
    }
}

/// A boolean, if it is one.
fn flag(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(value) = value.as_bool() {
        varint(out, u64::from(number << 3));
        out.push(u8::from(value));
    }
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    const LENGTH_DELIMITED: u32 = 2;
    varint(out, u64::from(number << 3 | LENGTH_DELIMITED));
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_document_is_its_version_its_info_and_its_definitions() {
        let encoded = super::encode(&json!({
            "swagger": "2.0",
            "info": {"title": "T", "version": "V"},
            "paths": {},
            "definitions": {"a": {"type": "string", "x-b": [1]}},
        }));
        let expected = b"\x0a\x032.0\x12\x06\x0a\x01T\x12\x01V\x42\x00\
            \x4a\x1f\x0a\x1d\x0a\x01a\x12\x18\xb2\x01\x08\x0a\x06string\
            \xfa\x01\x0a\x0a\x03x-b\x12\x05\x12\x03[1]";
        assert_eq!(encoded[..14], expected[..14]);
        assert!(encoded.windows(6).any(|window| window == b"string"));
        assert!(encoded.ends_with(b"[1]"));
    }
}
