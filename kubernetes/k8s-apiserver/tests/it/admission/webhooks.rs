//! What webhooks answer, and what becomes of the request.
use super::hooks::{cluster, configure, webhook};
use crate::cluster::Ask;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = r#"{"metadata": {"name": "a"}}"#;

/// Creates a config map under one webhook, and checks what comes back.
#[track_caller]
fn check(kind: &str, path: &str, extra: &str, status: u16, expected: &str) {
    let (cluster, _) = cluster();
    configure(&cluster, kind, "hooks", &[webhook(path, extra)]);
    let query = if extra.contains("sideEffects") { "?dryRun=All" } else { "" };
    cluster.check(&format!("POST {MAPS}{query}"), MAP, status, expected);
    let stays = if status == 201 && query.is_empty() { 200 } else { 404 };
    cluster.check(&format!("GET {MAPS}/a"), "", stays, "");
}

#[test]
fn what_a_webhook_answers_decides() {
    for (kind, path, extra, status, expected) in [
        ("Validating", "/allow", "{}", 201, "{}"),
        (
            "Validating",
            "/deny",
            "{}",
            400,
            r#"{"message": "admission webhook \"deny.hooks.test\" denied the request without explanation", "code": 400, "reason": null, "details": null}"#,
        ),
        (
            "Mutating",
            "/deny-because",
            "{}",
            400,
            r#"{"message": "admission webhook \"deny-because.hooks.test\" denied the request: not today"}"#,
        ),
        (
            "Validating",
            "/deny-fully",
            "{}",
            418,
            r#"{"message": "admission webhook \"deny-fully.hooks.test\" denied the request: Teapot", "reason": "Teapot", "code": 418, "details": {"causes": [{"message": "short and stout"}]}}"#,
        ),
        ("Mutating", "/label", "{}", 201, r#"{"metadata": {"labels": {"hook": "seen"}}}"#),
        ("Mutating", "/bad-patch", "{}", 500, r#"{"reason": "InternalError"}"#),
        (
            "Mutating",
            "/no-patch-type",
            "{}",
            500,
            r#"{"message": "Internal error occurred: failed calling webhook \"no-patch-type.hooks.test\": received invalid webhook response: webhook returned response.patch but not response.patchType"}"#,
        ),
        (
            "Validating",
            "/label",
            "{}",
            500,
            r#"{"message": "Internal error occurred: failed calling webhook \"label.hooks.test\": received invalid webhook response: validating webhook may not return response.patch"}"#,
        ),
        (
            "Validating",
            "/other-uid",
            "{}",
            500,
            r#"{"message": "Internal error occurred: failed calling webhook \"other-uid.hooks.test\": received invalid webhook response: expected response.uid=..."}"#,
        ),
        (
            "Validating",
            "/empty",
            "{}",
            500,
            r#"{"message": "Internal error occurred: failed calling webhook \"empty.hooks.test\": received invalid webhook response: webhook response was absent"}"#,
        ),
        (
            "Validating",
            "/garbage",
            "{}",
            500,
            r#"{"message": "Internal error occurred: failed calling webhook \"garbage.hooks.test\": received invalid webhook response: webhook response was absent"}"#,
        ),
    ] {
        check(kind, path, extra, status, expected);
    }
}

#[test]
fn a_webhook_that_cannot_be_asked_fails_the_request_unless_it_may_be_ignored() {
    for (path, why) in [
        (
            "/error",
            r#"an error on the server (\"out of order\") has prevented the request from succeeding"#,
        ),
        ("/missing", "the server could not find the requested resource"),
        ("/lost", r#"Post \"https://hooks.test/lost?timeout=10s\": the line is cut"#),
        ("/silent", r#"Post \"https://hooks.test/silent?timeout=10s\": context deadline exceeded"#),
    ] {
        let name = path.trim_start_matches('/');
        let expected = format!(
            r#"{{"message": "Internal error occurred: failed calling webhook \"{name}.hooks.test\": failed to call webhook: {why}"}}"#
        );
        for kind in ["Mutating", "Validating"] {
            check(kind, path, "{}", 500, &expected);
            check(kind, path, r#"{"failurePolicy": "Ignore"}"#, 201, "{}");
        }
    }
}

#[test]
fn a_dry_run_asks_webhooks_without_side_effects() {
    for (kind, effects) in [("Validating", "NoneOnDryRun"), ("Mutating", "None")] {
        check(kind, "/allow", &format!(r#"{{"sideEffects": "{effects}"}}"#), 201, "{}");
        check(kind, "/deny", &format!(r#"{{"sideEffects": "{effects}"}}"#), 400, "{}");
    }
}

#[test]
fn only_what_a_webhook_is_about_is_shown_to_it() {
    for (extra, is_asked) in [
        (r#"{"objectSelector": {"matchLabels": {"a": "b"}}}"#, true),
        (r#"{"objectSelector": {"matchLabels": {"a": "c"}}}"#, false),
        (
            r#"{"objectSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["c"]}]}}"#,
            true,
        ),
        (
            r#"{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}"#,
            true,
        ),
        (
            r#"{"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}"#,
            false,
        ),
        (
            r#"{"rules": [{"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}"#,
            false,
        ),
        (
            r#"{"rules": [{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]}"#,
            true,
        ),
        (
            r#"{"rules": [{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "Cluster"}]}"#,
            false,
        ),
        (
            r#"{"rules": [{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps/status"]}]}"#,
            false,
        ),
        (
            r#"{"rules": [{"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["*"]}]}"#,
            false,
        ),
    ] {
        let (cluster, asked) = cluster();
        configure(&cluster, "Validating", "hooks", &[webhook("/allow", extra)]);
        cluster.check(
            &format!("POST {MAPS}"),
            r#"{"metadata": {"name": "a", "labels": {"a": "b"}}}"#,
            201,
            "",
        );
        assert_eq!(!asked.take().is_empty(), is_asked, "{extra}");
    }
}

#[test]
fn warnings_come_in_headers_once() {
    let (cluster, _) = cluster();
    configure(&cluster, "Validating", "hooks", &[webhook("/warn", "{}"), webhook("/deny", "{}")]);
    let response = cluster.send(Ask { line: &format!("POST {MAPS}"), body: MAP, ..Ask::default() });
    assert_eq!(response.status(), 400);
    let warnings: Vec<_> =
        response.headers().get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(warnings, [r#"299 - "mind the gap""#, r#"299 - "so \"it\" is""#]);
}

#[test]
fn what_configures_admission_is_exempt() {
    let (cluster, asked) = cluster();
    let extra = r#"{"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]}"#;
    for kind in ["Validating", "Mutating"] {
        configure(&cluster, kind, "hooks", &[webhook("/deny", extra)]);
    }
    for kind in ["validating", "mutating"] {
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/hooks");
        cluster.check(&format!("DELETE {path}"), "", 200, "");
    }
    assert!(asked.take().is_empty());
    cluster.check(&format!("POST {MAPS}"), MAP, 201, "");
}
