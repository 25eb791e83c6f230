//! The definitions declare what the wire types serialize, and nothing is lost on the way.

use std::collections::BTreeSet;
use std::fmt::Debug;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    CapabilityNames, action_manifests, cluster_versions, definition_version, manifests,
    operator_manifests,
};
use crate::config::{
    AcceptedRisk, CapabilitiesSpec, CapabilitiesStatus, ClusterOperatorStatus, ClusterVersionSpec,
    ClusterVersionStatus, ComponentOverride, ConditionalUpdate, ConditionalUpdateRisk,
    ConfigMapReference, MatchingRule, MetaCondition, ObjectReference, OperandVersion, PromQlRule,
    Release, SignatureStore, Update, UpdateHistory, UpdateState,
};
use crate::{
    ACTION, ACTION_CLASS, ACTION_PART, ACTION_POLICY, ApiKind, CATALOG, CLUSTER_OPERATOR,
    CLUSTER_VERSION, CRON_ACTION, Condition, ConditionStatus, EVENT_ACTION, MAINTENANCE_WINDOW,
    OPERATOR, OPERATOR_REVISION, RELEASE_PROGRESS, RETRY_ACTION,
};

mod actions;
mod olm;
mod progress;

/// The schema of a top-level field of a kind, such as `spec`.
fn schema_of(kind: ApiKind, field: &str) -> Value {
    let definition = manifests()
        .into_iter()
        .chain(operator_manifests())
        .chain(action_manifests())
        .find(|definition| definition["spec"]["names"]["kind"] == kind.kind)
        .unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][field].clone()
}

/// Lists where a value says what the schema does not declare, or lacks what it requires.
fn undeclared(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if schema["type"].is_null() && schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    let expected = schema["type"].as_str().unwrap_or("any");
    let fits = match value {
        Value::Null => schema["nullable"] == true,
        Value::Bool(_) => expected == "boolean",
        Value::Number(_) => expected == "integer",
        Value::String(_) => expected == "string",
        Value::Array(_) => expected == "array",
        Value::Object(_) => expected == "object",
    };
    if !fits {
        found.push(format!("{path}: not of type {expected}"));
    }
    if let Value::Array(items) = value {
        for (index, item) in items.iter().enumerate() {
            undeclared(&schema["items"], item, &format!("{path}[{index}]"), found);
        }
    }
    let Value::Object(fields) = value else { return };
    for required in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(required.as_str().unwrap()) {
            found.push(format!("{path}: lacks {required}"));
        }
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    for (name, field) in fields {
        let path = format!("{path}.{name}");
        match schema["properties"].get(name).or(schema.get("additionalProperties")) {
            Some(schema) => undeclared(schema, field, &path, found),
            None => found.push(format!("{path}: not declared")),
        }
    }
}

