//! Validating webhooks: called in parallel; the first denial is returned.
use serde_json::Value;

use super::hooks::{self, WebhookOutcome};
use super::review::ReviewSubject;
use super::{AdmissionChain, VALIDATING_WEBHOOKS};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::WriteAttributes;
use crate::semantics::context::RequestContext;
use crate::semantics::convert;
use crate::status::{ApiError, Result};

/// Calls all validating webhooks that match a write.
///
/// # Errors
/// When one denies it, a call failed, or there is no response yet.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go: Dispatch
pub(super) fn validate(
    chain: &AdmissionChain,
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
) -> Result<()> {
    let mut first = Ok(());
    let mut index = 0;
    for hook in hooks::all(cluster, &VALIDATING_WEBHOOKS) {
        let Some(resource) = hook.matched(chain, cluster, context, attributes, object)? else {
            continue;
        };
        let mut in_version = |shown: Option<&Value>| {
            shown
                .map(|shown| {
                    convert::between(context, attributes.resource, &resource, shown.clone())
                })
                .transpose()
        };
        let (object, old) = (in_version(object)?, in_version(attributes.old)?);
        let shown = ReviewSubject {
            resource: &resource,
            object: object.as_ref(),
            old: old.as_ref(),
            mutating: false,
        };
        let reviewed_by_hook = match hook.call(context, attributes, &shown, 0) {
            // The other calls can be made at the same time.
            Err(_) if context.replay.is_pending() => Ok(()),
            Err(error) => Err(error),
            Ok(WebhookOutcome::FailedOpen) => {
                let key = format!(
                    "failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"
                );
                context.annotate(key, hook.name.clone());
                Ok(())
            }
            Ok(WebhookOutcome::AdmissionResponse(reviewed)) => {
                for (key, value) in &reviewed.annotations {
                    context.annotate(format!("{}/{key}", hook.name), value.clone());
                }
                context.warnings.extend(reviewed.warnings);
                if reviewed.allowed { Ok(()) } else { Err(refused(&hook.name, &reviewed.status)) }
            }
        };
        first = first.and(reviewed_by_hook);
        index += 1;
    }
    if context.replay.is_pending() {
        return Err(crate::semantics::webhook::replay::suspended());
    }
    first
}

/// The error of a write that a webhook denied, with the status of its response.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go: ToStatusErr
pub(super) fn refused(webhook: &str, status: &Value) -> ApiError {
    let denied = format!("admission webhook {webhook:?} denied the request");
    let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
    let message = match (text("message"), text("reason")) {
        (Some(message), _) => format!("{denied}: {message}"),
        (None, Some(reason)) => format!("{denied}: {reason}"),
        (None, None) => format!("{denied} without explanation"),
    };
    ApiError::by_webhook(message, status)
}
