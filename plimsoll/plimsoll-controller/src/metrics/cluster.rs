//! The metrics that the cluster version operator is known for (CV-21.1).

use std::collections::BTreeSet;

use jiff::Timestamp;
use plimsoll_api::config::{ClusterOperatorStatus, Release, UpdateHistory, UpdateState};
use plimsoll_api::{Condition, ConditionStatus};

use super::{Collected, Family, float, truth};
use crate::view::{MetricsSnapshot, View};

pub(super) const VERSION: Family = Family(
    "cluster_version",
    "Versions of the cluster by type, with the time that goes with each in seconds since the epoch.",
    &["type", "version", "image", "from_version"],
);
pub(super) const AVAILABLE_UPDATES: Family = Family(
    "cluster_version_available_updates",
    "Updates that are available.",
    &["upstream", "channel"],
);
pub(super) const CAPABILITY: Family = Family(
    "cluster_version_capability",
    "1 for enabled capabilities, 0 for known ones that are not.",
    &["name"],
);
pub(super) const PAYLOAD: Family = Family(
    "cluster_version_payload",
    "Manifests of the release that are applied and that are pending.",
    &["version", "type"],
);
pub(super) const CONDITIONAL_UPDATES: Family = Family(
    "cluster_version_conditional_update_condition_seconds",
    "When the conditions of conditional updates last changed, in seconds since the epoch.",
    &["version", "condition", "status", "reason"],
);
pub(super) const UP: Family = Family(
    "cluster_operator_up",
    "1 if an operator is available; the ClusterVersion is one named version.",
    &["name", "version", "reason"],
);
pub(super) const CONDITIONS: Family = Family(
    "cluster_operator_conditions",
    "Conditions of operators: 1 True, 0 False; the ClusterVersion is an operator named version.",
    &["name", "condition", "reason"],
);
pub(super) const TRANSITIONS: Family = Family(
    "cluster_operator_condition_transitions",
    "Changes of conditions of operators since the start.",
    &["name", "condition"],
);
pub(super) const PAYLOAD_ERRORS: Family = Family(
    "cluster_operator_payload_errors",
    "Failures to apply manifests of the release since the start.",
    &["version"],
);

/// The name that the ClusterVersion has among operators.
const CLUSTER_VERSION: &str = "version";

pub(super) fn collect(collected: &Collected, metrics: &MetricsSnapshot, view: &View) {
    let version = view.version.as_str();
    versions(collected, metrics);
    updates(collected, metrics);
    let capability = collected.gauges(&CAPABILITY);
    let enabled: BTreeSet<&String> =
        metrics.status.capabilities.enabled_capabilities.iter().collect();
    for name in metrics.status.capabilities.known_capabilities.iter().chain(enabled.clone()) {
        capability.with_label_values(&[name]).set(flag(enabled.contains(name)));
    }
    let payload = collected.gauges(&PAYLOAD);
    payload.with_label_values(&[version, "applied"]).set(float(view.done));
    payload
        .with_label_values(&[version, "pending"])
        .set(float(view.total.saturating_sub(view.done)));
    operators(collected, metrics);
    let errors = collected.counters(&PAYLOAD_ERRORS);
    for (version, count) in &metrics.counters.payload_errors {
        errors.with_label_values(&[version]).inc_by(*count);
    }
}

