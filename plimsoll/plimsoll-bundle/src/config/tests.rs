//! The schema of a configuration, and what reading one says.

use plimsoll_content::bundle::BundleFile;
use serde_json::{Value, json};

use super::{config_schema, read_config};
use crate::{Bundle, load};

/// A bundle that supports install modes.
fn bundle(modes: &[&str]) -> Bundle {
    let modes: Vec<Value> =
        modes.iter().map(|mode| json!({ "type": mode, "supported": true })).collect();
    let csv = json!({ "kind": "ClusterServiceVersion", "metadata": { "name": "crane.v1" },
        "spec": { "installModes": modes } });
    let annotations =
        json!({ "annotations": { "operators.operatorframework.io.bundle.package.v1": "crane" } });
    let files = [("manifests/csv.yaml", csv), ("metadata/annotations.yaml", annotations)];
    let files = files.map(|(path, value)| BundleFile {
        path: path.to_owned(),
        bytes: value.to_string().into_bytes(),
    });
    load(&files).unwrap()
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(entries) => {
            found.extend(entries.get("$ref").and_then(Value::as_str).map(str::to_owned));
            entries.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_schema_follows_the_install_modes() {
    for (modes, watch, required) in [
        (&["AllNamespaces"][..], None, false),
        (&["AllNamespaces", "OwnNamespace"], Some("/anyOf/1/const"), false),
        (&["OwnNamespace"], Some("/const"), true),
        (&["SingleNamespace"], Some("/not/const"), true),
    ] {
        let schema = config_schema(&bundle(modes), "harbour");
        let property = schema["properties"].get("watchNamespace");
        assert_eq!(property.is_some(), watch.is_some(), "{modes:?}");
        if let Some((property, place)) = property.zip(watch) {
            assert_eq!(property.pointer(place), Some(&json!("harbour")), "{modes:?}");
        }
        assert_eq!(schema["required"] == json!(["watchNamespace"]), required, "{modes:?}");
    }
}

#[test]
fn references_of_the_schema_lead_to_its_definitions() {
    let schema = config_schema(&bundle(&["AllNamespaces"]), "harbour");
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let name = reference.strip_prefix("#/$defs/").unwrap_or_default();
        assert!(schema["$defs"].get(name).is_some(), "{reference}");
    }
}

#[test]
fn every_problem_is_named_by_its_field() {
    let config = json!({ "a": 1, "watchNamespace": "Quay", "deploymentConfig": {
        "replicas": 3, "env": [{ "value": "x" }, { "name": "A", "vale": "x" }],
        "volumes": {}, "tolerations": [{ "tolerationSeconds": "x" }] } });
    let problems = read_config(&bundle(&["AllNamespaces", "SingleNamespace"]), "harbour", &config);
    let fields: Vec<String> = problems.unwrap_err().into_iter().map(|it| it.field).collect();
    let expected = [
        "a",
        "deploymentConfig.env[0].name",
        "deploymentConfig.env[1].vale",
        "deploymentConfig.replicas",
        "deploymentConfig.tolerations[0].tolerationSeconds",
        "deploymentConfig.volumes",
        "watchNamespace",
    ];
    assert_eq!(fields, expected);
}
