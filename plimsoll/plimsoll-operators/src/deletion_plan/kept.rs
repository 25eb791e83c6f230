//! Objects that a deletion leaves, since the release contains them.

use std::collections::BTreeSet;

use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::{ObjectKey, Reason};
use serde::Serialize;

/// An object of an Operator that stays when the Operator is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptObject {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// The reason that it stays.
    pub reason: Reason,
    /// The reason as a sentence for users.
    pub message: String,
}

/// Returns the objects of an Operator that the release contains. `of_release` are those of the release, as
/// texts.
pub(super) fn kept_by_release(
    status: &OperatorStatus,
    of_release: &BTreeSet<String>,
) -> Vec<KeptObject> {
    let kept = status.inventory.iter().filter(|it| of_release.contains(&it.to_string()));
    let kept = kept.map(|object| KeptObject {
        object: object.clone(),
        reason: Reason::Conflict,
        message: "the release contains it".to_owned(),
    });
    kept.collect()
}

/// Returns the status of an Operator without the objects that the release contains: what its deletion deletes.
pub fn without_release(status: &OperatorStatus, of_release: &BTreeSet<String>) -> OperatorStatus {
    let mut status = status.clone();
    status.inventory.retain(|it| !of_release.contains(&it.to_string()));
    status
}
