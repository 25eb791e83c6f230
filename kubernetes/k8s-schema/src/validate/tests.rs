//! Validation messages, as apiextensions words them.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::{Value, json};

use super::{blocked_expressions, validate, validate_lists, validate_status, validate_update};
use crate::{FieldError, Schema, builtin};

/// Checks a value of `spec.x` under the schema of that field.
#[track_caller]
fn check(field: Value, value: Value, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"x": field}},
    }});
    let schema = Schema::from_crd(&schema, false).expect("a structural schema");
    check_object(&schema, &json!({"spec": {"x": value}}), expected);
}

#[track_caller]
fn check_object(schema: &Schema, value: &Value, expected: &[&str]) {
    let mut errors = validate(schema, value);
    if !schema.is_builtin() {
        errors.extend(validate_lists(schema, value, None));
        errors.extend(blocked_expressions(schema, &errors));
    }
    assert_eq!(texts(&errors), expected);
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn types_have_to_fit() {
    let integer = || json!({"type": "integer"});
    check(integer(), json!(1), &[]);
    check(integer(), json!(1.0), &[]);
    check(
        integer(),
        json!("a"),
        &[r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#],
    );
    check(
        integer(),
        json!(1.5),
        &[
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x"#,
        ],
    );
    check(
        integer(),
        json!(null),
        &[r#"spec.x: Invalid value: "null": spec.x in body must be of type integer: "null""#],
    );
    check(json!({"type": "integer", "nullable": true}), json!(null), &[]);
    check(json!({"type": "number"}), json!(1), &[]);
    check(
        json!({"type": "array", "items": {"type": "string"}}),
        json!(["a", 1]),
        &[
            r#"spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer""#,
        ],
    );
    let int_or_string = || {
        json!({"x-kubernetes-int-or-string": true,
               "anyOf": [{"type": "integer"}, {"type": "string"}]})
    };
    check(int_or_string(), json!(1), &[]);
    check(int_or_string(), json!("1"), &[]);
}

#[test]
fn single_values_have_to_satisfy_their_rules() {
    let text = |key: &str, rule: Value| json!({"type": "string", key: rule});
    check(
        text("enum", json!(["a", "b"])),
        json!("x"),
        &[r#"spec.x: Unsupported value: "x": supported values: "a", "b""#],
    );
    check(
        text("pattern", json!("^[a-z]+$")),
        json!("A"),
        &[r#"spec.x: Invalid value: "A": spec.x in body should match '^[a-z]+$'"#],
    );
    check(
        text("maxLength", json!(2)),
        json!("abc"),
        &["spec.x: Too long: may not be more than 2 bytes"],
    );
    check(
        text("minLength", json!(2)),
        json!("é"),
        &[r#"spec.x: Invalid value: "é": spec.x in body should be at least 2 chars long"#],
    );
    check(
        json!({"type": "integer", "minimum": 1}),
        json!(0),
        &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
    );
    check(
        json!({"type": "integer", "maximum": 1, "exclusiveMaximum": true}),
        json!(1),
        &["spec.x: Invalid value: 1: spec.x in body should be less than 1"],
    );
    check(
        json!({"type": "integer", "multipleOf": 3}),
        json!(4),
        &["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"],
    );
}

#[test]
fn lists_and_maps_have_to_satisfy_their_rules() {
    let list =
        |key: &str, rule: Value| json!({"type": "array", "items": {"type": "string"}, key: rule});
    check(
        list("maxItems", json!(1)),
        json!(["a", "b"]),
        &["spec.x: Too many: 2: must have at most 1 item"],
    );
    check(
        list("minItems", json!(1)),
        json!([]),
        &["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
    );
    check(
        list("x-kubernetes-list-type", json!("set")),
        json!(["a", "a", "b", "a"]),
        &[r#"spec.x[1]: Duplicate value: "a""#],
    );
    let map_list = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}});
    check(
        map_list,
        json!([{"k": "a"}, {"k": "a"}, {}]),
        &["spec.x[2].k: Required value", r#"spec.x[1]: Duplicate value: {"k":"a"}"#],
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}),
        json!({"a": "1", "b": 2}),
        &[
            "spec.x: Too many: 2: must have at most 1 item",
            r#"spec.x.b: Invalid value: "integer": spec.x.b in body must be of type string: "integer""#,
        ],
    );
}

#[test]
fn alternatives_are_counted() {
    let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let with =
        |key: &str, rule: Value| json!({"type": "object", "properties": properties, key: rule});
    let either = || json!([{"required": ["a"]}, {"required": ["b"]}]);
    check(with("oneOf", either()), json!({"a": "1"}), &[]);
    check(
        with("oneOf", either()),
        json!({"a": "1", "b": "1"}),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        with("anyOf", either()),
        json!({}),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
            "spec.x.a: Required value",
        ],
    );
    check(
        with("allOf", either()),
        json!({"a": "1"}),
        &[
            "spec.x.b: Required value",
            r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
        ],
    );
    check(
        with("not", json!({"required": ["a"]})),
        json!({"a": "1"}),
        &[r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#],
    );
}

/// Checks which of the texts have the format.
#[track_caller]
fn check_format(format: &str, valid: &[&str], invalid: &[&str]) {
    for text in valid {
        check(json!({"type": "string", "format": format}), json!(text), &[]);
    }
    for text in invalid {
        let error = format!(
            "spec.x: Invalid value: {text:?}: spec.x in body must be of type {format}: {text:?}"
        );
        check(json!({"type": "string", "format": format}), json!(text), &[&error]);
    }
}

#[test]
fn texts_have_to_have_their_format() {
    check_format("date-time", &["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5+02:00"], &["now"]);
    check_format("date", &["2024-02-29"], &["2026-02-29", "2026-1-1"]);
    check_format("ipv4", &["10.0.0.1"], &["10.0.0.256", "::1"]);
    check_format("ipv6", &["::1"], &["10.0.0.1"]);
    check_format("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0", "10.0.0.0/33"]);
    check_format("uri", &["https://example.com/a", "/path"], &["not a uri"]);
    check_format("hostname", &["example.com"], &["-a", "a..b"]);
    check_format("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123"]);
    check_format("duration", &["1h30m", "22 ns", "0"], &["soon"]);
    check_format("byte", &["YQ=="], &["a"]);
    check_format("unheard-of", &["anything"], &[]);
}

#[test]
fn what_blocks_expressions_is_said() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "true"}],
    }}});
    let schema = Schema::from_crd(&schema, false).expect("a structural schema");
    check_object(
        &schema,
        &json!({"spec": {}}),
        &[
            "spec.a: Required value",
            "<nil>: Invalid value: null: some validation rules were not checked because the object \
             was invalid; correct the existing errors to complete validation",
        ],
    );
}

