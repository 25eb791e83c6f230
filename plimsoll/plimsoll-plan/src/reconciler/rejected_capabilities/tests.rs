//! Which names are found in a rejection, left out of the status, and when they are retried.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{RejectedCapabilities, rejected_names, without};
use crate::reconciler::Uptime;

fn at(milliseconds: u64) -> Uptime {
    Uptime::from_start(Duration::from_millis(milliseconds))
}

fn names(list: &str) -> BTreeSet<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

fn status() -> Value {
    json!({
        "capabilities": { "enabledCapabilities": ["A", "B"], "knownCapabilities": ["A", "B", "C"] },
        "conditions": [],
    })
}

#[test]
fn the_fields_of_a_rejection_lead_to_names() {
    #[track_caller]
    fn check(fields: &str, expected: &str) {
        assert_eq!(rejected_names(fields.split_whitespace(), &status()), names(expected));
    }
    check("", "");
    check("status.capabilities.enabledCapabilities[1]", "B");
    check("status.capabilities.knownCapabilities[2]", "C");
    check(
        "status.capabilities.knownCapabilities[2] status.capabilities.enabledCapabilities[1] \
         status.capabilities.knownCapabilities[1]",
        "B C",
    );
    check("status.capabilities.enabledCapabilities[9]", "");
    check("status.capabilities.enabledCapabilities", "");
    check("status.capabilities.enabledCapabilities[x]", "");
    check("status.capabilities.otherCapabilities[0]", "");
    check("status.history", "");
    check("spec.capabilities.additionalEnabledCapabilities[0]", "");
}

#[test]
fn names_are_taken_out_of_both_lists_and_nothing_else() {
    #[track_caller]
    fn check(left_out: &str, enabled: &[&str], known: &[&str]) {
        let expected = json!({
            "capabilities": { "enabledCapabilities": enabled, "knownCapabilities": known },
            "conditions": [],
        });
        assert_eq!(without(&status(), &names(left_out)), expected, "{left_out}");
    }
    check("", &["A", "B"], &["A", "B", "C"]);
    check("B", &["A"], &["A", "C"]);
    check("C", &["A", "B"], &["A", "B"]);
    check("A B C", &[], &[]);
    check("X", &["A", "B"], &["A", "B", "C"]);
    assert_eq!(without(&json!({}), &names("B")), json!({}));
    assert_eq!(without(&Value::Null, &names("B")), Value::Null);
}

/// Runs a script of `MILLISECONDS VERB NAMES` lines that begins with `A` rejected at 0, and
/// compares what each `left-out` gives and each `next` shows.
///
/// Verbs: `changed` (the definition), `written` (without these names), `retried` (all were tried,
/// these were rejected), `left-out`, `next`.
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut rejected = RejectedCapabilities::new(names("A"), at(0));
    let mut outputs = Vec::new();
    for line in script.split("; ") {
        let (time, line) = line.split_once(' ').unwrap();
        let (verb, list) = line.split_once(' ').unwrap_or((line, ""));
        let now = at(time.parse().unwrap());
        match verb {
            "changed" => rejected.definition_changed(now),
            "written" => rejected.written_without(names(list), false, now),
            "retried" => rejected.written_without(names(list), true, now),
            "left-out" => {
                let list: Vec<String> = rejected.left_out(now).into_iter().collect();
                outputs.push(format!("[{}]", list.join(" ")));
            }
            "next" => outputs.push(match rejected.retry_at() {
                Some(at) => at.since_start().as_millis().to_string(),
                None => "-".to_owned(),
            }),
            other => panic!("no such verb: {other}"),
        }
    }
    assert_eq!(outputs.join(" "), expected, "{script}");
}

#[test]
fn names_are_retried_after_an_interval() {
    check("0 next; 0 left-out; 9999 left-out; 10000 left-out", "10000 [A] [A] []");
    check("10000 retried A; 10000 next; 10000 left-out", "20000 [A]");
    check("10000 retried; 10000 next; 10000 left-out", "- []");
    check("10000 retried A B; 10000 left-out; 10000 next", "[A B] 20000");
}

#[test]
fn a_write_that_leaves_out_the_same_names_does_not_delay_the_retry() {
    check("5000 written A; 5000 next", "10000");
    check("5000 written A B; 5000 next; 5000 left-out", "15000 [A B]");
}

#[test]
fn a_changed_definition_brings_the_retry_forward() {
    check("500 changed; 500 next; 599 left-out; 600 left-out", "600 [A] []");
    check("500 changed; 550 changed; 550 next", "600");
    check("9950 changed; 9950 next", "10000");
    check("10000 retried; 10500 changed; 10500 next", "-");
}

#[test]
fn the_message_names_what_is_left_out() {
    let message = |list: &str| RejectedCapabilities::new(names(list), at(0)).message();
    assert_eq!(message(""), "");
    assert!(message("B A").contains("does not let its status name A, B; they are in force"));
}
