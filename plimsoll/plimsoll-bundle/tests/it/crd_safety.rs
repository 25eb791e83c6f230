//! Pairs of definitions against the verdicts of OLM v1's preflight check.
//!
//! Each case is a file with the definitions `old` and `new`, and what the check says: `allowed` (null
//! if it says one or the other), `rules` that are always broken, `rulesSometimes`, and `panic`.
//! `crd-differences.tsv` lists the cases where the answer here is another one: the case, our
//! verdict, and the reasons with how many broken rules each one leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use k8s_testkit::prerequisites::required;
use plimsoll_bundle::crd_safety::{UpgradeRule, UpgradeVerdict, UpstreamVerdict, check};
use serde_json::{Value, json};

/// Scope, version, property, rule.
type BrokenRule = (String, String, String, String);

#[test]
fn verdicts_agree_with_the_check_of_olm() {
    let Some(directory) = required("PLIMSOLL_BUNDLES") else { return };
    let files = fs::read_dir(Path::new(&directory).join("crd-upgrades")).unwrap();
    let cases: Vec<Value> = files
        .map(|file| serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap())
        .collect();
    assert!(!cases.is_empty(), "no cases");
    compare(&cases, include_str!("../data/crd-differences.tsv"));
}

fn compare(cases: &[Value], differences: &str) {
    let mut wrong = Vec::new();
    let mut listed: BTreeMap<&str, &str> = differences
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .collect();
    for case in cases {
        let name = case["case"].as_str().unwrap();
        let verdict = check(&case["old"], &case["new"]).unwrap();
        if let Some(text) = differs_from_upstream(case, &verdict) {
            wrong.push(format!("{name}: OLM v1 is predicted wrongly: {text}"));
        }
        let difference = difference(case, &verdict);
        match listed.remove(name) {
            Some(expected) if difference.as_deref() == Some(expected) => {}
            None if difference.is_none() => {}
            expected => wrong.push(format!(
                "{name}\t{}, but the table says {}",
                difference.as_deref().unwrap_or("agrees"),
                expected.unwrap_or("nothing")
            )),
        }
    }
    wrong.extend(listed.keys().map(|name| format!("{name} is in the table and no case")));
    wrong.sort();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Our verdict and the reasons, if they are not those of the case.
fn difference(case: &Value, verdict: &UpgradeVerdict) -> Option<String> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for difference in &verdict.differences {
        *reasons.entry(format!("{:?}", difference.reason)).or_default() += 1;
    }
    if !case["panic"].is_null() {
        reasons.insert("Crash".to_owned(), 1);
    }
    let agrees = case["allowed"] == verdict.allowed && ours(verdict) == rules(case, "rules");
    (!agrees).then(|| {
        let reasons: Vec<String> =
            reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        format!("{}\t{}", if verdict.allowed { "allowed" } else { "refused" }, reasons.join(", "))
    })
}

/// What of upstream's answer is not foreseen.
fn differs_from_upstream(case: &Value, verdict: &UpgradeVerdict) -> Option<String> {
    let expected = match case["allowed"].as_bool() {
        _ if !case["panic"].is_null() => UpstreamVerdict::Crash,
        Some(true) => UpstreamVerdict::Allowed,
        Some(false) => UpstreamVerdict::Refused,
        None => UpstreamVerdict::Random,
    };
    if verdict.upstream != expected {
        return Some(format!("{:?} instead of {expected:?}", verdict.upstream));
    }
    if verdict.upstream == UpstreamVerdict::Crash {
        return None;
    }
    let mut always = ours(verdict);
    let mut sometimes = BTreeSet::new();
    for difference in &verdict.differences {
        let rules = match difference.upstream {
            UpstreamVerdict::Random => &mut sometimes,
            UpstreamVerdict::Refused | UpstreamVerdict::Allowed | UpstreamVerdict::Crash => {
                &mut always
            }
        };
        rules.insert(broken(&json!(difference)));
    }
    for (name, found) in [("rules", always), ("rulesSometimes", sometimes)] {
        let expected = rules(case, name);
        if found != expected {
            let more: Vec<_> = found.difference(&expected).collect();
            let less: Vec<_> = expected.difference(&found).collect();
            return Some(format!("{name}: too many {more:?}, missing {less:?}"));
        }
    }
    None
}

fn ours(verdict: &UpgradeVerdict) -> BTreeSet<BrokenRule> {
    let known = verdict.problems.iter().filter(|problem| problem.rule != UpgradeRule::Schema);
    known.map(|problem| broken(&json!(problem))).collect()
}

fn rules(case: &Value, field: &str) -> BTreeSet<BrokenRule> {
    case[field].as_array().into_iter().flatten().map(broken).collect()
}

fn broken(rule: &Value) -> BrokenRule {
    let text = |field: &str| rule[field].as_str().unwrap_or_default().to_owned();
    (text("scope"), text("version"), text("property"), text("rule"))
}
