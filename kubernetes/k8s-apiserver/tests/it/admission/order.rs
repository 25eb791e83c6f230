//! Who is asked when, and is shown what.
use super::hooks::{cluster, configure, webhook};
use serde_json::Value;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn every_kind_of_write_is_shown_with_its_operation() {
    let (cluster, asked) = cluster();
    configure(&cluster, "Validating", "hooks", &[webhook("/allow", "{}")]);
    let map = r#"{"metadata": {"name": "a"}, "data": {"k": "v"}}"#;
    for (line, body, expected) in [
        (
            "POST MAPS",
            map,
            r#"{"operation": "CREATE", "name": "a", "namespace": "default", "oldObject": null, "dryRun": false,
                "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
                "object": {"kind": "ConfigMap", "data": {"k": "v"}}}"#,
        ),
        (
            "PUT MAPS/a?dryRun=All",
            map,
            r#"{"operation": "UPDATE", "dryRun": true, "options": {"kind": "UpdateOptions", "dryRun": ["All"]}}"#,
        ),
        (
            "PATCH MAPS/a?fieldManager=me",
            r#"{"data": {"k": "w"}}"#,
            r#"{"operation": "UPDATE", "options": {"kind": "UpdateOptions", "fieldManager": "me"},
                "object": {"data": {"k": "w"}}, "oldObject": {"data": {"k": "v"}}}"#,
        ),
        (
            "DELETE MAPS/a",
            r#"{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}"#,
            r#"{"operation": "DELETE", "object": null, "oldObject": {"data": {"k": "w"}},
                "options": {"kind": "DeleteOptions", "propagationPolicy": "Background"}}"#,
        ),
    ] {
        let line = line.replace("MAPS", MAPS);
        let status = if line.starts_with("POST") { 201 } else { 200 };
        cluster.check(&line, body, status, "");
        let reviews = asked.take();
        assert_eq!(reviews.len(), 1, "{line}");
        let expected: Value = serde_json::from_str(expected).unwrap();
        for (field, value) in expected.as_object().unwrap() {
            let found = &reviews[0].1["request"][field];
            assert!(contains(found, value), "{line}: {field} is {found}");
        }
    }
}

fn contains(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| contains(found, value))),
        _ => found == expected,
    }
}

#[test]
fn mutating_webhooks_come_in_order_and_validating_ones_after_them() {
    let (cluster, asked) = cluster();
    configure(&cluster, "Validating", "a", &[webhook("/allow", "{}")]);
    configure(&cluster, "Mutating", "b", &[webhook("/label", "{}")]);
    configure(&cluster, "Mutating", "a", &[webhook("/count", "{}")]);
    cluster.check(
        &format!("POST {MAPS}"),
        r#"{"metadata": {"generateName": "a-"}}"#,
        201,
        r#"{"data": {"labels": "0"}, "metadata": {"labels": {"hook": "seen"}, "name": "a-..."}}"#,
    );
    let reviews = asked.take();
    let paths: Vec<_> = reviews.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/count", "/label", "/allow"]);
    // A name is only generated after all mutating admission.
    let object = |index: usize| &reviews[index].1["request"]["object"]["metadata"];
    assert!(object(0).get("name").is_none());
    assert!(object(2)["name"].as_str().unwrap().starts_with("a-"));
    assert_eq!(object(2)["labels"]["hook"], "seen");
}

#[test]
fn a_webhook_is_asked_again_if_a_later_one_changed_the_object() {
    let again = r#"{"reinvocationPolicy": "IfNeeded"}"#;
    for (first, second, expected) in [
        (again, "{}", &["/count", "/label", "/count"][..]),
        // The second time around the first one changes the object, and the second one follows it.
        (again, again, &["/count", "/label", "/count", "/label"]),
        ("{}", again, &["/count", "/label"]),
    ] {
        let (cluster, asked) = cluster();
        configure(
            &cluster,
            "Mutating",
            "a",
            &[webhook("/count", first), webhook("/label", second)],
        );
        let counted = if first == again { "1" } else { "0" };
        cluster.check(
            &format!("POST {MAPS}"),
            r#"{"metadata": {"name": "a"}}"#,
            201,
            &format!(r#"{{"data": {{"labels": "{counted}"}}}}"#),
        );
        assert_eq!(asked.take_paths(), expected);
    }
}

#[test]
fn a_collection_is_only_deleted_if_every_object_may_go() {
    let (cluster, asked) = cluster();
    for name in ["a", "b"] {
        cluster.check(
            &format!("POST {MAPS}"),
            &format!(r#"{{"metadata": {{"name": "{name}", "labels": {{"l": "{name}"}}}}}}"#),
            201,
            "",
        );
    }
    let selector = r#"{"objectSelector": {"matchLabels": {"l": "b"}}}"#;
    configure(&cluster, "Validating", "a", &[webhook("/allow", "{}"), webhook("/deny", selector)]);
    cluster.check(&format!("DELETE {MAPS}?labelSelector=l"), "", 400, "");
    assert_eq!(asked.take_paths().len(), 3);
    cluster.check(&format!("DELETE {MAPS}?labelSelector=l%3Da"), "", 200, "");
    cluster.check(&format!("GET {MAPS}?labelSelector=l"), "", 200, r#"{"items": [{}]}"#);
}

#[test]
fn a_scale_is_shown_as_a_scale() {
    let (cluster, asked) = cluster();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    cluster.check(
        &format!("POST {deployments}"),
        r#"{"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
        201,
        "",
    );
    let rules = r#"{"rules": [{"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"]}]}"#;
    configure(&cluster, "Validating", "a", &[webhook("/deny", rules)]);
    cluster.check(&format!("PATCH {deployments}/a/scale"), r#"{"spec": {"replicas": 3}}"#, 400, "");
    let reviews = asked.take();
    let request = &reviews[0].1["request"];
    assert_eq!(request["kind"]["kind"], "Scale");
    assert_eq!(request["subResource"], "scale");
    assert_eq!(request["object"]["spec"]["replicas"], 3);
    cluster.check(&format!("PATCH {deployments}/a"), r#"{"spec": {"replicas": 2}}"#, 200, "");
    assert!(asked.take().is_empty());
}

#[test]
fn the_same_requests_give_the_same_reviews_and_objects() {
    let run = || {
        let (cluster, asked) = cluster();
        configure(&cluster, "Mutating", "a", &[webhook("/label", "{}")]);
        configure(&cluster, "Validating", "b", &[webhook("/allow", "{}")]);
        let created = cluster.check(
            &format!("POST {MAPS}"),
            r#"{"metadata": {"generateName": "a-"}}"#,
            201,
            "",
        );
        (created, asked.take())
    };
    let (created, reviews) = run();
    assert_eq!((created.clone(), reviews.clone()), run());
    assert_eq!(reviews[1].1["request"]["object"]["metadata"]["uid"], created["metadata"]["uid"]);
}
