//! Tables of built-in kinds.
use crate::cluster::{Ask, TestCluster};

#[test]
fn rows_show_the_columns_of_their_kind() {
    let cluster = TestCluster::new();
    cluster.clock.advance(125);
    let table = cluster.check_with(
        Ask {
            line: "GET /api/v1/namespaces?includeObject=None",
            accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            ..Ask::default()
        },
        200,
        r#"{
            "kind": "Table",
            "columnDefinitions": [{"name": "Name", "format": "name"}, {"name": "Status"}, {"name": "Age"}]
        }"#,
    );
    assert_eq!(table["rows"][0]["cells"], serde_json::json!(["default", "Active", "2m5s"]));
    assert_eq!(table["rows"][0].get("object"), Some(&serde_json::Value::Null));
}
