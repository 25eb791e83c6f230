//! Scripts of what happens to a plan, and what it does next.
//!
//! A script is a list of lines; each is one event and the steps that start after it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::Release;
use plimsoll_api::{Effect, GroupKind, ObjectKey, Reason, Verdict};
use plimsoll_content::Manifest;
use serde_json::json;

use super::{
    Deleted, Event, Mark, NamespaceState, Progress, Scope, StepOutcome, Trace, Transience,
    TryError, World, format_ranges, parse_ranges,
};
use crate::plan::graph::{self, Ordering, Task};
use crate::plan::mode::Mode;
use crate::plan::{Action, GroupVersionKind, Plan, Readiness, Step};

fn kind(kind: &str) -> GroupVersionKind {
    let group = match kind {
        "Deployment" => "apps",
        "Job" => "batch",
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "ClusterOperator" => "config.openshift.io",
        "Thing" => "example.com",
        _ => "",
    };
    GroupVersionKind { group: group.to_owned(), version: "v1".to_owned(), kind: kind.to_owned() }
}

/// `FILE KIND [NAMESPACE/]NAME [delete]`
fn step(line: &str) -> Step {
    let mut words = line.split_whitespace();
    let (file, kind_name, name) =
        (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let GroupVersionKind { group, version, kind: _ } = kind(kind_name);
    let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
    let metadata = json!({ "name": name, "namespace": namespace });
    let object = json!({
        "apiVersion": api_version, "kind": kind_name, "metadata": metadata, "data": { "line": line },
    });
    let readiness = match kind_name {
        "Deployment" | "Job" => Readiness::RolledOut,
        "CustomResourceDefinition" => Readiness::Served,
        "ClusterOperator" => Readiness::Gate,
        _ => Readiness::Applied,
    };
    Step {
        manifest: Manifest::read(file.into(), 0, &object).expect("a manifest"),
        action: match words.next() {
            Some("delete") => Action::Delete,
            _ if kind_name == "ClusterOperator" => Action::Gate,
            _ => Action::Apply,
        },
        serves: if readiness == Readiness::Served { vec![kind("Thing")] } else { Vec::new() },
        readiness,
    }
}

fn plan(lines: &str, mode: Mode) -> Arc<Plan> {
    let steps: Vec<Step> =
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(step).collect();
    let tasks: Vec<Task<'_>> = steps
        .iter()
        .map(|s| Task { file: &s.manifest.file, is_job: s.manifest.key.kind == "Job" })
        .collect();
    let ordering = if mode == Mode::Updating { Ordering::ByLevel } else { Ordering::Flattened };
    Arc::new(Plan {
        release: Release::default(),
        hash: String::new(),
        mode,
        graph: graph::build(&tasks, ordering),
        release_steps: steps.len(),
        steps,
        excluded: Vec::new(),
    })
}

fn world() -> World {
    let mut world = World::default();
    for name in ["Namespace", "ClusterRole", "CustomResourceDefinition", "ClusterOperator"] {
        world.serve(kind(name), Scope::Cluster);
    }
    for name in ["ConfigMap", "Deployment", "Job"] {
        world.serve(kind(name), Scope::Namespaced);
    }
    world.set_namespace("x", Some(NamespaceState::Active));
    world
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

struct Script {
    progress: Progress,
    clock: i64,
    revision: u64,
}

impl Script {
    fn new(lines: &str, mode: Mode) -> Self {
        let progress = Progress::new(plan(lines, mode), world(), at(0));
        Self { progress, clock: 0, revision: 100 }
    }

    fn key(&self, name: &str) -> (usize, ObjectKey) {
        let steps = &self.progress.plan().steps;
        let index = steps.iter().position(|s| s.manifest.key.name == name).unwrap();
        (index, steps[index].manifest.key.clone())
    }

    /// An object at the newest revision; Deployments are of the second generation.
    fn mark(&self, name: &str, trace: Trace) -> Mark {
        let generation = if self.key(name).1.kind == "Deployment" { 2 } else { 0 };
        Mark { generation, ..Mark::new(self.revision, trace) }
    }

    /// Handles one line of a script.
    fn handle(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let now = at(self.clock);
        let event = match words.as_slice() {
            ["start"] => return,
            ["wait", seconds] => {
                self.clock += seconds.parse::<i64>().unwrap();
                return;
            }
            ["applied", name] => {
                self.revision += 1;
                let mark = self.mark(name, Trace::Ours(1));
                Event::Executed { step: self.key(name).0, outcome: StepOutcome::Applied(mark) }
            }
            ["deleted", name] | ["absent", name] => Event::Executed {
                step: self.key(name).0,
                outcome: StepOutcome::Deleted(match words[0] {
                    "deleted" => Deleted::Going,
                    _ => Deleted::Absent,
                }),
            },
            ["scaled", name] => {
                self.revision += 1;
                let mark = self.mark(name, Trace::Ours(1));
                Event::Observed { key: self.key(name).1, mark: Mark { generation: 3, ..mark } }
            }
            ["failed", name] => Event::Executed {
                step: self.key(name).0,
                outcome: StepOutcome::Failed(TryError {
                    reason: Reason::UpdatePayloadResourceInvalid,
                    cause: "no good".to_owned(),
                    transience: Transience::Lasting,
                    retry_after: None,
                }),
            },
            // The server asks for no other try within so many seconds.
            ["busy", name, seconds] => Event::Executed {
                step: self.key(name).0,
                outcome: StepOutcome::Failed(TryError {
                    reason: Reason::UpdatePayloadClusterOverloaded,
                    cause: "busy".to_owned(),
                    transience: Transience::Transient,
                    retry_after: Some(Duration::from_secs(seconds.parse().unwrap())),
                }),
            },
            ["healthy", name] => {
                self.revision += 1;
                let (key, revision) = (self.key(name).1, self.revision);
                Event::Health { key, revision, verdict: Verdict::Ready }
            }
            ["sick", name] => {
                self.revision += 1;
                Event::Health {
                    key: self.key(name).1,
                    revision: self.revision,
                    verdict: Verdict::Waiting {
                        effect: Effect::Fail,
                        reason: Reason::ClusterOperatorNotAvailable,
                        message: "sick".to_owned(),
                    },
                }
            }
            ["changed", name]
            | ["foreign", name]
            | ["untouched", name]
            | ["gone", name]
            | ["going", name] => {
                self.revision += 1;
                let trace = match words[0] {
                    "changed" => Trace::Ours(2),
                    "foreign" => Trace::Foreign,
                    "untouched" | "going" => Trace::Ours(1),
                    _ => Trace::Gone,
                };
                let is_terminating = words[0] == "going";
                let mark = Mark { is_terminating, ..self.mark(name, trace) };
                Event::Observed { key: self.key(name).1, mark }
            }
            // Shown as an earlier write than the last one left it.
            ["older", name] => {
                let (key, mark) = (self.key(name).1, Mark::new(50, Trace::Ours(2)));
                Event::Observed { key, mark }
            }
            ["expected", name] => Event::ListExpected(GroupKind::new("", *name)),
            ["listed", name] => Event::Listed(GroupKind::new("", *name)),
            ["served", name] => Event::KindServed(kind(name), Scope::Cluster),
            ["namespace", name] => {
                Event::Namespace((*name).to_owned(), Some(NamespaceState::Active))
            }
            ["sweep"] => Event::Sweep,
            other => panic!("unknown line {other:?}"),
        };
        self.progress.handle(event, now);
    }

    fn started(&mut self) -> String {
        let started = self.progress.start(at(self.clock));
        let steps = &self.progress.plan().steps;
        let names: Vec<_> = started.iter().map(|&i| steps[i].manifest.key.name.clone()).collect();
        names.join(" ")
    }
}

/// Runs a script of lines `EVENT => STEPS STARTED`.
fn check(plan: &str, mode: Mode, script: &str) -> Script {
    let mut running = Script::new(plan, mode);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (event, expected) = line.split_once("=>").unwrap_or((line, ""));
        running.handle(event.trim());
        assert_eq!(running.started(), expected.trim(), "after `{event}`");
    }
    running
}

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
    use crate::progress::pause::Pause;

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
fn ranges_are_read_as_they_were_written() {
    for (numbers, text) in [(vec![], ""), (vec![3], "3"), (vec![0, 1, 2, 5, 7, 8], "0-2,5,7-8")] {
        assert_eq!(format_ranges(&numbers), text);
        assert_eq!(parse_ranges(text, 100), numbers);
    }
    assert_eq!(parse_ranges("0-99999999999,x,1-", 2), [0, 1]);
}

#[test]
fn a_pause_holds_the_levels_after_it_and_nothing_else() {
    use crate::progress::pause::Pause;

    let plan = "0000_10_a_1 ConfigMap x/a1
                0000_10_a_2 ConfigMap x/a2
                0000_20_b_1 ConfigMap x/b1
                0000_30_c_1 ConfigMap x/c1";
    let run = |pause: Pause, script: &str| {
        let mut running = Script::new(plan, Mode::Updating);
        running.progress.set_pause(Some(pause), at(0));
        let mut reported = Vec::new();
        for line in script.split("; ") {
            match line {
                "on" => running.progress.set_pause(None, at(0)),
                "next" => running.progress.set_pause(Some(Pause::Next), at(0)),
                line => running.handle(line),
            }
            let at_level = running.progress.paused_at();
            reported.push(format!(
                "{}{}",
                running.started(),
                at_level.map_or(String::new(), |level| { format!(" |{level}") })
            ));
        }
        reported.join("; ")
    };
    // Asked for before anything began, the next level is the first one.
    assert_eq!(run(Pause::Next, "start; on; applied a1"), " |10; a1; a2");
    assert_eq!(
        run(Pause::Before(20), "start; applied a1; applied a2; on; applied b1; applied c1"),
        "a1; a2;  |20; b1; c1; "
    );
    // In the midst of a level, that level is finished.
    assert_eq!(
        run(Pause::Before(99), "start; next; applied a1; applied a2; on"),
        "a1; ; a2;  |20; b1"
    );
    // What is done is still kept as it is.
    assert_eq!(
        run(Pause::Before(20), "start; applied a1; applied a2; changed a1; applied a1"),
        "a1; a2;  |20; a1 |20;  |20"
    );
}

#[test]
fn a_pause_means_nothing_but_while_updating() {
    let mut running = Script::new("0000_10_a_1 ConfigMap x/a1", Mode::Initializing);
    running.progress.set_pause(Some(crate::progress::pause::Pause::Before(0)), at(0));
    assert_eq!(running.started(), "a1");
    assert_eq!(running.progress.paused_at(), None);
}

#[test]
fn a_pause_holds_a_level_of_which_something_is_in_place_already() {
    use crate::progress::pause::Pause;

    let lines = "0000_10_a_1 ConfigMap x/a1
                 0000_20_b_1 ConfigMap x/b1
                 0000_20_b_2 ConfigMap x/b2
                 0000_20_c_1 ConfigMap x/c1";
    for pause in [Pause::Before(20), Pause::Before(10)] {
        let progress = Progress::new(plan(lines, Mode::Updating), world(), at(0));
        // As after a restart: of the second level, one chain is done and the other has begun.
        let mut progress = progress.resume(&[0, 1, 3], at(0));
        progress.set_pause(Some(pause), at(0));
        assert_eq!(progress.start(at(0)), [] as [usize; 0]);
        assert_eq!(progress.paused_at(), Some(20));
        progress.set_pause(None, at(0));
        assert_eq!(progress.start(at(0)), [2]);
    }
}

#[test]
fn what_is_due_and_cannot_be_started_yet_wakes_no_loop() {
    let many = super::CONCURRENCY_RECONCILING + 1;
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
