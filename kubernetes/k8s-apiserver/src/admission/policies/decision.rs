//! The evaluation of one policy for one write with one parameter object.
use k8s_cel::{Budget, Value as CelValue};

use super::compiled::{AuditAnnotation, Policy, Validation, Validations};
use crate::admission::expressions::{Failure, Scope};

/// Longest message that an expression may return.
const MESSAGE_LEN_MAX: usize = 5 * 1024;

/// The result of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValidationDecision {
    Admit,
    Deny { message: String, reason: String },
}

/// The result of an audit annotation that has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnnotationDecision {
    Publish {
        key: String,
        value: String,
    },
    /// It failed to evaluate, and the failure policy is `Fail`.
    Deny(String),
}

/// The results of all validations and audit annotations of a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyVerdict {
    pub(super) decisions: Vec<ValidationDecision>,
    pub(super) annotations: Vec<AnnotationDecision>,
}

impl Policy<Validations> {
    /// The result of an expression that failed to evaluate.
    fn failed(&self, message: String) -> ValidationDecision {
        if self.ignores_failures() {
            return ValidationDecision::Admit;
        }
        ValidationDecision::Deny { message, reason: String::new() }
    }
}

/// Evaluates a policy.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go: Validate
pub(super) fn decide(policy: &Policy<Validations>, scope: &Scope) -> PolicyVerdict {
    let only = |decision| PolicyVerdict { decisions: vec![decision], annotations: Vec::new() };
    match policy.conditions.hold(scope) {
        Ok(true) => {}
        Ok(false) => return PolicyVerdict::default(),
        Err(why) => return only(policy.failed(why)),
    }
    let mut budget = Budget::default();
    let mut values = Vec::new();
    for validation in &policy.body.validations {
        match scope.evaluate(&validation.compiled, &validation.expression, &mut budget) {
            Err(Failure::Budget(why)) => return only(policy.failed(why)),
            value => values.push(value),
        }
    }
    let mut decisions = Vec::new();
    for (validation, value) in policy.body.validations.iter().zip(values) {
        decisions.push(match value {
            Ok(CelValue::Bool(true)) => ValidationDecision::Admit,
            Ok(_) => ValidationDecision::Deny {
                message: message(validation, scope, &mut budget),
                reason: validation.reason.clone(),
            },
            Err(failure) => policy.failed(failure.message()),
        });
    }
    let annotations = policy
        .body
        .annotations
        .iter()
        .filter_map(|annotation| annotate(policy, scope, annotation))
        .collect();
    PolicyVerdict { decisions, annotations }
}

/// The message of a failed validation: of its message expression, its message, or the expression
/// itself.
fn message(validation: &Validation, scope: &Scope, budget: &mut Budget) -> String {
    let computed =
        validation.message_expression.as_ref().and_then(|(source, compiled)| {
            match scope.evaluate(compiled, source, budget) {
                Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
                Ok(_) | Err(_) => None,
            }
        });
    let written = validation.message.trim().to_owned();
    computed
        .filter(|text| text.len() <= MESSAGE_LEN_MAX && !text.contains('\n'))
        .into_iter()
        .chain([written])
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| format!("failed expression: {}", validation.expression.trim()))
}

/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go: publishValidationFailureAnnotations
fn annotate(
    policy: &Policy<Validations>,
    scope: &Scope,
    annotation: &AuditAnnotation,
) -> Option<AnnotationDecision> {
    let mut budget = Budget::default();
    let failed =
        |why: String| (!policy.ignores_failures()).then_some(AnnotationDecision::Deny(why));
    match scope.evaluate(&annotation.compiled, &annotation.expression, &mut budget) {
        Ok(CelValue::String(text)) if !text.trim().is_empty() => {
            Some(AnnotationDecision::Publish {
                key: annotation.key.clone(),
                value: text.trim().to_owned(),
            })
        }
        Ok(CelValue::String(_) | CelValue::Null) => None,
        Ok(other) => Some(AnnotationDecision::Deny(format!(
            "valueExpression '{}' resulted in unsupported return type: {}. Return type must be \
             either string or null.",
            annotation.expression,
            other.type_of()
        ))),
        Err(failure) => failed(failure.message()),
    }
}
