//! Actions of operators of bundles, by the events before. Times are seconds.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_api::{GroupKind, ObjectKey};
use serde_json::json;

use super::{FINALIZER, Operand, PackageAction, PackageEvent, Packages, versions};
use crate::simulated_operators::faults::Faults;

const DELAY: u64 = 5;

fn key(group: &str, kind: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: "lantern".to_owned(),
        name: "north".to_owned(),
    }
}

fn deployment(version: &str, generation: i64, rolled_out: bool) -> PackageEvent {
    PackageEvent::Deployment {
        key: key("apps", "Deployment"),
        package: "lantern".to_owned(),
        versions: BTreeSet::from([version.to_owned()]),
        generation,
        rolled_out,
    }
}

fn definition() -> PackageEvent {
    let kind = GroupKind { group: "g".to_owned(), kind: "Beacon".to_owned() };
    PackageEvent::Definition { kind, package: "lantern".to_owned() }
}

fn operand(resource_version: &str, is_deleting: bool, finalizers: &[&str]) -> PackageEvent {
    let operand = Operand {
        resource_version: resource_version.to_owned(),
        is_deleting,
        finalizers: finalizers.iter().map(|&it| it.to_owned()).collect(),
    };
    PackageEvent::Operand { key: key("g", "Beacon"), operand }
}

/// Plays events at their times and compares what is done at each: `roll out`, or the finalizers that
/// the object is given.
fn check(faults: &str, play: Vec<(u64, Option<PackageEvent>, &[&str])>) {
    let faults = Faults::parse(faults).expect("the faults are in order");
    let mut packages = Packages::new(faults.packages, Duration::from_secs(DELAY));
    for (number, (at, event, expected)) in play.into_iter().enumerate() {
        let now = Duration::from_secs(at);
        if let Some(event) = event {
            packages.observe(event, now);
        }
        let done: Vec<String> = packages
            .actions(now)
            .into_iter()
            .map(|action| match action {
                PackageAction::RollOut(_) => "roll out".to_owned(),
                PackageAction::SetFinalizers(_, operand) => operand.finalizers.join(","),
            })
            .collect();
        assert_eq!(done, expected, "event {number}");
    }
}

#[test]
fn a_deployment_rolls_out_some_time_after_each_change() {
    check(
        "[]",
        vec![
            (0, Some(deployment("1", 1, false)), &[]),
            (4, Some(deployment("1", 1, false)), &[]),
            (5, None, &["roll out"]),
            (6, Some(deployment("1", 1, true)), &[]),
            (10, Some(deployment("2", 2, false)), &[]),
            (15, None, &["roll out"]),
        ],
    );
}

#[test]
fn objects_have_a_finalizer_that_goes_only_while_the_operator_runs() {
    let ours: &[&str] = &[FINALIZER];
    let both = format!("theirs,{FINALIZER}");
    check(
        "[]",
        vec![
            (0, Some(definition()), &[]),
            (0, Some(operand("1", false, &["theirs"])), &[]),
            (0, Some(deployment("1", 1, true)), &[&both]),
            // Until it is seen, it is not written again.
            (1, None, &[]),
            (1, Some(operand("2", false, &["theirs", FINALIZER])), &[]),
            (2, Some(PackageEvent::DeploymentGone(key("apps", "Deployment"))), &[]),
            (3, Some(operand("3", true, ours)), &[]),
            (4, Some(deployment("1", 1, false)), &[]),
            (9, Some(deployment("1", 1, true)), &[""]),
        ],
    );
}

#[test]
fn faults_keep_deployments_from_rolling_out_and_finalizers_in_place() {
    let ours: &[&str] = &[FINALIZER];
    check(
        "- {package: lantern, fault: NeverAvailable, version: '2'}\n\
         - {package: lantern, fault: KeepsFinalizers, after: 20s}",
        vec![
            (0, Some(definition()), &[]),
            (0, Some(deployment("1", 1, true)), &[]),
            (1, Some(operand("1", true, ours)), &[""]),
            (2, Some(deployment("2", 2, false)), &[]),
            (9, None, &[]),
            (10, Some(operand("2", true, ours)), &[]),
            (11, Some(deployment("1", 3, false)), &[]),
            (16, None, &["roll out"]),
            (20, Some(deployment("1", 3, true)), &[]),
        ],
    );
}

#[test]
fn versions_are_the_tags_of_images() {
    let of = |image: &str| {
        let container = json!({ "image": image });
        let spec = json!({ "containers": [container] });
        versions(&json!({ "spec": { "template": { "spec": spec } } })).pop_first()
    };
    assert_eq!(of("registry.example.com:5000/lantern:1.0.0").as_deref(), Some("1.0.0"));
    assert_eq!(of("registry.example.com:5000/lantern"), None);
    assert_eq!(of("lantern"), None);
}
