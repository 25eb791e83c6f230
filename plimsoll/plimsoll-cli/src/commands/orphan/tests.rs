//! What is asked for, given what is listed; and the list.

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::progress::{Deletion, Orphan};
use plimsoll_plan::removal::PRUNE;

use super::{PruneArguments, list, pruning};
use crate::render::format::Format;
use plimsoll_simulation::cluster_state::ClusterState;

fn key(kind: &str, group: &str, namespace: &str, name: &str) -> ObjectKey {
    let text = str::to_owned;
    ObjectKey { kind: text(kind), group: text(group), namespace: text(namespace), name: text(name) }
}

/// A cluster with three orphans, of which one is going, and an annotation or none.
fn cluster(annotation: &str) -> ClusterState {
    let keys = [
        key("ConfigMap", "", "pier", "tides"),
        key("Deployment", "apps", "pier", "crane"),
        key("Namespace", "", "", "attic"),
    ];
    let mut cluster = ClusterState::default();
    let orphan = |key: &ObjectKey| {
        Orphan::new(key, "v1", "f.yaml", "1.0.0", "not in release 1.1.0", Timestamp::UNIX_EPOCH)
    };
    cluster.progress.orphans = keys.iter().map(orphan).collect();
    let mut going = Deletion::new(&keys[2], "f.yaml", "1.1.0", Timestamp::UNIX_EPOCH);
    going.message = "held by finalizer a/b".to_owned();
    cluster.progress.deletions = vec![going];
    if !annotation.is_empty() {
        cluster.annotations.insert(PRUNE.to_owned(), annotation.to_owned());
    }
    cluster
}

/// The annotation before, names or `--all`: what is reported, and the annotation afterwards.
#[track_caller]
fn check(annotation: &str, names: &str, expected: &str) {
    let all = names == "--all";
    let names = names.split(' ').filter(|_| !all).map(str::to_owned).collect();
    let reported = match pruning(
        &cluster(annotation),
        &PruneArguments { names, all, yes: true, ..PruneArguments::default() },
    ) {
        Ok(pruning) => format!("{} => {}", pruning.added.join(" "), pruning.annotation),
        Err(refusal) => refusal.to_string(),
    };
    assert_eq!(reported, expected, "{annotation:?}");
}

const CRANE: &str = "deployment.apps \"pier/crane\"";

#[test]
fn what_is_named_is_asked_for_beside_what_was_before() {
    let (tides, attic) = ("configmap \"pier/tides\"", "namespace \"attic\"");
    check("", "deployment.apps/pier/crane", &format!("deployment.apps/crane -n pier => {CRANE}"));
    let both = format!("namespace/attic => {attic},{CRANE}");
    check(&format!("{CRANE},configmap \"pier/gone\""), "namespace/attic", &both);
    let all = format!("configmap/tides -n pier namespace/attic => {tides},{attic},{CRANE}");
    check(CRANE, "--all", &all);
    check(CRANE, "deployment.apps/pier/crane", &format!(" => {CRANE}"));
    check("all", "--all", " => all");
}

#[test]
fn an_unknown_orphan_is_answered_with_those_there_are() {
    let there = "there is no orphan pier/crane; there are:\n  configmap/tides -n pier\n  \
                 deployment.apps/crane -n pier\n  namespace/attic";
    check("", "pier/crane namespace/attic", there);
    let requested = PruneArguments { names: vec!["a".to_owned()], ..PruneArguments::default() };
    let refusal = pruning(&ClusterState::default(), &requested).expect_err("there is nothing");
    assert_eq!(refusal.to_string(), "there is no orphan a; there are none");
}

#[test]
fn the_list_tells_how_far_each_is() {
    let listed = |cluster: &ClusterState, format| {
        let mut out = Vec::new();
        list(cluster, format, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("it is text")
    };
    let expected = "\
NAME                            RELEASE   WHY                    STATE
configmap/tides -n pier         1.0.0     not in release 1.1.0   Kept
deployment.apps/crane -n pier   1.0.0     not in release 1.1.0   ToBeDeleted
namespace/attic                 1.0.0     not in release 1.1.0   Requested: held by finalizer a/b
";
    assert_eq!(listed(&cluster(CRANE), &Format::Text), expected);
    let json: serde_json::Value =
        serde_json::from_str(&listed(&cluster(CRANE), &Format::Json)).expect("it is JSON");
    assert_eq!(json[1]["state"], "ToBeDeleted");
    assert_eq!(json[1]["id"], "deployment.apps/crane -n pier");
    assert_eq!(json[2]["waitsFor"], "held by finalizer a/b");
    assert!(listed(&ClusterState::default(), &Format::Text).starts_with("No orphans"));
}
