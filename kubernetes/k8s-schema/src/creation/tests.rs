//! Objects, and what is refused of them.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]

use serde_json::{Value, json};

use super::*;

fn refused(object: Value) -> Vec<String> {
    let text = |field: &str| object[field].as_str().expect("a text").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let is = |it: &&Resource| it.group == group && it.version == version && it.kind == kind;
    let resource = builtin::resources().iter().find(is).expect("a built-in kind");
    refused_of_builtin(resource, object).iter().map(ToString::to_string).collect()
}

fn deployment(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "harbour"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    });
    for (name, value) in spec.as_object().expect("fields") {
        object["spec"][name] = value.clone();
    }
    object
}

fn named(api_version: &str, kind: &str, fields: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "a", "namespace": "harbour"},
    });
    for (name, value) in fields.as_object().expect("fields") {
        object[name] = value.clone();
    }
    object
}

#[test]
fn what_is_accepted_has_no_errors() {
    let job = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}],
    }}}});
    for object in [
        deployment(json!({})),
        named("batch/v1", "Job", job),
        named(
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/tls", "stringData": {"tls.crt": "a", "tls.key": "b"}}),
        ),
        named("v1", "Service", json!({"spec": {"ports": [{"port": 80}]}})),
        // The server sets the status: what the document says of it does not matter.
        named(
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1}, "status": {"currentHealthy": -1}}),
        ),
    ] {
        assert_eq!(refused(object.clone()), Vec::<String>::new(), "{object}");
    }
}

#[test]
fn what_is_refused_is_named_with_its_field() {
    let containers = |container: Value| {
        deployment(json!({"template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]},
        }}))
    };
    for (object, expected) in [
        (
            deployment(json!({"replicas": "three"})),
            "spec.replicas: Invalid value: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            containers(
                json!({"name": "web", "image": "web", "resources": {"limits": {"cpu": "lots"}}}),
            ),
            "spec.template.spec.containers[0].resources.limits.cpu: Invalid value: quantities must match the regular expression",
        ),
        (
            containers(json!({"name": "web"})),
            "spec.template.spec.containers[0].image: Required value",
        ),
        (
            deployment(json!({"selector": {"matchLabels": {"app": "other"}}})),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
        ),
        (
            named("v1", "Secret", json!({"data": {"pin": "not base64"}})),
            "data.pin: Invalid value: illegal base64 data at input byte 3",
        ),
        (
            named("v1", "ConfigMap", json!({"metadata": {"name": "A_b", "namespace": "harbour"}})),
            "metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain",
        ),
    ] {
        let found = refused(object);
        assert!(found.iter().any(|it| it.starts_with(expected)), "{expected}\n{found:#?}");
    }
}

#[test]
fn custom_objects_are_checked_by_schema_and_expressions() {
    let definition = json!({"spec": {"scope": "Namespaced"}});
    let version = json!({"subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"length": {"type": "integer", "maximum": 9}},
                "x-kubernetes-validations": [{"rule": "self.length != 7", "message": "seven is taken"}],
            },
            "status": {"type": "object", "required": ["phase"]},
        },
    }}});
    let custom = CustomKind::of(&definition, &version).expect("it is structural");
    for (fields, expected) in [
        (json!({"spec": {"length": 1}, "status": {}}), vec![]),
        (json!({}), vec!["spec: Required value"]),
        (
            json!({"spec": {"length": 10}}),
            vec![
                "spec.length: Invalid value: 10: spec.length in body should be less than or equal to 9",
            ],
        ),
        (
            json!({"spec": {"length": 7}}),
            vec!["spec: Invalid value: {\"length\":7}: seven is taken"],
        ),
    ] {
        let object = named("quay.example/v1", "Berth", fields);
        let found = refused_of_custom("quay.example", "Berth", &custom, object);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected.split(": {").next().unwrap_or(expected)), "{found}");
        }
    }
}
