//! Objects that are deleted so that they can be created again, and what must hold before.

use kube::Api;
use kube::api::PostParams;
use kube::core::{DynamicObject, ObjectMeta, Status};
use plimsoll_api::Reason;
use plimsoll_content::immutable;
use plimsoll_plan::plan::{Readiness, Step};
use plimsoll_plan::progress::{StepOutcome, Transience, TryError};
use serde::Deserialize as _;
use serde_json::Value;
use serde_json::value::RawValue;

use super::create_parameters;
use crate::observe::mark;

/// Parts of the messages with which an API server refuses a dry run of a creation that it accepts once the
/// former object is gone: that one has the share of a quota, an address or a port. The last one is no answer
/// about the object.
const PASSING: [&str; 3] = ["exceeded quota", "already allocated", "does not support dry run"];

/// Checks that the object of a step may be deleted and that its successor is accepted: after the deletion it
/// is too late.
///
/// # Errors
/// Why it is not, as the answer of an API server.
pub(super) async fn check_replacement(
    api: &Api<DynamicObject>,
    step: &Step,
    body: &RawValue,
) -> Result<(), kube::Error> {
    let key = &step.manifest.key;
    if let Some(live) = api.get_opt(&key.name).await? {
        let live = serde_json::to_value(&live).map_err(kube::Error::SerdeError)?;
        if let Some(message) = immutable::loss(key, &live) {
            let reason = "Invalid".to_owned();
            let status = Status { code: 422, reason, message, ..Status::default() };
            return Err(kube::Error::Api(status.boxed()));
        }
    }
    let object: Value = serde_json::from_str(body.get()).map_err(kube::Error::SerdeError)?;
    let object = DynamicObject::deserialize(&object).map_err(kube::Error::SerdeError)?;
    let parameters = PostParams { dry_run: true, ..create_parameters() };
    match api.create(&parameters, &object).await {
        // API servers look for an object of the name last.
        Err(kube::Error::Api(status)) if status.is_already_exists() || is_passing(&status) => {
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

/// Returns the outcome of a step whose object is being deleted so that it can be created again. Where the
/// object is judged once it has been applied, its deletion is a part of that; but for a Job, which counts as
/// completed all the same.
pub(super) fn going(step: &Step, metadata: &ObjectMeta) -> StepOutcome {
    if step.readiness == Readiness::RolledOut && !step.runs_once() {
        return StepOutcome::Applied(mark(metadata));
    }
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    let held = match &finalizers[..] {
        [] => String::new(),
        finalizers => format!(" and waits for its finalizers ({})", finalizers.join(", ")),
    };
    StepOutcome::Failed(TryError {
        reason: Reason::UpdatePayloadFailed,
        cause: format!(
            "the object is being deleted{held}: it is created again, as the manifest has it, once it \
             is gone"
        ),
        transience: Transience::Transient,
        retry_after: None,
    })
}

fn is_passing(status: &Status) -> bool {
    PASSING.iter().any(|text| status.message.contains(text))
}

#[cfg(test)]
mod tests {
    //! What is said of objects that are replaced.

    use plimsoll_content::Manifest;
    use plimsoll_plan::plan::Action;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_being_deleted_is_not_applied() {
        let outcome = |kind: &str, readiness: Readiness| {
            let object =
                json!({ "apiVersion": "batch/v1", "kind": kind, "metadata": { "name": "a" } });
            let step = Step {
                manifest: Manifest::read("f.yaml".into(), 0, &object).expect("a manifest"),
                action: Action::Apply,
                readiness,
                serves: Vec::new(),
                is_repeated: false,
            };
            let finalizers = Some(vec!["example.org/hold".to_owned()]);
            going(&step, &ObjectMeta { finalizers, ..ObjectMeta::default() })
        };
        for failed in [outcome("Job", Readiness::RolledOut), outcome("CronJob", Readiness::Applied)]
        {
            let StepOutcome::Failed(error) = &failed else { panic!("{failed:?}") };
            assert_eq!(error.transience, Transience::Transient);
            assert_eq!(
                error.cause,
                "the object is being deleted and waits for its finalizers (example.org/hold): it is \
                 created again, as the manifest has it, once it is gone"
            );
        }
        let judged = outcome("CronJob", Readiness::RolledOut);
        assert!(matches!(judged, StepOutcome::Applied(_)), "{judged:?}");
    }

    #[test]
    fn what_the_former_object_holds_is_in_nothing_s_way() {
        let is_passing = |message: &str| {
            is_passing(&Status { message: message.to_owned(), ..Status::default() })
        };
        assert!(is_passing("jobs.batch \"a\" is forbidden: exceeded quota: q, requested: count=1"));
        assert!(is_passing(
            "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
        ));
        assert!(!is_passing("subjects[1].namespace: Required value"));
        assert!(!is_passing("admission webhook \"a.b.c\" denied the request: no"));
    }
}
