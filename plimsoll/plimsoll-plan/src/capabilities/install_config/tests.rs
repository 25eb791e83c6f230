//! What the installer refuses, and what a cluster would have.

use std::collections::BTreeSet;

use plimsoll_content::Manifest;
use plimsoll_content::capability::CapabilityRegistry;
use serde_json::{Value, json};

use super::{Assessment, assess};

const CLOUD_CREDENTIAL: &str =
    "disabling CloudCredential capability available only for baremetal platforms";
const CLOUD_CONTROLLER: &str = "disabling CloudControllerManager is only supported on the Baremetal, None, or External platform with cloudControllerManager value none";
const INGRESS: &str = "the Ingress capability is required";

fn assessed(platform: &str, capabilities: &Value) -> Assessment {
    let mut platforms = json!({});
    platforms[platform] = json!({});
    let mut config = json!({ "platform": platforms });
    if !capabilities.is_null() {
        config["capabilities"] = capabilities.clone();
    }
    assess(&config, &CapabilityRegistry::built_in(), &BTreeSet::new())
}

fn check(platform: &str, capabilities: impl Into<Value>, expected: &[&str]) {
    let capabilities = capabilities.into();
    let found = assessed(platform, &capabilities);
    let said: Vec<String> = found.refusals.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "{platform} {capabilities}");
}

#[test]
fn no_stanza_means_v_current() {
    let found = assessed("aws", &Value::Null);
    assert_eq!(found.refusals, []);
    assert_eq!((found.enabled.len(), found.disabled.len()), (17, 0));
}

#[test]
fn none_on_a_cloud_is_refused_three_times() {
    let stanza = r#"capabilities: Invalid value: {"baselineCapabilitySet":"None"}: "#;
    let refusals = [CLOUD_CREDENTIAL, CLOUD_CONTROLLER, INGRESS].map(|it| format!("{stanza}{it}"));
    check("aws", json!({"baselineCapabilitySet": "None"}), &refusals.each_ref().map(|it| &**it));
    let enough = ["CloudCredential", "CloudControllerManager", "Ingress"];
    check(
        "aws",
        json!({"baselineCapabilitySet": "None", "additionalEnabledCapabilities": enough}),
        &[],
    );
    check("none", json!({"baselineCapabilitySet": "None"}), &[&refusals[2]]);
    check("external", json!({"baselineCapabilitySet": "None"}), &[&refusals[0], &refusals[2]]);
}

#[test]
fn bare_metal_needs_its_capability() {
    check(
        "baremetal",
        json!({"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Ingress"]}),
        &[
            "additionalEnabledCapabilities: Invalid value: [\"Ingress\"]: platform baremetal requires the baremetal capability",
        ],
    );
}

#[test]
fn names_that_do_not_exist_are_unsupported_and_guessed() {
    let sets = "supported values: \"None\", \"v4.11\", \"v4.12\", \"v4.13\", \"v4.14\", \"v4.15\", \"v4.16\", \"v4.17\", \"v4.18\", \"vCurrent\"";
    let found = assessed("none", &json!({"baselineCapabilitySet": "vcurrent"}));
    assert_eq!(
        found.refusals[0].to_string(),
        format!(
            "capabilities.baselineCapabilitySet: Unsupported value: \"vcurrent\": {sets} (did you mean \"vCurrent\"?)"
        ),
    );
    // An empty set in a stanza that is there.
    check(
        "none",
        json!({"additionalEnabledCapabilities": []}),
        &[&format!("capabilities.baselineCapabilitySet: Unsupported value: \"\": {sets}")],
    );
    let found = assessed(
        "none",
        &json!({"baselineCapabilitySet": "vCurrent", "additionalEnabledCapabilities": ["Console", "consol", "", 1]}),
    );
    let said: Vec<String> = found.refusals.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    let field = "capabilities.additionalEnabledCapabilities";
    assert!(said[0].starts_with(&format!(
        "{field}[1]: Unsupported value: \"consol\": supported values: \"Build\", "
    )));
    assert!(said[0].ends_with("(did you mean \"Console\"?)"));
    assert!(said[1].starts_with(&format!("{field}[2]: Unsupported value: \"\": ")));
    assert!(said[2].starts_with(&format!("{field}[3]: Unsupported value: 1: ")));
}

#[test]
fn what_a_capability_requires_must_be_there() {
    let ingress_and = |names: &[&str]| {
        let names: Vec<&str> = ["Ingress"].into_iter().chain(names.iter().copied()).collect();
        json!({"baselineCapabilitySet": "None", "additionalEnabledCapabilities": names})
    };
    check(
        "none",
        ingress_and(&["marketplace"]),
        &[
            "additionalEnabledCapabilities: Invalid value: [\"Ingress\",\"marketplace\"]: the marketplace capability requires the OperatorLifecycleManager capability",
        ],
    );
    check("none", ingress_and(&["marketplace", "OperatorLifecycleManager"]), &[]);
    check(
        "none",
        json!({"baselineCapabilitySet": "v4.11", "additionalEnabledCapabilities": ["Ingress"]}),
        &[
            "additionalEnabledCapabilities: Invalid value: [\"Ingress\"]: the marketplace capability requires the OperatorLifecycleManager capability",
        ],
    );
}

#[test]
fn what_is_not_as_it_must_be_is_reported() {
    check(
        "none",
        json!([]),
        &[
            "capabilities: Invalid value: []: must be a mapping",
            "capabilities.baselineCapabilitySet: Unsupported value: \"\": supported values: \"None\", \"v4.11\", \"v4.12\", \"v4.13\", \"v4.14\", \"v4.15\", \"v4.16\", \"v4.17\", \"v4.18\", \"vCurrent\"",
        ],
    );
    check(
        "none",
        json!({"baselineCapabilitySet": "vCurrent", "additionalCapabilities": []}),
        &[
            "capabilities.additionalCapabilities: unknown field (did you mean \"additionalEnabledCapabilities\"?)",
        ],
    );
    check(
        "none",
        json!({"baselineCapabilitySet": "vCurrent", "additionalEnabledCapabilities": "Console"}),
        &[
            "capabilities.additionalEnabledCapabilities: Invalid value: \"Console\": must be a list of names",
        ],
    );
    let list = assess(&json!([]), &CapabilityRegistry::built_in(), &BTreeSet::new());
    assert_eq!(list.refusals[0].to_string(), "install-config: an install-config must be a mapping");
}

#[test]
fn what_the_release_does_not_have_is_not_required() {
    let declared = json!({
        "apiVersion": "plimsoll.io/v1alpha1",
        "kind": "ReleaseCapabilities",
        "metadata": {"name": "capabilities"},
        "spec": {"omitBuiltIn": true, "capabilities": [{"name": "Lights"}]},
    });
    let manifest = Manifest::read("a.yaml".into(), 0, &declared).expect("a manifest");
    let mut registry = CapabilityRegistry::built_in();
    assert_eq!(registry.declare(&[manifest]).len(), 0);
    let capabilities = json!({
        "baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Lights"],
    });
    let config = json!({"platform": {"aws": {}}, "capabilities": capabilities});
    let found = assess(&config, &registry, &BTreeSet::new());
    assert_eq!(found.refusals, []);
    assert_eq!(found.enabled, BTreeSet::from(["Lights".to_owned()]));
}
