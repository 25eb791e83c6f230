//! Rules of CRDs: what is wrong with them, and what they say of objects.
use serde_json::{Value, json};

use super::check_definition;
use crate::{RuleViolations, Schema};

const ROOT: &str = "spec.validation.openAPIV3Schema";

fn schema(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

fn defects(spec: &Value) -> Vec<String> {
    check_definition(&schema(spec), ROOT).iter().map(ToString::to_string).collect()
}

fn violations(spec: &Value, object: &Value, live: Option<&Value>) -> RuleViolations {
    let schema = Schema::from_crd(&schema(spec), false).expect("the schema is structural");
    let object = json!({"spec": object});
    let live = live.map(|live| json!({"spec": live}));
    schema.evaluate_rules(&object, live.as_ref())
}

fn errors(spec: &Value, object: &Value, live: Option<&Value>) -> Vec<String> {
    violations(spec, object, live).errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_say_what_is_wrong_with_an_object() {
    let table: [(Value, Value, Option<Value>, &[&str]); 16] = [
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.a > 1"}]}),
            json!({"a": 1}),
            None,
            &["spec: Invalid value: failed rule: self.a > 1"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.a > 1", "message": "too small"}]}),
            json!({"a": 2}),
            None,
            &[],
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [
                {"rule": "self == 'a'", "messageExpression": "'not ' + self"}]}),
            json!("b"),
            None,
            &["spec: Invalid value: \"b\": not b"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "x-kubernetes-validations": [{"rule": "has(self.a)", "message": "needed",
                    "reason": "FieldValueRequired", "fieldPath": ".a"}]}),
            json!({}),
            None,
            &["spec.a: Required value: needed"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "x-kubernetes-validations": [{"rule": "self.a == oldSelf.a", "message": "fixed"}]}),
            json!({"a": "x"}),
            None,
            &[],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "x-kubernetes-validations": [{"rule": "self.a == oldSelf.a", "message": "fixed"}]}),
            json!({"a": "x"}),
            Some(json!({"a": "y"})),
            &["spec: Invalid value: fixed"],
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [
                {"rule": "oldSelf.hasValue() || self == 'a'", "optionalOldSelf": true}]}),
            json!("b"),
            None,
            &["spec: Invalid value: \"b\": failed rule: oldSelf.hasValue() || self == 'a'"],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {
                    "k": {"type": "string"}, "v": {"type": "integer"}},
                    "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}]}}),
            json!([{"k": "new", "v": 0}, {"k": "b", "v": 1}]),
            Some(json!([{"k": "b", "v": 2}])),
            &["spec[1]: Invalid value: failed rule: self.v >= oldSelf.v"],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string",
                "x-kubernetes-validations": [{"rule": "self != 'a'"}]}}),
            json!(["a"]),
            Some(json!(["a"])),
            &[],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string",
                "x-kubernetes-validations": [{"rule": "self != 'a'"}]}}),
            json!(["a", "b"]),
            Some(json!(["a"])),
            &["spec[0]: Invalid value: \"a\": failed rule: self != 'a'"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "self > 0"}]}}),
            json!({"x": 0}),
            None,
            &["spec[x]: Invalid value: 0: failed rule: self > 0"],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [
                {"rule": "type(self) == int ? self < 5 : self.endsWith('%')"}]}),
            json!("50"),
            None,
            &["spec: Invalid value: \"50\": failed rule: type(self) == int ? self < 5 : \
               self.endsWith('%')"],
        ),
        (
            json!({"type": "object", "properties": {
                "snake_case": {"type": "string"}, "namespace": {"type": "string"},
                "with-dash": {"type": "string"}},
                "x-kubernetes-validations": [{"rule":
                    "self.snake_case + self.__namespace__ + self.with__dash__dash == 'abc'"}]}),
            json!({"snake_case": "a", "namespace": "b", "with-dash": "c"}),
            None,
            &[],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array",
                "items": {"type": "integer"}}},
                "x-kubernetes-validations": [{"rule": "self.a[3] > 0"}]}),
            json!({"a": [1]}),
            None,
            &["spec: Invalid value: \"object\": index out of bounds: 3 evaluating rule: \
               self.a[3] > 0"],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
                "x-kubernetes-validations": [{"rule": "self == ['b', 'a']"}]}),
            json!(["a", "b"]),
            None,
            &[],
        ),
        (
            json!({"type": "object", "properties": {"at": {"type": "string",
                "format": "date-time"}, "for": {"type": "string", "format": "duration"}},
                "x-kubernetes-validations": [{"rule":
                    "self.at + self.__for__ == timestamp('2020-01-01T01:00:00Z')"}]}),
            json!({"at": "2020-01-01T00:00:00Z", "for": "1h"}),
            None,
            &[],
        ),
    ];
    for (spec, object, live, expected) in table {
        assert_eq!(errors(&spec, &object, live.as_ref()), expected, "{spec} on {object}");
    }
}

