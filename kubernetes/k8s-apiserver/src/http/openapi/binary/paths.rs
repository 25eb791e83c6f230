//! Paths, their operations and their parameters: `kubectl` looks there for the parameters that an
//! operation takes.
use serde_json::{Map, Value};

use super::{bytes, entry, extensions, flag, number, schema, text, wrap};

/// The numbers of the operations of a path.
const OPERATIONS: [(u32, &str); 7] =
    [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")];

const PATH_PARAMETERS: u32 = 9;
const PATH_EXTENSION: u32 = 10;

const OPERATION_TAGS: u32 = 1;
const OPERATION_DESCRIPTION: u32 = 3;
const OPERATION_ID: u32 = 5;
const OPERATION_PRODUCES: u32 = 6;
const OPERATION_CONSUMES: u32 = 7;
const OPERATION_PARAMETERS: u32 = 8;
const OPERATION_RESPONSES: u32 = 9;
const OPERATION_SCHEMES: u32 = 10;
const OPERATION_EXTENSION: u32 = 13;

const PATHS_PATH: u32 = 2;
const PARAMETER_REFERENCE: u32 = 2;
const PARAMETER_BODY: u32 = 1;
const PARAMETER_OTHER: u32 = 2;

/// Where a parameter is that is not in the body: the number of its message, and those of its type
/// and of whether it is unique.
const PLACES: [(&str, u32, u32, u32); 2] = [("query", 3, 6, 20), ("path", 4, 5, 19)];

const BODY_DESCRIPTION: u32 = 1;
const BODY_NAME: u32 = 2;
const BODY_IN: u32 = 3;
const BODY_REQUIRED: u32 = 4;
const BODY_SCHEMA: u32 = 5;

const OTHER_REQUIRED: u32 = 1;
const OTHER_IN: u32 = 2;
const OTHER_DESCRIPTION: u32 = 3;
const OTHER_NAME: u32 = 4;

const RESPONSE_DESCRIPTION: u32 = 1;
const RESPONSE_SCHEMA: u32 = 2;

/// The paths of a document.
pub(super) fn paths(paths: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in paths {
        bytes(&mut out, PATHS_PATH, &entry(name, &path(value)));
    }
    out
}

/// The parameters that operations refer to.
pub(super) fn definitions(parameters: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in parameters {
        bytes(&mut out, number::ONLY, &entry(name, &parameter(value)));
    }
    out
}

fn path(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, name) in OPERATIONS {
        if value[name].is_object() {
            bytes(&mut out, number, &operation(&value[name]));
        }
    }
    parameters(&mut out, PATH_PARAMETERS, &value["parameters"]);
    extensions(&mut out, PATH_EXTENSION, value);
    out
}

fn operation(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    texts(&mut out, OPERATION_TAGS, &value["tags"]);
    text(&mut out, OPERATION_DESCRIPTION, &value["description"]);
    text(&mut out, OPERATION_ID, &value["operationId"]);
    texts(&mut out, OPERATION_PRODUCES, &value["produces"]);
    texts(&mut out, OPERATION_CONSUMES, &value["consumes"]);
    parameters(&mut out, OPERATION_PARAMETERS, &value["parameters"]);
    if let Some(responses) = value["responses"].as_object() {
        let mut encoded = Vec::new();
        for (code, value) in responses {
            bytes(&mut encoded, number::ONLY, &entry(code, &wrap(number::ONLY, &response(value))));
        }
        bytes(&mut out, OPERATION_RESPONSES, &encoded);
    }
    texts(&mut out, OPERATION_SCHEMES, &value["schemes"]);
    extensions(&mut out, OPERATION_EXTENSION, value);
    out
}

fn response(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, RESPONSE_DESCRIPTION, &value["description"]);
    if value["schema"].is_object() {
        bytes(&mut out, RESPONSE_SCHEMA, &wrap(number::ONLY, &schema(&value["schema"])));
    }
    out
}

fn parameters(out: &mut Vec<u8>, number: u32, values: &Value) {
    for value in values.as_array().into_iter().flatten() {
        let item = if value["$ref"].is_string() {
            let mut reference = Vec::new();
            text(&mut reference, number::ONLY, &value["$ref"]);
            wrap(PARAMETER_REFERENCE, &reference)
        } else {
            wrap(number::ONLY, &parameter(value))
        };
        bytes(out, number, &item);
    }
}

fn parameter(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let Some((_, place, kind, unique)) = PLACES.iter().find(|(name, ..)| value["in"] == **name)
    else {
        text(&mut out, BODY_DESCRIPTION, &value["description"]);
        text(&mut out, BODY_NAME, &value["name"]);
        text(&mut out, BODY_IN, &value["in"]);
        flag(&mut out, BODY_REQUIRED, &value["required"]);
        bytes(&mut out, BODY_SCHEMA, &schema(&value["schema"]));
        return wrap(PARAMETER_BODY, &out);
    };
    flag(&mut out, OTHER_REQUIRED, &value["required"]);
    text(&mut out, OTHER_IN, &value["in"]);
    text(&mut out, OTHER_DESCRIPTION, &value["description"]);
    text(&mut out, OTHER_NAME, &value["name"]);
    text(&mut out, *kind, &value["type"]);
    flag(&mut out, *unique, &value["uniqueItems"]);
    wrap(PARAMETER_OTHER, &wrap(*place, &out))
}

fn texts(out: &mut Vec<u8>, number: u32, values: &Value) {
    for value in values.as_array().into_iter().flatten() {
        text(out, number, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_has_operations_with_parameters_and_extensions() {
        let encoded = paths(
            json!({"/p": {"patch": {"operationId": "o", "x-a": 1, "parameters": [
                {"$ref": "#/r"}, {"name": "n", "in": "query", "type": "string"},
            ]}}})
            .as_object()
            .expect("an object"),
        );
        let query = b"\x12\x05query\x22\x01n\x32\x06string";
        let mut operation = b"\x2a\x01o".to_vec();
        bytes(&mut operation, 8, &wrap(2, b"\x0a\x03#/r"));
        bytes(&mut operation, 8, &wrap(1, &wrap(2, &wrap(3, query))));
        bytes(&mut operation, 13, b"\x0a\x03x-a\x12\x03\x12\x011");
        assert_eq!(encoded, wrap(2, &entry("/p", &wrap(8, &operation))));
    }
}
