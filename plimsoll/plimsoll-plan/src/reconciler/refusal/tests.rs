//! Which releases are refused, in which words.

use std::collections::BTreeSet;

use plimsoll_api::ObjectKey;
use plimsoll_api::config::{UpdateHistory, UpdateState};

use super::{goes_back, nothing_included, of_other_product};
use crate::plan::mode::Mode;
use crate::reconciler::testing::{PROFILE, at, desired, image, payload, requesting};

/// History from text, newest first; all of it completed.
fn history(versions: &str) -> Vec<UpdateHistory> {
    let entry = |version: &str| UpdateHistory {
        state: UpdateState::Completed,
        started_time: at(0),
        completion_time: None,
        version: version.to_owned(),
        image: image(version),
        verified: false,
        accepted_risks: String::new(),
    };
    versions.split_whitespace().map(entry).collect()
}

#[test]
fn a_release_without_a_manifest_for_the_cluster_is_refused() {
    #[track_caller]
    fn check(words: &str, profile: &str, expected: &str) {
        let payload = payload("1.0.0", words);
        let context = payload.context(profile, "Default");
        let said = nothing_included(&payload, &context).map(|it| it.to_string());
        assert_eq!(said.unwrap_or_default(), expected, "{words}");
    }
    check("a b", PROFILE, "");
    check(
        "a b",
        "nosuch",
        "release 1.0.0 has nothing for this cluster: none of its 2 manifests is for profile \
         \"nosuch\" and feature set \"Default\"",
    );
}

#[test]
fn a_lower_version_is_refused() {
    #[track_caller]
    fn check(versions: &str, next: &str, expected: &str) {
        let next = payload(next, "a").named();
        let said = goes_back(&history(versions), &next).map(|it| it.to_string());
        assert_eq!(said.unwrap_or_default(), expected, "{versions} to {next:?}");
    }
    check("", "1.0.0", "");
    check("1.0.0", "1.0.0", "");
    check("1.0.0", "1.0.1", "");
    check("1.0.0", "one", "");
    check("one", "1.0.0", "");
    // The one that is under way is resumed, wherever it leads.
    check("1.0.0 1.2.0 1.1.0", "1.0.0", "");
    let lower = |from: &str| {
        format!("release 1.0.0 has a lower version than release {from}, which this cluster is at")
    };
    // A rollback to the release before too: it is requested in the ClusterVersion.
    check("1.0.1 1.0.0", "1.0.0", &lower("1.0.1"));
    check("1.1.0", "1.0.0", &lower("1.1.0"));
    check("1.1.0 1.0.0", "1.0.0", &lower("1.1.0"));
}

#[test]
fn a_release_that_has_next_to_nothing_of_the_cluster_is_of_another_product() {
    #[track_caller]
    fn check(objects: usize, kept: usize, expected: &str) {
        let key = |index: usize| ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "x".to_owned(),
            name: format!("o{index}"),
        };
        let ours: Vec<ObjectKey> = (0..objects).map(key).collect();
        let ours: Vec<&ObjectKey> = ours.iter().collect();
        let words: Vec<String> = (0..kept).map(|index| format!("o{index}")).collect();
        let payload = payload("2.0.0", &format!("new {}", words.join(" ")));
        let plan = desired(payload, requesting(""), "").plan(Mode::Updating);
        let said = of_other_product(&ours, "1.0.0", &plan, &BTreeSet::new());
        assert_eq!(said.map(|it| it.to_string()).unwrap_or_default(), expected);
    }
    check(0, 0, "");
    check(11, 0, "");
    check(
        12,
        0,
        "release 2.0.0 is of another product: of the 12 objects that release 1.0.0 applied to this \
         cluster it has 0",
    );
    check(
        13,
        3,
        "release 2.0.0 is of another product: of the 13 objects that release 1.0.0 applied to this \
         cluster it has 3",
    );
    check(12, 3, "");
}
