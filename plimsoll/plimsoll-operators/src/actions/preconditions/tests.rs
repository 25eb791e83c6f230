//! The preconditions that a plan violates.

use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::olm::action::{
    ActionPreconditions, ChangeOperation, PlanExpression, PlannedChange,
};
use plimsoll_api::olm::window::WindowReference;

use super::violations;
use crate::actions::plan::ActionPlan;
use crate::actions::tests::{at, read_windows};
use plimsoll_plan::windows::MaintenanceWindows;

#[test]
fn preconditions_name_what_is_in_the_way() {
    let plan = ActionPlan {
        changes: vec![PlannedChange {
            operator: "foo".into(),
            operation: ChangeOperation::Delete,
            workloads: vec![RemainingObjects {
                kind: "Foo.example.com".into(),
                count: 2,
                ..RemainingObjects::default()
            }],
            definitions: vec!["foos.example.com".into()],
            new_cluster_permissions: vec!["its service accounts: get on secrets".into()],
            version: "1.2.3".into(),
            ..PlannedChange::default()
        }],
        unsatisfied: vec!["bar requires foo <2, but foo v2.0.0 is installed".into()],
        orphans: vec!["baz".into()],
        ..ActionPlan::default()
    };
    let preconditions = ActionPreconditions {
        consistent: true,
        no_orphans: true,
        no_workload_removal: true,
        no_definition_removal: true,
        no_new_cluster_permissions: true,
        within_maintenance_window: Some(WindowReference {
            schedule: "0 22 * * *".into(),
            duration: "1h".into(),
            ..WindowReference::default()
        }),
        expressions: vec![
            PlanExpression {
                expression: "plan.changes.size() == 1".into(),
                message: String::new(),
            },
            PlanExpression {
                expression: "plan.changes.all(c, c.operator != 'foo')".into(),
                message: "foo stays".into(),
            },
            PlanExpression { expression: "plan.nothing == 1".into(), message: String::new() },
            PlanExpression { expression: "1 +".into(), message: String::new() },
        ],
    };
    let windows = MaintenanceWindows::default();
    let found = violations(&plan, &preconditions, &windows, at("2026-01-01T00:00:00Z"));
    let expected = [
        ("consistent", Some("bar"), "consistent: bar requires foo <2"),
        ("noWorkloadRemoval", Some("foo"), "noWorkloadRemoval: "),
        ("noOrphans", Some("baz"), "noOrphans: nothing would depend on baz"),
        (
            "noDefinitionRemoval",
            Some("foo"),
            "noDefinitionRemoval: foos.example.com of foo would go",
        ),
        (
            "noNewClusterPermissions",
            Some("foo"),
            "noNewClusterPermissions: foo v1.2.3 would get in all namespaces: its service accounts: get on secrets",
        ),
        (
            "withinMaintenanceWindow",
            None,
            "withinMaintenanceWindow: it is not open, it opens 2026-01-01T22:00:00Z",
        ),
        ("expressions", None, "foo stays"),
        ("expressions", None, "`plan.nothing == 1`: "),
        ("expressions", None, "`1 +`: "),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (failure, (precondition, item, text)) in found.iter().zip(expected) {
        assert_eq!(failure.precondition, Some(precondition));
        assert_eq!(failure.item.as_deref(), item);
        assert!(failure.message.starts_with(text), "{}", failure.message);
    }
}

#[test]
fn a_named_window_has_to_be_there_and_open() {
    let mut windows = read_windows(
        r"
apiVersion: olm.io/v1
kind: MaintenanceWindow
metadata: {name: nights}
spec:
  windows: [{schedule: 0 22 * * *, duration: 4h}]
  exclusions: [{from: 2026-01-03T00:00:00Z, until: 2026-01-05T00:00:00Z, reason: inventory}]
",
    );
    windows.insert("broken", Err("spec.windows is empty: write at least one window".into()));
    let check = |name: &str, now: &str, expected: Option<&str>| {
        let window = WindowReference { name: name.into(), ..WindowReference::default() };
        let preconditions = ActionPreconditions {
            within_maintenance_window: Some(window),
            ..ActionPreconditions::default()
        };
        let found = violations(&ActionPlan::default(), &preconditions, &windows, at(now));
        let expected = expected.map(|it| format!("withinMaintenanceWindow: {it}"));
        let messages: Vec<&String> = found.iter().map(|it| &it.message).collect();
        assert_eq!(messages, expected.iter().collect::<Vec<_>>());
    };
    check("nights", "2026-01-01T22:00:00Z", None);
    check("nights", "2026-01-02T01:59:59Z", None);
    let closed = "MaintenanceWindow nights is not open, it opens 2026-01-02T22:00:00Z";
    check("nights", "2026-01-02T02:00:00Z", Some(closed));
    let excluded =
        "MaintenanceWindow nights is not open (inventory), it opens 2026-01-05T00:00:00Z";
    check("nights", "2026-01-03T00:00:00Z", Some(excluded));
    let missing = "there is no MaintenanceWindow days: create it, or name another one";
    check("days", "2026-01-01T22:00:00Z", Some(missing));
    let broken = "MaintenanceWindow broken is not accepted: spec.windows is empty: write at least \
                  one window";
    check("broken", "2026-01-01T22:00:00Z", Some(broken));
}
