//! Each invariant can fail: recordings that are broken on purpose. And scenarios of what once failed.

use std::time::Duration;

use serde_json::json;

use crate::invariants::{counted, violations};
use crate::operators::promises;
use crate::operators::{AddOns, AddOnsResult, CatalogContent, Request, RequestedSpec};
use crate::record::Write;
use crate::release::{VERSIONS, releases};
use crate::runner::{self, ScenarioResult};
use crate::scenario::{Action, Scenario};

/// An installation and an update without trouble.
fn without_faults() -> ScenarioResult {
    runner::run(&scenario(vec![(20, Action::Enable), (40, Action::Release(1))]))
}

/// A scenario of actions alone, without faults.
pub(crate) fn scenario(actions: Vec<(u64, Action)>) -> Scenario {
    Scenario {
        seed: 0,
        actions,
        stored: false,
        leased: false,
        errors: 0.0,
        watches: 0.0,
        stale: 0.0,
        refusals: 0.0,
        mangled: 0.0,
        delay: Duration::from_secs(1),
        operators: Default::default(),
        faulty_until: 60,
        add_ons: None,
    }
}

#[test]
fn a_restored_server_is_noticed_however_new_its_revisions_are() {
    let restart = Action::Restart { from_backup: true };
    let drift = Action::Drift { item: 0, is_deletion: false };
    let cut_off = Action::CutOff(Duration::from_secs(37));
    let cases = [
        // The backup has the object as another client changed it.
        vec![(54, drift), (54, Action::BackUp), (75, restart.clone())],
        // The backup has none of an update that has begun.
        vec![(21, cut_off), (48, Action::Release(2)), (48, Action::BackUp), (60, restart.clone())],
        // The backup has nothing at all, not even the definitions of what is reported.
        vec![(0, Action::BackUp), (10, restart.clone())],
        vec![(0, Action::BackUp), (60, restart)],
    ];
    for actions in cases {
        for first in [None, Some((0, Action::EndWatches))] {
            let actions: Vec<_> = first.into_iter().chain(actions.clone()).collect();
            let result = runner::run(&Scenario { faulty_until: 111, ..scenario(actions.clone()) });
            assert_eq!(violations(&result, releases()), Vec::<String>::new(), "{actions:?}");
        }
    }
}

#[test]
fn operators_follow_a_restored_server_however_its_watches_ended() {
    let restart = (75, Action::Restart { from_backup: true });
    let actions = vec![(35, Action::BackUp), restart];
    let requests = vec![
        (0, Request::Catalog(CatalogContent::Whole)),
        (
            1,
            Request::Apply(LANTERN, RequestedSpec { version: "1.0.0", ..RequestedSpec::default() }),
        ),
        (1, Request::Apply(LEDGER, RequestedSpec::default())),
        // The backup has the first one as it was before, and the second one, which is deleted.
        (40, Request::Apply(LANTERN, RequestedSpec::default())),
        (40, Request::Delete(LEDGER)),
    ];
    for first in [None, Some((0, Action::EndWatches))] {
        let actions: Vec<_> = first.into_iter().chain(actions.clone()).collect();
        let add_ons = Some(AddOns { requests: requests.clone(), faults: Vec::new() });
        let faulty_until = 111;
        let result = runner::run(&Scenario { add_ons, faulty_until, ..scenario(actions.clone()) });
        assert_eq!(promises::violations(&result), Vec::<String>::new(), "{actions:?}");
    }
}

#[test]
fn what_goes_while_a_watch_is_interrupted_comes_back() {
    // Written after the watch ended and deleted before its objects were listed again, with errors that
    // put the list off.
    for seed in [6_002_420, 6_002_812] {
        let result = runner::run(&Scenario::of(seed));
        assert_eq!(violations(&result, releases()), Vec::<String>::new(), "seed {seed}");
    }
}

/// The place of a successful write of a release.
fn write_of(result: &ScenarioResult, version: &str, path: &str) -> usize {
    let mut writes = result.writes.iter();
    let found = writes.position(|write| write.release == version && write.path.ends_with(path));
    found.expect("it is written")
}

/// The place of the last write that tells something under a name.
fn reported(result: &ScenarioResult, field: &str) -> usize {
    let place = result.writes.iter().rposition(|write| !write.reported[field].is_null());
    place.expect("it is reported")
}

/// Returns everything that is wrong with a result.
fn wrong(result: &ScenarioResult) -> Vec<String> {
    let mut found = violations(result, releases());
    found.extend(counted(result));
    found
}

/// Breaks a recording, and checks that it is noticed.
fn check(expected: &str, corrupt: fn(&mut ScenarioResult)) {
    let mut result = without_faults();
    corrupt(&mut result);
    let found = wrong(&result);
    assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
}

#[test]
fn each_invariant_of_writes_can_fail() {
    assert_eq!(wrong(&without_faults()), Vec::<String>::new());
    check("comes before", |result| {
        let early = write_of(result, VERSIONS[1], "namespaces/keel");
        let late = write_of(result, VERSIONS[1], "namespaces/mast");
        result.writes.swap(early, late);
    });
    check("takes /api/v1/namespaces/keel back", |result| {
        let old = write_of(result, VERSIONS[0], "namespaces/keel");
        result.writes.push(result.writes[old].clone());
    });
    check("passes operator keel", |result| {
        let late = write_of(result, VERSIONS[1], "namespaces/hull");
        result.writes[late].operators.insert("keel".to_owned(), VERSIONS[0].to_owned());
    });
    check("is deleted although", |result| {
        let old = write_of(result, VERSIONS[0], "configmaps/vanished");
        result.writes[old].method = "DELETE".to_owned();
    });
    check("belongs to Console, not enabled", |result| {
        let optional = write_of(result, VERSIONS[0], "configmaps/optional");
        result.writes[optional].requested.clear();
    });
}

