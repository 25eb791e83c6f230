//! ValidatingAdmissionPolicies: expressions that may deny a write.
use std::sync::Arc;

use serde_json::{Value, json};

use super::compiled::{Policy, Validations};
use super::decision::{self, AnnotationDecision, PolicyVerdict, ValidationDecision};
use super::invocation::{PolicyInvocation, invocations};
use super::{VALIDATING, bindings, name_of};
use crate::admission::AdmissionChain;
use crate::admission::authorizer::AuthorizationCache;
use crate::admission::expressions::{Scope, shown};
use crate::admission::matching::shown_name;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::WriteAttributes;
use crate::semantics::context::RequestContext;
use crate::status::{ApiError, Result, StatusCause};

/// Longest value of an audit annotation.
const ANNOTATION_LEN_MAX: usize = 10 * 1024;

/// Most failed validations that an audit annotation lists.
const FAILURES_MAX: usize = 50;

/// A denial by a policy; without a binding if the policy itself is misconfigured.
struct Denial {
    policy: String,
    binding: Option<String>,
    message: String,
    reason: String,
}

/// The outcome of all policies for a write.
#[derive(Default)]
struct PolicyOutcome {
    denied: Vec<Denial>,
    failures: Vec<Value>,
    /// Audit annotations: each key with its distinct values.
    annotations: Vec<(String, Vec<String>)>,
}

/// The evaluation of policies for a write.
struct PolicyEvaluation<'a> {
    chain: &'a AdmissionChain,
    cluster: &'a Cluster,
    attributes: &'a WriteAttributes<'a>,
    object: Option<&'a Value>,
}

/// Evaluates all policies with a binding that matches a write.
///
/// # Errors
/// When one denies it, or a conversion webhook has to be called first.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go: Dispatch
pub(in crate::admission) fn validate(
    chain: &AdmissionChain,
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
) -> Result<()> {
    let evaluation = PolicyEvaluation { chain, cluster, attributes, object };
    let mut outcome = PolicyOutcome::default();
    let found = invocations(&chain.validating_policies, &VALIDATING, cluster, attributes, object);
    for invocation in found {
        match invocation {
            Ok(invocation) => {
                let verdict = evaluation.decide(context, &invocation)?;
                outcome.add(context, &invocation, verdict);
            }
            Err(wrong) if wrong.policy.ignores_failures() => {}
            Err(wrong) => outcome.denied.push(Denial {
                policy: wrong.policy.name.clone(),
                binding: wrong.binding,
                message: wrong.message,
                reason: String::new(),
            }),
        }
    }
    for (key, values) in outcome.annotations {
        context.annotate(key, values.join(", "));
    }
    if !outcome.failures.is_empty() {
        outcome.failures.truncate(FAILURES_MAX);
        let listed = Value::Array(outcome.failures).to_string();
        context
            .annotate("validation.policy.admission.k8s.io/validation_failure".to_owned(), listed);
    }
    match outcome.denied.first() {
        Some(denied) => Err(refused(attributes, object, denied)),
        None => Ok(()),
    }
}

impl PolicyEvaluation<'_> {
    /// Evaluates a policy with one parameter object.
    fn decide(
        &self,
        context: &mut RequestContext,
        invocation: &PolicyInvocation<Validations>,
    ) -> Result<PolicyVerdict> {
        let Self { chain, cluster, attributes, object } = *self;
        let PolicyInvocation { policy, resource, param, .. } = invocation;
        let ledger = Arc::<AuthorizationCache>::default();
        let bindings = bindings(cluster, context, attributes, object, resource, &ledger)?
            .with("params", shown(param.as_ref()));
        loop {
            let scope = Scope::new(bindings.clone(), &policy.variables);
            let verdict = decision::decide(policy, &scope);
            if !ledger.look_up(&chain.authorizer, cluster, &context.user) {
                return Ok(verdict);
            }
        }
    }
}

impl PolicyOutcome {
    fn add(
        &mut self,
        context: &mut RequestContext,
        invocation: &PolicyInvocation<Validations>,
        verdict: PolicyVerdict,
    ) {
        let PolicyInvocation { policy, binding, .. } = invocation;
        let policy: &Policy<Validations> = policy;
        let name = name_of(binding);
        let actions = &binding["spec"]["validationActions"];
        for (index, decision) in verdict.decisions.into_iter().enumerate() {
            let ValidationDecision::Deny { message, reason } = decision else {
                continue;
            };
            for action in actions.as_array().into_iter().flatten().filter_map(Value::as_str) {
                match action {
                    "Deny" => self.denied.push(Denial {
                        policy: policy.name.clone(),
                        binding: Some(name.to_owned()),
                        message: message.clone(),
                        reason: reason.clone(),
                    }),
                    "Audit" => self.failures.push(json!({
                        "message": message,
                        "policy": policy.name,
                        "binding": name,
                        "expressionIndex": index,
                        "validationActions": actions,
                    })),
                    "Warn" => context.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{name}': {message}",
                        policy.name
                    )),
                    _ => {}
                }
            }
        }
        for annotation in verdict.annotations {
            match annotation {
                AnnotationDecision::Publish { key, value } => {
                    self.annotate(format!("{}/{key}", policy.name), &value);
                }
                AnnotationDecision::Deny(message) => self.denied.push(Denial {
                    policy: policy.name.clone(),
                    binding: Some(name.to_owned()),
                    message,
                    reason: String::new(),
                }),
            }
        }
    }

    fn annotate(&mut self, key: String, value: &str) {
        let value: String = value.chars().take(ANNOTATION_LEN_MAX).collect();
        match self.annotations.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.annotations.push((key, vec![value])),
        }
    }
}

/// The error of a write that a policy denied.
fn refused(attributes: &WriteAttributes<'_>, object: Option<&Value>, denied: &Denial) -> ApiError {
    let by = match &denied.binding {
        Some(binding) => format!(
            "ValidatingAdmissionPolicy '{}' with binding '{binding}' denied request: {}",
            denied.policy, denied.message
        ),
        None => format!(
            "ValidatingAdmissionPolicy '{}' denied request: {}",
            denied.policy, denied.message
        ),
    };
    let name = shown_name(attributes, object);
    let reason = if denied.reason.is_empty() { "Invalid" } else { &denied.reason };
    let code = match reason {
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    let error = ApiError::forbidden(attributes.resource.subject(), name, &by)
        .with_causes([StatusCause { message: by, ..StatusCause::default() }]);
    error.with_reason(reason, code)
}
