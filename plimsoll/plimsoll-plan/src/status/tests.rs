//! CVS-23 to CVS-31, and of CVS-32 to CVS-42 those that need no cluster.

mod waiting;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{ClusterVersionStatus, Release, UpdateState};
use plimsoll_api::{Condition, ConditionStatus, Effect, Reason};

use super::{Limits, StatusInput, Updates, cluster_version_status};
use crate::capabilities::Capabilities;
use crate::health::failure::Failure;
use crate::plan::mode::Mode;
use crate::update::acceptance::{LoadStatus, LoadStep};

/// A situation to compute a status from; the tests change what matters to them.
#[derive(Debug, Clone)]
pub(super) struct Situation {
    pub(super) now: Timestamp,
    pub(super) previous: ClusterVersionStatus,
    pub(super) release: Release,
    pub(super) mode: Mode,
    pub(super) done: usize,
    pub(super) unchanged: usize,
    pub(super) total: usize,
    pub(super) failures: Vec<Failure>,
    pub(super) completed: bool,
    pub(super) invalid: Vec<String>,
    pub(super) load: Option<LoadStatus>,
    pub(super) implicit: Vec<&'static str>,
    pub(super) hash: &'static str,
    pub(super) updates: Updates,
    pub(super) limits: Limits,
}

impl Situation {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            now: Timestamp::from_second(100_000).expect("a small number"),
            previous: ClusterVersionStatus::default(),
            release: release("1.2.3"),
            mode,
            done: 0,
            unchanged: 0,
            total: 10,
            failures: Vec::new(),
            completed: mode == Mode::Reconciling,
            invalid: Vec::new(),
            load: None,
            implicit: Vec::new(),
            hash: "hash=",
            updates: Updates::default(),
            limits: Limits::default(),
        }
    }

    pub(super) fn failing(mode: Mode, failures: Vec<Failure>) -> Self {
        Self { failures, ..Self::new(mode) }
    }

    pub(super) fn status(&self) -> ClusterVersionStatus {
        let capabilities = Capabilities {
            implicit: self.implicit.iter().map(|name| (*name).to_owned()).collect(),
            ..Capabilities::default()
        };
        cluster_version_status(&StatusInput {
            now: self.now,
            limits: &self.limits,
            previous: &self.previous,
            generation: 7,
            release: &self.release,
            manifest_hash: self.hash,
            mode: self.mode,
            done: self.done,
            unchanged: self.unchanged,
            total: self.total,
            failures: &self.failures,
            completed: self.completed,
            invalid: &self.invalid,
            load: self.load.as_ref(),
            capabilities: &capabilities,
            overrides: None,
            not_upgradeable: &[],
            updates: &self.updates,
            deletions: &[],
            verified: false,
            accepted_risks: "",
        })
    }

    /// Asserts conditions, written `Type=Status Reason: message`.
    fn check(&self, expected: &[&str]) {
        let status = self.status();
        for line in expected {
            let type_ = line.split('=').next().expect("a condition");
            let found = condition(&status, type_).map(render);
            assert_eq!(found.as_deref(), Some(*line), "{self:?}");
        }
    }
}

pub(super) fn release(version: &str) -> Release {
    Release {
        version: version.to_owned(),
        image: format!("registry/release@sha256:{version}"),
        ..Release::default()
    }
}

pub(super) fn condition<'a>(
    status: &'a ClusterVersionStatus,
    type_: &str,
) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

pub(super) fn render(condition: &Condition) -> String {
    let Condition { type_, status, reason, message, .. } = condition;
    let mut text = format!("{type_}={}", status.as_str());
    if !reason.is_empty() {
        text.push_str(&format!(" {reason}"));
    }
    if !message.is_empty() {
        text.push_str(&format!(": {message}"));
    }
    text
}

/// A ClusterOperator that has been as it is for so many minutes.
pub(super) fn operator(name: &str, reason: Reason, effect: Effect, minutes: i64) -> Failure {
    let state = match reason {
        Reason::ClusterOperatorDegraded => "degraded",
        Reason::ClusterOperatorUpdating => "updating versions",
        _ => "not available",
    };
    let since = Situation::new(Mode::Updating).now - SignedDuration::from_mins(minutes);
    let message = format!("Cluster operator {name} is {state}");
    Failure::of_cluster_operator(name, reason, Some(effect), message).since(since)
}

fn updating(name: &str, minutes: i64) -> Failure {
    operator(name, Reason::ClusterOperatorUpdating, Effect::None, minutes)
}

fn unavailable(name: &str) -> Failure {
    operator(name, Reason::ClusterOperatorNotAvailable, Effect::Fail, 0)
}

