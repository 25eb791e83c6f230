//! Completion: a Job that has completed is done for good, whoever deletes it.

use std::sync::Arc;

use plimsoll_api::progress::CompletedJob;
use plimsoll_api::{Effect, GroupKind, ObjectKey, Reason, Verdict};
use plimsoll_content::Manifest;
use serde_json::json;

use super::{Script, at, check, plan, world};
use crate::plan::mode::Mode;
use crate::plan::{Action, Readiness};
use crate::progress::{Event, Mark, Progress, Scope, StepOutcome, Trace};

const LINES: &str = "0000_10_a_1 Job x/j
     0000_20_b_1 ConfigMap x/c";

impl Script {
    /// Runs lines `EVENT => STEPS STARTED` on.
    fn run(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (event, expected) = line.split_once("=>").unwrap_or((line, ""));
            self.handle(event.trim());
            assert_eq!(self.started(), expected.trim(), "after `{event}`");
        }
    }

    fn list_jobs(&mut self) {
        self.progress.handle(Event::Listed(GroupKind::new("batch", "Job")), at(self.clock));
        assert_eq!(self.started(), "", "after the list of Jobs");
    }
}

#[test]
fn the_deletion_of_a_job_is_drift_until_it_has_completed() {
    for mode in [Mode::Updating, Mode::Initializing] {
        let mut script = check(
            LINES,
            mode,
            "start => j
             applied j =>
             gone j => j
             applied j =>
             healthy j => c
             gone j =>
             applied c =>
             sweep => c
             applied c =>
             sick j =>
             wait 60 =>",
        );
        script.list_jobs();
        assert_eq!(script.progress.repairs(), 1, "{mode:?}");
        assert_eq!((script.progress.done(), script.progress.passes()), (vec![0, 1], 1));
        assert!(script.progress.problems(at(script.clock)).is_empty());
    }
}

#[test]
fn a_job_that_is_deleted_while_its_write_is_under_way_has_completed() {
    // The watch is faster than the answer to the write.
    let mut script = check(LINES, Mode::Updating, "start => j");
    script.revision = 200;
    script.run(
        "healthy j =>
         gone j =>",
    );
    script.revision = 150;
    script.run("applied j => c");
}

#[test]
fn a_job_that_is_created_once_is_created_again_until_it_has_completed() {
    let mut plan = plan(LINES, Mode::Updating);
    let step = &mut Arc::make_mut(&mut plan).steps[0];
    (step.action, step.readiness) = (Action::CreateOnly, Readiness::Applied);
    let progress = Progress::new(plan, world(), at(0));
    let mut script = Script { progress, clock: 0, revision: 100 };
    script.run(
        "start => j
         applied j => c
         gone j => j
         applied j =>
         healthy j =>
         gone j =>",
    );
}

#[test]
fn a_job_on_record_is_not_started_anew_by_a_later_process() {
    for mode in [Mode::Updating, Mode::Initializing, Mode::Reconciling] {
        for is_seen_before in [false, true] {
            let mut script = Script::new(LINES, mode);
            if is_seen_before {
                script.handle("gone j");
            }
            script.progress = script.progress.resume(&[0], at(0));
            assert_eq!(script.started(), "c", "{mode:?}");
            script.list_jobs();
            script.run(
                "gone j =>
                 applied c =>
                 sweep => c",
            );
            assert_eq!((script.progress.done(), script.progress.passes()), (vec![0, 1], 1));
        }
    }
}

#[test]
fn what_a_complete_plan_took_up_is_applied_once_more_but_for_jobs() {
    let lines = "0000_10_a_1 ConfigMap x/a
         0000_10_a_2 Job x/j
         0000_10_a_3 ClusterOperator o";
    let mut script = Script::new(lines, Mode::Updating);
    script.progress = script.progress.resume(&[0, 1], at(0));
    script.run(
        "start => o
         applied o =>
         healthy o => a",
    );
}