#[test]
fn what_a_write_leaves_alone_is_only_warned_about() {
    let spec = json!({"type": "object", "properties": {
        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
        "b": {"type": "integer"}}});
    let live = json!({"a": "bad", "b": 1});
    let unchanged = violations(&spec, &json!({"a": "bad", "b": 2}), Some(&live));
    assert_eq!(unchanged.errors, []);
    let expected = "spec.a: Invalid value: \"bad\": failed rule: self != 'bad'";
    assert_eq!(unchanged.warnings, [expected]);
    assert_eq!(errors(&spec, &json!({"a": "bad", "b": 2}), None), [expected]);
}

#[test]
fn expensive_objects_use_the_budget_up() {
    let spec = json!({"type": "array", "maxItems": 1000, "items": {"type": "string"},
        "x-kubernetes-validations": [
            {"rule": "self.all(x, self.all(y, self.all(z, x + y + z != '')))"}]});
    let items: Vec<String> = (0..300).map(|index| format!("item-{index}")).collect();
    let found = errors(&spec, &json!(items), None);
    assert_eq!(
        found,
        ["spec: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no \
          further validation rules will be run due to call cost exceeds limit for rule: \
          self.all(x, self.all(y, self.all(z, x + y + z != '')))"]
    );
}

#[test]
fn definitions_are_refused_in_the_words_of_apiextensions() {
    let rules = |rules: Value| {
        json!({"type": "object", "properties": {"a": {"type": "string"}},
            "x-kubernetes-validations": rules})
    };
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]";
    let shown = |rule: &str| {
        format!(
            "{{\"Rule\":\"{rule}\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
             \"FieldPath\":\"\",\"OptionalOldSelf\":null}}"
        )
    };
    let table = [
        (rules(json!([{"rule": "self.a == 'x'"}])), vec![]),
        (
            rules(json!([{"rule": "self.b == 'x'"}])),
            vec![format!(
                "{at}.rule: Invalid value: {}: compilation failed: ERROR: <input>:1:5: undefined \
                 field 'b'\n | self.b == 'x'\n | ....^",
                shown("self.b == 'x'")
            )],
        ),
        (
            rules(json!([{"rule": "self.a"}])),
            vec![format!(
                "{at}.rule: Invalid value: {}: cel expression must evaluate to a bool",
                shown("self.a")
            )],
        ),
        (
            rules(json!([{"rule": " "}])),
            vec![format!("{at}.rule: Required value: rule is not specified")],
        ),
        (
            rules(json!([{"rule": "true", "fieldPath": ".c"}])),
            vec![format!("{at}.fieldPath: Invalid value: \".c\": must be a valid path")],
        ),
        (
            rules(json!([{"rule": "true", "reason": "Nope"}])),
            vec![format!(
                "{at}.reason: Unsupported value: \"Nope\": supported values: \
                 \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \
                 \"FieldValueRequired\""
            )],
        ),
        (
            rules(json!([{"rule": "true", "optionalOldSelf": true}])),
            vec![format!(
                "{at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used \
                 in rule"
            )],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [
                {"rule": "self == oldSelf"}]}, "maxItems": 5}),
            vec![
                "spec.validation.openAPIV3Schema.properties[spec].items.\
                 x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf \
                 cannot be used on the uncorrelatable portion of the schema within \
                 spec.validation.openAPIV3Schema.properties[spec]"
                    .to_owned(),
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [
                {"rule": "self.all(x, self.all(y, x == y))"}]}),
            vec![
                format!(
                    "{at}.rule: Forbidden: estimated rule cost exceeds budget by factor of more \
                     than 100x (try simplifying the rule, or adding maxItems, maxProperties, and \
                     maxLength where arrays, maps, and strings are declared)"
                ),
                format!(
                    "{at}.rule: Forbidden: contributed to estimated rule cost total exceeding cost \
                     limit for entire OpenAPIv3 schema"
                ),
                "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated \
                 rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more \
                 than 100x (try simplifying the rule, or adding maxItems, maxProperties, and \
                 maxLength where arrays, maps, and strings are declared)"
                    .to_owned(),
            ],
        ),
    ];
    for (spec, expected) in table {
        assert_eq!(defects(&spec), expected, "{spec}");
    }
}
