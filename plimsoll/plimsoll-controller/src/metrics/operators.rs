//! The metrics of Operators of the add-on layer.

use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use super::cluster::seconds;
use super::{Collected, Family, float, truth};
use crate::view::{Durations, OperatorsView};

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
pub(super) const ACTIONS_WAITING: Family = Family(
    "plimsoll_actions_waiting",
    "Actions that wait, by the reason of their condition ActionSucceeded.",
    &["reason"],
);
pub(super) const ACTIONS_WAITING_SINCE: Family = Family(
    "plimsoll_action_waiting_since_seconds",
    "When the Action was created that waits for the longest time, by reason, in seconds since the epoch.",
    &["reason"],
);
pub(super) const ACTIONS_ENDED: Family = Family(
    "plimsoll_action_total",
    "Actions that ended since this process became the leader: the class (empty if there is none of the \
     name), whether it succeeded, failed or was cancelled, and why.",
    &["class", "result", "reason"],
);
pub(super) const ACTIONS_LAST_END: Family = Family(
    "plimsoll_action_last_end_seconds",
    "When the last of these Actions ended since this process became the leader, by class, result and \
     reason, in seconds since the epoch.",
    &["class", "result", "reason"],
);
pub(super) const ACTION_DURATION: Family = Family(
    "plimsoll_action_duration_seconds",
    "How long Actions took that ended since this process became the leader, from their start, or their \
     creation if they did not start.",
    &["class"],
);
pub(super) const POLICY_DECISIONS: Family = Family(
    "plimsoll_action_policy_decisions_total",
    "Decisions of ActionPolicies on Actions since this process became the leader: the policy (empty for what \
     the requester may do by hand), its mode, whether it allowed or denied the Action, and by which rule.",
    &["policy", "mode", "decision", "rule"],
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
    let waiting = collected.gauges(&ACTIONS_WAITING);
    let since = collected.gauges(&ACTIONS_WAITING_SINCE);
    for (reason, actions) in &view.actions_waiting {
        waiting.with_label_values(&[reason]).set(float(actions.count));
        since.with_label_values(&[reason]).set(seconds(actions.since));
    }
    let ended = collected.counters(&ACTIONS_ENDED);
    let last_end = collected.gauges(&ACTIONS_LAST_END);
    for ((class, result, reason), ends) in &view.actions_ended {
        let labels = [class.as_str(), result, reason];
        ended.with_label_values(&labels).inc_by(ends.count);
        last_end.with_label_values(&labels).set(seconds(ends.last));
    }
    let decisions = collected.counters(&POLICY_DECISIONS);
    for (labels, count) in &view.policy_decisions {
        decisions.with_label_values(labels).inc_by(*count);
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

/// Returns the durations of Actions as a histogram, which the client library does not set from
/// counts; `None` if none has ended.
pub(super) fn durations(view: &OperatorsView) -> Option<MetricFamily> {
    let metrics = view.action_durations.iter().map(|(class, durations)| {
        let buckets = durations.counts.iter().zip(Durations::BOUNDS).map(|(count, bound)| {
            let mut bucket = Bucket::default();
            bucket.set_cumulative_count(*count);
            bucket.set_upper_bound(bound);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(durations.count);
        histogram.set_sample_sum(durations.sum);
        let mut label = LabelPair::default();
        label.set_name("class".to_owned());
        label.set_value(class.clone());
        let mut metric = Metric::from_label(vec![label]);
        metric.set_histogram(histogram);
        metric
    });
    let metrics: Vec<Metric> = metrics.collect();
    let mut family = MetricFamily::default();
    family.set_name(ACTION_DURATION.0.to_owned());
    family.set_help(ACTION_DURATION.1.to_owned());
    family.set_field_type(MetricType::HISTOGRAM);
    let is_empty = metrics.is_empty();
    family.set_metric(metrics);
    (view.is_leader && !is_empty).then_some(family)
}