fn versions(collected: &Collected, metrics: &MetricsSnapshot) {
    let status = &metrics.status;
    let gauges = collected.gauges(&VERSION);
    let set = |type_: &str, version: &str, image: &str, from: &str, at: Option<Timestamp>| {
        gauges.with_label_values(&[type_, version, image, from]).set(at.map_or(0.0, seconds));
    };
    let completed: Vec<&UpdateHistory> =
        status.history.iter().filter(|entry| entry.state == UpdateState::Completed).collect();
    let version_of = |entry: Option<&&UpdateHistory>| {
        entry.map(|entry| entry.version.clone()).unwrap_or_default()
    };
    let last = version_of(completed.first());
    let initial = version_of(completed.last());
    let Release { version, image, .. } = &status.desired;
    set("current", version, image, &last, metrics.payload_created);
    set("cluster", version, image, &initial, metrics.created);
    if let Some(wanted) = metrics.spec.desired_update.as_ref()
        && !wanted.image.is_empty()
        && wanted.image != *image
    {
        set("desired", &wanted.version, &wanted.image, &last, newest(metrics));
    }
    let failing = condition(&status.conditions, "Failing");
    if let Some(failing) = failing.filter(|it| it.status == ConditionStatus::True) {
        set("failure", version, image, &last, Some(failing.last_transition_time));
    }
    if let Some(entry) = completed.first() {
        let previous = version_of(completed.get(1));
        set("completed", &entry.version, &entry.image, &previous, entry.completion_time);
    }
    if let Some(entry) = status.history.first().filter(|it| it.state == UpdateState::Partial) {
        set("updating", &entry.version, &entry.image, &last, Some(entry.started_time));
    }
    if let Some(entry) = status.history.last() {
        set("initial", &entry.version, &entry.image, "", metrics.created);
    }
}

/// The newest time that the status names.
fn newest(metrics: &MetricsSnapshot) -> Option<Timestamp> {
    let status = &metrics.status;
    let conditions = status.conditions.iter().map(|condition| condition.last_transition_time);
    let history = status
        .history
        .iter()
        .flat_map(|entry| [Some(entry.started_time), entry.completion_time].into_iter().flatten());
    conditions.chain(history).max()
}

fn updates(collected: &Collected, metrics: &MetricsSnapshot) {
    let (spec, status) = (&metrics.spec, &metrics.status);
    let count = status.available_updates.as_ref().map_or(0, Vec::len);
    let retrieved = condition(&status.conditions, "RetrievedUpdates")
        .is_some_and(|condition| condition.status == ConditionStatus::True);
    if !spec.upstream.is_empty() || count > 0 || retrieved {
        let upstream = if spec.upstream.is_empty() { "<default>" } else { &spec.upstream };
        let updates = collected.gauges(&AVAILABLE_UPDATES);
        updates.with_label_values(&[upstream, &spec.channel]).set(float(count));
    }
    let conditional = collected.gauges(&CONDITIONAL_UPDATES);
    for update in &status.conditional_updates {
        for it in update.conditions.iter().filter(|it| it.type_ == "Recommended") {
            let labels = [&update.release.version, &it.type_, it.status.as_str(), &it.reason];
            conditional.with_label_values(&labels).set(seconds(it.last_transition_time));
        }
    }
}

fn operators(collected: &Collected, metrics: &MetricsSnapshot) {
    let up = collected.gauges(&UP);
    let conditions = collected.gauges(&CONDITIONS);
    let report = |name: &str, version: &str, of: &[Condition]| {
        let available = condition(of, "Available");
        let reason = available.map_or("NoAvailableCondition", |it| it.reason.as_str());
        let is_up = available.is_some_and(|it| it.status == ConditionStatus::True);
        up.with_label_values(&[name, version, reason]).set(flag(is_up));
        for it in of {
            let Some(value) = truth(it.status) else { continue };
            conditions.with_label_values(&[name, &it.type_, &it.reason]).set(value);
        }
    };
    let history = &metrics.status.history;
    let completed = history.iter().find(|entry| entry.state == UpdateState::Completed);
    let version = completed.map(|entry| entry.version.as_str()).unwrap_or_default();
    report(CLUSTER_VERSION, version, &metrics.status.conditions);
    for (name, operator) in &metrics.counters.operators {
        report(name, operand_version(operator), &operator.conditions);
    }
    let transitions = collected.gauges(&TRANSITIONS);
    for ((name, type_), count) in &metrics.counters.transitions {
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        transitions.with_label_values(&[name, type_]).set(float(count));
    }
}

/// The version of the operator itself.
fn operand_version(operator: &ClusterOperatorStatus) -> &str {
    let versions = &operator.versions;
    let own = versions.iter().find(|version| version.name == "operator");
    own.map(|version| version.version.as_str()).unwrap_or_default()
}

fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

pub(super) fn seconds(time: Timestamp) -> f64 {
    float(usize::try_from(time.as_second()).unwrap_or_default())
}
