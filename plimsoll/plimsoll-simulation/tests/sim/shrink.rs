//! The smallest part of a scenario that still fails.

use std::time::Duration;

use crate::operators::AddOns;
use crate::scenario::Scenario;

/// Takes away of a scenario that fails whatever it fails without. Each attempt is a run.
pub(crate) fn smallest(scenario: Scenario, fails: impl Fn(&Scenario) -> bool) -> Scenario {
    let mut smallest = scenario;
    while let Some(smaller) = smaller(&smallest).into_iter().find(|scenario| fails(scenario)) {
        smallest = smaller;
    }
    smallest
}

/// Scenarios with one thing less each.
fn smaller(scenario: &Scenario) -> Vec<Scenario> {
    let mut smaller = Vec::new();
    for index in 0..scenario.actions.len() {
        let mut less = scenario.clone();
        less.actions.remove(index);
        smaller.push(less);
    }
    for index in 0..scenario.operators.operators.len() {
        let mut less = scenario.clone();
        less.operators.operators.remove(index);
        smaller.push(less);
    }
    if let Some(add_ons) = &scenario.add_ons {
        let less = |change: &dyn Fn(&mut AddOns)| {
            let mut less = add_ons.clone();
            change(&mut less);
            Scenario { add_ons: Some(less), ..scenario.clone() }
        };
        for index in 0..add_ons.requests.len() {
            smaller.push(less(&|it| {
                it.requests.remove(index);
            }));
        }
        for index in 0..add_ons.faults.len() {
            smaller.push(less(&|it| {
                it.faults.remove(index);
            }));
        }
    }
    let shares: [fn(&mut Scenario) -> &mut f64; 5] = [
        |it| &mut it.errors,
        |it| &mut it.watches,
        |it| &mut it.stale,
        |it| &mut it.refusals,
        |it| &mut it.mangled,
    ];
    for share in shares {
        let mut less = scenario.clone();
        if std::mem::take(share(&mut less)) > 0.0 {
            smaller.push(less);
        }
    }
    if scenario.leased {
        smaller.push(Scenario { leased: false, ..scenario.clone() });
    }
    if !scenario.delay.is_zero() {
        smaller.push(Scenario { delay: Duration::ZERO, ..scenario.clone() });
    }
    smaller
}

#[test]
fn what_a_scenario_fails_without_is_taken_away() {
    use crate::scenario::Action;

    let scenario = (0..).map(Scenario::of).find(|it| it.leased && it.errors > 0.0).expect("one");
    let fails = |scenario: &Scenario| {
        scenario.actions.iter().any(|(_, action)| matches!(action, Action::Release(1)))
            && scenario.errors > 0.0
    };
    let smallest = smallest(scenario, fails);
    let (at, _) = smallest.actions[0];
    assert_eq!(smallest.actions, [(at, Action::Release(1))]);
    assert!(smallest.errors > 0.0 && !smallest.leased && smallest.delay.is_zero());
    assert!(smallest.operators.operators.is_empty());
}
