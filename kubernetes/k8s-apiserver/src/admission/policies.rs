//! ValidatingAdmissionPolicies: expressions that may deny a write.
use std::sync::{Arc, LazyLock};

use k8s_cel::{Authorizer, Bindings, Value as CelValue};
use serde_json::{Value, json};

use super::authorizer::{self, AuthorizationCache};
use super::expressions::{Scope, shown};
use super::matching::{Criteria, find_namespace, shown_name};
use super::{AdmissionChain, review};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{GROUP, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::convert;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, Result, StatusCause};
use crate::storage::{StorageId, Stored};

mod compiled;
mod decision;
mod params;

use compiled::Policy;
pub(crate) use compiled::PolicyCache;
use decision::{AnnotationDecision, PolicyVerdict, ValidationDecision};

pub(super) static POLICIES: LazyLock<StorageId> =
    LazyLock::new(|| StorageId::new(GROUP, "validatingadmissionpolicies"));
static BINDINGS: LazyLock<StorageId> =
    LazyLock::new(|| StorageId::new(GROUP, "validatingadmissionpolicybindings"));

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
pub(super) fn validate(
    chain: &AdmissionChain,
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
) -> Result<()> {
    let evaluation = PolicyEvaluation { chain, cluster, attributes, object };
    let mut outcome = PolicyOutcome::default();
    let bindings: Vec<Value> =
        cluster.store.list(&BINDINGS, None).map(|stored| stored.decode()).collect();
    for stored in cluster.store.list(&POLICIES, None) {
        let of_policy: Vec<&Value> = bindings
            .iter()
            .filter(|binding| binding["spec"]["policyName"] == *stored.key.name)
            .collect();
        if !of_policy.is_empty() {
            evaluation.apply(context, stored, &of_policy, &mut outcome)?;
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
    /// Evaluates one policy under each of its bindings.
    fn apply(
        &self,
        context: &mut RequestContext,
        stored: &Stored,
        bindings: &[&Value],
        outcome: &mut PolicyOutcome,
    ) -> Result<()> {
        let Self { chain, cluster, attributes, object } = *self;
        let policy = chain.policies.compiled(stored);
        let constraints =
            Criteria { source: &policy.spec["matchConstraints"], rules: "resourceRules" };
        let resource = match constraints.matched(cluster, attributes, object) {
            Ok(Some(resource)) => resource,
            Ok(None) => return Ok(()),
            Err(error) => {
                outcome.misconfigured(&policy, None, &error.message);
                return Ok(());
            }
        };
        let param_kind = match params::kind(cluster, &policy.spec) {
            Ok(kind) => kind,
            Err(why) => {
                outcome.misconfigured(&policy, None, &why);
                return Ok(());
            }
        };
        for binding in bindings {
            let resources =
                Criteria { source: &binding["spec"]["matchResources"], rules: "resourceRules" };
            let found = match resources.matched(cluster, attributes, object) {
                Ok(None) => continue,
                Ok(Some(_)) => {
                    params::find(cluster, param_kind.as_ref(), binding, &attributes.namespace)
                }
                Err(error) => Err(error.message),
            };
            match found {
                Ok(found) => {
                    for param in found {
                        let verdict = self.decide(context, &policy, &resource, param.as_ref())?;
                        outcome.add(context, &policy, binding, verdict);
                    }
                }
                Err(why) => outcome.misconfigured(&policy, Some(binding), &why),
            }
        }
        Ok(())
    }

    /// Evaluates a policy with one parameter object; `resource` is the one by which it matched.
    fn decide(
        &self,
        context: &mut RequestContext,
        policy: &Policy,
        resource: &ApiResource,
        param: Option<&Value>,
    ) -> Result<PolicyVerdict> {
        let Self { chain, cluster, attributes, object } = *self;
        let ledger = Arc::<AuthorizationCache>::default();
        let bindings = bindings(cluster, context, attributes, object, resource, &ledger)?
            .with("params", shown(param));
        loop {
            let scope = Scope::new(bindings.clone(), &policy.variables);
            let verdict = decision::decide(policy, &scope);
            if !ledger.look_up(&chain.authorizer, cluster, &context.user) {
                return Ok(verdict);
            }
        }
    }
}

/// The variables of all expressions about a write.
///
/// # Errors
/// When the namespace of the write does not exist, or a conversion webhook has to be called first.
pub(super) fn bindings(
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
    resource: &ApiResource,
    ledger: &Arc<AuthorizationCache>,
) -> Result<Bindings> {
    let mut in_version = |value: Option<&Value>| {
        value
            .map(|value| convert::between(context, attributes.resource, resource, value.clone()))
            .transpose()
    };
    let (object, old) = (in_version(object)?, in_version(attributes.old)?);
    let namespace = if attributes.namespace.is_empty() || attributes.resource.is("", "Namespace") {
        None
    } else {
        let mut namespace = find_namespace(cluster, &attributes.namespace)?;
        if let Some(metadata) = namespace["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            metadata.remove("ownerReferences");
        }
        Some(namespace)
    };
    let request = Value::Object(review::request(context, attributes, resource));
    let request_resource = authorizer::request_resource(ledger, attributes);
    let authorizer: Arc<dyn Authorizer> = Arc::<AuthorizationCache>::clone(ledger);
    Ok(Bindings::new()
        .with("object", shown(object.as_ref()))
        .with("oldObject", shown(old.as_ref()))
        .with("request", CelValue::from_json(&request))
        .with("namespaceObject", shown(namespace.as_ref()))
        .with("authorizer.requestResource", request_resource)
        .with("authorizer", CelValue::authorizer(authorizer)))
}

impl PolicyOutcome {
    /// Adds the denial by a policy or binding that cannot be applied, unless failures are ignored.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Value>, why: &str) {
        if policy.spec["failurePolicy"] == "Ignore" {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.denied.push(Denial {
            policy: policy.name.clone(),
            binding: binding.map(name_of),
            message: format!("failed to configure {what}: {why}"),
            reason: String::new(),
        });
    }

    fn add(
        &mut self,
        context: &mut RequestContext,
        policy: &Policy,
        binding: &Value,
        verdict: PolicyVerdict,
    ) {
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
                        binding: Some(name.clone()),
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
                    binding: Some(name.clone()),
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

fn name_of(binding: &Value) -> String {
    binding["metadata"]["name"].as_str().unwrap_or_default().to_owned()
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
