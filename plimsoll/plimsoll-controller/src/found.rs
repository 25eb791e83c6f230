//! Objects that exist, as those see them that decide who may have one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_api::ObjectKey;
use plimsoll_operators::reconciler::FoundObject;
use plimsoll_plan::apply::takeover::earlier_managers;
use plimsoll_plan::progress::Trace;
use serde_json::json;

use crate::observe::trace;
use crate::ownership::operator_of;

/// Returns an object that exists by its metadata.
pub(crate) fn found_object(key: ObjectKey, metadata: &ObjectMeta) -> FoundObject {
    let controller = metadata.owner_references.iter().flatten();
    let mut controller = controller.filter(|owner| owner.controller == Some(true));
    FoundObject {
        key,
        operator: operator_of(metadata),
        is_ours: matches!(trace(metadata), Trace::Ours(_)),
        controller: controller.next().map(|it| format!("{} \"{}\"", it.kind, it.name)),
        managers: earlier_managers(&json!({ "metadata": metadata })),
        is_terminating: metadata.deletion_timestamp.is_some(),
    }
}
