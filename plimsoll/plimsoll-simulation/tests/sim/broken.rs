//! Each invariant can fail: recordings that are broken on purpose.

use std::time::Duration;

use serde_json::json;

use crate::invariants::violations;
use crate::release::{VERSIONS, releases};
use crate::scenario::{Deed, Scenario};
use crate::stage::{self, Outcome};

/// An installation and an update without trouble.
fn smooth() -> Outcome {
    stage::play(&Scenario {
        seed: 0,
        deeds: vec![(20, Deed::Enable), (40, Deed::Release(1))],
        stored: false,
        leased: false,
        errors: 0.0,
        watches: 0.0,
        stale: 0.0,
        delay: Duration::from_secs(1),
        operators: Default::default(),
        faulty_until: 60,
    })
}

/// The place of a successful write of a release.
fn write_of(outcome: &Outcome, version: &str, path: &str) -> usize {
    let mut writes = outcome.writes.iter();
    let found = writes.position(|write| write.release == version && write.path.ends_with(path));
    found.expect("it is written")
}

/// The place of the last write that tells something under a name.
fn told(outcome: &Outcome, field: &str) -> usize {
    let place = outcome.writes.iter().rposition(|write| !write.told[field].is_null());
    place.expect("it is told")
}

#[test]
fn each_invariant_can_fail() {
    let releases = releases();
    assert_eq!(violations(&smooth(), releases), Vec::<String>::new());
    let check = |expected: &str, spoil: fn(&mut Outcome)| {
        let mut outcome = smooth();
        spoil(&mut outcome);
        let found = violations(&outcome, releases);
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
    };
    check("comes before", |outcome| {
        let early = write_of(outcome, VERSIONS[1], "namespaces/keel");
        let late = write_of(outcome, VERSIONS[1], "namespaces/mast");
        outcome.writes.swap(early, late);
    });
    check("takes /api/v1/namespaces/keel back", |outcome| {
        let old = write_of(outcome, VERSIONS[0], "namespaces/keel");
        outcome.writes.push(outcome.writes[old].clone());
    });
    check("passes operator keel", |outcome| {
        let late = write_of(outcome, VERSIONS[1], "namespaces/hull");
        outcome.writes[late].operators.insert("keel".to_owned(), VERSIONS[0].to_owned());
    });
    check("is deleted although", |outcome| {
        let old = write_of(outcome, VERSIONS[0], "configmaps/vanished");
        outcome.writes[old].method = "DELETE".to_owned();
    });
    check("belongs to Console, not enabled", |outcome| {
        let optional = write_of(outcome, VERSIONS[0], "configmaps/optional");
        outcome.writes[optional].asked.clear();
    });
    check("disables capability Console", |outcome| {
        let last = told(outcome, "history");
        outcome.writes[last].told["capabilities"]["enabledCapabilities"] = json!([]);
    });
    check("became", |outcome| {
        let last = told(outcome, "history");
        outcome.writes[last].told["history"][1]["state"] = json!("Partial");
    });
    check("the history is not in order", |outcome| {
        let last = told(outcome, "history");
        outcome.writes[last].told["history"][1]["startedTime"] = json!("2099-01-01T00:00:00Z");
    });
    check("the number of steps done fell", |outcome| {
        let last = told(outcome, "planHash");
        let mut write = outcome.writes[last].clone();
        write.told["mode"] = json!("Updating");
        outcome.writes.push(write.clone());
        write.told["done"] = json!(1);
        outcome.writes.push(write);
    });
    check("is not completed", |outcome| outcome.wanted = 2);
    check("is asked for and not enabled", |outcome| {
        outcome.status["capabilities"]["enabledCapabilities"] = json!([]);
    });
    check("in the end", |outcome| {
        outcome.found[0].1 = Some(VERSIONS[0].to_owned());
    });
}
