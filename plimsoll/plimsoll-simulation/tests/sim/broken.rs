//! Each invariant can fail: recordings that are broken on purpose. And scenarios of what once failed.

use std::time::Duration;

use serde_json::json;

use crate::invariants::{counted, violations};
use crate::release::{VERSIONS, releases};
use crate::runner::{self, ScenarioResult};
use crate::scenario::{Action, Scenario};

/// An installation and an update without trouble.
fn without_faults() -> ScenarioResult {
    runner::run(&scenario(vec![(20, Action::Enable), (40, Action::Release(1))]))
}

/// A scenario of actions alone.
fn scenario(actions: Vec<(u64, Action)>) -> Scenario {
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
    }
}

#[test]
fn a_restored_server_is_noticed_however_new_its_revisions_are() {
    let restart = Action::Restart { from_backup: true };
    let drift = Action::Drift { item: 0, is_deletion: false };
    let cut_off = Action::CutOff(Duration::from_secs(37));
    let cases = [
        // The backup has the object as somebody else changed it.
        vec![(54, drift), (54, Action::BackUp), (75, restart.clone())],
        // The backup has none of an update that has begun.
        vec![(21, cut_off), (48, Action::Release(2)), (48, Action::BackUp), (60, restart.clone())],
        // The backup has nothing at all, not even the definitions of what is reported.
        vec![(0, Action::BackUp), (10, restart.clone())],
        vec![(0, Action::BackUp), (60, restart)],
    ];
    for actions in cases {
        let result = runner::run(&Scenario { faulty_until: 111, ..scenario(actions.clone()) });
        assert_eq!(violations(&result, releases()), Vec::<String>::new(), "{actions:?}");
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

#[test]
fn each_invariant_can_fail() {
    let releases = releases();
    let everything = |result: &ScenarioResult| {
        let mut found = violations(result, releases);
        found.extend(counted(result));
        found
    };
    assert_eq!(everything(&without_faults()), Vec::<String>::new());
    let check = |expected: &str, corrupt: fn(&mut ScenarioResult)| {
        let mut result = without_faults();
        corrupt(&mut result);
        let found = everything(&result);
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
    };
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
    check("is not completed", |result| result.wanted = 2);
    check("is asked for and not enabled", |result| {
        result.status["capabilities"]["enabledCapabilities"] = json!([]);
    });
    check("in the end", |result| {
        result.found[0].1 = Some(VERSIONS[0].to_owned());
    });
}
