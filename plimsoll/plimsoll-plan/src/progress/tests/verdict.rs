//! Verdicts: what gates and workloads wait for, and what is reported of their health.

use plimsoll_api::{Effect, Reason, Verdict};

use super::{Script, at, check};
use crate::plan::mode::Mode;
use crate::progress::Event;

#[test]
fn the_time_that_an_operator_is_degraded_counts_from_when_it_became_so() {
    let lines = "0000_10_a_1 ClusterOperator alpha";
    let mut script = check(lines, Mode::Updating, "start => alpha\n applied alpha =>");
    let mut health = |seconds: i64, effect: Effect, reason: Reason| {
        let verdict = Verdict::Waiting { effect, reason, message: "m".to_owned() };
        script.revision += 1;
        let (key, revision) = (script.key("alpha").1, script.revision);
        script.progress.handle(Event::Health { key, revision, verdict }, at(seconds));
        let problem = script.progress.problems(at(seconds)).remove(0);
        (problem.since, problem.reason_since)
    };
    let updating = Reason::ClusterOperatorUpdating;
    assert_eq!(health(5, Effect::None, updating), (at(0), at(5)));
    assert_eq!(health(60, Effect::None, updating), (at(0), at(5)));
    let degraded = Reason::ClusterOperatorDegraded;
    assert_eq!(health(100, Effect::FailAfterInterval, degraded), (at(0), at(100)));
    assert_eq!(health(200, Effect::FailAfterInterval, degraded), (at(0), at(100)));
}

#[test]
fn an_operator_that_recovers_while_installing_is_not_called_degraded_any_more() {
    let lines = "0000_10_a_1 ClusterOperator alpha
         0000_10_a_2 ClusterOperator beta";
    let mut script = check(lines, Mode::Initializing, "start => alpha beta\n applied alpha =>");
    let health = |script: &mut Script, verdict: Verdict| {
        script.revision += 1;
        let (key, revision) = (script.key("alpha").1, script.revision);
        script.progress.handle(Event::Health { key, revision, verdict }, at(0));
        let problems = script.progress.problems(at(0));
        let alpha = problems.iter().find(|it| it.step == 0);
        alpha.map_or_else(String::new, |problem| problem.reason.to_string())
    };
    let degraded = Verdict::ReadyWith {
        reason: Reason::ClusterOperatorDegraded,
        message: "degraded".to_owned(),
    };
    assert_eq!(health(&mut script, degraded.clone()), "ClusterOperatorDegraded");
    assert_eq!(health(&mut script, Verdict::Ready), "");
    assert_eq!(health(&mut script, degraded), "ClusterOperatorDegraded");
}

#[test]
fn a_gate_is_created_with_its_chain_and_waits_at_its_place() {
    check(
        "0000_10_a_1 ConfigMap x/a1
         0000_10_a_2 ClusterOperator op
         0000_10_a_3 ConfigMap x/a3
         0000_20_b_1 ConfigMap x/b1",
        Mode::Updating,
        "start => a1 op
         applied op =>
         applied a1 =>
         healthy op => a3
         applied a3 => b1",
    );
}

#[test]
fn a_gate_that_waits_makes_nothing_be_done_again() {
    let mut script = check(
        "0000_10_a_1 ConfigMap x/a1
         0000_10_a_2 ClusterOperator op",
        Mode::Updating,
        "start => a1 op
         applied a1 =>
         applied op =>
         sick op =>
         wait 3600 =>
         sick op =>",
    );
    assert_eq!(script.progress.passes(), 0);
    script.handle("healthy op");
    assert_eq!(script.progress.passes(), 1);
    assert_eq!(script.progress.mode(), Mode::Reconciling);
}

#[test]
fn a_workload_is_judged_by_what_is_seen_after_it_was_applied() {
    check(
        "0000_10_a_1 Deployment x/d
         0000_20_b_1 ConfigMap x/b",
        Mode::Updating,
        "healthy d => d
         applied d =>
         healthy d => b",
    );
}

#[test]
fn an_operator_that_falls_ill_later_shows_while_reconciling() {
    let mut script = check(
        "0000_10_a_1 ClusterOperator op",
        Mode::Initializing,
        "start => op
         applied op =>
         healthy op =>",
    );
    script.handle("sick op");
    assert_eq!(script.progress.problems(at(0))[0].message, "sick");
    assert_eq!(script.progress.done(), [0]);
}
