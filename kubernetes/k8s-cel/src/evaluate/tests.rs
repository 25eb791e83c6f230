//! Values, errors and costs of expressions, compared with what Kubernetes' environment says.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::value::{MapKey, MapValue};
use crate::{Bindings, Budget, Environment, EvaluationError, Type, UnknownSizes, Value};

/// What was recorded; the header describes the format.
const RECORDED: &str = include_str!("../../data/evaluations.jsonl");

fn variables() -> (Environment, Bindings) {
    let ints = |items: [i64; 3]| Value::list(items.into_iter().map(Value::Int).collect());
    let texts = |items: &[&str]| Value::list(items.iter().map(|item| Value::from(*item)).collect());
    let object = json!({
        "name": "n", "num": 1, "flt": 1.5, "flag": true, "nil": null, "list": [1, 2],
        "nested": {"deep": {"value": 4}},
        "objs": [{"k": "a", "v": 1}, {"k": "b"}, {"k": "c", "v": 2}],
    });
    let at = 1_706_933_106_000_000_000;
    let table = [
        ("i", Type::Int, Value::Int(7)),
        ("u", Type::Uint, Value::Uint(3)),
        ("d", Type::Double, Value::Double(1.5)),
        ("s", Type::String, Value::from("h\u{e9}llo")),
        ("b", Type::Bool, Value::Bool(true)),
        ("by", Type::Bytes, Value::Bytes(b"ab".as_slice().into())),
        ("li", Type::list(Type::Int), ints([3, 1, 2])),
        ("ls", Type::list(Type::String), texts(&["b", "a", "cc"])),
        (
            "m",
            Type::map(Type::String, Type::Int),
            Value::map([("a".to_owned(), Value::Int(1)), ("b".to_owned(), Value::Int(2))]),
        ),
        (
            "mm",
            Type::map(Type::String, Type::list(Type::String)),
            Value::map([("x".to_owned(), texts(&["p", "q"]))]),
        ),
        ("o", Type::Dyn, Value::from_json(&object)),
        ("n", Type::Dyn, Value::Null),
        ("t", Type::Timestamp, Value::Timestamp(at)),
        ("dur", Type::Duration, Value::Duration(90_000_000_000)),
    ];
    let mut environment = Environment::for_new_expressions();
    let mut bindings = Bindings::new();
    for (name, of, value) in table {
        environment = environment.with_variable(name, of);
        bindings.set(name, value);
    }
    (environment, bindings)
}

