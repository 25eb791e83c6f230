//! Scripts of what happens to a plan, and what it does next.
//!
//! A script is a list of lines; each is one event and the steps that start after it.

mod chains;
mod completion;
mod deletion;
mod drift;
mod migration;
mod pausing;
mod problem;
mod ranges;
mod schedule;
mod takeover;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::Release;
use plimsoll_api::{Effect, GroupKind, ObjectKey, Reason, Verdict};
use plimsoll_content::Manifest;
use serde_json::json;

use super::{
    Deleted, Event, Mark, NamespaceState, Progress, Scope, StepOutcome, Trace, Transience,
    TryError, World,
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
        is_repeated: false,
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
            [verb @ ("applied" | "kept" | "deleted" | "absent" | "failed"), name] => {
                let outcome = self.outcome(verb, name);
                Event::Executed { step: self.key(name).0, outcome }
            }
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
            [verb @ ("healthy" | "sick"), name] => {
                self.revision += 1;
                let (key, revision) = (self.key(name).1, self.revision);
                Event::Health { key, revision, verdict: verdict(verb) }
            }
            ["expected", name] => Event::ListExpected(GroupKind::new("", *name)),
            ["listed", name] => Event::Listed(GroupKind::new("", *name)),
            ["served", name] => Event::KindServed(kind(name), Scope::Cluster),
            ["namespace", name] => {
                Event::Namespace((*name).to_owned(), Some(NamespaceState::Active))
            }
            ["sweep"] => Event::Sweep,
            [verb, name] => {
                let mark = self.observation(verb, name);
                Event::Observed { key: self.key(name).1, mark }
            }
            other => panic!("unknown line {other:?}"),
        };
        self.progress.handle(event, now);
    }

    /// Returns how the execution of a step went; a write leaves a new revision, unless it changes nothing.
    fn outcome(&mut self, verb: &str, name: &str) -> StepOutcome {
        match verb {
            "applied" => {
                self.revision += 1;
                StepOutcome::Applied(self.mark(name, Trace::Ours(1)))
            }
            "kept" => StepOutcome::Applied(self.mark(name, Trace::Ours(1))),
            "deleted" => StepOutcome::Deleted(Deleted::Going),
            "absent" => StepOutcome::Deleted(Deleted::Absent),
            _ => StepOutcome::Failed(TryError {
                reason: Reason::UpdatePayloadResourceInvalid,
                cause: "no good".to_owned(),
                transience: Transience::Lasting,
                retry_after: None,
            }),
        }
    }

    /// Returns what a watch shows of an object, at a new revision unless it is older or the same again.
    fn observation(&mut self, verb: &str, name: &str) -> Mark {
        if verb == "older" {
            // Shown as an earlier write than the last one left it.
            return Mark::new(50, Trace::Ours(2));
        }
        match verb {
            "missing" => return Mark::new(self.revision + 1, Trace::Gone),
            "same" => return self.mark(name, Trace::Ours(1)),
            _ => self.revision += 1,
        }
        let trace = match verb {
            "changed" => Trace::Ours(2),
            "foreign" => Trace::Foreign,
            "untouched" | "going" | "scaled" => Trace::Ours(1),
            "gone" => Trace::Gone,
            other => panic!("no such verb: {other}"),
        };
        let mark = self.mark(name, trace);
        match verb {
            "scaled" => Mark { generation: 3, ..mark },
            "going" => Mark { is_terminating: true, ..mark },
            _ => mark,
        }
    }

    fn started(&mut self) -> String {
        let started = self.progress.start(at(self.clock));
        let steps = &self.progress.plan().steps;
        let names: Vec<_> = started.iter().map(|&i| steps[i].manifest.key.name.clone()).collect();
        names.join(" ")
    }
}

/// Returns the verdict on a gate that is healthy or sick.
fn verdict(health: &str) -> Verdict {
    match health {
        "healthy" => Verdict::Ready,
        _ => Verdict::Waiting {
            effect: Effect::Fail,
            reason: Reason::ClusterOperatorNotAvailable,
            message: "sick".to_owned(),
        },
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
