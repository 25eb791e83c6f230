//! Chains: which steps hold up others, and which are deferred.

use plimsoll_api::{Effect, Reason};

use super::{Script, at, check, kind, plan, world};
use crate::plan::mode::Mode;
use crate::progress::Progress;

#[test]
fn while_updating_chains_are_serial_and_levels_are_barriers() {
    check(
        "0000_10_a_1 ConfigMap x/a1
         0000_10_a_2 ConfigMap x/a2
         0000_10_b_1 ConfigMap x/b1
         0000_20_c_1 ConfigMap x/c1",
        Mode::Updating,
        "start => a1 b1
         applied b1 =>
         applied a1 => a2
         applied a2 => c1",
    );
}

#[test]
fn no_step_of_an_update_is_deferred_before_it_is_known_what_namespaces_there_are() {
    let plan = plan(
        "0000_10_a_1 ConfigMap y/a1
         0000_10_b_1 ConfigMap y/b1 delete
         0000_20_c_1 ClusterRole c1
         0000_30_d_1 ConfigMap z/d1",
        Mode::Updating,
    );
    let mut world = world();
    world.await_namespaces();
    let progress = Progress::new(plan, world, at(0));
    let mut script = Script { progress, clock: 0, revision: 100 };
    for (event, expected) in [
        ("start", ""),
        ("namespace y", "a1 b1"),
        ("listed Namespace", ""),
        ("deleted b1", ""),
        ("applied a1", "c1"),
        ("applied c1", ""),
        ("namespace z", "d1"),
    ] {
        script.handle(event);
        assert_eq!(script.started(), expected, "after `{event}`");
    }
}

#[test]
fn while_initializing_all_starts_at_once_and_failures_hold_up_nothing() {
    check(
        "0000_10_a_1 ConfigMap x/a1
         0000_10_a_2 ConfigMap x/a2
         0000_20_c_1 ConfigMap x/c1",
        Mode::Initializing,
        "start => a1 a2 c1
         failed a1 =>
         applied c1 =>
         wait 1 => a1",
    );
}

#[test]
fn while_updating_a_failure_stops_its_chain_and_later_levels_only() {
    check(
        "0000_10_a_1 ConfigMap x/a1
         0000_10_a_2 ConfigMap x/a2
         0000_10_b_1 ConfigMap x/b1
         0000_10_b_2 ConfigMap x/b2
         0000_20_c_1 ConfigMap x/c1",
        Mode::Updating,
        "start => a1 b1
         failed a1 =>
         applied b1 => b2
         applied b2 =>
         wait 1 => a1
         applied a1 => a2
         applied a2 => c1",
    );
}

#[test]
fn a_missing_namespace_defers_a_step_until_it_appears() {
    let script = check(
        "0000_10_a_1 ConfigMap y/a1
         0000_10_a_2 ConfigMap x/a2",
        Mode::Updating,
        "start => a2
         applied a2 =>
         namespace z =>
         namespace y => a1",
    );
    assert!(script.progress.problems(at(0)).is_empty());
}

#[test]
fn what_is_deferred_holds_up_no_later_level_that_may_bring_what_it_needs() {
    let script = check(
        "0000_05_a_1 Thing t
         0000_10_a_1 CustomResourceDefinition crd
         0000_20_a_1 ConfigMap x/c",
        Mode::Updating,
        "start => crd
         applied crd =>
         served Thing => t c
         applied c =>
         applied t =>",
    );
    assert_eq!(script.progress.passes(), 1);
}

#[test]
fn a_missing_kind_is_wanted_and_tried_when_it_is_served() {
    let mut script = check("0000_10_a_1 Thing t", Mode::Initializing, "start =>");
    assert_eq!(script.progress.wanted_kinds(), [kind("Thing")]);
    let problem = &script.progress.problems(at(1))[0];
    assert_eq!(problem.reason, Reason::UpdatePayloadResourceTypeMissing);
    assert_eq!(problem.effect, Some(Effect::None));
    assert_eq!(script.progress.problems(at(600))[0].effect, Some(Effect::Fail));
    script.handle("served Thing");
    assert_eq!(script.started(), "t");
}

#[test]
fn a_definition_is_done_when_its_kinds_are_served() {
    let script = check(
        "0000_10_a_1 CustomResourceDefinition crd
         0000_20_a_1 ConfigMap x/c",
        Mode::Updating,
        "start => crd
         applied crd =>
         served Thing => c",
    );
    assert_eq!(script.progress.done(), [0]);
}

#[test]
fn a_job_is_a_barrier_in_every_mode() {
    check(
        "0000_10_a_1 ConfigMap x/a
         0000_10_b_1 Job x/j
         0000_10_c_1 ConfigMap x/c",
        Mode::Initializing,
        "start => a
         applied a => j
         applied j =>
         healthy j => c",
    );
}