/// A value as the recording program writes it.
fn render(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => format!("{value}u"),
        Value::Double(value) if value.is_finite() => {
            let text = format!("{value:.15e}");
            let (digits, exponent) = text.split_once('e').expect("it is scientific");
            let exponent: i32 = exponent.parse().expect("it is a number");
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("d{digits}e{sign}{:02}", exponent.abs())
        }
        Value::Double(value) if value.is_nan() => "dNaN".to_owned(),
        Value::Double(value) => if *value > 0.0 { "d+Inf" } else { "d-Inf" }.to_owned(),
        Value::String(text) => Json::from(&**text).to_string(),
        Value::Bytes(bytes) => {
            format!("b{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Value::Timestamp(at) => format!("t{at}"),
        Value::Duration(span) => format!("D{span}"),
        Value::Optional(None) => "none".to_owned(),
        Value::Optional(Some(value)) => format!("optional({})", render(value)),
        Value::Type(of) => format!("type({})", of.runtime_name()),
        Value::Map(map) => {
            let mut entries: Vec<String> = map
                .entries
                .iter()
                .map(|(key, value)| format!("{}: {}", render(&key.value()), render(value)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Value::List(list) => {
            let items: Vec<String> = list.items.iter().map(render).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Opaque(_) | Value::Host(_) => format!("<{}>", value.type_name()),
    }
}

/// What we say of an expression, in the form of the recording.
fn outcome(environment: &Environment, bindings: &Bindings, expression: &str) -> Json {
    let mut out = json!({"expression": expression});
    let program = match environment.compile(expression) {
        Ok(program) => program,
        Err(errors) if errors.program.is_some() => {
            out["program"] = json!(errors.to_string());
            return out;
        }
        Err(errors) => {
            out["compile"] = json!(errors.to_string());
            return out;
        }
    };
    out["type"] = json!(program.result_type().to_string());
    let estimate = program.estimate_cost(&UnknownSizes);
    out["least"] = json!(estimate.min.to_string());
    out["most"] = json!(estimate.max.to_string());
    let mut budget = Budget::default();
    match program.evaluate(bindings, &mut budget) {
        Ok(value) => out["value"] = json!(render(&value)),
        Err(error) => out["error"] = json!(error.to_string()),
    }
    out["cost"] = json!(budget.spent());
    out
}

#[test]
fn expressions_have_the_values_the_errors_and_the_costs_of_kubernetes() {
    let (environment, bindings) = variables();
    let mut differences = Vec::new();
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let mut expected: Json = serde_json::from_str(line).expect("a line is JSON");
        let expression = expected["expression"].as_str().expect("it is text").to_owned();
        let actual = outcome(&environment, &bindings, &expression);
        // The estimate of what cannot be evaluated is not recorded by us.
        if expected.get("program").is_some() {
            for key in ["type", "least", "most"] {
                expected.as_object_mut().expect("it is an object").remove(key);
            }
        }
        if actual != expected {
            differences.push(format!("expected {expected}\n  actual {actual}"));
        }
    }
    let count = differences.len();
    assert!(differences.is_empty(), "{count} differ:\n{}", differences.join("\n"));
}

#[test]
fn maps_with_keys_of_any_type_are_found_by_equal_numbers() {
    let entries = BTreeMap::from([(MapKey::Uint(1), Value::from("one"))]);
    let map = Value::Map(Arc::new(MapValue { entries, object: None }));
    let environment = Environment::for_new_expressions().with_variable("m", Type::Dyn);
    let program = environment.compile("m[1] == 'one' && m[1.0] == 'one'").expect("it compiles");
    let bindings = Bindings::new().with("m", map);
    let value = program.evaluate(&bindings, &mut Budget::default());
    assert_eq!(value, Ok(Value::Bool(true)));
}

#[test]
fn the_deepest_expressions_are_compiled_and_evaluated_within_the_stack() {
    let depth = 96;
    let texts = [
        "[".repeat(depth) + &"]".repeat(depth),
        "1".to_owned() + &" + 1".repeat(depth),
        "{1: ".repeat(depth) + "1" + &"}".repeat(depth),
        "[".to_owned() + &"size([".repeat(depth / 2) + &"])".repeat(depth / 2) + "]",
        "true ? 1 : ".repeat(depth) + "2",
        "[1].map(x, ".repeat(depth / 6) + "x" + &")".repeat(depth / 6),
        "optional.of(1)".to_owned() + &".optMap(x, x)".repeat(8),
    ];
    for text in texts {
        let program = Environment::for_new_expressions().compile(&text);
        let program = program.unwrap_or_else(|errors| panic!("{text}: {errors}"));
        let value = program.evaluate(&Bindings::new(), &mut Budget::default());
        assert!(value.is_ok(), "{text}: {value:?}");
        program.estimate_cost(&UnknownSizes);
    }
}

#[test]
fn short_expressions_with_large_values_reach_the_limit() {
    let times = |count: usize, call: &str| call.repeat(count);
    let doubled = |count| format!("[['a', 'b']]{}[0]", times(count, ".map(x, x + x)"));
    let nested = |count| format!("[1]{}", times(count, ".map(x, [x, x])"));
    let text = |count| format!("['ab']{}[0]", times(count, ".map(x, x + x)"));
    let cases = [
        (format!("size({})", doubled(8)), true),
        (format!("size({})", doubled(26)), false),
        (format!("size([{}].flatten())", vec![doubled(16); 16].join(", ")), false),
        (format!("{0} == {0}", nested(8)), true),
        (format!("{0} == {0}", nested(30)), false),
        (format!("{0} in [{0}]", nested(30)), false),
        (format!("'%s'.format([{}])", nested(30)), false),
        (format!("size({}.replace('b', {}))", text(12), text(16)), false),
        (format!("size(['a', 'b', 'c'].map(x, {0}).join({0}))", text(12)), true),
        (format!("size(lists.range(100).map(x, {0}).join({0}))", text(20)), false),
        (format!("sets.contains({0}, {0})", doubled(12)), false),
    ];
    for (text, is_evaluated) in cases {
        let program = Environment::for_new_expressions().compile(&text);
        let program = program.unwrap_or_else(|errors| panic!("{text}: {errors}"));
        let value = program.evaluate(&Bindings::new(), &mut Budget::default());
        match is_evaluated {
            true => assert!(value.is_ok(), "{text}: {value:?}"),
            false => assert_eq!(value, Err(EvaluationError::CostLimit), "{text}"),
        }
    }
}
