//! The failures of requests, as outcomes of steps and as texts.

use std::time::Duration;

use kube::core::Status;
use plimsoll_api::Reason;
use plimsoll_plan::health::failure;
use plimsoll_plan::plan::{Action, Step};
use plimsoll_plan::progress::{Scope, StepBlocker, StepOutcome, Transience, TryError};

use crate::resources::Served;

/// Returns why a step is not tried whose object needs a namespace and has none; `None` if it may be. There
/// is no namespace that it would be in by default.
pub(crate) fn missing_namespace(step: &Step, served: &Served) -> Option<TryError> {
    let key = &step.manifest.key;
    let is_missing = served.scope == Scope::Namespaced && key.namespace.is_empty();
    // What is to be deleted is not there.
    (is_missing && step.action != Action::Delete).then(|| TryError {
        reason: Reason::UpdatePayloadResourceInvalid,
        cause: format!(
            "the manifest has no namespace, and objects of kind {} need one: set metadata.namespace",
            key.group_kind()
        ),
        transience: Transience::Lasting,
        retry_after: None,
    })
}

/// Returns the outcome of a step whose execution failed.
pub(crate) fn outcome(step: &Step, error: &kube::Error) -> StepOutcome {
    let kube::Error::Api(status) = error else {
        return StepOutcome::Failed(TryError {
            reason: Reason::UpdatePayloadClusterDown,
            cause: format!("the server is down or not responding: {}", chain(error)),
            transience: Transience::Transient,
            retry_after: None,
        });
    };
    if let Some(blocker) = blocker(step, status) {
        return StepOutcome::Blocked(blocker);
    }
    let (reason, mut cause) =
        failure::from_api_status(status.code, &status.reason, &status.message);
    if step.manifest.is_sensitive() {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let fields = causes.map(|cause| cause.field.as_str()).filter(|field| !field.is_empty());
        let fields: Vec<&str> = fields.collect();
        let message = failure::without_values(status.code, &status.message, &fields);
        cause = failure::cause(reason, &message);
    }
    let transient = matches!(status.code, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504);
    let retry_after = status
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds)
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.into()));
    StepOutcome::Failed(TryError {
        reason,
        cause,
        transience: if transient { Transience::Transient } else { Transience::Lasting },
        retry_after,
    })
}

/// Returns what is missing for an object; `None` if the failure has another reason.
fn blocker(step: &Step, status: &Status) -> Option<StepBlocker> {
    let namespace = &step.manifest.key.namespace;
    let details = status.details.as_ref();
    let about = |kind: &str, name: &str| {
        details.is_some_and(|details| details.kind == kind && details.name == name)
    };
    let terminating = details.is_some_and(|details| {
        details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    });
    if status.code == 403 && terminating {
        Some(StepBlocker::NamespaceTerminating(namespace.clone()))
    } else if status.code != 404 {
        None
    } else if about("namespaces", namespace) {
        Some(StepBlocker::NamespaceMissing(namespace.clone()))
    } else if details.is_none_or(|details| details.name.is_empty()) {
        // Not even the path is known: the kind is not served, whatever discovery said before.
        Some(StepBlocker::KindNotServed(step.kind()))
    } else {
        None
    }
}

/// Returns the text of an error with all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