#[test]
fn a_job_runs_anew_if_the_cluster_contradicts_the_record() {
    let lines = "0000_10_a_1 Job x/j
         0000_10_a_2 ClusterOperator o";
    let mut script = Script::new(lines, Mode::Updating);
    script.progress = script.progress.resume(&[0, 1], at(0));
    assert_eq!(script.started(), "o");
    let verdict = Verdict::Waiting {
        effect: Effect::None,
        reason: Reason::ClusterOperatorUpdating,
        message: "m".to_owned(),
    };
    let (key, revision) = (script.key("o").1, 1);
    script.progress.handle(Event::Health { key, revision, verdict }, at(0));
    script.run("applied o => j");
}

#[test]
fn the_next_release_runs_a_job_only_if_its_manifest_changed() {
    let old = check(
        LINES,
        Mode::Initializing,
        "start => j
         applied j =>
         healthy j => c
         applied c =>
         gone j =>",
    );
    let next = |lines: &str| {
        let progress = Progress::new(plan(lines, Mode::Updating), world(), at(0));
        Script { progress: progress.succeed(&old.progress, at(0)), clock: 0, revision: 200 }
    };
    let mut same = next(
        "0000_10_a_1 Job x/j
         0000_20_b_1 ConfigMap x/c changed",
    );
    assert_eq!(same.started(), "c");
    same.list_jobs();
    same.run(
        "applied c =>
         gone j =>
         sweep => c",
    );
    // A profile that it names changes nothing of what it does.
    let mut profiled =
        plan("0000_10_a_1 Job x/j\n0000_20_b_1 ConfigMap x/c changed", Mode::Updating);
    let manifest = &mut Arc::make_mut(&mut profiled).steps[0].manifest;
    let mut object = manifest.object();
    object["metadata"]["annotations"] = json!({ "include.release.openshift.io/p": "true" });
    *manifest = Manifest::read(Arc::clone(&manifest.file), 0, &object).expect("a manifest");
    let progress = Progress::new(profiled, world(), at(0)).succeed(&old.progress, at(0));
    assert_eq!(Script { progress, clock: 0, revision: 200 }.started(), "c");
    let mut other = next(
        "0000_10_a_1 Job x/j changed
         0000_20_b_1 ConfigMap x/c",
    );
    assert_eq!(other.started(), "j");
    other.run(
        "applied j =>
         gone j => j",
    );
}

#[test]
fn a_job_that_completed_runs_again_in_no_plan_that_has_it() {
    let old = check(
        LINES,
        Mode::Initializing,
        "start => j
         applied j =>
         healthy j => c
         applied c =>
         gone j =>",
    );
    let record = old.progress.completed_jobs().to_vec();
    assert_eq!((record.len(), record[0].object.name.as_str()), (1, "j"));
    let planned = |lines: &str, mode| Progress::new(plan(lines, mode), world(), at(0));
    // To a release without it, and back.
    let without = planned("0000_20_b_1 ConfigMap x/c", Mode::Updating);
    let without = without.succeed(&old.progress, at(0));
    let back = planned(LINES, Mode::Updating).succeed(&without, at(0));
    let mut script = Script { progress: back, clock: 0, revision: 200 };
    assert_eq!(script.started(), "");
    script.list_jobs();
    assert_eq!(script.progress.completed_jobs(), record);
    // A later process starts with another plan.
    for mode in [Mode::Updating, Mode::Initializing, Mode::Reconciling] {
        let progress = planned(LINES, mode).recall(&record, at(0));
        let mut script = Script { progress, clock: 0, revision: 200 };
        assert_eq!(script.started(), "c", "{mode:?}");
        script.list_jobs();
        script.run("applied c =>\n gone j =>\n sweep => c");
    }
    // Another manifest of the object is another Job, and what it was before counts no more.
    let changed = "0000_10_a_1 Job x/j changed\n0000_20_b_1 ConfigMap x/c";
    let progress = planned(changed, Mode::Updating).recall(&record, at(0));
    let mut script = Script { progress, clock: 0, revision: 200 };
    assert_eq!(script.started(), "j");
    script.run("applied j =>");
    assert!(script.progress.completed_jobs().is_empty());
    let back = planned(LINES, Mode::Updating).succeed(&script.progress, at(0));
    assert_eq!(Script { progress: back, clock: 0, revision: 300 }.started(), "j");
}

