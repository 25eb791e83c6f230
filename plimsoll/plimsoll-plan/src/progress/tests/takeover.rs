//! Takeover: what counts of a record, and of the plan before.

use plimsoll_api::{Effect, Reason, Verdict};

use super::{Script, at, check, plan, world};
use crate::plan::mode::Mode;
use crate::progress::pause::Pause;
use crate::progress::{Event, Progress};

#[test]
fn a_record_that_a_cluster_contradicts_counts_for_nothing() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ClusterOperator alpha
         0000_20_b_1 ConfigMap x/b
         0000_20_b_2 ClusterOperator beta";
    let updating = Verdict::Waiting {
        effect: Effect::None,
        reason: Reason::ClusterOperatorUpdating,
        message: "m".to_owned(),
    };
    let mut script = Script::new(lines, Mode::Updating);
    script.progress = script.progress.resume(&[0, 1, 2, 3], at(0));
    assert_eq!(script.progress.done().len(), 4, "as recorded");
    assert_eq!(script.progress.passes(), 0);
    assert_eq!(script.started(), "alpha");
    let (key, revision) = (script.key("alpha").1, 1);
    script.progress.handle(Event::Health { key, revision, verdict: updating }, at(0));
    assert_eq!(script.started(), "");
    // The operator is behind: the plan begins anew.
    script.handle("applied alpha");
    assert_eq!(script.started(), "a");
    assert_eq!(script.progress.done(), [] as [usize; 0]);
    for (event, expected) in
        [("applied a", ""), ("healthy alpha", "b beta"), ("applied b", ""), ("applied beta", "")]
    {
        script.handle(event);
        assert_eq!(script.started(), expected, "after `{event}`");
    }
    assert_eq!(script.progress.passes(), 0);
    script.handle("healthy beta");
    assert_eq!(script.progress.passes(), 1);
}

#[test]
fn what_was_taken_up_is_applied_once_more_when_all_gates_have_passed() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ClusterOperator alpha
         0000_20_b_1 ConfigMap x/b";
    let mut script = Script::new(lines, Mode::Updating);
    script.progress = script.progress.resume(&[0, 1], at(0));
    for (event, expected) in [
        ("start", "alpha"),
        ("applied alpha", ""),
        // It has reached the release and is not well now: it was passed before.
        ("sick alpha", "b"),
        ("applied b", "a"),
    ] {
        script.handle(event);
        assert_eq!(script.started(), expected, "after `{event}`");
    }
    assert_eq!(script.progress.passes(), 1);
    assert_eq!(script.progress.done(), [0, 1, 2]);
}

#[test]
fn a_later_process_goes_on_where_the_earlier_one_was() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ConfigMap x/b
         0000_20_a_1 ConfigMap x/c";
    let progress =
        Progress::new(plan(lines, Mode::Updating), world(), at(0)).resume(&[0, 1], at(0));
    let mut script = Script { progress, clock: 0, revision: 100 };
    assert_eq!(script.started(), "c");
    // What the earlier process did is checked by the watches: `a` is there, `b` is not.
    script.handle("untouched a");
    assert_eq!(script.started(), "");
    script.handle("listed ConfigMap");
    assert_eq!(script.started(), "b");
    assert_eq!(script.progress.done(), [0, 1]);
}

#[test]
fn the_next_plan_leaves_alone_what_is_unchanged() {
    let old = check(
        "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ConfigMap x/b",
        Mode::Initializing,
        "start => a b
         applied a =>
         applied b =>",
    );
    let next = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ConfigMap x/b changed";
    let progress =
        Progress::new(plan(next, Mode::Updating), world(), at(0)).succeed(&old.progress, at(0));
    let mut script = Script { progress, clock: 0, revision: 200 };
    assert_eq!(script.started(), "b");
    // It was deleted between the watches of one plan and of the next.
    script.handle("listed ConfigMap");
    assert_eq!(script.started(), "a");
}

