//! Field sets: `FieldsV1`, paths and the algebra.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Value, json};

use super::{FieldSet, PathElement, PathValue};

fn read(value: &Value) -> FieldSet {
    FieldSet::from_fields_v1(value).expect("FieldsV1")
}

#[track_caller]
fn check_paths(fields: &Value, expected: &str) {
    let set = read(fields);
    assert_eq!(set.to_string(), expected);
    assert_eq!(&set.to_fields_v1(), fields);
}

#[test]
fn fields_v1_reads_as_paths_and_writes_back() {
    check_paths(&json!({}), "");
    check_paths(&json!({"f:a": {}}), ".a");
    check_paths(&json!({"f:a": {"f:b": {}}}), ".a.b");
    check_paths(&json!({"f:a": {".": {}, "f:b": {}}}), ".a\n.a.b");
    check_paths(&json!({"f:app.kubernetes.io/name": {}}), ".app.kubernetes.io/name");
    check_paths(
        &json!({"f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}}}}}),
        ".spec.containers[name=\"x\"]\n.spec.containers[name=\"x\"].image",
    );
    check_paths(
        &json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {}}}),
        ".ports[port=80,protocol=\"TCP\"]",
    );
    check_paths(&json!({"f:finalizers": {"v:\"a/b\"": {}}}), ".finalizers[=\"a/b\"]");
    check_paths(&json!({"f:list": {"i:0": {}}}), ".list[0]");
    check_paths(&json!({"f:m": {"k:{\"n\":\"a\\u003cb\"}": {}}}), ".m[n=\"a<b\"]");
}

#[test]
fn malformed_fields_v1_is_refused() {
    for fields in
        [json!({"a": {}}), json!({"xx:a": {}}), json!({"f:a": 1}), json!({"k:{": {}}), json!([])]
    {
        assert!(FieldSet::from_fields_v1(&fields).is_err(), "{fields}");
    }
}

#[test]
fn elements_of_kinds_to_come_are_passed_over() {
    let set = FieldSet::from_fields_v1(&json!({"x:a": {}, "f:b": {}})).expect("it is well formed");
    assert_eq!(set.to_string(), ".b");
}

#[derive(Clone, Copy)]
enum Operation {
    Union,
    Intersection,
    Difference,
    RecursiveDifference,
}

#[track_caller]
fn check_operation(operation: Operation, left: Value, right: Value, expected: Value) {
    let (left, right) = (read(&left), read(&right));
    let actual = match operation {
        Operation::Union => left.union(&right),
        Operation::Intersection => left.intersection(&right),
        Operation::Difference => left.difference(&right),
        Operation::RecursiveDifference => left.recursive_difference(&right),
    };
    assert_eq!(actual.to_fields_v1(), expected);
}

#[test]
fn sets_combine_field_by_field() {
    let left = || json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}});
    let right = || json!({"f:a": {"f:b": {}, "f:d": {}}});
    check_operation(
        Operation::Union,
        left(),
        right(),
        json!({"f:a": {".": {}, "f:b": {}, "f:d": {}}, "f:c": {}}),
    );
    check_operation(Operation::Intersection, left(), right(), json!({"f:a": {"f:b": {}}}));
    check_operation(Operation::Difference, left(), right(), json!({"f:a": {}, "f:c": {}}));
    check_operation(
        Operation::Difference,
        left(),
        json!({"f:a": {}}),
        json!({"f:a": {"f:b": {}}, "f:c": {}}),
    );
    check_operation(Operation::RecursiveDifference, left(), json!({"f:a": {}}), json!({"f:c": {}}));
}

#[test]
fn numbers_in_keys_compare_by_value() {
    let element = |value: Value| PathElement::Value(PathValue(value));
    assert_eq!(element(json!(1)), element(json!(1.0)));
    assert!(element(json!(2)) < element(json!(10)));
    assert!(element(json!(1)) < element(json!("1")));
}

fn any_element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-c]".prop_map(PathElement::Field),
        "[a-c]".prop_map(|name| {
            PathElement::Key(vec![("name".to_owned(), PathValue(json!(name)))])
        }),
        (0..3_i64).prop_map(|number| PathElement::Value(PathValue(json!(number)))),
        (0..2_i64).prop_map(PathElement::Index),
    ]
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    prop::collection::vec(prop::collection::vec(any_element(), 1..4), 0..12)
        .prop_map(|paths| FieldSet::from_paths(paths.iter().map(Vec::as_slice)))
}

/// The cases that failed once, which are played first.
const FAILED: FileFailurePersistence = FileFailurePersistence::Direct(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/seeds/properties.txt"
));

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(FAILED)), ..ProptestConfig::default() })]

    #[test]
    fn fields_v1_loses_nothing(set in any_set()) {
        prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
    }

    #[test]
    fn the_algebra_agrees_with_membership(left in any_set(), right in any_set()) {
        let (union, both) = (left.union(&right), left.intersection(&right));
        let rest = left.difference(&right);
        for path in union.paths() {
            let (in_left, in_right) = (left.contains(&path), right.contains(&path));
            prop_assert!(in_left || in_right);
            prop_assert_eq!(both.contains(&path), in_left && in_right);
            prop_assert_eq!(rest.contains(&path), in_left && !in_right);
        }
        prop_assert_eq!(union.paths().len() + both.paths().len(), left.paths().len() + right.paths().len());
        prop_assert_eq!(rest.union(&both), left);
    }
}
