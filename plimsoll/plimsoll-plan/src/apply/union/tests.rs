//! What is claimed of an object whose change is refused, and what is not.

#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]

use serde_json::{Value, json};

use super::{RefusedField, claim};
use crate::plan::GroupVersionKind;

const ONE_HANDLER: &str = "may not specify more than 1 handler type";

fn kind() -> GroupVersionKind {
    let [group, version, kind] = ["apps", "v1", "Deployment"].map(str::to_owned);
    GroupVersionKind { group, version, kind }
}

fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

fn with_entries(mut live: Value, entries: Vec<Value>) -> Value {
    live["metadata"] = json!({ "managedFields": entries });
    live
}

fn without_metadata(mut object: Value) -> Value {
    object.as_object_mut().expect("an object").remove("metadata");
    object
}

fn forbidden(field: &str) -> RefusedField {
    RefusedField::new(field, "FieldValueForbidden", ONE_HANDLER).expect("it may be of a union")
}

/// Checks what is ours of a live object afterwards, and what the object becomes.
#[track_caller]
fn check(
    ours: Value,
    live: Value,
    applied: Value,
    refused: &[&str],
    claimed: Value,
    expected: Value,
) {
    let refused: Vec<RefusedField> = refused.iter().map(|field| forbidden(field)).collect();
    let live = with_entries(live, vec![entry("plimsoll", "Apply", &ours)]);
    let found = claim(&kind(), &live, &applied, &refused).expect("something is in the way");
    assert_eq!(found.managed_fields, [entry("plimsoll", "Apply", &claimed)]);
    assert_eq!(without_metadata(found.object), expected);
}

#[track_caller]
fn check_none(live: Value, applied: Value, refused: &[RefusedField]) {
    assert_eq!(claim(&kind(), &live, &applied, refused), None);
}

fn strategy(strategy: Value) -> Value {
    json!({ "spec": { "strategy": strategy } })
}

fn rolling() -> Value {
    strategy(json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%" } }))
}

#[test]
fn the_refused_field_itself_is_claimed() {
    check(
        json!({ "f:spec": { "f:replicas": {}, "f:strategy": { "f:type": {} } } }),
        rolling(),
        strategy(json!({ "type": "Recreate" })),
        &["spec.strategy.rollingUpdate"],
        json!({
            "f:spec": { "f:replicas": {}, "f:strategy": { "f:rollingUpdate": {}, "f:type": {} } },
        }),
        strategy(json!({ "type": "Recreate" })),
    );
}

#[test]
fn a_strategy_that_no_manifest_had_is_found() {
    // Our entry has nothing of the strategy; the manifest names it for the first time.
    let ours = json!({ "f:spec": { "f:replicas": {} } });
    let live = with_entries(rolling(), vec![entry("plimsoll", "Apply", &ours)]);
    let applied = strategy(json!({ "type": "Recreate" }));
    let refused = [forbidden("spec.strategy.rollingUpdate")];
    let found = claim(&kind(), &live, &applied, &refused).expect("it is in the way");
    let claimed =
        json!({ "f:spec": { "f:replicas": {}, "f:strategy": { "f:rollingUpdate": {} } } });
    assert_eq!(found.managed_fields, [entry("plimsoll", "Apply", &claimed)]);
}

fn containers(containers: Value) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": containers } } } })
}

fn owned_containers(containers: Value) -> Value {
    json!({ "f:spec": { "f:template": { "f:spec": { "f:containers": containers } } } })
}

