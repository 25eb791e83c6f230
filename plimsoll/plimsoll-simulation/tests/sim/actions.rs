//! Actions: a seed decides who requests what, which policies allow it meanwhile, and what goes wrong. Each
//! Action is executed at most once, never without a policy, and reports its result.

mod broken;
mod events;
mod history;
mod invariants;
mod requests;
mod runner;
mod schedule;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_api::olm::action::ACTION_FINALIZER;
use serde_json::Value;

use self::events::{FOLLOW, are_seen};
use self::invariants::violations;
use self::requests::{Request, requests};
use self::runner::Runner;
use crate::record::Write;
use crate::scenario::{Action as Incident, Scenario};
use crate::{in_virtual_time, seeds, shrink};

/// The time that Operators may change once all Actions ended.
const CONVERGENCE_TIME: Duration = Duration::from_secs(5 * 60);
/// Of how many seeds one is run: Actions are planned from a catalog, which takes longer.
pub(crate) const SHARE: u64 = 10;

const ACTIONS: &str = "/apis/olm.io/v1/namespaces/default/actions";
const WINDOWS: &str = "/apis/olm.io/v1/maintenancewindows";
/// The path of the CronAction.
const CLEAN: &str = "/apis/olm.io/v1/namespaces/default/cronactions/clean";

/// The result of a scenario.
#[derive(Clone)]
struct ActionsResult {
    writes: Vec<Write>,
    /// The Actions at the end, by name.
    actions: BTreeMap<String, Value>,
    /// The object that is followed, and how often it was changed.
    followed: (Value, usize),
    /// The EventActions at the end, by name.
    event_actions: BTreeMap<String, Value>,
    retry: Value,
    /// What clients deleted: when, and its path.
    deleted: Vec<(Duration, String)>,
    /// When tide was allowed, and when it was not any more.
    allowed: Vec<(Duration, bool)>,
    /// The decisions of users on plans, in order.
    decided: Vec<DecisionOnPlan>,
    /// Whether the clock of a process was set.
    is_clock_set: bool,
    /// When all had ended; `None` if it did not come to that.
    ended: Option<Duration>,
}

/// The approval or rejection of a plan by a user.
#[derive(Debug, Clone)]
struct DecisionOnPlan {
    /// When it was sent.
    at: Duration,
    /// The name of the Action.
    action: String,
    /// The digest of the plan.
    plan: String,
    by: String,
    is_approval: bool,
    /// When the server went back to before it; `None` if it did not.
    forgotten: Option<Duration>,
}

impl ActionsResult {
    /// Returns how often the server went back to an earlier state.
    fn rollbacks(&self) -> usize {
        self.writes.last().map_or(0, |it| it.rollbacks)
    }
}

/// Runs the requests of a seed, with what goes wrong in a scenario.
fn run(scenario: &Scenario) -> ActionsResult {
    play(scenario, &requests(scenario.seed))
}

/// Runs requests, each with its second.
fn play(scenario: &Scenario, requests: &[(u64, Request)]) -> ActionsResult {
    in_virtual_time(scenario.seed, async { Runner::new(scenario).run(scenario, requests).await })
}

/// Returns the EventActions that have not seen what they follow as it is, or not created the Actions for it.
fn unseeing(
    object: &Value,
    actions: &BTreeMap<String, Value>,
    event_actions: &BTreeMap<String, Value>,
) -> Vec<String> {
    let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let revision = format!("revision {revision}");
    let is_seen = |name: &str, status: &Value| match name {
        FOLLOW => {
            let observed = status["observed"][0]["content"].as_str().unwrap_or_default();
            observed.ends_with(&revision)
        }
        _ => are_seen(actions, name, status),
    };
    let is_done = |name: &str, status: &Value| status["pending"].is_null() && is_seen(name, status);
    let all = event_actions.iter().filter(|(name, it)| !is_done(name, &it["status"]));
    all.map(|(name, it)| format!("{name}: {}", it["status"])).collect()
}

/// Returns whether an Action has ended and was released.
fn is_ended(action: &Value) -> bool {
    let mut finalizers = action["metadata"]["finalizers"].as_array().into_iter().flatten();
    action["status"]["completionTime"].is_string() && !finalizers.any(|it| it == ACTION_FINALIZER)
}

/// Returns the faults of a scenario of the platform that occur here too, and processes whose requests arrive
/// when another one may lead.
fn scenario(seed: u64) -> Scenario {
    let mut scenario = Scenario::of(seed);
    scenario.actions.retain(|(_, it)| {
        matches!(
            it,
            Incident::KillAtWrite { .. }
                | Incident::Pause(_)
                | Incident::SetClock(_)
                | Incident::CutOff(_)
                | Incident::BackUp
                | Incident::Restart { .. }
        )
    });
    let mut random = fastrand::Rng::with_seed(seed ^ 0x57a1_1ed0);
    if scenario.leased && random.bool() {
        let lasts = Duration::from_secs(random.u64(5..40));
        scenario.actions.push((random.u64(5..70), Incident::Stall(lasts)));
        scenario.actions.sort_by_key(|(at, _)| *at);
    }
    scenario.operators = Default::default();
    scenario
}

/// Returns what does not hold with a seed, in sentences.
pub(crate) fn failures(seed: u64) -> Option<String> {
    let scenario = scenario(seed);
    let found = violations(&run(&scenario));
    if found.is_empty() {
        return None;
    }
    let again = "cargo test -p plimsoll-simulation --test sim actions_keep";
    let found = found.join("\n  ");
    let says = format!("seed {seed} fails; again: PLIMSOLL_SEED={seed} {again}\n  {found}");
    if !seeds::is_one_named() {
        return Some(says);
    }
    let smallest = shrink::smallest(scenario, |it| !violations(&run(it)).is_empty());
    let requests = requests(seed);
    Some(format!(
        "{says}\nrequests: {requests:#?}\nthe smallest scenario that fails:\n{smallest:#?}"
    ))
}
