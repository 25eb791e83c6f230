//! What is asked for, and what guards say.

use jiff::Timestamp;
use plimsoll_api::config::{Release, Update, UpdateHistory, UpdateState};
use plimsoll_api::{Condition, ConditionStatus};
use plimsoll_plan::update::preconditions::WINDOW_ANNOTATION;
use serde_json::json;

use super::super::UpdateToArguments;
use super::{UpdateDecision, cleared, pause, update};
use plimsoll_simulation::cluster_state::ClusterState;

/// The time of the requests.
const NOW: Timestamp = Timestamp::constant(88_200, 0);

fn release(version: &str) -> Release {
    Release {
        version: version.to_owned(),
        image: format!("r@sha256:{version}"),
        ..Release::default()
    }
}

/// A cluster at 1.1.0, before at 1.0.0, that may go to 1.2.1 or 1.2.0.
fn cluster(true_conditions: &[&str], state: UpdateState) -> ClusterState {
    let mut cluster = ClusterState::default();
    cluster.status.desired = release("1.1.0");
    cluster.status.available_updates = Some(vec![release("1.2.1"), release("1.2.0")]);
    let entry = |version: &str, state| UpdateHistory {
        state,
        started_time: Timestamp::UNIX_EPOCH,
        completion_time: None,
        version: version.to_owned(),
        image: release(version).image,
        verified: false,
        accepted_risks: String::new(),
    };
    cluster.status.history = vec![entry("1.1.0", state), entry("1.0.0", UpdateState::Completed)];
    cluster.status.conditions = true_conditions
        .iter()
        .map(|type_| Condition {
            type_: (*type_).to_owned(),
            status: ConditionStatus::True,
            last_transition_time: Timestamp::UNIX_EPOCH,
            reason: "WHY".to_owned(),
            message: "WHAT".to_owned(),
        })
        .collect();
    cluster
}

/// Flags and version, conditions that are true: the request as `version image[!]` or what is said.
#[track_caller]
fn check(arguments: &str, conditions: &[&str], expected: &str) {
    let mut requested = UpdateToArguments::default();
    for word in arguments.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("--to-image", image) => requested.to_image = Some(image.to_owned()),
            ("--latest", _) => requested.latest = true,
            ("--force", _) => requested.force = true,
            ("--allow-explicit-update", _) => requested.allow_explicit_update = true,
            ("--allow-update-with-warnings", _) => requested.allow_update_with_warnings = true,
            (version, _) => requested.version = Some(version.to_owned()),
        }
    }
    let reported = match update(&cluster(conditions, UpdateState::Completed), &requested, NOW) {
        Ok(UpdateDecision::Nothing(text)) => text,
        Ok(UpdateDecision::Patch(Update { version, image, force, .. }, _)) => {
            format!("{version} {image}{}", if force { "!" } else { "" })
        }
        Err(refusal) => refusal.to_string(),
    };
    assert!(reported.starts_with(expected), "{arguments}: {reported}");
    assert!(!expected.is_empty());
}

#[test]
fn a_version_is_looked_up_and_an_image_taken_as_it_is() {
    check("1.2.0", &[], "1.2.0 r@sha256:1.2.0");
    check("--latest", &[], "1.2.1 r@sha256:1.2.1");
    check("1.0.0 --force", &[], "1.0.0 r@sha256:1.0.0!");
    check("1.2.0 --force", &[], "1.2.0 r@sha256:1.2.0!");
    check("--to-image=r@sha256:1.2.0", &[], " r@sha256:1.2.0");
    check("--to-image=x@sha256:9 --allow-explicit-update", &[], " x@sha256:9");
    check("9.9.9 --to-image=x@sha256:9 --allow-explicit-update", &[], "9.9.9 x@sha256:9");
    check("1.1.0", &[], "info: Cluster is already at 1.1.0");
}

#[test]
fn guards_name_the_flag_that_lets_pass() {
    check("1.3.0", &[], "1.3.0 is not one of the available updates: 1.2.1, 1.2.0\n");
    check("--to-image=x@sha256:9", &[], "the image \"x@sha256:9\" is not one of the available");
    check("--to-image=x:latest", &[], "the image \"x:latest\" is not named by its digest");
    check("--to-image=x:latest --force --allow-explicit-update", &[], " x:latest!");
    let guarded = "The cluster is already being updated.\n\n  Reason: WHY\n  Message: WHAT\n\nIf you \
                   want to update anyway, use --allow-update-with-warnings.";
    check("1.2.0", &["Progressing"], guarded);
    check("1.2.0", &["Progressing", "Failing"], "The cluster is experiencing an error");
    check("1.2.0", &["Invalid"], "The cluster version is invalid.");
    let lower = "1.0.0 is less than the current target 1.1.0 and matches the cluster's previous \
                 version, but rollbacks that change major or minor versions are not \
                 recommended\nIf you want to go back anyway, use --force.";
    check("1.0.0", &[], lower);
    check("1.0.0 --allow-update-with-warnings", &[], lower);
    check("1.2.0 --allow-update-with-warnings", &["Failing"], "1.2.0 r@sha256:1.2.0");
}

