//! The failures of requests, as outcomes of steps and as texts.

use std::error::Error;
use std::time::Duration;

use kube::core::Status;
use plimsoll_api::Reason;
use plimsoll_content::immutable;
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
    let fields = unchangeable_fields(step, status);
    if !fields.is_empty() && !immutable::is_replaced(&step.manifest) {
        // The server's own text shows the whole value, which may be a template of pods.
        cause = immutable::refusal(&step.manifest, &fields);
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

/// Returns the fields that an API server refuses to change, whatever their value.
pub(super) fn unchangeable_fields(step: &Step, status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.filter(|cause| {
        status.code == 422
            && immutable::is_refusal(&cause.message)
            && !immutable::is_own_fault(&step.manifest, &cause.message)
    });
    let fields = causes.map(|cause| cause.field.clone()).filter(|field| !field.is_empty());
    let mut fields: Vec<String> = fields.collect();
    fields.dedup();
    fields
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

/// Returns the text of an error with all its causes. What an API server answered is its message.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut rest) = described(error);
    while let Some(cause) = rest {
        let (cause_text, next) = described(cause);
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        rest = next;
    }
    text
}

/// Returns the text of an error, and its cause. The client's own text of what an API server answered has
/// the whole Status in it.
fn described<'e>(error: &'e (dyn Error + 'static)) -> (String, Option<&'e (dyn Error + 'static)>) {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => (message(status), None),
        Some(_) | None => (error.to_string(), error.source()),
    }
}

/// Returns the message of a Status; its code if it has none.
fn message(status: &Status) -> String {
    match status.message.as_str() {
        "" => format!("the API server answered with status {}", status.code),
        message => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_content::Manifest;
    use plimsoll_plan::plan::Readiness;
    use serde_json::json;

    use super::*;
    use crate::error::Error as ControllerError;

    #[test]
    fn a_change_that_no_update_makes_is_refused_in_one_line() {
        let check = |field: &str, message: &str, expected: &str| {
            let object =
                json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" } });
            let step = Step {
                manifest: Manifest::read("f.yaml".into(), 0, &object).expect("a manifest"),
                action: Action::Apply,
                readiness: Readiness::Applied,
                serves: Vec::new(),
                is_repeated: false,
            };
            let causes =
                json!([{ "reason": "FieldValueInvalid", "field": field, "message": message }]);
            let status: Status = serde_json::from_value(json!({
                "code": 422, "reason": "Invalid", "message": format!("{field}: {message}"),
                "details": { "causes": causes },
            }))
            .expect("a status");
            let StepOutcome::Failed(error) = outcome(&step, &kube::Error::Api(status.boxed()))
            else {
                panic!("it fails");
            };
            assert_eq!(error.cause, expected);
        };
        check(
            "spec.template",
            "Invalid value: core.PodTemplateSpec{}: field is immutable",
            "spec.template is changed, which no update can: keep it, or set the annotation \
             plimsoll.io/replace to \"true\": the object is deleted and, once it is gone, created again",
        );
        check(
            "spec.completions",
            "Required value",
            "the object is invalid, possibly due to local cluster configuration: \
             spec.completions: Required value",
        );
    }

    /// Checks the text of an answer with a message, alone and as the cause of another error.
    fn check(message: &str, expected: &str) {
        let answer = || {
            let reason = "Forbidden".to_owned();
            let status = Status { code: 403, message: message.into(), reason, ..Status::default() };
            kube::Error::Api(status.boxed())
        };
        assert_eq!(chain(&answer()), expected);
        let caused = ControllerError::Discover { source: answer() };
        let text = format!("failed to discover what the API server serves: {expected}");
        assert_eq!(chain(&caused), text);
    }

    #[test]
    fn what_an_api_server_answers_is_its_message() {
        let message = "secrets is forbidden: User \"anchor\" cannot list resource \"secrets\"";
        check(message, message);
        check("", "the API server answered with status 403");
    }
}
