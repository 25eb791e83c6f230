//! Fingerprints differ by what releases change, whatever servers and injectors add.

use serde_json::{Value, json};

use super::TemplateFingerprint;

fn workload(image: &str, variables: &Value) -> Value {
    json!({ "spec": { "template": {
        "metadata": { "labels": { "app": "crane" } },
        "spec": { "containers": [{ "name": "crane", "image": image, "env": variables }] },
    } } })
}

#[test]
fn a_fingerprint_matches_where_all_of_it_is_there() {
    let version = |version: &str| json!([{ "name": "VERSION", "value": version }]);
    let injected = json!([
        { "name": "VERSION", "value": "1" },
        { "name": "HTTP_PROXY", "value": "http://proxy" },
        { "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
    ]);
    let cases = [
        ("the same", workload("a", &version("1")), workload("a", &version("1")), true),
        ("another image", workload("a", &version("1")), workload("b", &version("1")), false),
        ("another version", workload("a", &version("1")), workload("a", &version("2")), false),
        ("more variables", workload("a", &version("1")), workload("a", &injected), true),
        ("fewer variables", workload("a", &injected), workload("a", &version("1")), false),
        ("no template", json!({}), workload("a", &version("1")), true),
    ];
    for (name, manifest, live, expected) in cases {
        assert_eq!(
            TemplateFingerprint::of(&manifest).matches(&TemplateFingerprint::of(&live)),
            expected,
            "{name}"
        );
    }
}
