//! Schedule: with which steps a pass begins, and when a failed one is tried again.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use plimsoll_api::Effect;

use super::{Script, at, check};
use crate::plan::mode::Mode;
use crate::progress::CONCURRENCY_RECONCILING;

#[test]
fn a_server_that_asks_for_a_long_delay_gets_a_minute() {
    let script = check(
        "0000_10_a_1 ConfigMap x/a",
        Mode::Updating,
        "start => a
         busy a 5 =>
         wait 4 =>
         wait 1 => a
         busy a 86400 =>
         wait 59 =>",
    );
    let problems = script.progress.problems(at(64));
    assert_eq!(
        problems[0].message,
        "Could not update configmap \"x/a\" (1 of 1): busy; waiting for the API server, which asked \
         for no other try within 86400 s: trying again every 60 s"
    );
    assert_eq!(problems[0].effect, Some(Effect::Fail));
    let mut script = script;
    script.handle("wait 1");
    assert_eq!(script.started(), "a");
}

#[test]
fn each_sweep_begins_with_other_steps() {
    let lines: Vec<String> =
        (1..=9).map(|index| format!("0000_10_c{index}_1 ConfigMap x/a{index}")).collect();
    let mut script = Script::new(&lines.join("\n"), Mode::Reconciling);
    let mut firsts = BTreeSet::new();
    let mut started = script.started();
    for _ in 0..8 {
        firsts.insert(started.split(' ').next().expect("a step").to_owned());
        for index in 1..=9 {
            script.handle(&format!("applied a{index}"));
            script.started();
        }
        script.handle("sweep");
        started = script.started();
    }
    assert!(firsts.len() > 4, "{firsts:?}");
}

#[test]
fn what_is_due_and_cannot_be_started_yet_wakes_no_loop() {
    let many = CONCURRENCY_RECONCILING + 1;
    let lines: Vec<String> =
        (0..many).map(|number| format!("0000_10_a_{number}.yaml ConfigMap x/c{number}")).collect();
    let mut script = Script::new(&lines.join("\n"), Mode::Reconciling);
    let mut failing: Vec<usize> = script.progress.start(at(0));
    while let Some(step) = failing.pop() {
        let name = script.progress.plan().steps[step].manifest.key.name.clone();
        script.handle(&format!("failed {name}"));
        failing.extend(script.progress.start(at(0)));
    }
    let due = script.progress.wake_at().expect("all are to be tried again");
    let last = due + SignedDuration::from_hours(1);
    assert_eq!(script.progress.start(last).len(), many - 1, "as many as may run at a time");
    assert_eq!(script.progress.wake_at(), None, "the last one begins when another one ends");
}
