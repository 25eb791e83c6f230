//! CustomResourceDefinitions and what they serve.
use crate::cluster::{Ask, TestCluster};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn definition(plural: &str, kind: &str, short: &str) -> String {
    format!(
        r#"{{
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {{"name": "{plural}.example.com"}},
        "spec": {{
            "group": "example.com", "scope": "Namespaced",
            "names": {{"plural": "{plural}", "singular": "{singular}", "kind": "{kind}", "listKind": "{kind}List", "shortNames": ["{short}"]}},
            "versions": [
                {{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {{"status": {{}}, "scale": {{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}}},
                    "additionalPrinterColumns": [{{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}}],
                    "selectableFields": [{{"jsonPath": ".spec.mode"}}],
                    "schema": {{"openAPIV3Schema": {{"type": "object", "properties": {{
                        "spec": {{"type": "object", "required": ["size"], "properties": {{
                            "size": {{"type": "integer", "minimum": 1}},
                            "mode": {{"type": "string", "default": "Fast", "enum": ["Fast", "Slow"]}}
                        }}}},
                        "status": {{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
                    }}}}}}
                }},
                {{
                    "name": "v1beta1", "served": true, "storage": false,
                    "schema": {{"openAPIV3Schema": {{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}
                }}
            ]
        }}
    }}"#,
        singular = kind.to_lowercase()
    )
}

fn with_widgets() -> TestCluster {
    let cluster = TestCluster::new();
    cluster.check(&format!("POST {DEFINITIONS}"), &definition("widgets", "Widget", "wd"), 201, "");
    cluster
}

#[test]
fn a_definition_is_established_and_served_at_once() {
    let cluster = with_widgets();
    cluster.check(
        &format!("GET {DEFINITIONS}/widgets.example.com"),
        "",
        200,
        r#"{"status": {
            "acceptedNames": {"kind": "Widget"},
            "storedVersions": ["v1"],
            "conditions": [
                {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
                {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}
            ]
        }}"#,
    );
    cluster.check(
        "GET /apis/example.com",
        "",
        200,
        r#"{"preferredVersion": {"groupVersion": "example.com/v1"}}"#,
    );
    cluster.check(&format!("GET {WIDGETS}"), "", 200, r#"{"kind": "WidgetList", "items": []}"#);
}

#[test]
fn names_that_are_taken_are_not_accepted() {
    let cluster = with_widgets();
    cluster.check(&format!("POST {DEFINITIONS}"), &definition("gadgets", "Gadget", "wd"), 201, "");
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    cluster.check(
        &format!("GET {path}"),
        "",
        200,
        r#"{"status": {"conditions": [
            {"type": "NamesAccepted", "status": "False", "reason": "ShortNamesConflict", "message": "\"wd\" is already in use"},
            {"type": "Established", "status": "False", "reason": "NotAccepted"}
        ]}}"#,
    );
    cluster.check("GET /apis/example.com/v1/gadgets", "", 404, "");
    cluster.check(&format!("DELETE {DEFINITIONS}/widgets.example.com"), "", 200, "");
    cluster.check("GET /apis/example.com/v1/gadgets", "", 200, "");
}

#[test]
fn objects_are_pruned_defaulted_and_validated() {
    let cluster = with_widgets();
    let created = cluster.check(
        &format!("POST {WIDGETS}"),
        r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1, "extra": 2}, "status": {"size": 9}}"#,
        201,
        r#"{"spec": {"size": 1, "mode": "Fast"}, "metadata": {"generation": 1}}"#,
    );
    assert!(created["spec"].get("extra").is_none());
    assert!(created.get("status").is_none());
    cluster.check(
        &format!("POST {WIDGETS}"),
        r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}, "spec": {"size": 0, "mode": "Other"}}"#,
        422,
        r#"{"message": "Widget.example.com \"b\" is invalid: [spec.mode: Unsupported value: \"Other\": supported values: \"Fast\", \"Slow\", spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1..."}"#,
    );
}

