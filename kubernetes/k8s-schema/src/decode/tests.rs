//! Values of the wrong type, in the words of Go's decoder.
use serde_json::json;

use super::*;
use crate::builtin;

#[test]
fn what_does_not_fit_is_named_as_go_names_it() {
    let schema = builtin::schema("", "v1", "Pod").expect("pods are built in");
    for (value, expected) in [
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({"metadata": {"labels": "x"}}),
            "string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            json!({"spec": {"containers": [{"ports": "x"}]}}),
            "string into Go struct field Container.spec.containers.ports of type []v1.ContainerPort",
        ),
        (
            json!({"spec": {"terminationGracePeriodSeconds": 3.5}}),
            "number 3.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            json!({"spec": {"containers": [{"command": [1]}]}}),
            "number into Go struct field Container.spec.containers.command of type string",
        ),
    ] {
        let expected = format!("json: cannot unmarshal {expected}");
        assert_eq!(decoding_error(&schema, &value), Some(expected));
    }
    let fine = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"ports": null}]}});
    assert_eq!(decoding_error(&schema, &fine), None);
}
