//! What a decision of ActionPolicies costs, without requests to an API server.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::time::Instant;

use anyhow::Context as _;
use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionRequester, ActionSpec, PlannedChange};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::files::built_in_classes;
use plimsoll_operators::actions::plan::ActionPlan;
use plimsoll_operators::actions::policy::{NamedPolicy, PolicyRequest, judge};
use plimsoll_plan::windows::MaintenanceWindows;
use serde_json::json;

use crate::Figure;

/// How many decisions a figure is the mean of.
const DECISIONS: u32 = 2_000;
/// How often that is measured; the least mean counts, which is that of the least disturbed time.
const ROUNDS: usize = 5;
/// The policies and the namespaces with Actions, of which the first pair is what the second one is compared with.
const SIZES: [(usize, usize); 2] = [(1, 1), (200, 10_000)];

/// Measures decisions before and on a plan.
pub(crate) fn measure() -> Result<Vec<Figure>, anyhow::Error> {
    let mut figures = Vec::new();
    for (what, plan) in [("without a plan", None), ("on a plan of two Operators", Some(plan()))] {
        for (policies, namespaces) in SIZES {
            let micros = decision(policies, namespaces, plan.as_ref())?;
            figures.push(Figure::new(
                &format!("A decision {what}, {policies} policies, {namespaces} namespaces"),
                "-",
                format!("{micros:.1} µs"),
                "50 µs, and twice that of one policy",
                json!(micros),
            ));
        }
    }
    Ok(figures)
}

/// Returns the microseconds that a decision takes.
fn decision(
    policies: usize,
    namespaces: usize,
    plan: Option<&ActionPlan>,
) -> Result<f64, anyhow::Error> {
    let policies: Vec<NamedPolicy> = (0..policies).map(policy).collect::<Result<_, _>>()?;
    let active: BTreeMap<String, usize> =
        (0..namespaces).map(|at| (format!("team-{at}"), at % 5)).collect();
    let labels = [("tenant".to_owned(), "true".to_owned())].into();
    let classes = built_in_classes();
    let spec: ActionSpec = serde_json::from_value(json!({
        "actionClass": "operator-install", "package": "lantern", "version": "~1.1", "repository": "curated",
    }))?;
    let requester =
        ActionRequester { username: "alice".to_owned(), groups: vec!["team-0".to_owned()] };
    let now = Timestamp::now();
    let decide = || {
        let class = NamedClass::find(&classes, &spec.action_class).context("it is built in")?;
        let request = PolicyRequest {
            namespace: "team-0",
            labels: &labels,
            requester: &requester,
            spec: &spec,
            class,
            active: active.get("team-0").copied().unwrap_or_default(),
            created: &BTreeSet::new(),
            may_directly: Some(false),
            plan,
            planned: &[],
            digest: None,
            windows: &MaintenanceWindows::default(),
            now,
        };
        let verdict = judge(&request, &policies);
        anyhow::ensure!(verdict.granted.is_ok(), "{:?}", verdict.granted);
        black_box(verdict);
        anyhow::Ok(())
    };
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..DECISIONS {
            decide()?;
        }
        let micros = begun.elapsed().as_secs_f64() * 1e6 / f64::from(DECISIONS);
        least = least.min(micros);
    }
    Ok(least)
}

/// Returns a policy of a team.
pub(crate) fn policy(at: usize) -> Result<NamedPolicy, serde_json::Error> {
    let spec = json!({
        "subjects": [{ "kind": "Group", "name": format!("team-{at}") }],
        "namespaceSelector": { "matchLabels": { "tenant": "true" } },
        "classes": ["operator-install", "operator-delete"],
        "enforce": {
            "attributes": [
                { "name": "ensureConstraintSatisfiability", "fixed": true },
                { "name": "installDependencies", "fixed": true },
                { "name": "parameters.namespace", "fixed": "$(namespace)" },
                { "name": "version", "range": "<2" },
            ],
            "catalogs": ["curated"], "channels": ["stable"], "packages": ["lantern", "ledger"],
            "preconditions": {
                "consistent": true, "noWorkloadRemoval": true,
                "expressions": [{ "expression": "plan.changes.size() < 5" }],
            },
            "maxActive": 50,
        },
    });
    Ok(NamedPolicy { name: format!("team-{at}"), spec: serde_json::from_value(spec)? })
}

fn plan() -> ActionPlan {
    let change = |operator: &str| PlannedChange {
        operator: operator.to_owned(),
        version: "1.1.0".to_owned(),
        channel: "stable".to_owned(),
        catalog: "curated".to_owned(),
        bundle: format!("{operator}.v1.1.0"),
        ..PlannedChange::default()
    };
    ActionPlan { changes: vec![change("ledger"), change("lantern")], ..ActionPlan::default() }
}