#[test]
fn another_plan_of_the_same_release_finds_no_less_done() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ClusterOperator o
         0000_20_b_1 ConfigMap x/b";
    let old = check(
        lines,
        Mode::Updating,
        "start => a o
         applied a =>
         applied o =>
         healthy o => b
         changed a => a",
    );
    assert_eq!(old.progress.done(), [0, 1]);
    let progress =
        Progress::new(plan(lines, Mode::Updating), world(), at(0)).succeed(&old.progress, at(0));
    assert_eq!(progress.done(), [0, 1]);
    // A record of the same steps, which is never newer than what this process knows, changes nothing.
    for progress in [progress.clone(), progress.resume(&[0, 1], at(0))] {
        let mut script = Script { progress, clock: 0, revision: 200 };
        assert_eq!(script.started(), "a b", "what is being put right is put right all the same");
    }
}

#[test]
fn another_plan_takes_over_what_was_deleted_and_has_not_come_back() {
    let lines = "0000_10_a_1 ConfigMap x/a delete
         0000_20_b_1 ConfigMap x/b";
    let deleted = |answer: &str, after: &str| {
        let script = format!("start => a\nuntouched a =>\n{answer} a => b\n{after}");
        let old = check(lines, Mode::Updating, &script);
        let next = Progress::new(plan(lines, Mode::Updating), world(), at(0));
        next.succeed(&old.progress, at(0)).is_done(0)
    };
    for (answer, after, is_done) in [
        ("absent", "", true),
        ("absent", "gone a =>", true),
        ("deleted", "", true),
        ("deleted", "going a =>", true),
        ("absent", "foreign a =>", false),
    ] {
        assert_eq!(deleted(answer, after), is_done, "{answer}, then {after:?}");
    }
}

#[test]
fn what_is_recorded_and_not_confirmed_yet_counts_for_pauses_and_for_another_plan() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ClusterOperator o
         0000_20_b_1 ConfigMap x/b";
    let mut old = Progress::new(plan(lines, Mode::Updating), world(), at(0)).resume(&[0, 1], at(0));
    old.set_pause(Some(Pause::Before(20)), at(0));
    assert_eq!(old.paused_at(), Some(20), "although the operator has not confirmed it");
    let mut next = Progress::new(plan(lines, Mode::Updating), world(), at(0));
    next.set_pause(Some(Pause::Before(20)), at(0));
    let next = next.succeed(&old, at(0));
    assert_eq!((next.done(), next.paused_at()), (vec![0, 1], Some(20)));
    let mut script = Script { progress: next, clock: 0, revision: 200 };
    assert_eq!(script.started(), "o");
    script.handle("applied o");
    script.handle("sick o");
    assert_eq!(script.progress.done(), [0, 1], "it reports the release, and is sick since");
}

#[test]
fn what_was_taken_up_is_applied_once_more_while_its_operator_does_not_report_the_release() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 ClusterOperator o
         0000_20_b_1 ConfigMap x/b";
    let progress = Progress::new(plan(lines, Mode::Updating), world(), at(0)).resume(&[0], at(0));
    let mut script = Script { progress, clock: 0, revision: 100 };
    assert_eq!(script.started(), "o");
    script.handle("applied o");
    assert_eq!(script.started(), "", "it is not known yet what the operator reports");
    script.handle("sick o");
    assert_eq!(script.started(), "a", "the record may be that of a server that is gone");
    assert_eq!(script.progress.done(), [0]);
    script.handle("applied a");
    assert_eq!(script.started(), "");
    script.handle("healthy o");
    assert_eq!(script.started(), "b");
}

#[test]
fn an_object_is_ours_if_its_watch_shows_it_so() {
    let is_ours = |script: &str| {
        let script = format!("start => a\napplied a =>\n{script}");
        let script = check("0000_10_a_1 ConfigMap x/a", Mode::Initializing, &script);
        script.progress.is_shown_as_ours(0)
    };
    assert!(!is_ours(""), "nothing has shown it");
    assert!(is_ours("untouched a =>"));
    assert!(is_ours("changed a => a"));
    assert!(!is_ours("foreign a => a"), "another owner has applied it");
    assert!(!is_ours("gone a => a"));
    assert!(!is_ours("going a =>"));
    let interrupted = "untouched a =>\nexpected ConfigMap =>";
    assert!(!is_ours(interrupted), "it may have changed since");
    assert!(is_ours(&format!("{interrupted}\nlisted ConfigMap =>")));
    let script = "start => a\nchanged a =>";
    let deletion = check("0000_10_a_1 ConfigMap x/a delete", Mode::Updating, script);
    assert!(!deletion.progress.is_shown_as_ours(0));
}
