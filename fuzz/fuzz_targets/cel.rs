//! Whatever the expression and the values: it compiles or not, and evaluating it ends within its
//! budget, with the same result and at the same cost each time.
//!
//! The input is an expression, an empty line, and the JSON of `self`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use k8s_cel::{
    Bindings, Budget, EXPRESSION_COST_LIMIT, Environment, Program, Type, UnknownSizes, Value,
};

/// One step costs no more than what is left, but one that costs too much is counted in full.
fn evaluate(program: &Program, value: &serde_json::Value) {
    let bindings = Bindings::new()
        .with("self", Value::from_json(value))
        .with("oldSelf", Value::from_json(value))
        .with("count", Value::Int(3))
        .with("names", Value::from_json(&serde_json::json!(["a", "b", "a"])))
        .with("labels", Value::from_json(&serde_json::json!({"a": "b", "c": "1"})));
    let run = || {
        let mut budget = Budget::new(EXPRESSION_COST_LIMIT);
        let result = program.evaluate(&bindings, &mut budget);
        assert!(result.is_err() || budget.spent() <= EXPRESSION_COST_LIMIT);
        (format!("{result:?}"), budget.spent())
    };
    assert_eq!(run(), run());
}

fuzz_target!(|text: &str| {
    let (expression, json) = text.split_once("\n\n").unwrap_or((text, "null"));
    let value = serde_json::from_str(json).unwrap_or_default();
    for environment in [Environment::for_new_expressions(), Environment::for_stored_expressions()] {
        let environment = environment
            .with_variable("self", Type::Dyn)
            .with_variable("oldSelf", Type::Dyn)
            .with_variable("count", Type::Int)
            .with_variable("names", Type::list(Type::String))
            .with_variable("labels", Type::map(Type::String, Type::String));
        match environment.compile(expression) {
            Ok(program) => {
                let _ = program.estimate_cost(&UnknownSizes);
                evaluate(&program, &value);
            }
            Err(errors) => assert!(!errors.to_string().is_empty()),
        }
    }
});
