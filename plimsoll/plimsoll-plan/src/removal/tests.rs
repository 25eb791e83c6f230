//! Scripts of what happens to an object that is to go, and what people hear of it.

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::progress::{Deletion, Orphan};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::Context;
use serde_json::json;

use super::{DeletionTracker, Prune, Terminating, remaining};
use crate::plan::DELETE;

/// Includes a manifest in a profile called `here`.
const INCLUDE: &str = "include.release.openshift.io/here";

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "pier".to_owned(),
        name: name.to_owned(),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// Each line of a script is something that happens to ConfigMap `a`, and what is reported.
fn check(script: &str) {
    let mut tracker = DeletionTracker::default();
    let mut now = 0;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (event, expected) = line.split_once("=>").expect("EVENT => NOTICES");
        let key = key("a");
        let (word, rest) = event.trim().split_once(' ').unwrap_or((event.trim(), ""));
        let deletion_events: Vec<_> = match word {
            "requested" => vec![tracker.requested(&key, "f.yaml", rest, at(now))],
            "refused" => {
                tracker.refused(&key, "f.yaml", "1.0.0", rest, at(now)).into_iter().collect()
            }
            "seen" => tracker.seen(&key, None).into_iter().collect(),
            "going" => {
                let finalizers = rest.split_whitespace().map(str::to_owned).collect();
                let terminating = Terminating { since: at(0), finalizers, remaining: Vec::new() };
                tracker.seen(&key, Some(&terminating)).into_iter().collect()
            }
            "gone" => tracker.gone(&key, at(now)).into_iter().collect(),
            "listed" => tracker.listed(&GroupKind::new("", "ConfigMap"), at(now)),
            "withdrawn" => tracker.withdrawn(|kind| kind.kind != "ConfigMap", at(now)),
            "restart" => {
                let recorded: Vec<_> = tracker.deletions().cloned().collect();
                tracker = DeletionTracker::recorded(&recorded);
                Vec::new()
            }
            "after" => {
                now += rest.trim_end_matches('s').parse::<i64>().expect("seconds");
                tracker.stuck(at(now))
            }
            other => unreachable!("{other}"),
        };
        let reported: Vec<String> = deletion_events
            .iter()
            .map(|event| {
                let mark = if event.is_warning { "!" } else { "" };
                format!("{}{mark}", event.reason)
            })
            .collect();
        let unfinished = if tracker.unfinished().next().is_some() { " (unfinished)" } else { "" };
        let reported = format!("{}{unfinished}", reported.join(" "));
        assert_eq!(reported.trim(), expected.trim(), "{line}\n{script}");
    }
}

#[test]
fn a_deletion_is_reported_when_requested_while_it_lasts_and_when_done() {
    check(
        "requested 1.0.0 => ResourceDeletionRequested (unfinished)
         seen => (unfinished)
         going a/b => ResourceDeletionOngoing (unfinished)
         going a/b => (unfinished)
         gone => ResourceDeletionCompleted
         gone =>",
    );
}

#[test]
fn what_holds_an_object_is_named_once_after_a_minute() {
    check(
        "requested 1.0.0 => ResourceDeletionRequested (unfinished)
         going a/b c/d => ResourceDeletionOngoing (unfinished)
         after 59s => (unfinished)
         after 1s => ResourceDeletionStuck! (unfinished)
         after 600s => (unfinished)",
    );
}

#[test]
fn a_namespace_that_does_not_go_tells_what_is_left_in_it() {
    let key = ObjectKey {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: "pier".to_owned(),
    };
    let condition = |type_: &str, status: &str, message: &str| json!({"type": type_, "status": status, "message": message});
    let namespace = json!({"status": {"conditions": [
        condition("NamespaceDeletionDiscoveryFailure", "False", "All resources discovered"),
        condition("NamespaceContentRemaining", "True", "Some resources are remaining: boats. has 1"),
        condition("NamespaceFinalizersRemaining", "True", "Some content has finalizers: a/b in 1"),
    ]}});
    let left = "Some resources are remaining: boats. has 1: Some content has finalizers: a/b in 1";
    let terminating =
        Terminating { since: at(0), finalizers: Vec::new(), remaining: remaining(&namespace) };
    let mut tracker = DeletionTracker::default();
    tracker.requested(&key, "f.yaml", "1.0.0", at(0));
    let ongoing = tracker.seen(&key, Some(&terminating)).expect("it is reported");
    assert_eq!(ongoing.message, format!("namespace \"pier\" is being deleted: {left}"));
    let stuck = tracker.stuck(at(60)).pop().expect("it is reported");
    assert!(stuck.message.contains(left), "{}", stuck.message);
    assert!(remaining(&json!({"status": {"phase": "Active"}})).is_empty());
}

#[test]
fn an_object_that_comes_back_is_warned_about_and_deleted_by_the_next_update() {
    check(
        "requested 1.0.0 => ResourceDeletionRequested (unfinished)
         gone => ResourceDeletionCompleted
         seen => ResourceReappeared!
         seen =>
         requested 1.1.0 => ResourceDeletionRequested (unfinished)
         gone => ResourceDeletionCompleted",
    );
}

