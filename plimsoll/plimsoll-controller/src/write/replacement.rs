//! Objects that are deleted so that they can be created again, and what must hold before.

use kube::Api;
use kube::api::PostParams;
use kube::core::{DynamicObject, Status};
use plimsoll_content::immutable;
use plimsoll_plan::plan::Step;
use serde::Deserialize as _;
use serde_json::Value;
use serde_json::value::RawValue;

use super::create_parameters;

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

fn is_passing(status: &Status) -> bool {
    PASSING.iter().any(|text| status.message.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

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
