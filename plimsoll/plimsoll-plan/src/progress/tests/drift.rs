//! Drift: what is repaired, confirmed or applied once more.

use plimsoll_api::GroupKind;

use super::{at, check, plan, world};
use crate::plan::mode::Mode;
use crate::progress::{Event, Mark, Progress, Trace};

#[test]
fn a_write_that_leaves_the_trace_of_ours_in_the_same_second_is_found() {
    // Whoever wrote last within the second, the trace is the same: only another write tells.
    check(
        "0000_10_a_1 ConfigMap x/a
         0000_20_b_1 ConfigMap x/b",
        Mode::Updating,
        "start => a
         applied a => b
         applied b =>
         untouched a =>
         wait 1 => a
         applied a =>
         untouched a =>
         wait 60 =>",
    );
    // What is done meanwhile does not wait for it.
    check(
        "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ConfigMap x/b
         0000_20_c_1 ConfigMap x/c",
        Mode::Updating,
        "start => a
         applied a => b
         untouched a =>
         applied b => c",
    );
    // A status changes no generation; a client that scales a Deployment changes nothing of ours.
    check(
        "0000_10_a_1 Deployment x/d",
        Mode::Reconciling,
        "start => d
         applied d =>
         untouched d =>
         wait 60 =>
         scaled d => d
         applied d =>
         scaled d =>
         wait 60 =>",
    );
}

#[test]
fn drift_is_repaired_at_once_and_a_fight_slows_down() {
    check(
        "0000_10_a_1 ConfigMap x/a",
        Mode::Initializing,
        "start => a
         applied a =>
         untouched a =>
         changed a => a
         applied a =>
         foreign a => a
         applied a =>
         gone a => a
         applied a =>
         changed a =>
         wait 1 => a",
    );
}

#[test]
fn what_a_watch_shows_of_the_time_before_a_write_is_no_drift() {
    let mut script = check(
        "0000_10_a_1 ConfigMap x/a",
        Mode::Initializing,
        "start => a
         applied a =>",
    );
    let old = Mark::new(50, Trace::Foreign);
    let key = script.key("a").1;
    script.progress.handle(Event::Observed { key, mark: old }, at(0));
    assert_eq!(script.started(), "");
}

#[test]
fn a_sweep_applies_everything_once_more_and_progress_does_not_fall() {
    let script = check(
        "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ConfigMap x/b",
        Mode::Initializing,
        "start => a b
         applied a =>
         applied b =>
         sweep => a b",
    );
    assert_eq!(script.progress.done(), [0, 1]);
}

#[test]
fn what_a_list_shows_as_before_our_write_is_applied_again() {
    let plan = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ConfigMap x/b
         0000_10_a_3 ConfigMap x/c";
    let applied = "start => a b c
         applied a =>
         applied b =>
         applied c =>";
    // Nothing is expected of a list that began before the writes.
    check(plan, Mode::Initializing, &format!("{applied}\nolder a =>\nlisted ConfigMap =>"));
    let script = format!(
        "{applied}
         expected ConfigMap =>
         untouched a =>
         older b =>
         listed ConfigMap => b c
         applied b =>
         applied c =>
         listed ConfigMap =>"
    );
    let script = check(plan, Mode::Initializing, &script);
    assert!(!script.progress.is_rolled_back());
}

#[test]
fn what_an_older_list_lacks_is_there_once_a_watch_shows_it_again() {
    check(
        "0000_10_a_1 ConfigMap x/a",
        Mode::Initializing,
        "start => a
         applied a =>
         missing a => a
         same a =>
         kept a =>
         wait 60 =>
         missing a => a
         kept a => a",
    );
}

#[test]
fn each_change_that_is_reverted_is_counted_once() {
    let repairs = |script: &str| {
        let script = format!("start => a\napplied a =>\n{script}");
        check("0000_10_a_1 ConfigMap x/a", Mode::Initializing, &script).progress.repairs()
    };
    assert_eq!(repairs("sweep => a\napplied a =>"), 0);
    assert_eq!(repairs("changed a => a\nchanged a =>\napplied a =>"), 1);
    assert_eq!(repairs("changed a => a\napplied a =>\nchanged a => a"), 2);
    // It is written for another reason.
    assert_eq!(repairs("sweep => a\nchanged a =>\napplied a =>"), 1);
    assert_eq!(repairs("sweep => a\nuntouched a =>\napplied a =>"), 0);
    assert_eq!(repairs("sweep => a\nfailed a =>\nchanged a =>\nwait 60 => a\napplied a =>"), 1);
    assert_eq!(repairs("sweep => a\nfailed a =>\ngone a =>\nchanged a =>\nwait 60 => a"), 1);
}

#[test]
fn a_change_that_a_watch_shows_after_it_was_reverted_is_counted() {
    for (trace, expected) in [(Trace::Ours(2), 1), (Trace::Ours(1), 0)] {
        let script = "start => a\napplied a =>\nsweep => a";
        let mut script = check("0000_10_a_1 ConfigMap x/a", Mode::Initializing, script);
        script.revision += 1;
        let mark = Mark::new(script.revision, trace);
        script.handle("applied a");
        let key = script.key("a").1;
        for _ in 0..2 {
            script.progress.handle(Event::Observed { key: key.clone(), mark }, at(0));
        }
        assert_eq!(script.started(), "");
        assert_eq!(script.progress.repairs(), expected, "{trace:?}");
    }
}

#[test]
fn what_is_deleted_between_two_plans_is_counted_as_repaired() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ConfigMap x/b";
    let script = "start => a b\napplied a =>\napplied b =>";
    let old = check(lines, Mode::Initializing, script);
    let mut next = Progress::new(plan(lines, Mode::Initializing), world(), at(0));
    next = next.succeed(&old.progress, at(0));
    let key = old.key("a").1;
    let mark = Mark::new(101, Trace::Ours(1));
    next.handle(Event::Observed { key, mark }, at(0));
    next.handle(Event::Listed(GroupKind::new("", "ConfigMap")), at(0));
    assert_eq!((next.start(at(0)), next.repairs()), (vec![1], 1));
    // What an earlier process recorded and nothing has shown is applied, and no drift.
    let recorded = Progress::new(plan(lines, Mode::Initializing), world(), at(0));
    let mut recorded = recorded.resume(&[0, 1], at(0));
    recorded.handle(Event::Listed(GroupKind::new("", "ConfigMap")), at(0));
    assert_eq!((recorded.start(at(0)), recorded.repairs()), (vec![0, 1], 0));
}
