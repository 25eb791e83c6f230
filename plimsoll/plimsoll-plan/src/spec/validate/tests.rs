//! Specs that are invalid, and how that is said (CVS-41, CVS-42).

use jiff::Timestamp;
use plimsoll_api::config::{
    ClusterVersionSpec, ClusterVersionStatus, Release, Update, UpdateHistory, UpdateState,
};

use super::{cluster_version, without_invalid};

fn check(spec: &ClusterVersionSpec, status: &ClusterVersionStatus, expected: &[&str]) {
    let violations = cluster_version("version", spec, status);
    let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "{spec:?}");
    let left = without_invalid(spec, &violations);
    assert_eq!(cluster_version("version", &left, status), [], "{left:?}");
}

fn update(version: &str, image: &str) -> ClusterVersionSpec {
    let update =
        Update { version: version.to_owned(), image: image.to_owned(), ..Update::default() };
    ClusterVersionSpec { desired_update: Some(update), ..ClusterVersionSpec::default() }
}

fn available(releases: &[(&str, &str)]) -> ClusterVersionStatus {
    let release = |(version, image): &(&str, &str)| Release {
        version: (*version).to_owned(),
        image: (*image).to_owned(),
        ..Release::default()
    };
    ClusterVersionStatus {
        available_updates: Some(releases.iter().map(release).collect()),
        ..ClusterVersionStatus::default()
    }
}

#[test]
fn a_cluster_id_is_a_random_uuid() {
    let status = ClusterVersionStatus::default();
    let id = |id: &str| ClusterVersionSpec {
        cluster_id: id.to_owned(),
        ..ClusterVersionSpec::default()
    };
    let wrong =
        |id: &str, message: &str| format!("spec.clusterID: Invalid value: {id:?}: {message}");
    let variant = "must be an RFC4122-variant UUID";
    check(&id(""), &status, &[]);
    check(&id("0c8ccc92-0d55-4c46-8c4a-1a2b3c4d5e6f"), &status, &[]);
    for bad in ["x", "0c8ccc92-0d55-4c46-cc4a-1a2b3c4d5e6f", "0c8ccc920d554c468c4a1a2b3c4d5e6f"] {
        check(&id(bad), &status, &[&wrong(bad, variant)]);
    }
    let version_1 = "0c8ccc92-0d55-1c46-8c4a-1a2b3c4d5e6f";
    check(&id(version_1), &status, &[&wrong(version_1, "must be a version-4 UUID")]);
}

#[test]
fn an_upstream_is_a_url() {
    let status = ClusterVersionStatus::default();
    for (url, valid) in [
        ("", true),
        ("https://updates.example.com/graph", true),
        ("http://[::1]:8080/?a=b", true),
        ("updates.example.com", false),
        ("://x", false),
        ("https://", false),
        ("https://a b", false),
    ] {
        let spec = ClusterVersionSpec { upstream: url.to_owned(), ..ClusterVersionSpec::default() };
        let said = format!("spec.upstream: Invalid value: {url:?}: must be a valid URL or empty");
        let expected: &[&str] = if valid { &[] } else { &[&said] };
        check(&spec, &status, expected);
    }
}

#[test]
fn an_update_must_name_one_release() {
    let none = ClusterVersionStatus::default();
    check(
        &update("", ""),
        &none,
        &["spec.desiredUpdate: Required value: must specify architecture, version, or image"],
    );
    check(
        &update("new", "image"),
        &none,
        &["spec.desiredUpdate.version: Invalid value: \"new\": \
           must be a semantic version (1.2.3[-...])"],
    );
    check(&update("", "image"), &none, &[]);
    check(&update("1.0.0", "image"), &none, &[]);
    let unavailable = "spec.desiredUpdate.version: Invalid value: \"1.0.0\": \
                       when image is empty the update must be an available update";
    check(&update("1.0.0", ""), &none, &[unavailable]);
    check(&update("1.0.0", ""), &available(&[("1.0.1", "b")]), &[unavailable]);
    check(&update("1.0.0", ""), &available(&[("1.0.0", "a"), ("1.0.1", "b")]), &[]);
    check(
        &update("1.0.0", ""),
        &available(&[("1.0.0", "a"), ("1.0.0", "b")]),
        &["spec.desiredUpdate.version: Invalid value: \"1.0.0\": \
           there are multiple possible payloads for this version, specify the exact image"],
    );
}

#[test]
fn a_release_of_the_history_may_be_asked_for_by_version() {
    let entry = UpdateHistory {
        state: UpdateState::Completed,
        started_time: Timestamp::UNIX_EPOCH,
        completion_time: None,
        version: "1.0.0".to_owned(),
        image: "a".to_owned(),
        verified: false,
        accepted_risks: String::new(),
    };
    let status = ClusterVersionStatus { history: vec![entry], ..available(&[]) };
    check(&update("1.0.0", ""), &status, &[]);
}

#[test]
fn the_release_that_is_applied_may_be_asked_for_before_the_history_tells_of_it() {
    let desired =
        Release { image: "a".to_owned(), version: "1.0.0".to_owned(), ..Release::default() };
    let status = ClusterVersionStatus { desired, ..available(&[("1.0.1", "b")]) };
    check(&update("1.0.0", ""), &status, &[]);
}

#[test]
fn the_name_is_checked_too() {
    let said: Vec<String> =
        cluster_version("Version_", &ClusterVersionSpec::default(), &available(&[]))
            .iter()
            .map(ToString::to_string)
            .collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("metadata.name: Invalid value: \"Version_\": must consist of"));
}
