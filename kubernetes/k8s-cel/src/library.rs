//! What functions do: those of the language, of cel-go's extensions and of Kubernetes.
//!
//! The types of the values decide which signature is meant, as when cel-go dispatches dynamically;
//! a checked expression leads to the same function.
//!
//! Upstream: github.com/google/cel-go/interpreter/dispatcher.go: Dispatcher
mod arithmetic;
pub(crate) mod authorizer;
pub(crate) mod collection;
mod conversion;
pub(crate) mod format;
pub(crate) mod named_format;
mod network;
mod optional;
pub(crate) mod pattern;
mod quantity;
pub(crate) mod strings;
pub(crate) mod time;
mod url;
mod version;

use regex::Regex;

pub(crate) use crate::value::EvaluationResult;
use crate::{EvaluationError, Value};

/// A family of functions: nothing if it has none that fits the values.
type Family = fn(&str, &[Value]) -> Option<EvaluationResult>;

/// Calls a function; `pattern` is the compiled pattern where it is constant.
pub(crate) fn call(
    function: &str,
    arguments: &[Value],
    pattern: Option<&Regex>,
) -> EvaluationResult {
    let families: [Family; 13] = [
        arithmetic::call,
        conversion::call,
        strings::call,
        format::call,
        collection::call,
        optional::call,
        time::call,
        network::call,
        quantity::call,
        version::call,
        url::call,
        named_format::call,
        authorizer::call,
    ];
    if let Some(outcome) = pattern::call(function, arguments, pattern) {
        return outcome;
    }
    let found = families.iter().find_map(|family| family(function, arguments));
    found.unwrap_or_else(|| Err(no_overload(function, arguments)))
}

/// The error of a call that no signature fits.
pub(crate) fn no_overload(function: &str, arguments: &[Value]) -> EvaluationError {
    // Operators are one function each, which knows of no signatures.
    if function.contains('_') && !function.contains(char::is_alphabetic) {
        return EvaluationError::no_such_overload();
    }
    // So are these, which tell no types.
    if matches!(function, "size" | "type" | "@in") {
        return EvaluationError::new(format!("no such overload: {function}"));
    }
    let types: Vec<String> = arguments.iter().map(Value::type_name).collect();
    EvaluationError::new(format!("no such overload: {function}({})", types.join(", ")))
}

/// Shorthand for an error with a message.
pub(crate) fn failed(message: impl Into<String>) -> Option<EvaluationResult> {
    Some(Err(EvaluationError::new(message)))
}
