//! Objects go to the wire and come back.
use proptest::test_runner::{Config, FileFailurePersistence};
use serde_json::{Value, json};

use super::*;

fn round_trip(object: &Value) {
    let bytes = encode(object).expect("the object can be encoded");
    let read = decode(&bytes).expect("what was encoded can be read");
    assert_eq!(&read, object);
}

#[test]
fn objects_come_back_as_they_were() {
    for object in [
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": false,
            "metadata": {"name": "a", "labels": {"a": "b", "c": ""}, "creationTimestamp": "2026-01-02T03:04:05Z"},
            "data": {"k": "AQID"},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1},
                },
                "template": {"metadata": {}, "spec": {
                    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
                    "containers": [{
                        "name": "c", "image": "i",
                        "resources": {"limits": {"cpu": "100m"}},
                        "livenessProbe": {"httpGet": {"port": 80, "path": "/"}, "periodSeconds": 3},
                    }],
                }},
            },
            "status": {},
        }),
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
            "spec": {"renewTime": "2026-01-02T03:04:05.000678Z", "leaseTransitions": -1},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"},
            "data": {"any": ["thing", 1.5, null]}, "revision": 7,
        }),
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": "no", "details": {"causes": [{"field": "a", "message": "b"}]}, "code": 404,
        }),
        json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
            "status": {"userInfo": {"username": "a", "extra": {"k": ["v", "w"]}}},
        }),
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
            "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}],
        }),
    ] {
        round_trip(&object);
    }
}

#[test]
fn schemas_of_definitions_come_back_as_they_were() {
    round_trip(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "a.b"},
        "spec": {
            "group": "b", "scope": "Namespaced", "names": {"plural": "a", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true, "$schema": "s",
                    "properties": {"p": {
                        "type": "integer", "minimum": 1.5, "maximum": 3, "default": {"a": 1},
                        "enum": [1, "two"],
                    }},
                    "items": {"type": "string"},
                    "additionalProperties": false,
                },
            }}],
        },
        "status": {"acceptedNames": {"plural": "", "kind": ""}},
    }));
}

#[test]
fn zeros_are_left_out_as_json_leaves_them_out() {
    // A name that is empty, and a time that is not set.
    let mut metadata = Writer::default();
    metadata.text(1, "");
    metadata.bytes(8, b"");
    let mut object = Writer::default();
    object.bytes(1, &metadata.finish());
    let mut names = Writer::default();
    names.text(1, "v1");
    names.text(2, "ConfigMap");
    let mut envelope = Writer::starting_with(MAGIC);
    envelope.bytes(1, &names.finish());
    envelope.bytes(2, &object.finish());
    let read = decode(&envelope.finish()).expect("the object can be read");
    assert_eq!(read, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}));
}

#[test]
fn what_is_no_object_is_refused() {
    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(decode(bytes).expect_err("it is refused").to_string(), expected);
    }
    check(
        b"{}",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    );
    check(b"k8s\0", "no kind \"\" is registered for version \"\"");
    check(b"k8s\0\x0a\xff", "proto: illegal wireType or unexpected EOF in Unknown");
    check(b"k8s\0\x0a\x05\x0a\x7fabc", "proto: illegal wireType or unexpected EOF in TypeMeta");
}

#[test]
fn an_event_is_a_frame_with_its_length() {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    let frame = encode_watch_event("ADDED", &object).expect("the event can be encoded");
    let length = u32::from_be_bytes(frame[..4].try_into().expect("four bytes"));
    assert_eq!(length as usize, frame.len() - 4);
    assert_eq!(&frame[4..11], b"\x0a\x05ADDED");
}

#[test]
fn custom_kinds_have_no_encoding() {
    assert!(is_encodable("apps/v1", "DeploymentList"));
    assert!(is_encodable("apps/v1", "DeleteOptions"));
    assert!(!is_encodable("example.com/v1", "Widget"));
}

/// The cases that failed once, which are played first.
const FAILED: FileFailurePersistence = FileFailurePersistence::Direct(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/seeds/properties.txt"
));

proptest::proptest! {
    #![proptest_config(Config { failure_persistence: Some(Box::new(FAILED)), ..Config::default() })]

    /// Whatever a client sends is read or refused, and what was read can be written again.
    #[test]
    fn any_bytes_are_read_or_refused(
        kind in proptest::sample::select(vec!["Pod", "Event", "Service", "DeleteOptions"]),
        raw in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120),
    ) {
        let mut names = Writer::default();
        names.text(1, "v1");
        names.text(2, kind);
        let mut envelope = Writer::starting_with(MAGIC);
        envelope.bytes(1, &names.finish());
        envelope.bytes(2, &raw);
        if let Ok(object) = decode(&envelope.finish()) {
            let again = encode(&object).and_then(|bytes| decode(&bytes));
            proptest::prop_assert_eq!(again, Ok(object));
        }
    }
}