#[test]
fn each_invariant_of_reports_can_fail() {
    check("disables capability Console", |result| {
        let last = reported(result, "history");
        result.writes[last].reported["capabilities"]["enabledCapabilities"] = json!([]);
    });
    check("became", |result| {
        let last = reported(result, "history");
        result.writes[last].reported["history"][1]["state"] = json!("Partial");
    });
    check("the history is not in order", |result| {
        let last = reported(result, "history");
        result.writes[last].reported["history"][1]["startedTime"] = json!("2099-01-01T00:00:00Z");
    });
    check("the number of steps done fell", |result| {
        let last = reported(result, "planHash");
        let mut write = result.writes[last].clone();
        write.reported["mode"] = json!("Updating");
        result.writes.push(write.clone());
        write.reported["doneSteps"] = json!("0-3");
        result.writes.push(write);
    });
    check("steps of a plan became", |result| {
        let last = reported(result, "planHash");
        let mut write = result.writes[last].clone();
        write.reported["mode"] = json!("Updating");
        result.writes.push(write.clone());
        write.reported["total"] = json!(99);
        result.writes.push(write);
    });
}

#[test]
fn each_invariant_of_the_end_can_fail() {
    check("is not completed", |result| result.wanted = 2);
    check("is asked for and not enabled", |result| {
        result.status["capabilities"]["enabledCapabilities"] = json!([]);
    });
    check("in the end", |result| {
        result.found[0].1 = Some(VERSIONS[0].to_owned());
    });
}

/// Three Operators with an object of one of them; two are upgraded, and one is deleted.
fn with_operators() -> ScenarioResult {
    let spec = RequestedSpec::default();
    let requests = vec![
        (0, Request::Catalog(CatalogContent::Early)),
        (1, Request::Apply(LANTERN, spec)),
        (1, Request::Apply(LEDGER, spec)),
        (1, Request::Apply(TIDE, spec)),
        (20, Request::Operand(LANTERN)),
        (25, Request::Catalog(CatalogContent::Whole)),
        (30, Request::Delete(TIDE)),
    ];
    let add_ons = Some(AddOns { requests, faults: Vec::new() });
    runner::run(&Scenario { add_ons, ..scenario(Vec::new()) })
}

/// Places in the list of packages.
const LANTERN: usize = 0;
const LEDGER: usize = 1;
const TIDE: usize = 2;

const BEACON: &str = "/apis/lantern.example.com/v1/namespaces/default/beacons/one";

/// Adds a write like the first one of a path, a while after all requests.
fn write_again(result: &mut ScenarioResult, method: &str, path: &str) {
    let first = result.writes.iter().find(|it| it.path.ends_with(path)).expect("it is written");
    let mut again = first.clone();
    again.method = method.to_owned();
    again.at += Duration::from_secs(1000);
    result.writes.push(again);
}

#[test]
fn each_promise_about_operators_can_fail() {
    let result = with_operators();
    assert_eq!(promises::violations(&result), Vec::<String>::new());
    let check = |expected: &str, corrupt: fn(&mut ScenarioResult, &mut AddOnsResult)| {
        let mut result = with_operators();
        let mut add_ons = result.add_ons.take().expect("there are Operators");
        corrupt(&mut result, &mut add_ons);
        result.add_ons = Some(add_ons);
        let found = promises::violations(&result);
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
    };
    check("is again as it was", |result, _| {
        for is_other in [true, false, true] {
            write_again(result, "PATCH", "deployments/lantern-operator");
            if is_other {
                result.writes.last_mut().expect("it is there").sent["spec"] = json!({});
            }
        }
    });
    check("which no policy asks for", |result, _| {
        write_again(result, "DELETE", "deployments/lantern-operator");
        result.writes.last_mut().expect("it is there").path = BEACON.to_owned();
    });
    check("although every revision of ledger has it", |result, _| {
        write_again(result, "DELETE", "customresourcedefinitions/databases.ledger.example.com");
    });
    check("although its policy keeps it", |_, add_ons| {
        for (_, request) in &mut add_ons.requested {
            if let Request::Apply(TIDE, spec) = request {
                spec.keeps_definitions = true;
            }
        }
    });
    check("which requires ledger", |result, add_ons| {
        add_ons.requested.retain(|(_, it)| !matches!(it, Request::Catalog(_)));
        let requires = |it: &&mut Write| it.installed.contains_key("lantern");
        let upgrades = result.writes.iter_mut().filter(requires);
        upgrades.for_each(|it| {
            it.at += Duration::from_secs(1000);
            it.installed.insert("ledger".to_owned(), "0.1.0".to_owned());
        });
    });
    check("it does not converge", |_, add_ons| add_ons.converged_at = None);
    check("at rest", |result, _| {
        let mut last = result.writes.last().expect("there are writes").clone();
        last.at += Duration::from_secs(1000);
        result.writes.push(last);
    });
    check("Operator lantern is missing", |_, add_ons| {
        add_ons.operators.remove("lantern");
    });
    check("Operator tide does not go", |_, add_ons| {
        add_ons.operators.insert("tide".to_owned(), json!({}));
    });
    check("has no reason", |_, add_ons| {
        let lantern = add_ons.operators.get_mut("lantern").expect("it is there");
        lantern["status"]["conditions"][0]["reason"] = json!("");
    });
    check("it is not there", |_, add_ons| {
        add_ons.found.retain(|path, _| !path.ends_with("deployments/lantern-operator"));
    });
    check("is left of ledger", |_, add_ons| {
        add_ons.operators.remove("ledger");
    });
    check("is lost", |_, add_ons| {
        add_ons.found.remove(BEACON);
    });
}
