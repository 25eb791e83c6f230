//! Problems: what is not reported before watches had time to show it.

use plimsoll_api::Effect;

use super::{Script, at, check, plan, world};
use crate::plan::mode::Mode;
use crate::progress::Progress;

#[test]
fn a_namespace_that_was_not_seen_yet_is_not_said_to_be_missing() {
    let mut world = world();
    world.await_namespaces();
    let plan = plan("0000_10_a_1 ConfigMap z/a1", Mode::Reconciling);
    let mut script =
        Script { progress: Progress::new(plan, world, at(0)), clock: 0, revision: 100 };
    let effect = |script: &Script, now| script.progress.problems(at(now))[0].effect;
    assert_eq!(script.started(), "");
    assert_eq!(effect(&script, 30), None);
    // They are not listed: something is wrong.
    assert_eq!(effect(&script, 31), Some(Effect::None));
    script.handle("listed Namespace");
    assert_eq!(effect(&script, 1), Some(Effect::None));
    // It has come, and the step only has to be started.
    script.handle("namespace z");
    assert!(script.progress.problems(at(1)).is_empty());
}

#[test]
fn an_operator_that_was_not_seen_yet_is_not_said_to_fail() {
    let mut script = check(
        "0000_10_a_1 ClusterOperator op",
        Mode::Reconciling,
        "start => op
         applied op =>",
    );
    let effect = |script: &Script, now| script.progress.problems(at(now))[0].effect;
    assert_eq!(effect(&script, 30), None);
    // It is not shown: something is wrong.
    assert_eq!(effect(&script, 31), Some(Effect::None));
    script.handle("sick op");
    assert_eq!(effect(&script, 1), Some(Effect::Fail));
}