#[test]
fn a_request_may_wait_for_its_maintenance_window() {
    let check = |schedule: &str, force: bool, expected: &str| {
        let mut cluster = cluster(&[], UpdateState::Completed);
        cluster.annotations.insert(WINDOW_ANNOTATION.to_owned(), "nights".to_owned());
        let mut spec = json!({ "windows": [{ "schedule": schedule, "duration": "1h" }] });
        if schedule == "never" {
            spec["windows"][0]["schedule"] = "0 22 * * *".into();
            spec["exclusions"] =
                json!([{ "from": "1960-01-01T00:00:00Z", "until": "9999-01-01T00:00:00Z" }]);
        }
        if !schedule.is_empty() {
            cluster.windows.insert_object("nights", &json!({ "spec": spec }));
        }
        let version = Some("1.2.0".to_owned());
        let requested = UpdateToArguments { version, force, ..UpdateToArguments::default() };
        let reported = match update(&cluster, &requested, NOW) {
            Ok(UpdateDecision::Nothing(text) | UpdateDecision::Patch(_, text)) => text,
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(reported, expected, "{schedule}");
    };
    check("0 0 * * *", false, "Requested update to 1.2.0");
    check(
        "0 22 * * *",
        false,
        "Requested update to 1.2.0, which waits to begin: MaintenanceWindow nights is not open, it opens \
         1970-01-02T22:00:00Z",
    );
    check("0 22 * * *", true, "Requested update to 1.2.0");
    check(
        "never",
        false,
        "The update would be refused.\n\n  Reason: MaintenanceWindowClosed\n  Message: MaintenanceWindow nights is not \
         open, it never opens again: change its windows or exclusions\n\nIf you want to update anyway, use \
         --allow-update-with-warnings.",
    );
    check(
        "",
        false,
        "The update would be refused.\n\n  Reason: InvalidMaintenanceWindow\n  Message: there is no \
         MaintenanceWindow nights: create it, or name another one\n\nIf you want to update anyway, use \
         --allow-update-with-warnings.",
    );
}

#[test]
fn what_the_controller_would_refuse_is_said_beforehand() {
    let mut cluster = cluster(&["Upgradeable"], UpdateState::Completed);
    cluster.status.conditions[0].status = ConditionStatus::False;
    cluster.status.available_updates.as_mut().expect("some").push(release("1.1.1"));
    let check = |version: &str, lets_pass: bool, expected: Option<&str>| {
        let requested = UpdateToArguments {
            version: Some(version.to_owned()),
            allow_update_with_warnings: lets_pass,
            ..UpdateToArguments::default()
        };
        let refusal = update(&cluster, &requested, NOW).err().map(|it| it.to_string());
        assert_eq!(refusal.as_deref(), expected, "{version}");
    };
    let refusal = "The update would be refused.\n\n  Reason: WHY\n  Message: WHAT\n\nIf you want to \
                   update anyway, use --allow-update-with-warnings.";
    check("1.2.0", false, Some(refusal));
    check("1.2.0", true, None);
    check("1.1.1", false, None);
}

#[test]
fn taking_a_request_back_does_not_turn_an_update_around() {
    let check = |state, requested: bool, expected: &str| {
        let mut cluster = cluster(&[], state);
        cluster.spec.desired_update =
            requested.then(|| Update { version: "1.1.0".to_owned(), ..Update::default() });
        assert_eq!(cleared(&cluster), expected);
    };
    check(UpdateState::Completed, false, "info: No update is requested");
    let stays = "Cleared the request for 1.1.0; the cluster stays at 1.1.0";
    check(UpdateState::Completed, true, stays);
    check(
        UpdateState::Partial,
        true,
        "Cleared the request for 1.1.0; the update to 1.1.0 continues; to go back, use `plimsoll \
         update to 1.0.0`",
    );
}

#[test]
fn only_an_update_in_progress_pauses_before_the_next_level() {
    let check = |state, before: Option<u32>, annotation: &str, expected: &str| {
        let found = match pause(&cluster(&[], state), before) {
            Ok(decision) => (decision.annotation, decision.text),
            Err(refusal) => (String::new(), refusal.to_string()),
        };
        assert_eq!(found, (annotation.to_owned(), expected.to_owned()));
    };
    let (partial, completed) = (UpdateState::Partial, UpdateState::Completed);
    check(partial, None, "next", "The update pauses before the next run level");
    check(partial, Some(30), "30", "The update pauses before run level 30");
    let next = "No update is in progress; the next one pauses before run level 30";
    check(completed, Some(30), "30", next);
    let none =
        "no update is in progress\nTo pause the next one, name a run level of it with --before.";
    check(completed, None, "", none);
}