#[test]
fn an_applied_object_keeps_its_ownership() {
    let cluster = with_widgets();
    let path = format!("{WIDGETS}/a");
    let body = r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}"#;
    let expected = r#"{"metadata": {"managedFields": [{"manager": "me", "operation": "Apply", "fieldsV1": {"f:spec": {"f:size": {}}}}]}}"#;
    cluster.apply(&path, "me", body, 201, expected);
    cluster.check(
        &format!("PATCH {path}/status?fieldManager=other"),
        r#"{"status": {"size": 1}}"#,
        200,
        "",
    );
    let before = cluster.server.resource_version();
    cluster.apply(&path, "me", body, 200, "");
    assert_eq!(cluster.server.resource_version(), before);
}

#[test]
fn status_scale_and_generation_follow_the_subresources() {
    let cluster = with_widgets();
    let path = format!("{WIDGETS}/a");
    cluster.check(
        &format!("POST {WIDGETS}"),
        r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}"#,
        201,
        "",
    );
    cluster.check(
        &format!("PATCH {path}/status"),
        r#"{"status": {"size": 1}, "spec": {"size": 7}, "metadata": {"labels": {"x": "y"}}}"#,
        200,
        r#"{"status": {"size": 1}, "spec": {"size": 1}, "metadata": {"generation": 1}}"#,
    );
    cluster.check(
        &format!("PATCH {path}/scale"),
        r#"{"spec": {"replicas": 4}}"#,
        200,
        r#"{"spec": {"replicas": 4}, "status": {"replicas": 1}}"#,
    );
    cluster.check(
        &format!("GET {path}"),
        "",
        200,
        r#"{"spec": {"size": 4}, "metadata": {"generation": 2}}"#,
    );
    cluster.check(
        &format!("PUT {path}"),
        r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}"#,
        422,
        r#"{"message": "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"}"#,
    );
}

/// The versions of a definition that declares nothing about `spec` and `status`.
fn loose_versions(subresources: &str) -> String {
    format!(
        r#"[{{
            "name": "v1", "served": true, "storage": true, "subresources": {subresources},
            "schema": {{"openAPIV3Schema": {{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}
        }}]"#
    )
}

