//! Functions that match regular expressions.
//!
//! Upstream: github.com/google/cel-go/common/types/string.go: Match
//! Upstream: k8s.io/apiserver/pkg/cel/library/regex.go: Regex
use std::sync::{Arc, OnceLock};

use regex::Regex;

use super::{EvaluationResult, failed};
use crate::Value;
use crate::go::regexp;

pub(super) fn call(
    function: &str,
    arguments: &[Value],
    compiled: Option<&Regex>,
) -> Option<EvaluationResult> {
    let [Value::String(text), Value::String(source), rest @ ..] = arguments else { return None };
    if !matches!(function, "matches" | "find" | "findAll") {
        return None;
    }
    let own;
    let pattern = match compiled {
        Some(pattern) => pattern,
        None => match regexp::compile(source) {
            Ok(pattern) => {
                own = pattern;
                &own
            }
            Err(message) if function == "matches" => return failed(message),
            Err(message) => return failed(format!("Illegal regex: {message}")),
        },
    };
    match (function, rest) {
        ("matches", []) => Some(Ok(Value::Bool(pattern.is_match(text)))),
        ("find", []) => {
            Some(Ok(Value::from(pattern.find(text).map_or("", |found| found.as_str()))))
        }
        ("findAll", [] | [Value::Int(_)]) => {
            let limit = match rest {
                [Value::Int(count)] => usize::try_from(*count).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let found = pattern.find_iter(text).take(limit);
            Some(Ok(Value::list(found.map(|found| Value::from(found.as_str())).collect())))
        }
        _ => None,
    }
}

/// A constant pattern, compiled when it is first used: most rules are only ever checked.
#[derive(Clone, Debug)]
pub(crate) struct ConstantPattern {
    text: Arc<str>,
    compiled: OnceLock<Option<Regex>>,
}

impl ConstantPattern {
    /// A pattern that compiles.
    ///
    /// # Errors
    /// As [`regexp::compile`].
    pub(crate) fn new(text: &Arc<str>) -> Result<Self, String> {
        regexp::check(text).map(|()| Self { text: Arc::clone(text), compiled: OnceLock::new() })
    }

    /// The compiled pattern.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| regexp::compile(&self.text).ok()).as_ref()
    }
}
