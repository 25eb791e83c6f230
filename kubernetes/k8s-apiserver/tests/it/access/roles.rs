//! Roles and bindings, as they come and go.
use k8s_apiserver::AccessOptions;

use super::Subject;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";

fn put(subject: &Subject, path: &str, body: &str) {
    subject.check("", &format!("POST {ROLES}/{path}"), body, 201, "");
}

#[test]
fn a_change_of_roles_counts_from_the_next_request_on() {
    let subject = Subject::new(AccessOptions::default());
    let list = "GET /api/v1/namespaces/default/configmaps";
    let refused = r#"User "bob" cannot list resource "configmaps" in API group "" in the namespace "default""#;
    subject.check("bob", list, "", 403, refused);
    put(
        &subject,
        "namespaces/default/roles",
        r#"{"metadata": {"name": "reader"}, "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]}"#,
    );
    subject.check("bob", list, "", 403, refused);
    put(
        &subject,
        "namespaces/default/rolebindings",
        r#"{"metadata": {"name": "readers"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}, "subjects": [{"kind": "User", "name": "bob"}, {"kind": "ServiceAccount", "name": "default"}]}"#,
    );
    subject.check("bob", list, "", 200, "");
    subject.check("system:serviceaccount:default:default", list, "", 200, "");
    subject.check("bob", "GET /api/v1/configmaps", "", 403, "at the cluster scope");
    let role = format!("{ROLES}/namespaces/default/roles/reader");
    let other = r#"{"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]}]}"#;
    subject.check("", &format!("PATCH {role}"), other, 200, "");
    subject.check("bob", list, "", 403, refused);
    subject.check("bob", "GET /api/v1/namespaces/default/secrets", "", 200, "");
    subject.check("", &format!("DELETE {role}"), "", 200, "");
    subject.check(
        "bob",
        list,
        "",
        403,
        r#"in the namespace "default": rbac: RBAC: role.rbac.authorization.k8s.io "reader" not found"#,
    );
    let binding = format!("DELETE {ROLES}/namespaces/default/rolebindings/readers");
    subject.check("", &binding, "", 200, "");
    let (_, answer) = subject.ask("bob", list, "");
    assert!(!answer.to_string().contains("not found"), "{answer}");
}

#[test]
fn many_writes_later_the_roles_are_still_known() {
    let subject = Subject::new(AccessOptions::default());
    put(
        &subject,
        "clusterrolebindings",
        r#"{"metadata": {"name": "viewers"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "Group", "name": "devs"}]}"#,
    );
    subject.check("bob,devs", "GET /api/v1/pods", "", 200, "");
    // More than the log of one resource holds.
    let filling = "x".repeat(200 << 10);
    let line = format!("PATCH {ROLES}/clusterrolebindings/viewers");
    for index in 0..100 {
        let annotations = format!(r#"{{"n": "{index}", "filling": "{filling}"}}"#);
        let body = format!(r#"{{"metadata": {{"annotations": {annotations}}}}}"#);
        subject.check("", &line, &body, 200, "");
    }
    subject.check("bob,devs", "GET /api/v1/pods", "", 200, "");
    subject.check("bob,devs", "GET /api/v1/secrets", "", 403, "");
}

#[test]
fn roles_gather_what_they_select() {
    let subject = Subject::new(AccessOptions::default());
    let role = format!("GET {ROLES}/clusterroles/gatherer");
    put(
        &subject,
        "clusterroles",
        r#"{"metadata": {"name": "gatherer"}, "aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "part", "operator": "In", "values": ["a", "b"]}]}]}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["first"]}]}"#,
    );
    subject.check("", &role, "", 200, r#""rules":[{"apiGroups":[""],"resources":["first"]"#);
    for (name, label) in [("two", "b"), ("one", "a"), ("none", "c")] {
        put(
            &subject,
            "clusterroles",
            &format!(
                r#"{{"metadata": {{"name": "{name}", "labels": {{"part": "{label}"}}}}, "rules": [{{"verbs": ["get"], "apiGroups": [""], "resources": ["{name}"]}}]}}"#
            ),
        );
    }
    let resources = |answer: &serde_json::Value| -> Vec<String> {
        let rules = answer["rules"].as_array().into_iter().flatten();
        rules.map(|rule| rule["resources"][0].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(resources(&subject.check("", &role, "", 200, "")), ["one", "two"]);
    let line = format!("PATCH {ROLES}/clusterroles/one");
    subject.check("", &line, r#"{"metadata": {"labels": {"part": "c"}}}"#, 200, "");
    assert_eq!(resources(&subject.check("", &role, "", 200, "")), ["two"]);
    subject.check("", &format!("DELETE {ROLES}/clusterroles/two"), "", 200, "");
    subject.check("", &role, "", 200, r#""rules":null"#);
    // A part of one of the default roles.
    put(
        &subject,
        "clusterroles",
        r#"{"metadata": {"name": "more", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": [{"verbs": ["get"], "apiGroups": ["x"], "resources": ["ys"]}]}"#,
    );
    for name in ["view", "edit", "admin"] {
        let line = format!("GET {ROLES}/clusterroles/{name}");
        subject.check(
            "",
            &line,
            "",
            200,
            r#"{"apiGroups":["x"],"resources":["ys"],"verbs":["get"]}"#,
        );
    }
}
