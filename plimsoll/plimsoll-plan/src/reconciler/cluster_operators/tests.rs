//! What is read from the conditions of ClusterOperators.

use serde_json::{Value, json};

use super::{LiveOperator, LiveOperators};

/// A ClusterOperator with conditions such as `Available=False`.
fn operator(name: &str, conditions: &str) -> LiveOperator {
    let conditions: Vec<Value> = conditions
        .split_whitespace()
        .map(|condition| {
            let (type_, status) = condition.split_once('=').unwrap();
            json!({ "type": type_, "status": status, "reason": "R", "message": "M" })
        })
        .collect();
    let object = json!({ "metadata": { "name": name }, "status": { "conditions": conditions } });
    LiveOperator { revision: 1, object }
}

/// `NAME: CONDITIONS` lines; `gone` in place of conditions removes.
fn observed(lines: &str) -> LiveOperators {
    let mut operators = LiveOperators::default();
    for line in lines.split("; ").filter(|line| !line.is_empty()) {
        let (name, conditions) = line.split_once(':').unwrap();
        let live = (conditions.trim() != "gone").then(|| operator(name, conditions));
        operators.observed(name, live);
    }
    operators
}

#[test]
fn operators_in_trouble_are_unavailable_or_degraded() {
    #[track_caller]
    fn check(lines: &str, unavailable: &[&str], degraded: &[&str]) {
        let unhealthy = observed(lines).unhealthy();
        assert_eq!(unhealthy.unavailable, unavailable, "{lines}");
        assert_eq!(unhealthy.degraded, degraded, "{lines}");
    }
    check("", &[], &[]);
    check("dns:", &["dns"], &[]);
    check("dns: Available=True Degraded=False", &[], &[]);
    check("dns: Available=False", &["dns"], &[]);
    check("dns: Available=True Degraded=True", &[], &["dns"]);
    check("dns: Available=False Degraded=True", &["dns"], &[]);
    check("dns: Available=Unknown Degraded=Unknown", &["dns"], &[]);
    check(
        "z: Available=False; a: Available=False; m: Available=True Degraded=True",
        &["a", "z"],
        &["m"],
    );
    check("dns: Available=False; dns: Available=True", &[], &[]);
    check("dns: Available=False; dns: gone", &[], &[]);
    let troubles = observed("a: Available=False; b: Degraded=True; c: Available=True").unhealthy();
    let troubles: Vec<String> =
        troubles.troubles.iter().map(|(name, text)| format!("{name} {text}")).collect();
    assert_eq!(troubles, ["a is not available (R)", "b is degraded (R)"]);
}

#[test]
fn only_an_explicit_upgradeable_false_objects() {
    #[track_caller]
    fn check(lines: &str, expected: &[&str]) {
        let objections = observed(lines).objections();
        let names: Vec<&str> = objections.iter().map(|it| it.operator.as_str()).collect();
        assert_eq!(names, expected, "{lines}");
    }
    check("dns: Upgradeable=True", &[]);
    check("dns: Upgradeable=Unknown", &[]);
    check("dns: Upgradeable=False", &["dns"]);
    check("z: Upgradeable=False; a: Upgradeable=False; m:", &["a", "z"]);
    check("dns: Upgradeable=False; dns: gone", &[]);
}
