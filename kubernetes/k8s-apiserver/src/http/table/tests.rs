//! Ages, and the cells of a few kinds.
use serde_json::json;

use super::*;

#[test]
fn ages_have_two_units_at_most() {
    for (seconds, expected) in [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_000, "3h3m"),
        (30_000, "8h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (700_000, "8d"),
        (70_000_000, "2y80d"),
        (300_000_000, "9y"),
        (-1, "0s"),
        (-5, "<invalid>"),
    ] {
        assert_eq!(age::format_seconds(seconds), expected);
    }
}

#[track_caller]
fn check(cell: &'static str, object: &Value, expected: &str) {
    let cell = expression::CellExpression::parse(cell).expect("a cell");
    assert_eq!(cell.evaluate(object, Timestamp::UNIX_EPOCH), expected, "{object}");
}

#[test]
fn cells_show_what_people_look_for() {
    check(
        "ready_of_desired(.)",
        &json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}),
        "1/3",
    );
    check(
        "service_ports(.spec.ports)",
        &json!({"spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]}}),
        "80/TCP,53:30053/UDP",
    );
    check(
        "selector(.spec.selector)",
        &json!({"spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}}}}),
        "a=1,b=2",
    );
    check(
        "definition_versions(.spec.versions)",
        &json!({"spec": {"versions": [{"name": "v1", "storage": true}, {"name": "v2"}]}}),
        "v1(storage),v2",
    );
}

#[test]
fn a_cell_is_a_path_a_function_or_a_text() {
    let object =
        json!({"spec": {"name": "n", "empty": "", "list": [{"name": "a"}, {"name": "b"}]}});
    check(".spec.name", &object, "n");
    check(".spec.missing", &object, "");
    check(".spec.missing or <none>", &object, "<none>");
    check(".spec.empty or <none>", &object, "<none>");
    check("join(.spec.list, name)", &object, "a,b");
    check("join(.spec.missing, name) or <none>", &object, "<none>");
    check("age(.spec.missing)", &object, "<unknown>");
    check("'<none>'", &object, "<none>");
    for malformed in ["spec.name", "odd(.spec)", "join(spec)", "'open"] {
        assert!(expression::CellExpression::parse(malformed).is_none(), "{malformed}");
    }
}