#[test]
fn the_former_handler_of_a_probe_is_claimed_whichever_the_server_names() {
    let get = json!({ "path": "/healthz", "port": 80, "scheme": "HTTP" });
    let there = json!([
        { "name": "sidecar", "image": "s" },
        { "name": "app", "livenessProbe": { "httpGet": get, "periodSeconds": 10 } },
    ]);
    let handler = |name: &str, value: Value| {
        containers(json!([{ "name": "app", "livenessProbe": { (name): value } }]))
    };
    let owned = |get: Value| {
        let probe = json!({ "f:livenessProbe": { "f:httpGet": get } });
        owned_containers(json!({ (r#"k:{"name":"app"}"#): probe }))
    };
    let at = "spec.template.spec.containers[0].livenessProbe";
    for (name, named) in [("exec", "httpGet"), ("tcpSocket", "tcpSocket")] {
        let probe = json!({ (name): { "port": 80 }, "periodSeconds": 10 });
        let expected = json!([
            { "name": "app", "livenessProbe": probe },
            { "name": "sidecar", "image": "s" },
        ]);
        check(
            owned(json!({ "f:path": {}, "f:port": {} })),
            containers(there.clone()),
            handler(name, json!({ "port": 80 })),
            &[&format!("{at}.{named}"), &format!("{at}.httpGet.port")],
            owned(json!({ ".": {}, "f:path": {}, "f:port": {} })),
            containers(expected),
        );
    }
}

#[test]
fn the_key_of_an_item_may_be_a_default() {
    let ports = |port: Value| json!({ "spec": { "ports": [port] } });
    let key = r#"k:{"port":80,"protocol":"TCP"}"#;
    check(
        json!({ "f:spec": { "f:ports": { (key): { ".": {}, "f:port": {} } } } }),
        ports(json!({ "port": 80, "protocol": "TCP", "nodePort": 30000 })),
        ports(json!({ "port": 80 })),
        &["spec.ports[0].nodePort"],
        json!({ "f:spec": { "f:ports": { (key): { ".": {}, "f:nodePort": {}, "f:port": {} } } } }),
        ports(json!({ "port": 80, "protocol": "TCP" })),
    );
}

#[test]
fn fields_of_earlier_managers_are_claimed_with_the_object() {
    let theirs = json!({ "f:spec": { "f:strategy": {
        "f:type": {}, "f:rollingUpdate": { ".": {}, "f:maxSurge": {} },
    } } });
    let live = with_entries(rolling(), vec![entry("kubectl-create", "Update", &theirs)]);
    let applied = strategy(json!({ "type": "Recreate" }));
    let refused = [forbidden("spec.strategy.rollingUpdate")];
    let found = claim(&kind(), &live, &applied, &refused).expect("it is in the way");
    assert_eq!(found.managed_fields, [entry("plimsoll", "Apply", &theirs)]);
}

#[test]
fn what_the_manifest_drops_besides_goes_too_and_what_others_own_stays() {
    let ours = json!({ "f:spec": {
        "f:paused": {}, "f:strategy": { "f:type": {} }, "f:replicas": {},
        "f:probe": { "f:httpGet": { "f:path": {} } },
    } });
    let theirs = json!({ "f:spec": { "f:replicas": {} } });
    let entries = vec![entry("plimsoll", "Apply", &ours), entry("another", "Update", &theirs)];
    let mut live = with_entries(rolling(), entries);
    live["spec"]["paused"] = true.into();
    live["spec"]["replicas"] = 3.into();
    // The defaults in it are of no manager.
    live["spec"]["probe"] = json!({ "httpGet": { "path": "/", "scheme": "HTTP" } });
    let refused = [forbidden("spec.strategy.rollingUpdate")];
    let found = claim(&kind(), &live, &strategy(json!({ "type": "Recreate" })), &refused);
    let expected = json!({ "spec": { "replicas": 3, "strategy": { "type": "Recreate" } } });
    assert_eq!(without_metadata(found.expect("it is in the way").object), expected);
}

#[test]
fn other_refusals_claim_nothing() {
    let applied = strategy(json!({ "type": "Recreate" }));
    let ours = json!({ "f:spec": { "f:strategy": { "f:type": {} } } });
    let live = with_entries(rolling(), vec![entry("plimsoll", "Apply", &ours)]);
    // A value that is wrong by itself, and a field that is not there.
    for field in ["spec.strategy.type", "spec.sessionAffinityConfig"] {
        let invalid = RefusedField::new(field, "FieldValueInvalid", "it is wrong");
        check_none(live.clone(), applied.clone(), &[invalid.expect("it may be of a union")]);
    }
    // An object of another manager: it has no entry of ours.
    let other = with_entries(rolling(), vec![entry("another", "Update", &ours)]);
    check_none(other, applied, &[forbidden("spec.strategy.rollingUpdate")]);
    for (field, message) in [
        ("spec", "updates for fields other than these are forbidden"),
        ("metadata.labels", "it is wrong"),
        ("status.phase", "it is wrong"),
        ("spec.selector", "field is immutable"),
    ] {
        assert_eq!(RefusedField::new(field, "FieldValueForbidden", message), None, "{field}");
    }
}
