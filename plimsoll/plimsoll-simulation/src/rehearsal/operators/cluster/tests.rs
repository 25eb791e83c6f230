//! Objects of a copy before and after a rehearsal.

use serde_json::json;

use super::*;

/// Returns an object of Operator `foo`, or of no Operator.
fn object(name: &str, is_owned: bool, revision: &str, data: &str) -> Value {
    let labels = if is_owned { json!({ (OPERATOR_LABEL): "foo" }) } else { json!({}) };
    json!({
        "metadata": {
            "name": name, "namespace": "foo", "labels": labels, "resourceVersion": revision,
        },
        "data": { "data": data },
        "status": { "seen": revision },
    })
}

#[test]
fn what_was_created_changed_and_deleted_is_counted() {
    let maps = |objects: Vec<Value>| objects.into_iter().map(|it| ("configmaps".to_owned(), it));
    let before = ClusterContent::of(maps(vec![
        object("same", true, "1", "a"),
        object("changed", true, "2", "a"),
        object("deleted", true, "3", "a"),
        object("other", false, "4", "a"),
    ]));
    let after = ClusterContent::of(maps(vec![
        object("same", true, "5", "a"),
        object("changed", true, "6", "b"),
        object("created", true, "7", "a"),
        object("another", true, "8", "a"),
        object("other", false, "9", "b"),
    ]));
    let counts = ObjectCounts { created: 2, changed: 1, deleted: 1 };
    assert_eq!(before.counts(&after), counts);
}

#[test]
fn operands_are_the_objects_of_kinds_that_operators_define() {
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    let content = ClusterContent::of(
        [
            ("foos.foo.example.com", object("one", false, "1", "")),
            ("bars.bar.example.com", object("two", false, "2", "")),
            (definitions, object("foos.foo.example.com", true, "3", "")),
            (definitions, object("bars.bar.example.com", false, "4", "")),
        ]
        .into_iter()
        .map(|(resource, it)| (resource.to_owned(), it)),
    );
    assert_eq!(Vec::from_iter(content.operands), ["foos.foo.example.com/one -n foo"]);
}

#[test]
fn operands_of_a_definition_that_is_kept_are_not_deleted() {
    let content = |is_defined: bool, names: &[&str]| {
        let definition = object("foos.foo.example.com", is_defined, "1", "");
        let definition = ("customresourcedefinitions.apiextensions.k8s.io".to_owned(), definition);
        let operands = names
            .iter()
            .map(|name| ("foos.foo.example.com".to_owned(), object(name, false, "2", "")));
        ClusterContent::of(operands.chain([definition]))
    };
    let before = content(true, &["one", "two"]);
    assert!(before.deleted_operands(&content(false, &["one", "two"])).is_empty());
    let deleted = ["foos.foo.example.com/two -n foo"];
    assert_eq!(before.deleted_operands(&content(true, &["one"])), deleted);
}
