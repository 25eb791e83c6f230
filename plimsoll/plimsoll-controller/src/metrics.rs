//! Metrics that `/metrics` serves (CV-21.1 under the names used there, and some of our own).
//!
//! [`text`] is a pure function of a [`View`] and an [`OperatorsView`]. [`NAMES`] lists every metric, for
//! those who write rules about them.

mod cluster;
mod operators;
mod readiness;
mod server;

use std::collections::BTreeMap;

use plimsoll_api::ConditionStatus;
use plimsoll_api::progress::OverrideState;
use prometheus::{GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};

pub use server::{MetricsError, MetricsServer, TlsFiles};

use crate::view::{MetricsSnapshot, OperatorsView, View};

/// A metric: its name, its help text, its labels.
pub(crate) struct Family(&'static str, &'static str, &'static [&'static str]);

const LEADER: Family = Family(
    "plimsoll_leader",
    "1 if this process is the leader of the release, 0 if it is a standby.",
    &[],
);
const STEPS: Family =
    Family("plimsoll_steps", "Steps of the plan by state; each is in one.", &["state"]);
const DELETIONS: Family = Family(
    "plimsoll_deletions_unfinished",
    "Deletions that releases requested and that are not complete.",
    &[],
);
const ORPHANS: Family = Family(
    "plimsoll_orphans",
    "Objects that earlier releases applied and this one does not mention.",
    &[],
);
const OVERRIDES: Family = Family(
    "plimsoll_overrides",
    "Objects that an administrator took out of management, by state.",
    &["state"],
);
const IMPLIED: Family = Family(
    "plimsoll_capability_implied",
    "Capabilities that an update made necessary, with the release that did; always 1.",
    &["name", "version"],
);
const WRITES: Family = Family(
    "plimsoll_writes_total",
    "Steps carried out since the start, by what was done and how it ended.",
    &["action", "result"],
);
const REPAIRS: Family = Family(
    "plimsoll_drift_repairs_total",
    "Objects repaired since the start after other clients had changed or deleted them.",
    &[],
);

/// Every metric there is, in alphabetical order.
pub const NAMES: [&str; 30] = [
    cluster::CONDITIONS.0,
    cluster::TRANSITIONS.0,
    cluster::PAYLOAD_ERRORS.0,
    cluster::UP.0,
    cluster::VERSION.0,
    cluster::AVAILABLE_UPDATES.0,
    cluster::CAPABILITY.0,
    cluster::CONDITIONAL_UPDATES.0,
    cluster::PAYLOAD.0,
    operators::ACTION_DURATION.0,
    operators::ACTIONS_LAST_END.0,
    operators::POLICY_DECISIONS.0,
    operators::ACTIONS_ENDED.0,
    operators::ACTIONS_WAITING_SINCE.0,
    operators::ACTIONS.0,
    operators::ACTIONS_WAITING.0,
    IMPLIED.0,
    DELETIONS.0,
    REPAIRS.0,
    LEADER.0,
    operators::CONDITIONS.0,
    operators::STUCK.0,
    operators::REPAIRS.0,
    operators::INSTALLED.0,
    operators::WRITES.0,
    operators::LEADER.0,
    ORPHANS.0,
    OVERRIDES.0,
    STEPS.0,
    WRITES.0,
];

/// Collects the metrics of one moment.
struct Collected(Registry);

impl Collected {
    fn gauges(&self, family: &Family) -> GaugeVec {
        let gauges = GaugeVec::new(Opts::new(family.0, family.1), family.2)
            .expect("constant names are valid");
        self.0.register(Box::new(gauges.clone())).expect("each name is registered once");
        gauges
    }

    fn gauge(&self, family: &Family, value: usize) {
        self.gauges(family).with_label_values::<&str>(&[]).set(float(value));
    }

    fn counters(&self, family: &Family) -> IntCounterVec {
        let counters = IntCounterVec::new(Opts::new(family.0, family.1), family.2)
            .expect("constant names are valid");
        self.0.register(Box::new(counters.clone())).expect("each name is registered once");
        counters
    }

    /// Collects executed steps, counted by action and result.
    fn writes(&self, family: &Family, executions: &BTreeMap<(&'static str, &'static str), u64>) {
        let writes = self.counters(family);
        for ((action, result), count) in executions {
            writes.with_label_values(&[*action, *result]).inc_by(*count);
        }
    }
}

/// The metrics of one moment, in Prometheus' text format; `release` is `None` where this process does not
/// control a release, and `operators` where it does not control Operators.
pub fn text(release: Option<&View>, operators: Option<&OperatorsView>) -> String {
    let collected = Collected(Registry::new());
    if let Some(view) = release {
        collected.gauge(&LEADER, usize::from(view.metrics.is_some()));
        if let Some(metrics) = &view.metrics {
            own(&collected, view, metrics);
            cluster::collect(&collected, metrics, view);
        }
    }
    if let Some(operators) = operators {
        operators::collect(&collected, operators);
    }
    let mut families = collected.0.gather();
    families.extend(operators.and_then(operators::durations));
    let mut text = String::new();
    if let Err(error) = TextEncoder::new().encode_utf8(&families, &mut text) {
        tracing::warn!(%error, "could not write the metrics");
    }
    text
}

fn own(collected: &Collected, view: &View, metrics: &MetricsSnapshot) {
    let steps = collected.gauges(&STEPS);
    let counts = &metrics.steps;
    for (state, count) in [
        ("done", counts.done),
        ("pending", counts.pending),
        ("waiting", counts.waiting),
        ("failed", counts.failed),
    ] {
        steps.with_label_values(&[state]).set(float(count));
    }
    collected.gauge(&DELETIONS, metrics.deletions_unfinished);
    collected.gauge(&ORPHANS, metrics.orphans);
    let overrides = collected.gauges(&OVERRIDES);
    for (state, name) in [(OverrideState::InForce, "in_force"), (OverrideState::Expired, "expired")]
    {
        let count = metrics.overrides.iter().filter(|it| it.state == state).count();
        overrides.with_label_values(&[name]).set(float(count));
    }
    let implied = collected.gauges(&IMPLIED);
    for capability in &view.implied {
        implied.with_label_values(&[&capability.capability, &capability.version]).set(1.0);
    }
    collected.writes(&WRITES, &metrics.counters.executions);
    let repairs = collected.counters(&REPAIRS);
    repairs.with_label_values::<&str>(&[]).inc_by(metrics.drift_repairs);
}

/// The value of a condition: 1 if it is true, 0 if it is false; `None` if that is not known.
fn truth(status: ConditionStatus) -> Option<f64> {
    match status {
        ConditionStatus::True => Some(1.0),
        ConditionStatus::False => Some(0.0),
        ConditionStatus::Unknown => None,
    }
}

/// A count as Prometheus has numbers; none here comes near what a float cannot tell apart.
#[expect(clippy::cast_precision_loss, reason = "counts of objects are far below 2^53")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod tests;
