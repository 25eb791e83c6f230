//! Objects of rollouts that are not complete, which a deletion deletes as those that are installed.

use plimsoll_api::config::UpdateState;
use plimsoll_api::olm::{OperatorHistory, OperatorRevisionSpec, OperatorStatus};
use plimsoll_content::Manifest;
use plimsoll_content::kinds::cluster_kinds;

/// Returns the rollouts that began after the last one that is complete, newest first.
fn incomplete(status: &OperatorStatus) -> impl Iterator<Item = &OperatorHistory> {
    status.history.iter().take_while(|it| it.state == UpdateState::Partial)
}

/// Returns the version that is being rolled out; empty if none is.
pub(super) fn rolling_out(status: &OperatorStatus) -> String {
    incomplete(status).next().map(|it| it.version.clone()).unwrap_or_default()
}

/// Returns whether there may be objects that the inventory of an Operator lacks.
pub fn has_rollout(status: &OperatorStatus) -> bool {
    incomplete(status).next().is_some()
}

/// Adds the objects of rollouts that are not complete to the inventory of an Operator: those that exist, and those
/// that are about to. `revisions` are the parts of its kept revisions.
pub fn include_rollouts(status: &mut OperatorStatus, revisions: &[OperatorRevisionSpec]) {
    let mut numbers: Vec<u32> = incomplete(status).map(|it| it.revision).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let parts = revisions.iter().filter(|it| it.revision == number);
        let objects = parts.flat_map(|it| &it.objects).enumerate();
        let read =
            objects.filter_map(|(index, it)| Manifest::read("".into(), index, &it.object).ok());
        let manifests: Vec<Manifest> = read.collect();
        let cluster_kinds = cluster_kinds(&manifests);
        for Manifest { mut key, .. } in manifests {
            key.normalize(&cluster_kinds);
            if !status.inventory.contains(&key) {
                status.inventory.push(key);
            }
        }
    }
}
