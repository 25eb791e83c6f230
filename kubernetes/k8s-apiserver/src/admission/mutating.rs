//! Mutating webhooks: called one after the other, and a second time if they are reinvoked.
use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_schema::{FieldError, FieldErrorKind, Schema, builtin, prune};
use serde_json::{Value, json};

use super::hooks::{self, AdmissionWebhook, WebhookOutcome};
use super::review::{AdmissionResponse, ReviewSubject};
use super::validating::refused;
use super::{AdmissionChain, MUTATING_WEBHOOKS, patch};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{WriteAttributes, kind_of};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ApiResource;
use crate::semantics::{convert, decode, metadata};
use crate::status::{ApiError, Result, StatusReason, Subject};

/// Which webhooks the second round calls again.
#[derive(Default)]
struct ReinvocationState {
    /// Webhooks with reinvocation that were called since the last change.
    invoked: BTreeSet<String>,
    /// Those of them after which another webhook changed the object.
    due: BTreeSet<String>,
}

impl ReinvocationState {
    fn changed(&mut self) {
        self.due.append(&mut self.invoked);
    }
}

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

/// Calls all mutating webhooks that match a write.
///
/// # Errors
/// When one denies it, a call failed, or there is no response yet.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go: Dispatch
pub(super) fn admit(
    chain: &AdmissionChain,
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: &mut Value,
) -> Result<()> {
    let hooks = hooks::all(cluster, &MUTATING_WEBHOOKS);
    let mut progress = ReinvocationState::default();
    let webhooks = MutatingWebhooks { chain, cluster, attributes, hooks };
    webhooks.call(context, object, 0, &mut progress)?;
    if !progress.due.is_empty() {
        webhooks.call(context, object, 1, &mut progress)?;
    }
    Ok(())
}

impl MutatingWebhooks<'_> {
    /// Calls them in one round.
    fn call(
        &self,
        context: &mut RequestContext,
        object: &mut Value,
        round: usize,
        progress: &mut ReinvocationState,
    ) -> Result<()> {
        let Self { chain, cluster, attributes, hooks } = self;
        for (index, hook) in hooks.iter().enumerate() {
            let shown = (!object.is_null()).then_some(&*object);
            let Some(resource) = hook.matched(chain, cluster, context, attributes, shown)? else {
                continue;
            };
            if round > 0 && !progress.due.contains(&hook.id) {
                continue;
            }
            let invocation = Invocation { hook, round, index };
            let changed = call_webhook(context, attributes, object, &resource, invocation)?;
            if changed {
                progress.changed();
            }
            if hook.is_reinvoked() {
                progress.invoked.insert(hook.id.clone());
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
            match own_schema(resource, attributes.subresource) {
                Some(own) => drop(prune(&own, &mut patched)),
                None => decode::redefault(resource, &mut patched)?,
            }
            let changed = patched != before;
            *object = convert::between(context, resource, from, patched)?;
            changed
        }
        _ => false,
    };
    note_mutation(context, invocation, changed);
    Ok(changed)
}

/// Checks that a webhook has not changed the kind of an object.
///
/// # Errors
/// When it has, with the message of kube-apiserver.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go: callAttrMutatingHook
fn check_kind(resource: &ApiResource, before: &Value, patched: &Value) -> Result<()> {
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
fn own_schema(resource: &ApiResource, subresource: &str) -> Option<Schema> {
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
    patch::apply(object, &operations).map(Some).map_err(ApiError::internal)
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
