//! The preconditions that a plan violates.

use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::olm::action::{
    ActionPreconditions, ChangeOperation, MaintenanceWindow, PlanExpression, PlannedChange,
};

use super::violations;
use crate::actions::plan::ActionPlan;
use crate::actions::tests::at;

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
        within_maintenance_window: Some(MaintenanceWindow {
            schedule: "0 22 * * *".into(),
            duration: "1h".into(),
            ..MaintenanceWindow::default()
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
    let found = violations(&plan, &preconditions, at("2026-01-01T00:00:00Z"));
    let expected = [
        ("consistent", Some("bar"), "consistent: bar requires foo <2"),
        ("noWorkloadRemoval", Some("foo"), "noWorkloadRemoval: "),
        ("noOrphans", Some("baz"), "noOrphans: nothing would depend on baz"),
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