#[test]
fn embedded_resources_say_what_they_are() {
    check(
        json!({"type": "object", "x-kubernetes-embedded-resource": true,
               "x-kubernetes-preserve-unknown-fields": true}),
        json!({"kind": "Pod"}),
        &["spec.x.apiVersion: Required value"],
    );
}

#[test]
fn built_in_kinds_check_types_and_required_fields() {
    let schema = builtin::schema("apps", "v1", "Deployment").expect("built in");
    check_object(
        &schema,
        &json!({"spec": {"replicas": "1", "selector": null, "template": {}}}),
        &[
            r#"spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string""#,
            "spec.selector: Required value",
        ],
    );
}

/// Checks an update of `spec` under the schema of that field.
#[track_caller]
fn check_update(spec_schema: &Value, live: Value, value: Value, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {"spec": spec_schema}});
    let schema = Schema::from_crd(&schema, false).expect("a structural schema");
    let (live, value) = (json!({"spec": live}), json!({"spec": value}));
    let mut errors = validate_update(&schema, &value, &live);
    errors.extend(validate_lists(&schema, &value, Some(&live)));
    assert_eq!(texts(&errors), expected);
}

#[test]
fn what_was_wrong_before_and_did_not_change_is_let_pass() {
    let schema = json!({"type": "object", "required": ["r"], "properties": {
        "a": {"type": "string", "maxLength": 1},
        "r": {"type": "string"},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"}, "v": {"type": "integer", "minimum": 5}}}},
        "s": {"type": "array", "items": {"type": "integer", "minimum": 5}},
        "u": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    }});
    let long = "spec.a: Too long: may not be more than 1 byte";
    check_update(&schema, json!({"a": "xx"}), json!({"a": "xx"}), &[]);
    check_update(
        &schema,
        json!({"a": "xx"}),
        json!({"a": "xx", "s": []}),
        &["spec.r: Required value"],
    );
    check_update(&schema, json!({"r": "", "a": "xx"}), json!({"r": "y", "a": "xx"}), &[]);
    check_update(&schema, json!({"r": "", "a": "xx"}), json!({"r": "", "a": "yy"}), &[long]);
    let low = "Invalid value: 1: spec.l[1].v in body should be greater than or equal to 5";
    let item = |key: &str, value: i64| json!({"k": key, "v": value});
    check_update(
        &schema,
        json!({"r": "", "l": [item("a", 1)]}),
        json!({"r": "", "l": [item("b", 7), item("a", 1)]}),
        &[],
    );
    check_update(
        &schema,
        json!({"r": "", "l": [item("a", 2)]}),
        json!({"r": "", "l": [item("b", 7), item("a", 1)]}),
        &[&format!("spec.l[1].v: {low}")],
    );
    check_update(
        &schema,
        json!({"r": "", "s": [1]}),
        json!({"r": "", "s": [1, 6]}),
        &["spec.s[0]: Invalid value: 1: spec.s[0] in body should be greater than or equal to 5"],
    );
    check_update(
        &schema,
        json!({"r": "", "u": ["a", "a"]}),
        json!({"r": "", "u": ["b", "b"]}),
        &[],
    );
}

#[test]
fn a_status_is_a_document_of_its_own() {
    let schema = json!({"type": "object", "properties": {"status": {"type": "object",
        "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}}});
    let schema = Schema::from_crd(&schema, false).expect("a structural schema");
    let errors = validate_status(&schema, &json!({"status": {"b": 1}}), &json!({}));
    assert_eq!(
        texts(&errors),
        [
            r#"status.b: Invalid value: "integer": b in body must be of type string: "integer""#,
            "status.a: Required value",
        ]
    );
}
