//! What is added to a manifest, what is taken out, and how refused fields are found.

#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]

use plimsoll_content::Manifest;
use serde_json::{Value, json};

use super::{display_path, object, remove_field, set_ca_bundles, undeclared_fields};
use crate::plan::{Action, Readiness, Step};
use crate::progress::Scope;

fn step(manifest: &Value, action: Action) -> Step {
    Step {
        manifest: Manifest::read("0000_10_a_b.yaml".into(), 0, manifest).expect("a manifest"),
        action,
        readiness: Readiness::Applied,
        serves: Vec::new(),
        is_repeated: false,
    }
}

fn check(manifest: Value, action: Action, expected: Value) {
    let prepared = object(&step(&manifest, action), Scope::Cluster);
    assert_eq!(prepared, expected);
}

#[test]
fn an_object_loses_a_namespace_that_its_kind_has_not() {
    check(
        json!({"kind": "ClusterRole", "metadata": {"name": "n", "namespace": "x",
            "creationTimestamp": null}}),
        Action::Apply,
        json!({"kind": "ClusterRole", "metadata": {"name": "n"}}),
    );
}

#[test]
fn nothing_is_owned_by_a_cluster_version() {
    let version = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "name": "version", "uid": "u0", "controller": true});
    for action in [Action::Apply, Action::CreateOnly] {
        check(
            json!({"kind": "ConfigMap", "metadata": {"name": "n", "ownerReferences": [version]}}),
            action,
            json!({"kind": "ConfigMap", "metadata": {"name": "n"}}),
        );
    }
}

#[test]
fn other_owners_in_a_manifest_stand_alone() {
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u2"});
    let stale = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "name": "version", "uid": "u0"});
    check(
        json!({"kind": "ConfigMap", "metadata": {"name": "n", "ownerReferences": [other, stale]}}),
        Action::Apply,
        json!({"kind": "ConfigMap", "metadata": {"name": "n", "ownerReferences": [other]}}),
    );
}

#[test]
fn a_cluster_operator_is_created_with_an_empty_spec_and_without_status() {
    check(
        json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": {"name": "n"}, "status": {"versions": []}}),
        Action::Gate,
        json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": {"name": "n"},
            "spec": {}}),
    );
}

#[test]
fn an_injected_ca_bundle_is_left_to_who_injects_it() {
    let annotations = json!({"service.beta.openshift.io/inject-cabundle": "true"});
    let meta = json!({"name": "n", "annotations": annotations});
    check(
        json!({"kind": "ValidatingWebhookConfiguration", "metadata": meta,
            "webhooks": [{"name": "a", "clientConfig": {"caBundle": "Cg==", "url": "u"}}]}),
        Action::Apply,
        json!({"kind": "ValidatingWebhookConfiguration", "metadata": meta,
            "webhooks": [{"name": "a", "clientConfig": {"url": "u"}}]}),
    );
}

#[test]
fn callers_of_services_get_a_ca_bundle() {
    let to = |config: Value| {
        [
            json!({"kind": "MutatingWebhookConfiguration",
                "webhooks": [{"clientConfig": config}, {"clientConfig": {"url": "u"}}, {}]}),
            json!({"kind": "CustomResourceDefinition", "spec": {"conversion":
                {"strategy": "Webhook", "webhook": {"clientConfig": config}}}}),
            json!({"kind": "APIService", "spec": config}),
        ]
    };
    let service = json!({"name": "s", "namespace": "n"});
    let trusting = |bundle: &str| to(json!({"service": service, "caBundle": bundle}));
    let (none, old, new) = (to(json!({"service": service})), trusting("b2xk"), trusting("bmV3"));
    let uncalled =
        json!({"kind": "CustomResourceDefinition", "spec": {"conversion": {"strategy": "None"}}});
    let others = to(json!({"url": "u"})).into_iter().chain([
        uncalled,
        json!({"kind": "APIService", "spec": {"service": null}}),
        json!({"kind": "ConfigMap", "spec": {"service": {}}}),
    ]);
    let cases = none.into_iter().chain(old).zip(new.clone().into_iter().chain(new.clone()));
    let cases = cases.map(|(before, after)| (before, after, true));
    let same = new.into_iter().chain(others).map(|object| (object.clone(), object, false));
    for (before, after, is_changed) in cases.chain(same) {
        let mut object = before.clone();
        assert_eq!(set_ca_bundles(&mut object, "bmV3"), is_changed, "{before}");
        assert_eq!(object, after, "{before}");
    }
}

#[test]
fn refused_fields_are_found_in_the_answer_and_removed() {
    let message = "failed to create typed patch object (/n; rbac.authorization.k8s.io/v1, \
        Kind=ClusterRoleBinding): errors:\n  .userNames: field not declared in schema\n  \
        .spec.items[name=\"a\",port=80].old: field not declared in schema\n  \
        .list[1].x: field not declared in schema";
    let mut object = json!({"userNames": [], "spec": {"items": [{"name": "b"},
        {"name": "a", "port": 80, "old": 1, "new": 2}]}, "list": [{}, {"x": 1}]});
    let paths = undeclared_fields(message);
    let shown: Vec<_> = paths.iter().map(|path| display_path(path)).collect();
    assert_eq!(shown, [".userNames", ".spec.items[name=\"a\",port=80].old", ".list[1].x"]);
    assert!(paths.iter().all(|path| remove_field(&mut object, path)));
    assert_eq!(
        object,
        json!({"spec": {"items": [{"name": "b"}, {"name": "a", "port": 80, "new": 2}]},
            "list": [{}, {}]})
    );
}
