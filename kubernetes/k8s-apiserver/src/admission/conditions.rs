//! `matchConditions` of webhooks and policies.
use k8s_cel::{Budget, Environment, Type, Value as CelValue};
use serde_json::Value;

use super::expressions::{Compiled, Failure, Scope, compile};

/// The cost limit of the conditions of one webhook or policy.
const BUDGET: u64 = 2_500_000;

/// Compiled match conditions.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    compiled: Vec<(String, Compiled)>,
    ignores_errors: bool,
}

impl Conditions {
    /// Compiles the `matchConditions` of a document with a `failurePolicy`.
    pub(super) fn read(environment: &Environment, source: &Value) -> Self {
        let compiled = source["matchConditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|condition| {
                let expression = condition["expression"].as_str().unwrap_or_default();
                (expression.to_owned(), compile(environment, expression, &[Type::Bool]))
            })
            .collect();
        Self { compiled, ignores_errors: source["failurePolicy"] == "Ignore" }
    }

    /// Whether all conditions hold.
    ///
    /// # Errors
    /// When a condition fails to evaluate, none is false, and the failure policy is not `Ignore`.
    ///
    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go: Match
    pub(super) fn hold(&self, scope: &Scope) -> Result<bool, String> {
        let mut budget = Budget::new(BUDGET);
        let mut errors = Vec::new();
        for (source, compiled) in &self.compiled {
            match scope.evaluate(compiled, source, &mut budget) {
                Ok(CelValue::Bool(false)) => return Ok(false),
                Ok(_) => {}
                Err(Failure::Expression(why)) => errors.push(why),
                Err(Failure::Budget(why)) => {
                    errors = vec![why];
                    break;
                }
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            _ if self.ignores_errors => Ok(false),
            [one] => Err(one.clone()),
            _ => Err(format!("[{}]", errors.join(", "))),
        }
    }
}
