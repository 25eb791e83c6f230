//! Applies whose object has defaults in the way of what replaces them.

use std::fmt::Debug;

use kube::Api;
use kube::api::Patch;
use kube::core::{DynamicObject, Status};
use plimsoll_plan::apply::union::{Claim, RefusedField, claim, updated};
use plimsoll_plan::plan::Step;
use plimsoll_plan::progress::Mark;
use serde::{Deserialize as _, Serialize};

use super::field_manager;
use super::takeover::{apply, entries, replace_managed_fields};

/// Applies the object of a step again once defaults that were in its way are ours; returns `None` if none
/// were, or if the API server refuses it for something else besides.
pub(super) async fn apply_in_place<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    step: &Step,
    object: &T,
    status: &Status,
) -> Result<Option<Mark>, kube::Error> {
    let Some((live, Claim { managed_fields, .. })) = claimed(api, step, object, status).await?
    else {
        return Ok(None);
    };
    let before = entries(&live.metadata)?;
    let taken = replace_managed_fields(api, &live.metadata, managed_fields).await?.metadata;
    match apply(api, step, object).await {
        Ok(mark) => {
            tracing::info!(
                object = %step.manifest.key,
                "removed defaults that were in the way of the manifest"
            );
            Ok(Some(mark))
        }
        Err(kube::Error::Api(status)) if status.code == 422 => {
            replace_managed_fields(api, &taken, before).await?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the object that a step would result in, by a dry run, once defaults in its way are removed; `None`
/// if none are, or if the API server refuses it for something else besides.
pub(super) async fn try_in_place<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    step: &Step,
    object: &T,
    status: &Status,
) -> Result<Option<DynamicObject>, kube::Error> {
    let Some((live, Claim { managed_fields, object })) = claimed(api, step, object, status).await?
    else {
        return Ok(None);
    };
    let before = serde_json::to_value(&live).map_err(kube::Error::SerdeError)?;
    // A patch needs no other permission than the apply.
    let patch = Patch::<()>::Json(json_patch::diff(&before, &object));
    match api.patch(&step.manifest.key.name, &field_manager().dry_run(), &patch).await {
        Ok(mut object) => {
            let managed_fields = serde_json::from_value(managed_fields.into());
            object.metadata.managed_fields = managed_fields.map_err(kube::Error::SerdeError)?;
            Ok(Some(object))
        }
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the object that takes the place of one that is deleted. What the API server sets is as in the
/// former.
pub(super) async fn replacement<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    step: &Step,
    object: &T,
) -> Result<DynamicObject, kube::Error> {
    let live = api.get(&step.manifest.key.name).await?;
    let entries = entries(&live.metadata)?;
    let live = serde_json::to_value(&live).map_err(kube::Error::SerdeError)?;
    let applied = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    DynamicObject::deserialize(updated(&live, &applied, &entries)).map_err(kube::Error::SerdeError)
}

/// Returns the object as it is and what of it is in the way of an apply that was refused. It is read only if
/// the refusal may be about that.
async fn claimed<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    step: &Step,
    object: &T,
    status: &Status,
) -> Result<Option<(DynamicObject, Claim)>, kube::Error> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let refused: Vec<RefusedField> = causes
        .filter_map(|cause| RefusedField::new(&cause.field, &cause.reason, &cause.message))
        .collect();
    if status.code != 422 || refused.is_empty() {
        return Ok(None);
    }
    let Some(live) = api.get_opt(&step.manifest.key.name).await? else { return Ok(None) };
    let value = serde_json::to_value(&live).map_err(kube::Error::SerdeError)?;
    let applied = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    Ok(claim(&step.kind(), &value, &applied, &refused).map(|claim| (live, claim)))
}
