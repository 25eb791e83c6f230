//! Which watches start when.

use plimsoll_api::{GroupKind, ObjectKey};

use super::{WatchPlan, WatchScope};
use crate::plan::GroupVersionKind;
use crate::progress::{Scope, World};

fn kind(kind: &str) -> GroupVersionKind {
    let group = match kind {
        "Deployment" | "DaemonSet" | "StatefulSet" => "apps",
        "Job" => "batch",
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "ClusterOperator" => "config.openshift.io",
        _ => "",
    };
    GroupVersionKind { group: group.to_owned(), version: "v1".to_owned(), kind: kind.to_owned() }
}

/// A cluster that serves some kinds.
fn world(served: &str) -> World {
    let mut world = World::default();
    for name in served.split_whitespace() {
        let scope = match name {
            "Namespace" | "CustomResourceDefinition" | "ClusterOperator" | "Node" => Scope::Cluster,
            _ => Scope::Namespaced,
        };
        world.serve(kind(name), scope);
    }
    world
}

/// `KIND/NAME` words as objects in namespace `x`.
fn objects(words: &str) -> Vec<(GroupVersionKind, ObjectKey)> {
    let object = |word: &str| {
        let (kind_name, name) = word.split_once('/').unwrap();
        let kind = kind(kind_name);
        let key = ObjectKey {
            group: kind.group.clone(),
            kind: kind_name.to_owned(),
            namespace: "x".to_owned(),
            name: name.to_owned(),
        };
        (kind, key)
    };
    words.split_whitespace().map(object).collect()
}

/// Starts watches in rounds of `SERVED | OBJECTS [| quiet]`, and compares the kinds and numbers of
/// objects of each round, with `!` once every kind is watched.
#[track_caller]
fn check(rounds: &[&str], expected: &[&str]) {
    let mut plan = WatchPlan::default();
    for (round, expected) in rounds.iter().zip(expected) {
        let mut parts = round.split('|').map(str::trim);
        let world = world(parts.next().unwrap());
        let objects = objects(parts.next().unwrap());
        let is_quiet = parts.next() == Some("quiet");
        let started = plan.start(
            objects.iter().map(|(kind, key)| (kind.clone(), key)),
            objects.iter().map(|(_, key)| key.group_kind()),
            &world,
            is_quiet,
        );
        let started: Vec<String> = started
            .iter()
            .map(|watch| format!("{}:{}", watch.kind.kind, watch.objects.len()))
            .collect();
        let mark = if plan.is_complete() { "!" } else { "" };
        assert_eq!(format!("{}{mark}", started.join(" ")), *expected, "{round}");
    }
    assert_eq!(rounds.len(), expected.len());
}

#[test]
fn namespaces_and_definitions_are_always_watched() {
    check(&["Namespace CustomResourceDefinition |"], &["Namespace:0 CustomResourceDefinition:0!"]);
    check(&["Namespace | Namespace/a"], &["Namespace:1!"]);
    check(&["|"], &["!"]);
}

#[test]
fn a_kind_is_watched_once_and_when_it_is_served() {
    check(&["| Deployment/a", "Deployment | Deployment/a"], &["", "Deployment:1!"]);
    let round = "Deployment | Deployment/a Deployment/b";
    check(&[round, round], &["Deployment:2!", "!"]);
}

#[test]
fn what_only_shows_drift_is_watched_from_the_first_quiet_moment() {
    let served = "ConfigMap Deployment | ConfigMap/a Deployment/b";
    check(&[served], &["Deployment:1"]);
    check(&[served, &format!("{served} | quiet")], &["Deployment:1", "ConfigMap:1!"]);
    check(&[&format!("{served} | quiet")], &["ConfigMap:1 Deployment:1!"]);
}

#[test]
fn what_a_step_waits_for_is_watched_from_the_start() {
    for name in ["Deployment", "DaemonSet", "StatefulSet", "Job", "ClusterOperator"] {
        check(&[&format!("{name} | {name}/a")], &[&format!("{name}:1!")]);
    }
    for name in ["ConfigMap", "Secret", "Service", "Node"] {
        check(&[&format!("{name} | {name}/a")], &[""]);
    }
}

#[test]
fn the_scope_follows_from_the_kind() {
    #[track_caller]
    fn check(name: &str, expected: WatchScope) {
        let kind = kind(name);
        assert_eq!(WatchScope::of(&GroupKind::new(&kind.group, &kind.kind)), expected, "{name}");
    }
    check("Namespace", WatchScope::Namespaces);
    check("CustomResourceDefinition", WatchScope::Definitions);
    check("ClusterOperator", WatchScope::Operators);
    check("Job", WatchScope::Workloads);
    check("ConfigMap", WatchScope::Metadata);
    let service = GroupKind::new("apiregistration.k8s.io", "APIService");
    assert_eq!(WatchScope::of(&service), WatchScope::Metadata);
    assert_eq!(WatchScope::of_operators(&service), WatchScope::Workloads);
}

#[test]
fn kinds_with_gates_by_condition_are_watched_whole_and_at_once() {
    let check = |is_gated: bool, expected: &[WatchScope]| {
        let mut plan = WatchPlan::default();
        plan.gate(is_gated.then(|| GroupKind::new("", "ConfigMap")));
        let objects = objects("ConfigMap/a");
        let objects = objects.iter().map(|(kind, key)| (kind.clone(), key));
        let started = plan.start(objects, std::iter::empty(), &world("ConfigMap"), false);
        let scopes: Vec<WatchScope> = started.iter().map(|watch| watch.scope).collect();
        assert_eq!(scopes, expected);
    };
    check(false, &[]);
    check(true, &[WatchScope::Workloads]);
}

#[test]
fn cluster_scoped_objects_are_watched_without_the_namespace_of_their_manifest() {
    let mut plan = WatchPlan::default();
    let objects = objects("Node/a ConfigMap/b");
    let started = plan.start(
        objects.iter().map(|(kind, key)| (kind.clone(), key)),
        std::iter::empty(),
        &world("Node ConfigMap"),
        true,
    );
    let keys = started.iter().flat_map(|watch| watch.objects.keys());
    let names: Vec<(&str, &str)> =
        keys.map(|it| (it.namespace.as_str(), it.name.as_str())).collect();
    assert_eq!(names, [("x", "b"), ("", "a")]);
}