#[test]
fn a_job_on_record_does_not_run_while_its_operator_does_not_report_the_release() {
    let lines = "0000_10_a_1 Job x/j
         0000_10_a_2 ClusterOperator o";
    let mut script = Script::new(lines, Mode::Updating);
    script.progress = script.progress.resume(&[0], at(0));
    script.run(
        "start => o
         applied o =>
         sick o =>",
    );
    assert_eq!(script.progress.completed_jobs().len(), 1);
}

#[test]
fn the_oldest_jobs_of_earlier_releases_are_forgotten() {
    let job = |number: usize| CompletedJob {
        object: ObjectKey {
            group: "batch".to_owned(),
            kind: "Job".to_owned(),
            namespace: "x".to_owned(),
            name: format!("j{number}"),
        },
        manifest_hash: String::new(),
    };
    let jobs: Vec<CompletedJob> = (0..150).map(job).collect();
    let progress = Progress::new(plan("0000_10_a_1 Job x/j0", Mode::Updating), world(), at(0));
    let progress = progress.recall(&jobs, at(0));
    let names = progress.completed_jobs().iter().map(|it| it.object.name.as_str());
    let names: Vec<&str> = names.collect();
    // The plan has the first one.
    assert_eq!((names.len(), &names[..2], names[100]), (101, &["j0", "j50"][..], "j149"));
}

#[test]
fn a_step_that_a_later_one_of_its_object_replaces_is_done_for_good() {
    let lines = "0000_10_a_1 CustomResourceDefinition d
         0000_20_b_1 ConfigMap x/c
         0000_30_c_1 CustomResourceDefinition d";
    let mut plan = plan(lines, Mode::Updating);
    Arc::make_mut(&mut plan).steps[0].is_repeated = true;
    let mut world = world();
    world.serve(super::kind("Thing"), Scope::Cluster);
    let mut progress = Progress::new(plan, world, at(0));
    let applied = |step, revision| Event::Executed {
        step,
        outcome: StepOutcome::Applied(Mark::new(revision, Trace::Ours(revision))),
    };
    let changed = |progress: &Progress, revision| Event::Observed {
        key: progress.plan().steps[0].manifest.key.clone(),
        mark: Mark::new(revision, Trace::Ours(revision)),
    };
    assert_eq!(progress.start(at(0)), [0]);
    progress.handle(applied(0, 1), at(0));
    // Until it is replaced, its drift is repaired, and what replaces it waits for that.
    assert_eq!(progress.start(at(0)), [1]);
    progress.handle(changed(&progress, 2), at(1));
    assert_eq!(progress.start(at(1)), [0]);
    progress.handle(applied(1, 3), at(1));
    assert!(progress.start(at(1)).is_empty());
    progress.handle(applied(0, 4), at(1));
    assert_eq!(progress.start(at(1)), [2]);
    progress.handle(applied(2, 5), at(2));
    progress.handle(changed(&progress, 5), at(2));
    assert!(progress.start(at(2)).is_empty());
    assert_eq!((progress.passes(), progress.repairs()), (1, 1));
    progress.handle(changed(&progress, 6), at(3));
    assert_eq!(progress.start(at(3)), [2]);
    progress.handle(applied(2, 7), at(3));
    progress.handle(Event::Sweep, at(9));
    assert_eq!(progress.start(at(9)), [2, 1]);
}
