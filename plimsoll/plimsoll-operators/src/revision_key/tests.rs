//! What a signature covers, and which OperatorRevisions are taken over without one.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]

use serde_json::json;

use super::*;

const KEY: RevisionKey = RevisionKey::new([7; RevisionKey::LENGTH]);

fn spec() -> Value {
    json!({
        "operator": "bar", "revision": 3, "digest": "y_Kc5IQiIyU=",
        "bundle": { "name": "bar.v1", "version": "1.0.0" },
        "config": { "a": null, "b": [1, true, "x"], "c": 1.5 },
        "objects": [{ "phase": "Roles", "object": { "kind": "ClusterRole" } }],
    })
}

fn with_signature(signature: &str, spec: Value) -> Value {
    let annotations = json!({ SIGNATURE_ANNOTATION: signature });
    json!({ "metadata": { "annotations": annotations, "uid": "any" }, "spec": spec })
}

fn signed(name: &str, signed: &Value, spec: Value) -> Value {
    with_signature(&KEY.signature(name, "1", signed), spec)
}

fn is_signed(key: &RevisionKey, name: &str, object: &Value) -> bool {
    key.provenance(name, object) == Provenance::Of("1".to_owned())
}

#[test]
fn a_signature_is_one_of_everything_in_a_spec() {
    assert!(is_signed(&KEY, "bar-3", &signed("bar-3", &spec(), spec())));
    assert!(!is_signed(&KEY, "bar-4", &signed("bar-3", &spec(), spec())), "another name");
    let other = RevisionKey::new([8; RevisionKey::LENGTH]);
    assert!(!is_signed(&other, "bar-3", &signed("bar-3", &spec(), spec())), "another key");
    assert!(!is_signed(&KEY, "bar-3", &json!({ "spec": spec() })), "no signature");
    for signature in ["", "/", "1/"] {
        let object = with_signature(signature, spec());
        assert_eq!(KEY.provenance("bar-3", &object), Provenance::Unknown, "{signature}");
    }
    for (field, value) in [
        ("/operator", json!("baz")),
        ("/revision", json!(4)),
        ("/digest", json!("")),
        ("/bundle/name", json!("bar.v2")),
        ("/config/a", json!(false)),
        ("/config/b", json!([1, "truex"])),
        ("/config/c", json!(2)),
        ("/objects/0/phase", json!("")),
        ("/objects/0/object", json!({ "kind": "ClusterRole", "rules": [] })),
    ] {
        let mut changed = spec();
        *changed.pointer_mut(field).expect("the field is there") = value;
        assert!(!is_signed(&KEY, "bar-3", &signed("bar-3", &spec(), changed)), "{field}");
    }
}

#[test]
fn a_signature_says_which_operator_it_is_for() {
    let signature = KEY.signature("bar-3", "1", &spec());
    let code = signature.strip_prefix("1/").expect("it begins with the uid");
    for (signature, expected) in [
        (signature.clone(), Provenance::Of("1".to_owned())),
        (KEY.signature("bar-3", "2", &spec()), Provenance::Of("2".to_owned())),
        (format!("2/{code}"), Provenance::Unknown),
        (code.to_owned(), Provenance::Unknown),
        (KEY.code(&[EARLIER_PURPOSE, "bar-3"], &spec()), Provenance::Earlier),
        (KEY.code(&[EARLIER_PURPOSE, "bar-4"], &spec()), Provenance::Unknown),
    ] {
        assert_eq!(KEY.provenance("bar-3", &with_signature(&signature, spec())), expected);
    }
    assert_ne!(KEY.mark(), KEY.earlier_mark());
}

#[test]
fn what_an_api_server_returns_is_signed_as_what_was_sent() {
    for (sent, returned) in [
        ("1.0", "1"),
        ("-0.0", "0"),
        ("1e16", "10000000000000000"),
        (r#"{"b": [null], "a": null}"#, r#"{"b": [null]}"#),
    ] {
        let [sent, returned]: [Value; 2] =
            [sent, returned].map(|it| serde_json::from_str(it).expect("JSON"));
        assert_eq!(
            KEY.signature("bar-3", "1", &sent),
            KEY.signature("bar-3", "1", &returned),
            "{sent}"
        );
    }
}

#[test]
fn what_the_status_of_an_operator_names_is_taken_over() {
    let operator = json!({
        "metadata": { "name": "bar", "uid": "1" },
        "status": {
            "revision": 4, "bundle": { "name": "bar.v2", "version": "2.0.0" },
            "history": [{
                "state": "Completed", "bundle": "bar.v1", "version": "1.0.0", "revision": 3,
                "startedTime": "2026-01-01T00:00:00Z", "completionTime": null,
            }],
        },
    });
    let revision = |number: u32, bundle: &str, owner: &str| {
        json!({
            "metadata": { "ownerReferences": [{ "controller": true, "uid": owner }] },
            "spec": { "operator": "bar", "revision": number, "bundle": { "name": bundle } },
        })
    };
    for (number, bundle, owner, expected) in [
        (3, "bar.v1", "1", true),
        (4, "bar.v2", "1", true),
        (3, "bar.v2", "1", false),
        (3, "bar.v1", "2", false),
        (5, "bar.v2", "1", false),
        (9, "bar.v1", "1", false),
    ] {
        let found = is_recorded(&operator, &revision(number, bundle, owner));
        assert_eq!(found, expected, "{number} {bundle} {owner}");
    }
    let mut other = operator.clone();
    other["metadata"]["name"] = json!("baz");
    assert!(!is_recorded(&other, &revision(3, "bar.v1", "1")), "another Operator");
    let alone = json!({ "metadata": { "name": "bar" }, "status": operator["status"] });
    assert!(!is_recorded(&alone, &revision(3, "bar.v1", "")), "no uid");
}

#[test]
fn what_an_earlier_version_signed_is_signed_for_its_operator() {
    let operator = |uid: &str| json!({ "metadata": { "name": "bar", "uid": uid } });
    let revision = |signature: &str| {
        let mut object = with_signature(signature, spec());
        object["metadata"]["ownerReferences"] = json!([{ "controller": true, "uid": "1" }]);
        object
    };
    // The status names none of them, so that only the signature says that the controller made it.
    let earlier = revision(&KEY.code(&[EARLIER_PURPOSE, "bar-3"], &spec()));
    for is_signed_earlier in [true, false] {
        let is_taken_over = |uid: &str, revision: &Value| {
            KEY.is_taken_over(&operator(uid), "bar-3", revision, is_signed_earlier)
        };
        assert!(is_taken_over("1", &earlier), "{is_signed_earlier}");
        assert!(!is_taken_over("2", &earlier), "it is controlled by another one");
        let other = KEY.code(&[EARLIER_PURPOSE, "bar-4"], &spec());
        assert!(!is_taken_over("1", &revision(&other)), "the signature of another one");
        assert!(!is_taken_over("1", &revision("")), "no signature");
        let signed = KEY.signature("bar-3", "0", &spec());
        assert!(!is_taken_over("1", &revision(&signed)), "it is for another Operator");
    }
    // Without a signature, the status has to name it, and no earlier version may have signed all.
    let mut recorded = operator("1");
    recorded["status"]["revision"] = spec()["revision"].clone();
    recorded["status"]["bundle"] = spec()["bundle"].clone();
    assert!(KEY.is_taken_over(&recorded, "bar-3", &revision(""), false));
    assert!(!KEY.is_taken_over(&recorded, "bar-3", &revision(""), true));
}
