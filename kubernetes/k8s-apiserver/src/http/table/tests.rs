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

fn check(cell: fn(&Value) -> Value, object: &Value, expected: &str) {
    assert_eq!(cell(object), expected, "{object}");
}

#[test]
fn cells_show_what_people_look_for() {
    check(
        cells::workloads::ready_of_desired,
        &json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}),
        "1/3",
    );
    check(
        cells::network::service_ports,
        &json!({"spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]}}),
        "80/TCP,53:30053/UDP",
    );
    check(
        cells::workloads::selector,
        &json!({"spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}}}}),
        "a=1,b=2",
    );
    check(
        cells::extensions::definition_versions,
        &json!({"spec": {"versions": [{"name": "v1", "storage": true}, {"name": "v2"}]}}),
        "v1(storage),v2",
    );
}