#[test]
fn scales_of_objects_that_are_older_than_the_subresource_are_read_as_they_are() {
    let cluster = TestCluster::new();
    let versions = loose_versions("{}");
    let definition = format!(
        r#"{{
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "olders.example.com"}},
            "spec": {{
                "group": "example.com", "scope": "Namespaced",
                "names": {{"plural": "olders", "kind": "Older"}}, "versions": {versions}
            }}
        }}"#
    );
    cluster.check(&format!("POST {DEFINITIONS}"), &definition, 201, "");
    let olders = "/apis/example.com/v1/namespaces/default/olders";
    for (name, rest) in [
        ("text", r#""spec": "x""#),
        ("word", r#""spec": {"replicas": "x"}"#),
        ("map", r#""spec": {"replicas": {"a": 1}}"#),
        ("selector", r#""spec": {"replicas": 1}, "status": {"selector": 7}"#),
        ("large", r#""spec": {"replicas": 5000000000}"#),
    ] {
        let object = format!(
            r#"{{"apiVersion": "example.com/v1", "kind": "Older", "metadata": {{"name": "{name}"}}, {rest}}}"#
        );
        cluster.check(&format!("POST {olders}"), &object, 201, "");
    }
    let versions = loose_versions(
        r#"{"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}"#,
    );
    let change = format!(r#"{{"spec": {{"versions": {versions}}}}}"#);
    cluster.check(&format!("PATCH {DEFINITIONS}/olders.example.com"), &change, 200, "");
    for (name, why) in [
        (
            "text",
            ".spec.replicas accessor error: x is of the type string, expected map[string]interface{}",
        ),
        ("word", ".spec.replicas accessor error: x is of the type string, expected int64"),
        (
            "map",
            ".spec.replicas accessor error: map[a:1] is of the type map[string]interface {}, expected int64",
        ),
        ("selector", ".status.selector accessor error: 7 is of the type int64, expected string"),
    ] {
        let expected = format!(r#"{{"message": "{why}"}}"#);
        let path = format!("{olders}/{name}/scale");
        cluster.check(&format!("GET {path}"), "", 500, &expected);
        cluster.check(&format!("PATCH {path}"), r#"{"spec": {"replicas": 2}}"#, 500, &expected);
    }
    let path = format!("{olders}/large/scale");
    let expected = r#"{"spec": {"replicas": 705032704}, "status": {"replicas": 0}}"#;
    cluster.check(&format!("GET {path}"), "", 200, expected);
    let expected = r#"{"spec": {"replicas": 2}}"#;
    cluster.check(&format!("PATCH {path}"), r#"{"spec": {"replicas": 2}}"#, 200, expected);
}

#[test]
fn all_versions_show_the_same_object() {
    let cluster = with_widgets();
    cluster.check(
        "POST /apis/example.com/v1beta1/namespaces/default/widgets",
        r#"{"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1, "extra": 2}}"#,
        201,
        r#"{"apiVersion": "example.com/v1beta1", "spec": {"size": 1}}"#,
    );
    let expected = r#"{"apiVersion": "example.com/v1", "spec": {"size": 1, "mode": "Fast"}}"#;
    cluster.check(&format!("GET {WIDGETS}/a"), "", 200, expected);
    // What the version at rest does not have is lost.
    let path = "GET /apis/example.com/v1beta1/namespaces/default/widgets/a";
    let read = cluster.check(path, "", 200, r#"{"apiVersion": "example.com/v1beta1"}"#);
    assert!(read["spec"].get("extra").is_none());
}

#[test]
fn selectable_fields_and_columns_work() {
    let cluster = with_widgets();
    for (name, mode) in [("a", "Fast"), ("b", "Slow")] {
        let body = format!(
            r#"{{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {{"name": "{name}"}}, "spec": {{"size": 1, "mode": "{mode}"}}}}"#
        );
        cluster.check(&format!("POST {WIDGETS}"), &body, 201, "");
    }
    cluster.check(
        &format!("GET {WIDGETS}?fieldSelector=spec.mode%3DSlow"),
        "",
        200,
        r#"{"items": [{"metadata": {"name": "b"}}]}"#,
    );
    cluster.check_with(
        Ask {
            line: &format!("GET {WIDGETS}"),
            accept: "application/json;as=Table;g=meta.k8s.io;v=v1",
            ..Ask::default()
        },
        200,
        r#"{
            "columnDefinitions": [{"name": "Name"}, {"name": "Size", "type": "integer"}],
            "rows": [{"cells": ["a", 1]}, {"cells": ["b", 1]}]
        }"#,
    );
}

#[test]
fn a_deleted_definition_takes_its_objects_along() {
    let cluster = with_widgets();
    cluster.check(
        &format!("POST {WIDGETS}"),
        r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "finalizers": ["example.com/hold"]}, "spec": {"size": 1}}"#,
        201,
        "",
    );
    let path = format!("{DEFINITIONS}/widgets.example.com");
    cluster.check(&format!("DELETE {path}"), "", 200, "");
    cluster.check(
        &format!("GET {path}"),
        "",
        200,
        r#"{"metadata": {"finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}}"#,
    );
    cluster.check(&format!("PATCH {WIDGETS}/a"), r#"{"metadata": {"finalizers": null}}"#, 200, "");
    cluster.check(&format!("GET {path}"), "", 404, "");
    cluster.check(&format!("GET {WIDGETS}"), "", 404, "");
}

#[test]
fn definitions_are_checked() {
    let cluster = TestCluster::new();
    let misnamed =
        definition("widgets", "Widget", "wd").replace("widgets.example.com", "other.example.com");
    cluster.check(
        &format!("POST {DEFINITIONS}"),
        &misnamed,
        422,
        r#"{"message": "CustomResourceDefinition.apiextensions.k8s.io \"other.example.com\" is invalid: metadata.name: Invalid value: \"other.example.com\": must be spec.names.plural+\".\"+spec.group"}"#,
    );
    let two_storages =
        definition("widgets", "Widget", "wd").replace("\"storage\": false", "\"storage\": true");
    cluster.check(&format!("POST {DEFINITIONS}"), &two_storages, 422, "");
}

#[test]
fn a_change_of_the_schema_is_served_at_once() {
    let cluster = with_widgets();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let changed = definition("widgets", "Widget", "wd").replace("\"minimum\": 1", "\"minimum\": 5");
    cluster.apply(&path, "me&force=true", &changed, 200, "");
    cluster.check(
        &format!("POST {WIDGETS}"),
        r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}"#,
        422,
        "",
    );
}

/// Makes a version the storage version of widgets.
fn store_in(cluster: &TestCluster, version: &str) {
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mut definition = cluster.check(&format!("GET {path}"), "", 200, "");
    for declared in definition["spec"]["versions"].as_array_mut().unwrap() {
        declared["storage"] = (declared["name"] == version).into();
    }
    cluster.check(&format!("PUT {path}"), &definition.to_string(), 200, "");
}

#[test]
fn a_write_that_changes_nothing_brings_an_object_into_the_storage_version() {
    let cluster = with_widgets();
    let widget = r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}"#;
    cluster.check(&format!("POST {WIDGETS}"), widget, 201, "");
    let path = format!("{WIDGETS}/w");
    let read = || cluster.check(&format!("GET {path}"), "", 200, "");
    let beta = path.replace("/v1/", "/v1beta1/");
    for (version, method, path) in [
        ("v1beta1", "PUT", &path),
        ("v1", "PATCH", &path),
        ("v1beta1", "PATCH", &beta),
        ("v1", "PATCH", &beta),
    ] {
        let before = read();
        store_in(&cluster, version);
        assert_eq!(read(), before, "a definition changes no objects");
        let write = || {
            let body = if method == "PUT" { read().to_string() } else { "{}".to_owned() };
            cluster.check(&format!("{method} {path}"), &body, 200, "")
        };
        let mut written = write();
        let revision = written["metadata"]["resourceVersion"].clone();
        assert_ne!(revision, before["metadata"]["resourceVersion"], "{method} {path}");
        assert_eq!(write()["metadata"]["resourceVersion"], revision, "it is there already");
        written["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        written["apiVersion"] = before["apiVersion"].clone();
        assert_eq!(written, before);
    }
}

#[test]
fn ownership_and_names_are_checked_as_those_of_built_in_objects() {
    let cluster = with_widgets();
    let widget = |managed: &str| {
        format!(
            r#"{{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {{"name": "w"{managed}}}, "spec": {{"size": 1}}}}"#
        )
    };
    cluster.check(&format!("POST {WIDGETS}"), &widget(""), 201, "");
    cluster.check(
        &format!("POST {WIDGETS}"),
        &widget(r#", "managedFields": "text""#),
        400,
        r#"{"message": "Widget in version \"v1\" cannot be handled as a Widget: json: cannot unmarshal string into Go struct field ObjectMeta.managedFields of type []v1.ManagedFieldsEntry"}"#,
    );
    cluster.check(
        &format!("PATCH {WIDGETS}/w"),
        r#"{"metadata": {"managedFields": [{"manager": 1}]}}"#,
        422,
        r#"{"reason": "Invalid"}"#,
    );
    cluster.check(
        "GET /apis/example.com/v1/namespaces/%2e%2e/widgets",
        "",
        500,
        r#"{"message": "invalid key: \"/example.com/widgets/..\""}"#,
    );
}
