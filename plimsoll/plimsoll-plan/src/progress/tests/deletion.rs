//! Deletions: when objects are deleted, and what becomes of a refused deletion.

use std::collections::BTreeSet;

use super::{Script, at, check, kind, plan, world};
use crate::plan::Action;
use crate::plan::mode::Mode;
use crate::progress::{Event, Progress, Scope};

#[test]
fn no_refused_deletion_is_done_before_it_is_known_what_namespaces_there_are() {
    for mode in [Mode::Initializing, Mode::Reconciling] {
        let plan =
            plan("0000_10_a_1 ConfigMap y/a1 delete\n0000_10_a_2 ConfigMap z/a2 delete", mode);
        let mut world = world();
        world.await_namespaces();
        let mut script =
            Script { progress: Progress::new(plan, world, at(0)), clock: 0, revision: 100 };
        let refused = ["a1", "a2"].map(|name| script.key(name).1);
        script.progress.retry_deletions(&BTreeSet::from(refused));
        for (event, expected) in
            [("start", ""), ("namespace y", "a1"), ("failed a1", ""), ("listed Namespace", "")]
        {
            script.handle(event);
            assert_eq!(script.started(), expected, "{mode:?} after `{event}`");
        }
        script.handle("wait 20");
        assert_eq!(script.started(), "a1", "the namespace of the other one is gone: {mode:?}");
    }
}

#[test]
fn deletions_are_asked_for_once_and_in_updates_only() {
    let plan = "0000_10_a_1 ConfigMap x/a1 delete
         0000_10_a_2 ConfigMap x/a2
         0000_20_c_1 Thing x/c1 delete
         0000_20_c_2 ConfigMap y/c2 delete";
    check(plan, Mode::Updating, "start => a1\n deleted a1 => a2\n untouched a1 =>\n applied a2 =>");
    for mode in [Mode::Initializing, Mode::Reconciling] {
        let script = check(plan, mode, "start => a2\n applied a2 =>\n untouched a1 =>");
        assert_eq!(script.progress.passes(), 1, "{mode:?}");
    }
}

#[test]
fn what_was_deleted_and_is_applied_again_by_a_late_write_of_ours_is_deleted_again() {
    let script = check(
        "0000_10_a_1 ConfigMap x/a delete
         0000_20_b_1 ConfigMap x/b delete
         0000_30_c_1 ConfigMap x/c",
        Mode::Updating,
        "start => a
         deleted a => b
         going a =>
         gone a =>
         foreign a =>
         untouched a => a
         absent b => c
         applied c =>
         untouched b => b
         absent a =>
         absent b =>",
    );
    assert_eq!(script.progress.passes(), 1);
    assert_eq!(script.progress.repairs(), 0);
}

#[test]
fn a_refused_deletion_is_tried_on_and_holds_up_nothing() {
    let script = check(
        "0000_10_a_1 ConfigMap x/a1 delete
         0000_10_a_2 ConfigMap x/a2
         0000_20_c_1 ConfigMap x/c1",
        Mode::Updating,
        "start => a1
         failed a1 => a2
         applied a2 => c1
         applied c1 =>
         wait 20 => a1
         failed a1 =>
         wait 20 => a1
         failed a1 =>
         wait 20 => a1",
    );
    assert_eq!(script.progress.passes(), 1);
    let problems = script.progress.problems(at(100));
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].effect, None, "no condition but Upgradeable tells of it");
}

#[test]
fn a_deletion_that_was_refused_to_an_earlier_process_is_tried_again() {
    let lines = "0000_10_a_1 ConfigMap x/a1 delete
         0000_10_a_2 ConfigMap x/a2";
    for (mode, done) in [(Mode::Reconciling, vec![]), (Mode::Updating, vec![0])] {
        let mut script = Script::new(lines, mode);
        let key = script.key("a1").1;
        script.progress = script.progress.resume(&done, at(0));
        script.progress.retry_deletions(&BTreeSet::from([key]));
        assert_eq!(script.started(), "a1 a2", "{mode:?}");
        script.handle("failed a1");
        script.handle("applied a2");
        assert_eq!(script.progress.passes(), 1, "{mode:?}");
        assert_eq!(script.started(), "");
        script.handle("wait 20");
        assert_eq!(script.started(), "a1", "{mode:?}");
    }
}

#[test]
fn what_another_step_applies_is_not_deleted_once_its_kind_is_known() {
    let plan = plan("0000_10_a_1 Thing x/t delete\n0000_20_b_1 Thing y/t", Mode::Updating);
    let mut served = world();
    served.serve(kind("Thing"), Scope::Cluster);
    let known = Progress::new(plan.clone(), served, at(0));
    let mut later = Progress::new(plan, world(), at(0));
    later.handle(Event::KindServed(kind("Thing"), Scope::Cluster), at(1));
    for progress in [known, later] {
        let steps = &progress.plan().steps;
        assert!(steps.iter().all(|step| step.manifest.key.namespace.is_empty()));
        assert!(matches!(steps[0].action, Action::Refuse(_)), "{:?}", steps[0].action);
    }
}