/// Checks that a value survives its wire form and that the schema declares all of it.
pub(super) fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    kind: ApiKind,
    field: &str,
    value: &T,
) {
    let wire = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(wire.clone()).unwrap(), value);
    let mut found = Vec::new();
    undeclared(&schema_of(kind, field), &wire, &format!("{}.{field}", kind.kind), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

fn condition() -> Condition {
    Condition {
        type_: "Available".into(),
        status: ConditionStatus::True,
        last_transition_time: Timestamp::from_second(1).unwrap(),
        reason: "AsExpected".into(),
        message: "All is well".into(),
    }
}

fn release() -> Release {
    Release {
        architecture: "Multi".into(),
        version: "1.0.0".into(),
        image: "example.com/release".into(),
        url: "https://example.com".into(),
        channels: vec!["stable".into()],
    }
}

pub(super) fn meta_condition() -> MetaCondition {
    MetaCondition {
        type_: "Applies".into(),
        status: ConditionStatus::Unknown,
        observed_generation: Some(1),
        last_transition_time: Timestamp::from_second(1).unwrap(),
        reason: "Unknown".into(),
        message: "It was not measured".into(),
    }
}

fn risk() -> ConditionalUpdateRisk {
    ConditionalUpdateRisk {
        conditions: vec![meta_condition()],
        name: "Slow".into(),
        message: "The update takes long".into(),
        url: "https://example.com/slow".into(),
        matching_rules: vec![MatchingRule {
            type_: "PromQL".into(),
            promql: Some(PromQlRule { promql: "vector(1)".into() }),
        }],
    }
}

fn cluster_version_spec() -> ClusterVersionSpec {
    ClusterVersionSpec {
        cluster_id: "4b6cf0a8-6c40-4f0c-a1f7-9f0f2a0ad9d3".into(),
        desired_update: Some(Update {
            architecture: "Multi".into(),
            version: "1.1.0".into(),
            image: "example.com/release".into(),
            force: true,
            accept_risks: vec![AcceptedRisk { name: "Slow".into() }],
        }),
        upstream: "https://example.com".into(),
        channel: "stable".into(),
        capabilities: Some(CapabilitiesSpec {
            baseline_capability_set: "None".into(),
            additional_enabled_capabilities: vec!["Lights".into()],
        }),
        signature_stores: vec![SignatureStore {
            url: "https://example.com".into(),
            ca: Some(ConfigMapReference { name: "trusted".into() }),
        }],
        overrides: vec![ComponentOverride {
            kind: "Pod".into(),
            unmanaged: true,
            ..Default::default()
        }],
    }
}

fn cluster_version_status() -> ClusterVersionStatus {
    let history = UpdateHistory {
        state: UpdateState::Completed,
        started_time: Timestamp::from_second(1).unwrap(),
        completion_time: Some(Timestamp::from_second(2).unwrap()),
        version: "1.0.0".into(),
        image: "example.com/release".into(),
        verified: true,
        accepted_risks: "none worth it".into(),
    };
    ClusterVersionStatus {
        desired: release(),
        history: vec![UpdateHistory { completion_time: None, ..history.clone() }, history],
        observed_generation: 3,
        version_hash: "abc=".into(),
        capabilities: CapabilitiesStatus {
            enabled_capabilities: vec!["Lights".into()],
            known_capabilities: vec!["Lights".into()],
        },
        conditions: vec![condition()],
        available_updates: Some(vec![release()]),
        conditional_update_risks: vec![risk()],
        conditional_updates: vec![ConditionalUpdate {
            release: release(),
            conditions: vec![meta_condition()],
            risk_names: vec!["Slow".into()],
            risks: vec![risk()],
        }],
    }
}

#[test]
fn everything_a_cluster_version_says_is_declared() {
    check(CLUSTER_VERSION, "spec", &cluster_version_spec());
    check(
        CLUSTER_VERSION,
        "spec",
        &ClusterVersionSpec { cluster_id: "a".into(), ..Default::default() },
    );
    check(CLUSTER_VERSION, "status", &cluster_version_status());
    check(CLUSTER_VERSION, "status", &ClusterVersionStatus::default());
}

#[test]
fn everything_a_cluster_operator_says_is_declared() {
    let status = ClusterOperatorStatus {
        conditions: vec![condition()],
        versions: vec![OperandVersion { name: "operator".into(), version: "1.0.0".into() }],
        related_objects: vec![ObjectReference {
            group: String::new(),
            resource: "namespaces".into(),
            namespace: "pier".into(),
            name: "pier".into(),
        }],
        extension: Some(json!({"anything": [1, "two"]})),
    };
    check(CLUSTER_OPERATOR, "status", &status);
    check(CLUSTER_OPERATOR, "status", &ClusterOperatorStatus::default());
}

#[test]
fn definitions_agree_with_the_names_that_clients_use() {
    let kinds = [
        CLUSTER_VERSION,
        CLUSTER_OPERATOR,
        RELEASE_PROGRESS,
        OPERATOR,
        OPERATOR_REVISION,
        CATALOG,
        ACTION,
        RETRY_ACTION,
        CRON_ACTION,
        EVENT_ACTION,
        ACTION_PART,
        ACTION_CLASS,
        ACTION_POLICY,
        MAINTENANCE_WINDOW,
    ];
    let namespaced = [ACTION, RETRY_ACTION, CRON_ACTION, EVENT_ACTION, ACTION_PART];
    let definitions = [manifests(), operator_manifests(), action_manifests()].concat();
    assert_eq!(definitions.len(), kinds.len());
    for (definition, kind) in definitions.iter().zip(kinds) {
        let spec = &definition["spec"];
        assert_eq!(definition["metadata"]["name"], format!("{}.{}", kind.plural, kind.group));
        assert_eq!(spec["group"], kind.group);
        assert_eq!(spec["names"]["plural"], kind.plural);
        assert_eq!(spec["versions"][0]["name"], kind.version);
        let has_status = !schema_of(kind, "status").is_null();
        let subresources = if has_status { json!({ "status": {} }) } else { Value::Null };
        assert_eq!(spec["versions"][0]["subresources"], subresources, "{}", kind.kind);
        let scope = if namespaced.contains(&kind) { "Namespaced" } else { "Cluster" };
        assert_eq!(spec["scope"], scope, "{}", kind.kind);
    }
}

/// What the definition of ClusterVersion says of the capabilities of a spec and of a status.
fn capabilities_of(definition: &Value) -> [Value; 2] {
    let properties = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    ["spec", "status"].map(|part| properties[part]["properties"]["capabilities"].clone())
}

#[test]
fn names_of_capabilities_are_open_strings_unless_they_are_limited() {
    let open = capabilities_of(&manifests()[0]);
    assert!(!format!("{open:?}").contains("enum"), "{open:?}");
    assert_eq!(capabilities_of(&cluster_versions(None)), open);

    let mut names =
        CapabilityNames { sets: vec!["None".into(), "v1".into()], ..Default::default() };
    let [spec, status] = capabilities_of(&cluster_versions(Some(&names)));
    assert_eq!(status, open[1], "the status accepts all names");
    assert_eq!(spec["properties"]["baselineCapabilitySet"]["enum"], json!(["None", "v1"]));
    let additional = &spec["properties"]["additionalEnabledCapabilities"];
    assert_eq!((&additional["maxItems"], &additional["items"]["enum"]), (&json!(0), &Value::Null));

    names.capabilities = BTreeSet::from(["Lights".into(), "Bells".into()]);
    let [spec, _] = capabilities_of(&cluster_versions(Some(&names)));
    let additional = &spec["properties"]["additionalEnabledCapabilities"];
    let expected = json!(["Bells", "Lights"]);
    assert_eq!((&additional["maxItems"], &additional["items"]["enum"]), (&Value::Null, &expected));
}

#[test]
fn the_version_of_our_definition_grows_with_its_fields() {
    /// The paths of all fields with their types.
    fn fields(schema: &Value, path: &str, found: &mut Vec<String>) {
        found.push(format!("{path}: {}", schema["type"]));
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            fields(inner, &format!("{path}.{name}"), found);
        }
        for part in ["items", "additionalProperties"] {
            if schema[part].is_object() {
                fields(&schema[part], &format!("{path}[]"), found);
            }
        }
    }
    let mut found = Vec::new();
    fields(&schema_of(RELEASE_PROGRESS, "status"), "status", &mut found);
    let texts = found.iter().flat_map(|it| it.bytes());
    let digest = texts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let definition = manifests().into_iter().find(|it| it["spec"]["group"] == "plimsoll.io");
    let annotations = definition.unwrap()["metadata"]["annotations"].take();
    let version = definition_version(|name| annotations[name].as_str());
    assert_eq!(
        (version, digest),
        (4, 4_642_860_410_182_196_888),
        "if the fields changed, raise the version in the marker of the type and here"
    );
    assert_eq!(definition_version(|_| None), 0);
    assert_eq!(definition_version(|_| Some("x")), 0);
}