#[test]
fn a_failure_to_reconcile_takes_nothing_back() {
    // CVS-29; unlike upstream, what the server said is part of the message.
    let before = Situation::new(Mode::Reconciling);
    let failure = Failure::of_object(
        "test \"file-yml\"",
        Reason::UpdatePayloadFailed,
        Some(Effect::Fail),
        "Could not update test \"file-yml\" (3 of 3): unable to proceed",
    );
    let after = Situation {
        previous: before.status(),
        ..Situation::failing(Mode::Reconciling, vec![failure])
    };
    after.check(&[
        "Available=True: Done applying 1.2.3",
        "Failing=True UpdatePayloadFailed: \
         Could not update test \"file-yml\" (3 of 3): unable to proceed",
        "Progressing=False UpdatePayloadFailed: \
         Error while reconciling 1.2.3: the update could not be applied",
    ]);
    assert_eq!(after.status().history[0].state, UpdateState::Completed);
}

#[test]
fn several_failures_name_their_objects() {
    // CVS-31.
    let blocked = Failure::of_object(
        "configmap \"ns/20-b\"",
        Reason::UpdatePayloadResourceInvalid,
        None,
        "Could not update configmap \"ns/20-b\" (3 of 3): …",
    );
    let mut situation =
        Situation::failing(Mode::Initializing, vec![unavailable("a"), unavailable("b"), blocked]);
    situation.done = 1;
    situation.check(&[
        "Available=False",
        "Failing=True MultipleErrors: Multiple errors are preventing progress:\n\
         * Cluster operators a, b are not available\n\
         * Could not update configmap \"ns/20-b\" (3 of 3): …",
        "Progressing=True MultipleErrors: Unable to apply 1.2.3: \
         some cluster configuration is invalid (configmap \"ns/20-b\"); also a, b",
    ]);
    assert_eq!(situation.status().history[0].state, UpdateState::Partial);
}

#[test]
fn a_quiet_cluster_says_so_from_the_beginning() {
    // CVS-39.
    Situation::new(Mode::Reconciling).check(&[
        "Available=True: Done applying 1.2.3",
        "Failing=False",
        "Progressing=False: Cluster version is 1.2.3",
        "ImplicitlyEnabledCapabilities=False AsExpected: Capabilities match configured spec",
        "RetrievedUpdates=False NoChannel: The update channel has not been configured.",
    ]);
}

#[test]
fn during_an_update_the_cluster_has_still_the_old_release() {
    let old = Situation { release: release("1.2.2"), ..Situation::new(Mode::Reconciling) };
    let update = Situation { previous: old.status(), ..Situation::new(Mode::Updating) };
    update.check(&[
        "Available=True: Done applying 1.2.2",
        "Progressing=True: Working towards 1.2.3",
        "Upgradeable=False UpdateInProgress: \
         An update is already in progress and the details are in the Progressing condition.",
    ]);
    let status = update.status();
    assert_eq!(status.desired.version, "1.2.3");
    assert_eq!(status.history.len(), 2);
    assert_eq!(status.history[1].state, UpdateState::Completed);
}

#[test]
fn a_rejected_release_leaves_everything_else_alone() {
    // CVS-33.
    let rejected = |failure: Option<&str>| {
        let mut situation = Situation::new(Mode::Reconciling);
        situation.load = Some(LoadStatus {
            step: LoadStep::Retrieve,
            version: "9.9.9".to_owned(),
            image: "registry/bad".to_owned(),
            architecture: String::new(),
            failure: failure.map(str::to_owned),
        });
        situation
    };
    let mut situation = rejected(Some("the signature does not match"));
    situation.check(&[
        "ReleaseAccepted=False RetrievePayload: Retrieving payload failed version=\"9.9.9\" \
         image=\"registry/bad\" failure=the signature does not match",
        "Progressing=False: Cluster version is 1.2.3",
    ]);
    assert_eq!(situation.status().desired.version, "1.2.3");
    assert_eq!(situation.status().history.len(), 1);
    rejected(None).check(&["ReleaseAccepted=Unknown RetrievePayload: \
                            Retrieving and verifying payload version=\"9.9.9\" image=\"registry/bad\""]);
    // Nothing is known of a new one yet: what was said stays.
    situation = Situation { previous: situation.status(), ..Situation::new(Mode::Reconciling) };
    assert!(condition(&situation.status(), "ReleaseAccepted").is_some());
}

