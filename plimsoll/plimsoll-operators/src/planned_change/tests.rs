//! The digests of plans.

use plimsoll_api::olm::action::{ChangeState, PlannedChange};

use super::{change, digest};
use crate::manifest::{ChangeSetEdit, OperatorManifest};
use crate::observed::ObservedOperator;

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

#[test]
fn a_change_names_the_change_set_that_it_leaves() {
    let check = |edit: ChangeSetEdit, was: Option<&str>, expected: (&str, &str)| {
        let change_set = was.map(str::to_owned);
        let there = ObservedOperator { change_set, ..ObservedOperator::default() };
        let manifest = OperatorManifest { change_set: edit.clone(), ..Default::default() };
        let change = change(&manifest, Some(&there), String::new());
        let sets = (change.change_set.as_str(), change.leaves_change_set.as_str());
        assert_eq!(sets, expected, "{edit:?} {was:?}");
    };
    let joins = || ChangeSetEdit::Set("update-2/2".to_owned());
    check(ChangeSetEdit::Keep, Some("update-1/2"), ("", ""));
    check(ChangeSetEdit::Remove, Some("update-1/2"), ("", "update-1/2"));
    check(ChangeSetEdit::Remove, None, ("", ""));
    check(joins(), Some("update-1/2"), ("update-2/2", "update-1/2"));
    check(joins(), Some("update-2/2"), ("update-2/2", ""));
    check(joins(), None, ("update-2/2", ""));
}
