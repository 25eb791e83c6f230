//! What paths find, as kube-apiserver does.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::json;

use super::*;

fn check(path: &str, expected: Option<Value>) {
    let object = json!({
        "metadata": {"labels": {"a.b/c": "label"}},
        "spec": {"list": ["p", "q", "r"], "text": "s", "number": 5, "nothing": null,
            "items": [{"x": 1, "y": "hi", "t": true}, {"x": 2, "t": false, "nothing": null}],
            "map": {"k": 1}},
        "status": {
            "conditions": [
                {"type": "Available", "status": "True"},
                {"type": "Ready", "status": "False"},
            ],
        },
    });
    assert_eq!(first(&object, path), expected.as_ref(), "{path}");
}

#[test]
fn paths_of_printer_columns_find_values() {
    let found = |path: &str, expected: Value| check(path, Some(expected));
    found(".status.conditions[?(@.type==\"Ready\")].status", json!("False"));
    found(".status.conditions[?(@.type=='Ready')].status", json!("False"));
    found(".status.conditions[0].type", json!("Available"));
    found(".metadata.labels.a\\.b/c", json!("label"));
    found(".metadata.labels['a\\.b/c']", json!("label"));
    found(".spec.nothing", json!(null));
    found(".spec.items[*].nothing", json!(null));
    found(".spec.map.*", json!(1));
    found(".spec.items..x", json!(1));
    found(".spec..x", json!(1));
    for (slice, item) in [
        ("*", "p"),
        (":", "p"),
        ("-1", "r"),
        ("-1:", "r"),
        ("0:2", "p"),
        ("1:", "q"),
        (":1", "p"),
        ("-2:-1", "q"),
        ("1:3:2", "q"),
        ("2,0", "r"),
    ] {
        found(&format!(".spec.list[{slice}]"), json!(item));
    }
    found(".spec['text','number']", json!("s"));
    found(".spec.list[?(@=='q')]", json!("q"));
    for (filter, x) in [
        ("@.x>1", 2),
        ("@.x > 1", 2),
        ("@.x!=1", 2),
        ("@.x<=1", 1),
        ("@.x==@.x", 1),
        ("@.y", 1),
        ("@.t", 1),
        ("@.t==false", 2),
    ] {
        found(&format!(".spec.items[?({filter})].x"), json!(x));
    }
}

#[test]
fn what_does_not_fit_finds_nothing() {
    for path in [
        ".metadata.labels['a.b/c']",
        ".status.missing.deep",
        ".spec.text.x",
        ".spec.items[0].nothing",
        ".spec.list[9]",
        ".spec.list[5:]",
        ".spec.list[-9:]",
        ".spec.list[0:4]",
        ".spec.list[2:1]",
        ".spec.list[0:0]",
        ".spec.list[0:3:0]",
        ".spec.list[-1:][0]",
        ".spec.map[*]",
        ".spec.number[0]",
        ".spec.items[?(@.x=='1')].x",
        ".spec.items[?(@.x==1.0)].x",
        ".spec.items[?(@.missing==1)].x",
        ".spec.items[?(@.t>false)].x",
        ".spec.items[?(@.t=='true')].x",
    ] {
        check(path, None);
    }
    for path in
        [".status[", "status", ".a[\"b\"]", ".a[ 1 ]", ".a[1:2:3:4]", ".a....b", ".a[?(@.b=1)]"]
    {
        assert!(!is_valid(path), "{path}");
    }
}
