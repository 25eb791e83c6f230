//! What is refused, and how.
use serde_json::json;

use crate::cluster::{Ask, TestCluster};

#[test]
fn refusals_carry_reason_details_and_the_known_message() {
    let cluster = TestCluster::new();
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let cases = [
        (
            "GET {}/none",
            "",
            404,
            r#"{"reason": "NotFound", "message": "configmaps \"none\" not found", "details": {"name": "none", "kind": "configmaps"}}"#,
        ),
        (
            "GET /apis/apps/v1/namespaces/default/deployments/none",
            "",
            404,
            r#"{"message": "deployments.apps \"none\" not found", "details": {"group": "apps"}}"#,
        ),
        (
            "GET /api/v1/nothings",
            "",
            404,
            r#"{"message": "the server could not find the requested resource"}"#,
        ),
        ("PUT {}", "{}", 405, r#"{"reason": "MethodNotAllowed"}"#),
        (
            "POST {}",
            "",
            400,
            r#"{"message": "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"}"#,
        ),
        ("POST {}", "{", 400, r#"{"reason": "BadRequest"}"#),
        ("POST {}", "[]", 400, r#"{"reason": "BadRequest"}"#),
        (
            "POST {}",
            r#"{"metadata": {}}"#,
            422,
            r#"{"message": "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"}"#,
        ),
        (
            "POST {}",
            r#"{"metadata": {"name": "Bad_Name"}}"#,
            422,
            r#"{"message": "ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of...", "details": {"causes": [{"field": "metadata.name", "reason": "FieldValueInvalid"}]}}"#,
        ),
        (
            "POST {}",
            r#"{"metadata": {"name": "a", "namespace": "other"}}"#,
            400,
            r#"{"message": "the namespace of the provided object does not match the namespace sent on the request"}"#,
        ),
        (
            "POST {}",
            r#"{"metadata": {"name": "a", "resourceVersion": "1"}}"#,
            500,
            r#"{"message": "resourceVersion should not be set on objects to be created"}"#,
        ),
        (
            "POST {}",
            r#"{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}}"#,
            400,
            "",
        ),
        (
            "POST {}?fieldValidation=Strict",
            r#"{"metadata": {"name": "a"}, "extra": 1}"#,
            400,
            r#"{"message": "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"extra\""}"#,
        ),
        (
            "POST {}?dryRun=Nope",
            r#"{"metadata": {"name": "a"}}"#,
            422,
            r#"{"message": "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Nope\"]: supported values: \"All\""}"#,
        ),
        (
            "GET {}?labelSelector=a%20b",
            "",
            400,
            r#"{"message": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"}"#,
        ),
        (
            "GET {}?fieldSelector=data.a%3Db",
            "",
            400,
            r#"{"message": "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""}"#,
        ),
        ("GET {}?continue=nonsense", "", 400, r#"{"reason": "BadRequest"}"#),
        (
            "GET {}?resourceVersion=99999",
            "",
            504,
            r#"{"reason": "Timeout", "details": {"retryAfterSeconds": 1}}"#,
        ),
        ("GET /nothing", "", 404, ""),
    ];
    for (line, body, status, expected) in cases {
        cluster.check(&line.replace("{}", config_maps), body, status, expected);
    }
}

#[test]
fn unknown_fields_are_dropped_with_a_warning() {
    let cluster = TestCluster::new();
    let response = cluster.send(Ask {
        line: "POST /api/v1/namespaces/default/configmaps",
        body: r#"{"metadata": {"name": "a"}, "extra": 1}"#,
        ..Ask::default()
    });
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], r#"299 - "unknown field \"extra\"""#);
}

#[test]
fn bodies_that_are_too_large_too_deep_or_of_another_type_are_refused() {
    let cluster = TestCluster::new();
    let line = "POST /api/v1/namespaces/default/configmaps";
    let large = format!(r#"{{"data": {{"a": "{}"}}}}"#, "x".repeat(4 << 20));
    cluster.check(line, &large, 413, r#"{"reason": "RequestEntityTooLarge", "message": "Request entity too large: limit is 3145728"}"#);
    let deep = "[".repeat(100_000);
    cluster.check(line, &deep, 400, "");
    cluster.check_with(
        Ask { line, body: "x", content_type: "text/plain", accept: "" },
        415,
        r#"{"reason": "UnsupportedMediaType"}"#,
    );
    cluster.check_with(
        Ask { line: "GET /api/v1/namespaces", accept: "application/cbor", ..Ask::default() },
        406,
        r#"{"reason": "NotAcceptable"}"#,
    );
    let deep_yaml = format!("a: {}", "[".repeat(50_000));
    cluster.check_with(
        Ask { line, body: &deep_yaml, content_type: "application/yaml", accept: "" },
        400,
        "",
    );
}

#[test]
fn what_is_immutable_stays() {
    let cluster = TestCluster::new();
    cluster.check(
        "POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        r#"{"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "one"}}"#,
        201,
        "",
    );
    cluster.check(
        "PATCH /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b",
        r#"{"roleRef": {"name": "two"}}"#,
        422,
        r#"{"message": "ClusterRoleBinding.rbac.authorization.k8s.io \"b\" is invalid: roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\"Name\":\"two\"}: field is immutable"}"#,
    );
    cluster.check(
        "POST /api/v1/namespaces/default/configmaps",
        r#"{"metadata": {"name": "frozen"}, "immutable": true, "data": {"a": "b"}}"#,
        201,
        "",
    );
    cluster.check(
        "PATCH /api/v1/namespaces/default/configmaps/frozen",
        r#"{"data": {"a": "c"}}"#,
        422,
        r#"{"message": "ConfigMap \"frozen\" is invalid: data: Forbidden: field is immutable when `immutable` is set"}"#,
    );
}

#[test]
fn ownership_of_another_type_is_refused() {
    let cluster = TestCluster::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster.check(
        &format!("POST {maps}"),
        r#"{"metadata": {"name": "a"}, "data": {"k": "v"}}"#,
        201,
        "",
    );
    let line = format!("PATCH {maps}/a");
    let field = "json: cannot unmarshal string into Go struct field ObjectMeta.metadata";
    for (given, why) in [
        (r#""text""#, format!("{field}.managedFields of type []v1.ManagedFieldsEntry")),
        (r#"["text"]"#, format!("{field}.managedFields of type v1.ManagedFieldsEntry")),
        (
            r#"[{"manager": 1}]"#,
            "json: cannot unmarshal number into Go struct field \
             ManagedFieldsEntry.metadata.managedFields.manager of type string"
                .to_owned(),
        ),
        (
            r#"[{"time": "x"}]"#,
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#
                .to_owned(),
        ),
    ] {
        let body = format!(r#"{{"metadata": {{"name": "a", "managedFields": {given}}}}}"#);
        let message =
            format!("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: {why}");
        let expected = json!({"reason": "BadRequest", "message": message}).to_string();
        cluster.check(&format!("PUT {maps}/a"), &body, 400, &expected);
        let body = format!(
            r#"[{{"op": "replace", "path": "/metadata/managedFields", "value": {given}}}]"#
        );
        let content_type = "application/json-patch+json";
        let ask = Ask { line: &line, body: &body, content_type, ..Ask::default() };
        let refused = cluster.check_with(ask, 422, r#"{"reason": "Invalid"}"#);
        let message = refused["message"].as_str().unwrap();
        assert!(message.starts_with(" \"\" is invalid: patch: Invalid value: "), "{message}");
        assert!(message.ends_with(&why), "{message}");
    }
    let body = r#"[{"op": "replace", "path": "/metadata/managedFields", "value": []}]"#;
    let content_type = "application/json-patch+json";
    let reset = Ask { line: &line, body, content_type, ..Ask::default() };
    let reset = cluster.check_with(reset, 200, "");
    assert!(reset["metadata"].get("managedFields").is_none(), "{reset}");
}

#[test]
fn names_that_no_path_has_are_refused_as_the_storage_refuses_them() {
    let cluster = TestCluster::new();
    let map = r#"{"metadata": {"name": ".."}}"#;
    let name = r#"Name parameter invalid: "..": may not be '..'"#;
    let parent = r#"Internal error occurred: invalid resource name "..": [may not be '..']"#;
    for (line, body, status, message) in [
        ("GET /api/v1/namespaces/%2e%2e", "", 400, name),
        ("PATCH /api/v1/namespaces/..", "{}", 400, name),
        ("DELETE /api/v1/namespaces/default/configmaps/%2e%2e", "", 400, name),
        ("PUT /api/v1/namespaces/default/configmaps/%2e%2e", map, 400, name),
        ("GET /apis/apps/v1/namespaces/default/deployments/%2e%2e/scale", "", 400, name),
        (
            "GET /api/v1/namespaces/default/configmaps/x%25y",
            "",
            400,
            r#"Name parameter invalid: "x%y": may not contain '%'"#,
        ),
        ("GET /api/v1/namespaces/%2e%2e/pods", "", 500, r#"invalid key: "/pods/..""#),
        ("GET /api/v1/namespaces/%2e/services", "", 500, r#"invalid key: "/services/specs/.""#),
        ("GET /api/v1/namespaces/%2e%2e/pods?watch=true", "", 500, r#"invalid key: "/pods/..""#),
        (
            "DELETE /api/v1/namespaces/%2e%2e/pods?fieldSelector=metadata.name%3Dx",
            "",
            500,
            r#"invalid key: "/pods/../x""#,
        ),
        ("GET /api/v1/namespaces/%2e%2e/pods/x", "", 500, r#"invalid key: "/pods/../x""#),
        ("POST /api/v1/namespaces/%2e%2e/configmaps", map, 500, parent),
    ] {
        let expected = json!({"message": message}).to_string();
        cluster.check(line, body, status, &expected);
    }
    // An encoded slash separates segments.
    cluster.check("GET /api/v1/namespaces%2Fdefault", "", 200, "");
    cluster.check("GET /api/v1/namespaces/default/configmaps/a%2Fb", "", 404, "");
}
