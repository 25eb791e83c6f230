//! MutatingAdmissionPolicies: expressions that may change a write.
use std::sync::Arc;

use k8s_cel::Budget;
use k8s_schema::Schema;
use serde_json::Value;

use super::compiled::{Mutation, Mutations, PatchType, Policy};
use super::invocation::{PolicyInvocation, invocations};
use super::mutation::{self, RequestLists};
use super::{MUTATING, name_of, versioned_bindings};
use crate::admission::AdmissionChain;
use crate::admission::authorizer::AuthorizationCache;
use crate::admission::changed::{check_kind, own_schema, redefault};
use crate::admission::expressions::{Scope, shown};
use crate::admission::matching::shown_name;
use crate::admission::reinvocation::Reinvocation;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{Operation, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::convert;
use crate::status::{ApiError, Result, StatusCause};

/// Why a policy could not be applied, unless failures are ignored.
struct PolicyError {
    policy: String,
    /// The name of the binding; none if the policy itself is misconfigured.
    binding: Option<String>,
    message: String,
    /// The reason of the response; none for the one of denials.
    reason: Option<&'static str>,
}

impl PolicyError {
    fn text(&self) -> String {
        let Self { policy, binding, message, .. } = self;
        match binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{binding}' denied request: {message}")
            }
            None => format!("policy {policy:?} denied request: {message}"),
        }
    }
}

/// The evaluation of the policies for a write.
struct PolicyMutation<'a> {
    chain: &'a AdmissionChain,
    cluster: &'a Cluster,
    attributes: &'a WriteAttributes<'a>,
}

/// Applies the mutations of all policies with a binding that matches a write.
///
/// # Errors
/// When one fails and its failure policy is `Fail`, or a conversion webhook has to be called first.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go: dispatchInvocations
pub(in crate::admission) fn mutate(
    chain: &AdmissionChain,
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: &mut Value,
    reinvocation: &mut Reinvocation,
) -> Result<()> {
    // Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/plugin.go: NewPlugin
    if attributes.operation == Operation::Delete || object.is_null() {
        return Ok(());
    }
    let found =
        invocations(&chain.mutating_policies, &MUTATING, cluster, attributes, Some(&*object));
    let mut errors = Vec::new();
    let mut invoked = Vec::new();
    for invocation in found {
        match invocation {
            Ok(invocation) => invoked.push(invocation),
            Err(wrong) if wrong.policy.ignores_failures() => {}
            Err(wrong) => errors.push(PolicyError {
                policy: wrong.policy.name.clone(),
                binding: wrong.binding,
                message: wrong.message,
                reason: None,
            }),
        }
    }
    let before = object.clone();
    let evaluation = PolicyMutation { chain, cluster, attributes };
    let mut has_run = false;
    for invocation in &invoked {
        let failures =
            evaluation.invoke(context, invocation, object, reinvocation, &mut has_run)?;
        if !invocation.policy.ignores_failures() {
            errors.extend(failures.into_iter().map(|message| PolicyError {
                policy: invocation.policy.name.clone(),
                binding: Some(name_of(&invocation.binding).to_owned()),
                message,
                reason: Some("Invalid"),
            }));
        }
    }
    // One that made no difference counts too.
    if has_run {
        reinvocation.changed();
    }
    if errors.is_empty() { Ok(()) } else { Err(refused(attributes, &before, &errors)) }
}

