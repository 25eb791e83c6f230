//! The digests of plans.

use plimsoll_api::olm::action::{ChangeState, PlannedChange};

use super::digest;

#[test]
fn the_digest_of_a_plan_tells_plans_apart_and_not_their_progress() {
    let change = PlannedChange { operator: "foo".into(), ..PlannedChange::default() };
    let written =
        PlannedChange { state: ChangeState::Written, message: "m".into(), ..change.clone() };
    let other = PlannedChange { requested: "2.0.0".into(), ..change.clone() };
    let digest = |change: &PlannedChange| digest(std::slice::from_ref(change));
    assert_eq!(digest(&change), digest(&written));
    assert_ne!(digest(&change), digest(&other));
    let swapped = PlannedChange { image: "foo@sha256:b".into(), ..change.clone() };
    assert_ne!(digest(&change), digest(&swapped));
}