#[test]
fn what_came_back_stays_until_a_release_deletes_it() {
    for (is_deleted_by_next, expected) in [
        // The next release dropped the manifest: that it goes is not promised.
        (false, None),
        (
            true,
            Some(
                "configmap \"pier/a\" has reappeared after having been deleted at \
                 1970-01-01T00:00:05Z; it stays until an update to a release that deletes it",
            ),
        ),
    ] {
        let mut tracker = DeletionTracker::default();
        tracker.requested(&key("a"), "f.yaml", "1.0.0", at(0));
        tracker.gone(&key("a"), at(5));
        let event = tracker.seen(&key("a"), None).expect("it is reported");
        assert!(event.message.ends_with("until an update to a release that deletes it"));
        tracker.retain(|_| is_deleted_by_next);
        let message = tracker.deletions().next().map(|deletion| deletion.message.as_str());
        assert_eq!(message, expected, "{is_deleted_by_next}");
    }
}

#[test]
fn a_refusal_is_reported_once_and_ends_with_success() {
    check(
        "refused forbidden => ResourceDeletionRefused! (unfinished)
         refused forbidden => (unfinished)
         requested 1.0.0 => ResourceDeletionRequested (unfinished)
         gone => ResourceDeletionCompleted",
    );
}

#[test]
fn a_restart_forgets_nothing_and_what_went_meanwhile_is_noticed() {
    check(
        "requested 1.0.0 => ResourceDeletionRequested (unfinished)
         restart => (unfinished)
         listed => ResourceDeletionCompleted
         restart =>
         seen => ResourceReappeared!",
    );
    check(
        "requested 1.0.0 => ResourceDeletionRequested (unfinished)
         going a/b => ResourceDeletionOngoing (unfinished)
         restart => (unfinished)
         going a/b => (unfinished)
         listed => (unfinished)
         gone => ResourceDeletionCompleted",
    );
}

#[test]
fn nothing_is_left_of_a_kind_that_is_not_served_any_more() {
    check(
        "requested 1.0.0 => ResourceDeletionRequested (unfinished)
         withdrawn => ResourceDeletionCompleted",
    );
}

#[test]
fn what_was_never_asked_to_go_is_ignored() {
    check("seen =>\n going a/b =>\n gone =>\n listed =>");
}

#[test]
fn finished_deletions_are_kept_as_long_as_they_are_requested() {
    let mut tracker = DeletionTracker::default();
    for name in ["done", "held"] {
        tracker.requested(&key(name), "f.yaml", "1.0.0", at(0));
    }
    tracker.gone(&key("done"), at(1));
    tracker.retain(|_| true);
    assert_eq!(tracker.deletions().count(), 2);
    tracker.retain(|_| false);
    let left: Vec<_> = tracker.deletions().map(|deletion| deletion.object.name.as_str()).collect();
    assert_eq!(left, ["held"]);
}

#[test]
fn what_was_removed_is_removed_again_only_by_who_asks_again() {
    let mut tracker = DeletionTracker::default();
    for name in ["done", "held"] {
        tracker.requested(&key(name), "f.yaml", "1.0.0", at(0));
    }
    tracker.requested(&key("pruned"), "orphan of 0.9.0: f.yaml", "1.0.0", at(0));
    tracker.gone(&key("done"), at(1));
    tracker.gone(&key("pruned"), at(1));
    let manifests = ["done", "pruned", "held", "other"].map(|name| {
        let ObjectKey { kind, namespace, name, .. } = key(name);
        let annotations = json!({ DELETE: "true", INCLUDE: "true" });
        let metadata = json!({ "name": name, "namespace": namespace, "annotations": annotations });
        let object = json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata });
        Manifest::read("g.yaml".into(), 0, &object).expect("a manifest")
    });
    let names = |found: Vec<Deletion>| -> Vec<String> {
        found.into_iter().map(|deletion| deletion.object.name).collect()
    };
    let context = Context { profile: Some("here".to_owned()), ..Context::default() };
    assert_eq!(names(tracker.repeated(&manifests, &context)), ["done"]);
    assert!(tracker.repeated(&manifests[1..], &context).is_empty());
    let elsewhere = Context { profile: Some("elsewhere".to_owned()), ..Context::default() };
    assert!(tracker.repeated(&manifests, &elsewhere).is_empty(), "they are left out there");
}

#[test]
fn a_name_asks_for_one_deletion_and_all_for_every_one() {
    for (value, left) in [
        (None, None),
        (Some("all"), Some("all")),
        (Some("configmap \"pier/a\""), None),
        (Some("configmap \"pier/b\""), Some("configmap \"pier/b\"")),
        (
            Some("configmap \"pier/c\", configmap \"pier/a\",configmap \"pier/b\""),
            Some("configmap \"pier/b\",configmap \"pier/c\""),
        ),
    ] {
        let mut prune = Prune::parse(value);
        prune.carried_out(&key("a"));
        assert_eq!(prune.annotation().as_deref(), left, "{value:?}");
        assert_eq!(Prune::parse(left), prune);
    }
}

#[test]
fn orphans_are_pruned_by_name_or_all_and_the_last_applied_first() {
    let orphan = |name: &str, file: &str| Orphan::new(&key(name), "v1", file, "1.0.0", "", at(0));
    let orphans = [orphan("a", "10.yaml"), orphan("b", "20.yaml"), orphan("c", "20.yaml")];
    for (value, expected) in [
        (None, ""),
        (Some(""), ""),
        (Some("all"), "b c a"),
        (Some("configmap \"pier/a\" , configmap \"pier/c\""), "c a"),
        (Some("pier/a"), ""),
    ] {
        let selected = Prune::parse(value).select(&orphans);
        let names: Vec<_> = selected.iter().map(|orphan| orphan.object.name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{value:?}");
    }
}
