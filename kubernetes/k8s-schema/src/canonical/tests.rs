//! Quantities, times and data in objects of built-in kinds.
use serde_json::json;

use super::*;
use crate::builtin;
use crate::canonicalize_numbers;

#[track_caller]
fn check(group: &str, kind: &str, mut value: Value, expected: Result<Value, &str>) {
    let schema = builtin::schema(group, "v1", kind).expect("the kind is built in");
    let result = canonicalize(&schema, &mut value).map(|()| value);
    assert_eq!(result, expected.map_err(str::to_owned));
}

#[test]
fn quantities_and_times_take_their_canonical_form() {
    check(
        "",
        "Pod",
        json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "0.5", "memory": 1024}}}]}}),
        Ok(json!({"spec": {"containers": [
            {"resources": {"limits": {"cpu": "500m", "memory": "1024"}}}]}})),
    );
    check(
        "coordination.k8s.io",
        "Lease",
        json!({"spec": {"renewTime": "2020-01-01T01:00:00.123456+01:00"}}),
        Ok(json!({"spec": {"renewTime": "2020-01-01T00:00:00.123456Z"}})),
    );
    check(
        "",
        "Event",
        json!({"firstTimestamp": "2020-01-01T00:00:00.9Z"}),
        Ok(json!({"firstTimestamp": "2020-01-01T00:00:00Z"})),
    );
}

#[test]
fn what_cannot_be_read_is_refused() {
    check("", "Secret", json!({"data": {"a": "!"}}), Err("illegal base64 data at input byte 0"));
    check("", "ResourceQuota", json!({"spec": {"hard": {"cpu": "abc"}}}), Err(MALFORMED));
    check(
        "",
        "Pod",
        json!({"metadata": {"creationTimestamp": "x"}}),
        Err("parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\""),
    );
}

#[test]
fn whole_numbers_lose_their_fraction() {
    let mut value = json!({"a": [1.0, 1.5, 2]});
    canonicalize_numbers(&mut value);
    assert_eq!(value, json!({"a": [1, 1.5, 2]}));
}
