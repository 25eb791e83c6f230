//! Mutating policies and webhooks: called one after the other, and a second time if they are
//! reinvoked.
use std::sync::Arc;

use serde_json::{Value, json};

use super::changed::{check_kind, own_schema, redefault};
use super::hooks::{self, AdmissionWebhook, WebhookOutcome};
use super::policies::{self, MUTATING};
use super::reinvocation::Reinvocation;
use super::review::{AdmissionResponse, ReviewSubject};
use super::validating::refused;
use super::{AdmissionChain, MUTATING_WEBHOOKS, patch};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::WriteAttributes;
use crate::semantics::context::RequestContext;
use crate::semantics::convert;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, Result};

/// The mutating webhooks of a cluster, and the write that they may change.
struct MutatingWebhooks<'a> {
    chain: &'a AdmissionChain,
    cluster: &'a Cluster,
    attributes: &'a WriteAttributes<'a>,
    hooks: Vec<AdmissionWebhook>,
}

/// A call of a webhook: in which round, and at which place among the webhooks.
#[derive(Clone, Copy, Debug)]
struct Invocation<'a> {
    hook: &'a AdmissionWebhook,
    round: usize,
    index: usize,
}

/// How often policies and webhooks are called at most.
///
/// Upstream: k8s.io/apiserver/pkg/admission/reinvocation.go: Admit
const ROUNDS: usize = 2;

/// Calls all mutating policies and then all mutating webhooks that match a write.
///
/// # Errors
/// When one denies it, a call failed, or there is no response yet.
pub(super) fn admit(
    chain: &AdmissionChain,
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: &mut Value,
) -> Result<()> {
    let hooks = hooks::all(cluster, &MUTATING_WEBHOOKS);
    let webhooks = MutatingWebhooks { chain, cluster, attributes, hooks };
    let mut of_policies = Reinvocation::default();
    let mut of_webhooks = Reinvocation::default();
    for round in 0..ROUNDS {
        if MUTATING.has_any(cluster) {
            of_policies.begin(round, object);
            policies::mutate(chain, cluster, context, attributes, object, &mut of_policies)?;
            of_policies.end(object);
        }
        of_webhooks.begin(round, object);
        webhooks.call(context, object, &mut of_webhooks)?;
        of_webhooks.end(object);
        if !of_policies.is_asked_for() && !of_webhooks.is_asked_for() {
            break;
        }
    }
    Ok(())
}

impl MutatingWebhooks<'_> {
    /// Calls them in one round.
    ///
    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go: Dispatch
    fn call(
        &self,
        context: &mut RequestContext,
        object: &mut Value,
        reinvocation: &mut Reinvocation,
    ) -> Result<()> {
        let Self { chain, cluster, attributes, hooks } = self;
        for (index, hook) in hooks.iter().enumerate() {
            let shown = (!object.is_null()).then_some(&*object);
            let Some(resource) = hook.matched(chain, cluster, context, attributes, shown)? else {
                continue;
            };
            if !reinvocation.calls(&hook.id) {
                continue;
            }
            let invocation = Invocation { hook, round: reinvocation.round(), index };
            if call_webhook(context, attributes, object, &resource, invocation)? {
                reinvocation.changed();
            }
            if hook.is_reinvoked() {
                reinvocation.invoked(&hook.id);
            }
        }
        Ok(())
    }
}

/// Calls one webhook; returns whether it changed the object.
fn call_webhook(
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: &mut Value,
    resource: &Arc<ApiResource>,
    invocation: Invocation<'_>,
) -> Result<bool> {
    let Invocation { hook, round, index } = invocation;
    let from = attributes.resource;
    let old = match attributes.old {
        Some(old) => Some(convert::between(context, from, resource, old.clone())?),
        None => None,
    };
    let before = if object.is_null() {
        None
    } else {
        Some(convert::between(context, from, resource, object.clone())?)
    };
    let shown =
        ReviewSubject { resource, object: before.as_ref(), old: old.as_ref(), mutating: true };
    let reviewed = match hook.call(context, attributes, &shown, round)? {
        WebhookOutcome::AdmissionResponse(reviewed) => reviewed,
        WebhookOutcome::FailedOpen => {
            let key = format!(
                "failed-open.mutation.webhook.admission.k8s.io/round_{round}_index_{index}"
            );
            context.annotate(key, hook.name.clone());
            note_mutation(context, invocation, false);
            return Ok(false);
        }
    };
    for (key, value) in &reviewed.annotations {
        context.annotate(format!("{}/{key}", hook.name), value.clone());
    }
    for warning in &reviewed.warnings {
        context.warnings.push(warning.clone());
    }
    if !reviewed.allowed {
        return Err(refused(&hook.name, &reviewed.status));
    }
    let patched = patched(hook, &reviewed, before.as_ref())?;
    let changed = match (patched, before) {
        (Some(mut patched), Some(before)) => {
            check_kind(resource, &before, &patched)?;
            let own = own_schema(resource, attributes.subresource);
            redefault(resource, own.as_ref(), &mut patched)?;
            let changed = patched != before;
            *object = convert::between(context, resource, from, patched)?;
            changed
        }
        _ => false,
    };
    note_mutation(context, invocation, changed);
    Ok(changed)
}

/// The object with the patch of the response applied; none without a patch.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go: callAttrMutatingHook
fn patched(
    hook: &AdmissionWebhook,
    reviewed: &AdmissionResponse,
    object: Option<&Value>,
) -> Result<Option<Value>> {
    let Some((patch_type, bytes)) = &reviewed.patch else {
        return Ok(None);
    };
    let failed =
        |why: String| ApiError::internal(format!("failed calling webhook {:?}: {why}", hook.name));
    let document: Value = serde_json::from_slice(bytes).map_err(|error| {
        failed(format!("received undecodable patch in webhook response: {error}"))
    })?;
    let Value::Array(operations) = document else {
        return Err(failed(
            "received undecodable patch in webhook response: json: cannot unmarshal object into \
             Go value of type jsonpatch.Patch"
                .to_owned(),
        ));
    };
    if operations.is_empty() {
        return Ok(None);
    }
    let Some(object) = object else {
        return Err(ApiError::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    };
    if patch_type != "JSONPatch" {
        return Err(failed(format!("unsupported patch type {patch_type:?}")));
    }
    patch::apply(object, &operations)
        .map(Some)
        .map_err(|failure| ApiError::internal(failure.message))
}

/// Adds the audit annotation about whether a webhook changed the object.
fn note_mutation(context: &mut RequestContext, invocation: Invocation<'_>, mutated: bool) {
    let Invocation { hook, round, index } = invocation;
    let value = json!({
        "configuration": hook.configuration,
        "webhook": hook.name,
        "mutated": mutated,
    });
    context.annotate(
        format!("mutation.webhook.admission.k8s.io/round_{round}_index_{index}"),
        value.to_string(),
    );
}
