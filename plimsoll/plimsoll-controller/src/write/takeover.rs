//! Takeover of the fields of earlier managers, when an object is applied and in a dry run of that.
//!
//! The response to an apply shows whether an earlier manager owns fields of the object. Then these become
//! ours by a patch of `managedFields` alone, and a second apply removes those that the manifest lacks. An
//! object that is ours already costs no request. A process that ends between these writes leaves an object
//! that is applied once more, since its step is not done.

use std::fmt::Debug;

use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, ReplaceOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::Patch;
use kube::core::{DynamicObject, PartialObjectMeta};
use plimsoll_plan::apply::takeover::{Takeover, takeover};
use plimsoll_plan::plan::{Action, Step};
use plimsoll_plan::progress::Mark;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::{Writer, field_manager, send};
use crate::observe::mark;
use crate::resources::Served;

/// Applies the object of a step and takes over what earlier managers own of it.
///
/// What the API server refuses to remove, such as a field that never changes, stays with its manager.
pub(super) async fn apply<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    step: &Step,
    object: &T,
) -> Result<Mark, kube::Error> {
    let name = &step.manifest.key.name;
    let applied = send(api, name, object).await?.metadata;
    let entries = entries(&applied)?;
    let Some(Takeover { managers, managed_fields, .. }) = takeover(&step.kind(), &entries) else {
        return Ok(mark(&applied));
    };
    let managers = managers.into_iter().collect::<Vec<String>>().join(", ");
    let taken = replace_managed_fields(api, &applied, managed_fields).await?.metadata;
    match send(api, name, object).await {
        Ok(applied) => {
            tracing::info!(object = %step.manifest.key, managers, "took over fields of other managers");
            Ok(mark(&applied.metadata))
        }
        Err(kube::Error::Api(status)) if status.code == 422 => {
            tracing::warn!(
                object = %step.manifest.key,
                managers,
                error = %status.message,
                "fields of other managers cannot be removed; they stay"
            );
            Ok(mark(&replace_managed_fields(api, &taken, entries).await?.metadata))
        }
        Err(error) => Err(error),
    }
}

impl Writer {
    /// Returns the object that a step would result in, by a dry run, once fields of earlier managers are
    /// taken over. `before` is the object as it is, and `after` what a dry run of the apply returned.
    pub(crate) async fn try_takeover(
        &self,
        step: &Step,
        served: &Served,
        before: Option<&DynamicObject>,
        after: DynamicObject,
    ) -> Result<DynamicObject, kube::Error> {
        let is_applied = matches!(step.action, Action::Apply | Action::Gate);
        let Some(before) = before.filter(|_| is_applied) else { return Ok(after) };
        let Some(takeover) = takeover(&step.kind(), &entries(&after.metadata)?) else {
            return Ok(after);
        };
        let [before, applied] = [value(before)?, value(&after)?];
        let completed = takeover.completed(&applied);
        // A patch needs no other permission than the apply.
        let patch = Patch::<()>::Json(json_patch::diff(&before, &completed));
        let api = self.api(served, &step.manifest.key.namespace);
        match api.patch(&step.manifest.key.name, &field_manager().dry_run(), &patch).await {
            // The server adds what this request itself would own.
            Ok(mut object) => {
                let completed = DynamicObject::deserialize(&completed);
                let completed = completed.map_err(kube::Error::SerdeError)?;
                object.metadata.managed_fields = completed.metadata.managed_fields;
                Ok(object)
            }
            Err(kube::Error::Api(status)) if status.code == 422 => Ok(after),
            Err(error) => Err(error),
        }
    }
}

/// Replaces the `managedFields` of an object; a conflict if it has changed.
pub(super) async fn replace_managed_fields(
    api: &Api<DynamicObject>,
    live: &ObjectMeta,
    managed_fields: Vec<Value>,
) -> Result<PartialObjectMeta<DynamicObject>, kube::Error> {
    let replace = |field: &str, value: Value| {
        let path = PointerBuf::from_tokens(["metadata", field]);
        PatchOperation::Replace(ReplaceOperation { path, value })
    };
    let revision = live.resource_version.clone().unwrap_or_default();
    let operations = vec![
        replace("resourceVersion", revision.into()),
        replace("managedFields", managed_fields.into()),
    ];
    let patch = Patch::<()>::Json(json_patch::Patch(operations));
    let name = live.name.as_deref().unwrap_or_default();
    api.patch_metadata(name, &field_manager(), &patch).await
}

/// Returns the entries of `managedFields`.
pub(super) fn entries(metadata: &ObjectMeta) -> Result<Vec<Value>, kube::Error> {
    let entries = metadata.managed_fields.iter().flatten().map(serde_json::to_value);
    entries.collect::<Result<_, _>>().map_err(kube::Error::SerdeError)
}

fn value(object: &DynamicObject) -> Result<Value, kube::Error> {
    serde_json::to_value(object).map_err(kube::Error::SerdeError)
}
