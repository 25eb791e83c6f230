//! Scripts of what happens, and which group version is polled when.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{DiscoveryPoller, GroupVersion};
use crate::reconciler::Uptime;

fn at(milliseconds: u64) -> Uptime {
    Uptime::from_start(Duration::from_millis(milliseconds))
}

fn version(group: &str) -> GroupVersion {
    (group.to_owned(), "v1".to_owned())
}

/// Runs a script of `MILLISECONDS VERB GROUPS` lines and compares what each `poll` asks for and
/// each `next` shows, in milliseconds.
///
/// Verbs: `want` (groups separated by commas, or nothing), `changed` (a definition of the group),
/// `poll`, `answered`, `next`.
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut poller = DiscoveryPoller::default();
    let mut outputs = Vec::new();
    for line in script.split("; ") {
        let mut words = line.split_whitespace();
        let now = at(words.next().unwrap().parse().unwrap());
        let (verb, groups) = (words.next().unwrap(), words.next().unwrap_or_default());
        match verb {
            "want" => {
                let wanted = groups.split(',').filter(|it| !it.is_empty()).map(version);
                poller.want(&wanted.collect::<BTreeSet<_>>(), now);
            }
            "changed" => poller.definition_changed(groups, now),
            "answered" => poller.answered(&version(groups), now),
            "poll" => outputs.push(poller.next_request(now).map_or("-".to_owned(), |it| it.0)),
            "next" => outputs.push(
                poller
                    .wake_at()
                    .map_or("-".to_owned(), |it| it.since_start().as_millis().to_string()),
            ),
            other => panic!("no such verb: {other}"),
        }
    }
    assert_eq!(outputs.join(" "), expected, "{script}");
}

#[test]
fn nothing_is_polled_that_no_step_waits_for() {
    check("0 next; 0 poll", "- -");
    check("0 changed a; 50 poll", "-");
    check("0 want a; 5 want; 50 poll; 50 next", "- -");
}

#[test]
fn the_first_poll_follows_soon() {
    check("0 want a; 0 next", "20");
    check("0 want a; 19 poll; 20 poll", "- a");
    check("7 want a; 8 want a; 8 next", "27");
}

#[test]
fn the_backoff_doubles_up_to_a_maximum() {
    check("0 want a; 20 poll; 21 answered a; 21 next", "a 61");
    check("0 want a; 20 poll; 21 answered a; 61 poll; 91 answered a; 91 next", "a a 171");
    let mut script = "0 want a; 20 poll".to_owned();
    let mut expected = "a".to_owned();
    for round in 1..=12 {
        let now = round * 20_000;
        script.push_str(&format!("; {now} answered a; {now} next; {} poll", now + 10_000));
        let delay = (20 * 2_u64.pow(round)).min(10_000);
        expected.push_str(&format!(" {} a", u64::from(now) + delay));
    }
    check(&script, &expected);
}

#[test]
fn a_changed_definition_brings_the_poll_forward_and_resets_the_backoff() {
    let polled = "0 want a; 20 poll; 21 answered a; 61 poll; 91 answered a; ";
    check(&format!("{polled}92 changed a; 92 next"), "a a 112");
    check(&format!("{polled}92 changed b; 92 next"), "a a 171");
    check(&format!("{polled}92 changed a; 102 changed a; 102 next"), "a a 112");
    check(&format!("{polled}165 changed a; 165 next"), "a a 171");
    check(&format!("{polled}92 changed a; 112 poll; 113 answered a; 113 next"), "a a a 153");
}

#[test]
fn one_request_is_in_flight_at_a_time() {
    check("0 want a,b; 20 poll; 20 poll; 20 next", "a - -");
    check("0 want a,b; 20 poll; 30 answered a; 30 poll", "a b");
    check("0 want a; 20 poll; 25 changed a; 60 poll; 60 next", "a - -");
}

#[test]
fn the_group_version_due_the_longest_comes_first() {
    check("0 want b; 5 want a,b; 40 poll; 41 answered b; 41 poll", "b a");
    check("0 want a,b,c; 20 poll; 30 answered a; 100 poll", "a b");
}

#[test]
fn a_request_stays_in_flight_when_its_step_stops_waiting() {
    check("0 want a,b; 20 poll; 21 want; 23 want a,b; 200 poll", "a -");
    check("0 want a,b; 20 poll; 21 want; 23 want b; 201 answered a; 202 poll", "a b");
    check("0 want a; 20 poll; 21 want; 30 answered a; 30 next", "a -");
}