impl PolicyMutation<'_> {
    /// Applies the mutations of one policy; returns why some failed. `has_run` is set if one has not.
    fn invoke(
        &self,
        context: &mut RequestContext,
        invocation: &PolicyInvocation<Mutations>,
        object: &mut Value,
        reinvocation: &mut Reinvocation,
        has_run: &mut bool,
    ) -> Result<Vec<String>> {
        let PolicyInvocation { policy, resource, .. } = invocation;
        let from = self.attributes.resource;
        let before = convert::between(context, from, resource, object.clone())?;
        match self.evaluate(context, invocation, &before, |scope| policy.conditions.hold(scope))? {
            Ok(true) => {}
            Ok(false) => return Ok(Vec::new()),
            Err(why) => return Ok(vec![why]),
        }
        let id = id_of(invocation);
        if !reinvocation.calls(&id) {
            return Ok(Vec::new());
        }
        let mut failures = Vec::new();
        let mut mutated = before.clone();
        for mutation in &policy.body.mutations {
            match self.mutated(context, invocation, mutation, &mutated)? {
                Ok(next) => {
                    mutated = next;
                    *has_run = true;
                }
                Err(why) => failures.push(why),
            }
        }
        if mutated != before {
            *object = convert::between(context, resource, from, mutated)?;
            reinvocation.changed();
        }
        if policy.spec["reinvocationPolicy"] == "IfNeeded" {
            reinvocation.invoked(&id);
        }
        Ok(failures)
    }

    /// Evaluates expressions about an object, again as long as they ask for authorization checks that
    /// have not been decided.
    fn evaluate<T>(
        &self,
        context: &mut RequestContext,
        invocation: &PolicyInvocation<Mutations>,
        object: &Value,
        evaluate: impl Fn(&Scope) -> T,
    ) -> Result<T> {
        let Self { chain, cluster, attributes } = *self;
        let PolicyInvocation { policy, resource, param, .. } = invocation;
        let ledger = Arc::<AuthorizationCache>::default();
        let bindings =
            versioned_bindings(cluster, context, attributes, Some(object), resource, &ledger)?
                .with("params", shown(param.as_ref()));
        loop {
            let value = evaluate(&Scope::new(bindings.clone(), &policy.variables));
            if !ledger.look_up(&chain.authorizer, cluster, &context.user) {
                return Ok(value);
            }
        }
    }

    /// The object with one mutation applied, or why it cannot be applied.
    ///
    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go: dispatchOne
    fn mutated(
        &self,
        context: &mut RequestContext,
        invocation: &PolicyInvocation<Mutations>,
        mutation: &Mutation,
        object: &Value,
    ) -> Result<std::result::Result<Value, String>> {
        let resource = &invocation.resource;
        let (value, request) = self.evaluate(context, invocation, object, |scope| {
            let mut budget = Budget::default();
            let value = scope.evaluate(&mutation.compiled, &mutation.expression, &mut budget);
            (value, RequestLists::of(scope.variable("request")))
        })?;
        let value = match value {
            Ok(value) => value,
            Err(failure) => return Ok(Err(failure.message())),
        };
        let own = own_schema(resource, self.attributes.subresource);
        let schema: &Schema = own.as_ref().unwrap_or_else(|| resource.schema());
        let patched = match mutation.patch_type {
            PatchType::JsonPatch => mutation::json_patched(&value, &request, object),
            PatchType::ApplyConfiguration => mutation::merged(&value, schema, object),
        };
        let mut patched = match patched {
            Ok(patched) => patched,
            Err(why) => return Ok(Err(why)),
        };
        check_kind(resource, object, &patched)?;
        if resource.custom().is_none() || own.is_some() {
            mutation::check_fields(schema, &patched)?;
        }
        redefault(resource, own.as_ref(), &mut patched)?;
        Ok(Ok(patched))
    }
}

/// What tells the invocations of a write apart.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go: keyFor
fn id_of(invocation: &PolicyInvocation<Mutations>) -> String {
    let PolicyInvocation { policy, binding, param, .. } = invocation;
    let Policy { name, .. } = &**policy;
    let binding = name_of(binding);
    let param = param.as_ref().map_or_else(String::new, |param| {
        let namespace = param["metadata"]["namespace"].as_str().unwrap_or_default();
        format!("{namespace}/{}", name_of(param))
    });
    format!("{name}/{binding}/{param}")
}

/// The error of a write that policies denied: the first one's, with the causes of all.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go: Dispatch
fn refused(attributes: &WriteAttributes<'_>, object: &Value, errors: &[PolicyError]) -> ApiError {
    let name = shown_name(attributes, Some(object));
    let causes =
        errors.iter().map(|error| StatusCause { message: error.text(), ..StatusCause::default() });
    let mut refusal =
        ApiError::forbidden(attributes.resource.subject(), name, "").with_causes(causes);
    let Some(first) = errors.first() else { return refusal };
    refusal.message = first.text();
    match first.reason {
        Some(reason) => refusal.with_reason(reason, 403),
        None => refusal,
    }
}
