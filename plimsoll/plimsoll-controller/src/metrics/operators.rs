//! The metrics of Operators of the add-on layer.

use super::{Collected, Family, float, truth};
use crate::view::OperatorsView;

pub(super) const LEADER: Family = Family(
    "plimsoll_operators_leader",
    "1 if this process is the leader of the add-on layer, 0 if it is not.",
    &[],
);
pub(super) const INSTALLED: Family = Family(
    "plimsoll_operator_installed",
    "1 for each Operator with its installed version, 0 if it is not installed.",
    &["name", "version"],
);
pub(super) const CONDITIONS: Family = Family(
    "plimsoll_operator_conditions",
    "Conditions of Operators: 1 True, 0 False.",
    &["name", "condition", "reason"],
);
pub(super) const STUCK: Family = Family(
    "plimsoll_operator_deletion_stuck_objects",
    "Objects that do not go while their Operator is being deleted.",
    &["name"],
);
pub(super) const WRITES: Family = Family(
    "plimsoll_operator_writes_total",
    "Steps of Operators carried out since this process became the leader, by what was done and how it \
     ended.",
    &["action", "result"],
);
pub(super) const REPAIRS: Family = Family(
    "plimsoll_operator_drift_repairs_total",
    "Objects of Operators repaired since this process became the leader, after another client changed \
     or deleted them.",
    &[],
);
pub(super) const ACTIONS: Family =
    Family("plimsoll_actions", "Actions by state; each is in one.", &["state"]);
pub(super) const ACTIONS_FAILED: Family = Family(
    "action_failed_total",
    "Actions that failed since this process became the leader, by class and reason.",
    &["class", "reason"],
);

pub(super) fn collect(collected: &Collected, view: &OperatorsView) {
    collected.gauge(&LEADER, usize::from(view.is_leader));
    if !view.is_leader {
        return;
    }
    let actions = collected.gauges(&ACTIONS);
    for (state, count) in &view.actions {
        actions.with_label_values(&[state]).set(float(*count));
    }
    let failed = collected.counters(&ACTIONS_FAILED);
    for ((class, reason), count) in &view.actions_failed {
        failed.with_label_values(&[class, reason]).inc_by(*count);
    }
    collected.writes(&WRITES, &view.executions);
    let repairs = collected.counters(&REPAIRS);
    repairs.with_label_values::<&str>(&[]).inc_by(view.drift_repairs);
    let installed = collected.gauges(&INSTALLED);
    let conditions = collected.gauges(&CONDITIONS);
    let stuck = collected.gauges(&STUCK);
    for (name, operator) in &view.operators {
        let is_installed = usize::from(!operator.version.is_empty());
        installed.with_label_values(&[name, &operator.version]).set(float(is_installed));
        for condition in &operator.conditions {
            let Some(value) = truth(condition.status) else { continue };
            let labels = [name.as_str(), &condition.type_, &condition.reason];
            conditions.with_label_values(&labels).set(value);
        }
        if operator.stuck > 0 {
            stuck.with_label_values(&[name]).set(float(operator.stuck));
        }
    }
}