#[test]
fn an_invalid_spec_is_reported_until_it_is_valid() {
    let invalid = |mode, messages: &[&str]| Situation {
        invalid: messages.iter().map(|message| (*message).to_owned()).collect(),
        ..Situation::new(mode)
    };
    invalid(Mode::Reconciling, &["a: wrong"]).check(&[
        "Invalid=True InvalidClusterVersion: The cluster version is invalid: a: wrong",
        "Progressing=False InvalidClusterVersion: Stopped at 1.2.3: the cluster version is invalid",
    ]);
    invalid(Mode::Updating, &["a: wrong", "b: wrong"]).check(&[
        "Invalid=True InvalidClusterVersion: \
         The cluster version is invalid:\n* a: wrong\n* b: wrong",
        "Progressing=True InvalidClusterVersion: \
         Reconciling 1.2.3: the cluster version is invalid",
    ]);
    let valid = Situation {
        previous: invalid(Mode::Reconciling, &["a: wrong"]).status(),
        ..Situation::new(Mode::Reconciling)
    };
    assert!(condition(&valid.status(), "Invalid").is_none());
}

#[test]
fn without_a_release_nothing_is_applied() {
    let situation = Situation { release: Release::default(), ..Situation::new(Mode::Initializing) };
    situation.check(&[
        "Failing=True NoDesiredImage: No configured operator version, unable to update cluster",
        "Progressing=True NoDesiredImage: \
         Unable to apply <unknown>: an unknown error has occurred: NoDesiredImage",
    ]);
    assert_eq!(situation.status().history, []);
}

#[test]
fn times_move_with_the_status_of_a_condition_only() {
    let first = Situation::new(Mode::Updating);
    let mut second = Situation { previous: first.status(), ..first.clone() };
    second.now = first.now + SignedDuration::from_millis(90_500);
    second.done = 4;
    let status = second.status();
    let progressing = condition(&status, "Progressing").expect("it is always there");
    assert_eq!(progressing.last_transition_time, first.now);
    second.mode = Mode::Reconciling;
    let status = second.status();
    let progressing = condition(&status, "Progressing").expect("it is always there");
    assert_eq!(progressing.status, ConditionStatus::False);
    assert_eq!(progressing.last_transition_time, first.now + SignedDuration::from_secs(90));
}

#[test]
fn the_same_situation_gives_the_same_status() {
    let first = Situation::failing(Mode::Updating, vec![unavailable("a"), updating("b", 3)]);
    let mut again = Situation { previous: first.status(), ..first.clone() };
    again.now = first.now + SignedDuration::from_secs(7);
    assert_eq!(again.status(), first.status());
}

#[test]
fn a_hash_that_is_not_known_yet_keeps_the_old_one() {
    let first = Situation::new(Mode::Reconciling);
    let second = Situation { previous: first.status(), hash: "", ..first };
    let status = second.status();
    assert_eq!(status.version_hash, "hash=");
    assert_eq!(status.observed_generation, 7);
    assert_eq!(status.available_updates, None);
}

#[test]
fn what_the_release_before_has_is_no_progress_of_an_update() {
    for (done, unchanged, expected) in [
        (0, 0, "Working towards 1.2.3"),
        (8, 8, "Working towards 1.2.3"),
        (9, 8, "Working towards 1.2.3: 1 of 2 done (50% complete)"),
        (10, 8, "Working towards 1.2.3: 2 of 2 done (100% complete)"),
        (10, 10, "Working towards 1.2.3"),
        // Another plan of the same release, of which less is done.
        (3, 8, "Working towards 1.2.3"),
    ] {
        let situation = Situation { done, unchanged, ..Situation::new(Mode::Updating) };
        situation.check(&[&format!("Progressing=True: {expected}")]);
    }
}

#[test]
fn a_pause_is_reported_until_something_else_matters_more() {
    let updates = Updates { paused_before: Some(40), ..Updates::default() };
    let paused = Situation { updates, ..Situation::new(Mode::Updating) };
    paused.check(&[
        "Progressing=True UpdatePaused: Working towards 1.2.3: paused before run level 40",
    ]);
    Situation { done: 5, ..paused.clone() }.check(&[
        "Progressing=True UpdatePaused: Working towards 1.2.3: 5 of 10 done (50% complete), paused \
         before run level 40",
        "Failing=False",
    ]);
    Situation { failures: vec![updating("a", 1)], ..paused }
        .check(&["Progressing=True ClusterOperatorUpdating: Working towards 1.2.3: waiting on a"]);
}

#[test]
fn a_store_tells_of_the_updates_it_has() {
    let updates = Updates {
        available: Some(vec![release("1.2.4")]),
        retrieved: Ok(()),
        ..Updates::default()
    };
    let situation = Situation { updates, ..Situation::new(Mode::Reconciling) };
    situation.check(&["RetrievedUpdates=True"]);
    assert_eq!(situation.status().available_updates, Some(vec![release("1.2.4")]));
}
