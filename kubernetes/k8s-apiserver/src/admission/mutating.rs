//! Mutating policies and webhooks: called one after the other, and a second time if they are
//! reinvoked.
use std::sync::Arc;

use k8s_schema::{FieldError, FieldErrorKind, Schema, builtin, prune};
use serde_json::{Value, json};

use super::hooks::{self, AdmissionWebhook, WebhookOutcome};
use super::policies::{self, MUTATING};
use super::reinvocation::Reinvocation;
use super::review::{AdmissionResponse, ReviewSubject};
use super::validating::refused;
use super::{AdmissionChain, MUTATING_WEBHOOKS, patch};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{WriteAttributes, kind_of};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ApiResource;
use crate::semantics::{convert, decode, metadata};
use crate::status::{ApiError, Result, StatusReason, Subject};

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

/// Prunes and defaults an object that was changed; `own` is the schema of a subresource that has a
/// kind of its own.
///
/// # Errors
/// When a value has the wrong type.
pub(super) fn redefault(
    resource: &ApiResource,
    own: Option<&Schema>,
    object: &mut Value,
) -> Result<()> {
    match own {
        Some(own) => {
            prune(own, object);
            Ok(())
        }
        None => decode::redefault(resource, object),
    }
}

/// Checks that a webhook or a policy has not changed the kind of an object.
///
/// # Errors
/// When it has, with the message of kube-apiserver.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go: callAttrMutatingHook
pub(super) fn check_kind(resource: &ApiResource, before: &Value, patched: &Value) -> Result<()> {
    fn text<'a>(object: &'a Value, field: &str) -> &'a str {
        object[field].as_str().unwrap_or_default()
    }
    let [found, wanted] =
        [patched, before].map(|object| (text(object, "apiVersion"), text(object, "kind")));
    if found == wanted {
        return Ok(());
    }
    let (api_version, kind) = found;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if resource.custom().is_some() {
        if api_version != wanted.0 {
            let why = format!(
                "{group}/{version}, Kind={kind} is unstructured and is not suitable for \
                 converting to {:?}",
                wanted.0
            );
            return Err(ApiError::new(StatusReason::Unknown, why));
        }
        let problem =
            FieldError::new("kind", FieldErrorKind::Invalid, format!("must be {}", wanted.1));
        let subject = Subject { group, noun: kind };
        let name = metadata::text(patched, "name");
        return Err(ApiError::invalid(subject, name, &[problem.with_value(kind.into())]));
    }
    if builtin::schema(group, version, kind).is_none() {
        return Err(ApiError::internal(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        )));
    }
    let package = match resource.group.split('.').next() {
        Some("") | None => "core",
        Some(first) => first,
    };
    let why =
        format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", wanted.1);
    Err(ApiError::new(StatusReason::Unknown, why))
}

/// The schema of a subresource that has a kind of its own.
pub(super) fn own_schema(resource: &ApiResource, subresource: &str) -> Option<Schema> {
    let [group, version, kind] = kind_of(resource, subresource);
    (kind != resource.kind).then(|| builtin::schema(group, version, kind)).flatten()
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
