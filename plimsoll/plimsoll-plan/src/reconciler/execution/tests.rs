//! Scripts of what happens to a plan under way, and what is done next.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::Release;
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::Context;
use serde_json::{Value, json};

use super::{ExecutionEffect, ExecutionEvent, Observation, PlanExecution};
use crate::plan::mode::Mode;
use crate::plan::{DELETE, GroupVersionKind, Plan, plan};
use crate::progress::{Deleted, Mark, NamespaceState, Scope, StepOutcome, Trace};
use crate::reconciler::Uptime;
use crate::reconciler::removals::Removals;

const PROFILE: &str = "here";

fn kind(name: &str) -> GroupVersionKind {
    let group = match name {
        "Deployment" => "apps",
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "ClusterOperator" => "config.openshift.io",
        "Thing" => "example.com",
        _ => "",
    };
    GroupVersionKind { group: group.to_owned(), version: "v1".to_owned(), kind: name.to_owned() }
}

fn scope(name: &str) -> Scope {
    match name {
        "Namespace" | "CustomResourceDefinition" | "ClusterOperator" => Scope::Cluster,
        _ => Scope::Namespaced,
    }
}

/// `KIND/NAME`, deleted if it ends with `-`; file names follow the order of the list.
fn manifest(index: usize, word: &str) -> Manifest {
    let (kind_name, name) = word.split_once('/').expect("KIND/NAME");
    let (name, is_deleted) = match name.strip_suffix('-') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let GroupVersionKind { group, version, .. } = kind(kind_name);
    let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
    let mut annotations = json!({ format!("include.release.openshift.io/{PROFILE}"): "true" });
    if is_deleted {
        annotations[DELETE] = "true".into();
    }
    let mut metadata = json!({ "name": name, "annotations": annotations });
    if scope(kind_name) == Scope::Namespaced {
        metadata["namespace"] = "x".into();
    }
    let versions = json!({ "versions": [{ "name": "operator", "version": "1.1.0" }] });
    let object = json!({
        "apiVersion": api_version, "kind": kind_name, "metadata": metadata, "status": versions,
    });
    Manifest::read(format!("0000_{index:02}_a_{name}.yaml").into(), 0, &object).expect("a manifest")
}

fn planned(words: &str, mode: Mode) -> Arc<Plan> {
    let manifests: Vec<Manifest> =
        words.split_whitespace().enumerate().map(|(index, word)| manifest(index, word)).collect();
    let release = Release { version: "1.1.0".to_owned(), ..Release::default() };
    Arc::new(plan(&manifests, &Context::new(PROFILE, ""), release, mode))
}

fn operator(conditions: &str) -> Value {
    let conditions: Vec<Value> = conditions
        .split(',')
        .filter_map(|condition| condition.split_once('='))
        .map(|(type_, status)| {
            json!({ "type": type_, "status": status, "reason": "R", "message": "M",
                    "lastTransitionTime": "2026-01-01T00:00:00Z" })
        })
        .collect();
    json!({ "metadata": { "name": "dns" }, "status": {
        "versions": [{ "name": "operator", "version": "1.1.0" }], "conditions": conditions,
    } })
}

struct Script {
    execution: PlanExecution,
    revision: u64,
    milliseconds: u64,
}

impl Script {
    fn now(&self) -> (Timestamp, Uptime) {
        let elapsed = Duration::from_millis(self.milliseconds);
        let time = SignedDuration::try_from(elapsed).expect("a short time");
        (Timestamp::UNIX_EPOCH + time, Uptime::from_start(elapsed))
    }

    fn key(&self, name: &str) -> (usize, ObjectKey) {
        let steps = &self.execution.progress().plan().steps;
        let index = steps.iter().position(|it| it.manifest.key.name == name).expect("a step");
        (index, steps[index].manifest.key.clone())
    }

    fn event(&mut self, line: &str) -> ExecutionEvent {
        self.revision += 1;
        let revision = self.revision;
        let ours = |digest| Mark::new(revision, Trace::Ours(digest));
        let words: Vec<&str> = line.split_whitespace().collect();
        let object = |key, mark| {
            ExecutionEvent::Observed(Observation::Object {
                key,
                mark,
                health: None,
                terminating: None,
            })
        };
        match words.as_slice() {
            ["applied", name] => {
                ExecutionEvent::Executed(self.key(name).0, StepOutcome::Applied(ours(1)))
            }
            ["deleted", name] => {
                ExecutionEvent::Executed(self.key(name).0, StepOutcome::Deleted(Deleted::Gone))
            }
            ["changed", name] => object(self.key(name).1, ours(2)),
            ["vanished", name] => object(self.key(name).1, Mark::new(revision, Trace::Gone)),
            ["namespaces"] => {
                ExecutionEvent::Observed(Observation::Listed(GroupKind::new("", "Namespace")))
            }
            ["namespace", name] => ExecutionEvent::Observed(Observation::Namespace {
                name: (*name).to_owned(),
                state: Some(NamespaceState::Active),
            }),
            ["operator", "gone"] => ExecutionEvent::Observed(Observation::Operator {
                name: "dns".to_owned(),
                revision,
                object: None,
            }),
            ["operator", conditions] => ExecutionEvent::Observed(Observation::Operator {
                name: "dns".to_owned(),
                revision,
                object: Some(operator(conditions)),
            }),
            ["definition", group] => ExecutionEvent::Observed(Observation::Definition {
                group: (*group).to_owned(),
                plural: "things".to_owned(),
            }),
            ["discovered", group, kinds @ ..] => ExecutionEvent::Discovered(
                ((*group).to_owned(), "v1".to_owned()),
                kinds.iter().map(|it| (kind(it), scope(it))).collect(),
            ),
            other => panic!("no such line: {other:?}"),
        }
    }

    /// Handles a line; what is to be done then.
    fn handle(&mut self, line: &str) -> Option<String> {
        let (now, uptime) = self.now();
        let effects = match line.split_once(' ').unwrap_or((line, "")) {
            ("start", _) => self.execution.start_due(now),
            ("sweep", _) => self.execution.sweep(now),
            ("hold", _) => {
                self.execution.hold();
                return None;
            }
            ("release", _) => {
                self.execution.release();
                return None;
            }
            ("wait", milliseconds) => {
                self.milliseconds += milliseconds.parse::<u64>().expect("milliseconds");
                return None;
            }
            ("discover", _) => {
                let next = self.execution.next_discovery(uptime);
                return Some(format!("discover {}", next.map_or("-".to_owned(), |it| it.0)));
            }
            ("mode", _) => return Some(self.execution.progress().mode().to_string()),
            ("drifted", _) => {
                let drifted = self.execution.take_drifted();
                let drifted = drifted
                    .iter()
                    .map(|it| format!("{}{}", if it.is_deleted { "-" } else { "~" }, it.key.name));
                return Some(format!("drifted {}", drifted.collect::<Vec<_>>().join(" ")));
            }
            _ => {
                let event = self.event(line);
                self.execution.handle(event, now, uptime)
            }
        };
        let steps = self.execution.progress().plan().steps.clone();
        let effects: Vec<String> = effects
            .iter()
            .map(|effect| match effect {
                ExecutionEffect::Execute { step, fills_related_objects } => {
                    let mark = if *fills_related_objects { "+" } else { "" };
                    format!("{}{mark}", steps[*step].manifest.key.name)
                }
                ExecutionEffect::Watch(watch) => format!("watch:{}", watch.kind.kind),
            })
            .collect();
        Some(effects.join(" "))
    }
}

/// Begins a plan on a cluster that serves all kinds but Thing and has namespace `x`, and compares
/// the effects of each line, lines without any left out.
#[track_caller]
fn check(mode: Mode, objects: &str, script: &str, expected: &str) {
    let served = ["Namespace", "CustomResourceDefinition", "ClusterOperator", "ConfigMap"];
    let served = served.iter().chain(&["Deployment"]).map(|it| (kind(it), scope(it)));
    let (execution, _) = PlanExecution::new(
        planned(objects, mode),
        served,
        Removals::default(),
        Timestamp::UNIX_EPOCH,
    );
    let mut run = Script { execution, revision: 100, milliseconds: 0 };
    run.handle("namespace x");
    run.handle("namespaces");
    let outputs: Vec<String> = script
        .split("; ")
        .filter_map(|line| run.handle(line))
        .filter(|effects| !effects.is_empty())
        .collect();
    assert_eq!(outputs.join("; "), expected, "{script}");
}

#[test]
fn nothing_starts_while_the_plan_is_held() {
    let check = |script: &str, expected: &str| {
        let served = [(kind("ConfigMap"), Scope::Namespaced), (kind("Namespace"), Scope::Cluster)];
        let plan = planned("ConfigMap/a", Mode::Updating);
        let now = Timestamp::UNIX_EPOCH;
        let (execution, _) = PlanExecution::new(plan, served, Removals::default(), now);
        let mut run = Script { execution, revision: 0, milliseconds: 0 };
        let outputs: Vec<String> = script.split("; ").filter_map(|it| run.handle(it)).collect();
        assert_eq!(outputs.join(";"), expected, "{script}");
    };
    check("hold; start; namespace x; namespaces", ";;");
    check("hold; namespace x; namespaces; release; start", ";;a");
    check("namespace x", "a");
}

#[test]
fn the_related_objects_of_any_new_cluster_operator_are_filled_in() {
    let check = |versions: Value, script: &str, expected: &str| {
        let object = json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": { "name": "dns" }, "status": { "versions": versions },
        });
        let manifest = Manifest::read("bundle".into(), 0, &object).expect("a manifest");
        let plan = Arc::new(Plan::in_stages(&[vec![manifest]], Release::default()));
        let served = [(kind("ClusterOperator"), Scope::Cluster)];
        let now = Timestamp::UNIX_EPOCH;
        let (execution, _) = PlanExecution::new(plan, served, Removals::default(), now);
        let mut run = Script { execution, revision: 0, milliseconds: 0 };
        let outputs: Vec<String> = script.split("; ").filter_map(|it| run.handle(it)).collect();
        assert_eq!(outputs.join(";"), expected, "{script}");
    };
    // A gate, and an object like others.
    for versions in [json!([{ "name": "operator", "version": "1.1.0" }]), json!([])] {
        check(versions.clone(), "start", "dns+");
        check(versions, "hold; operator Available=True; release; start", ";dns");
    }
}

#[test]
fn steps_follow_each_other_while_updating() {
    let (mode, objects) = (Mode::Updating, "ConfigMap/a ConfigMap/b");
    check(mode, objects, "applied a", "b");
    check(mode, objects, "applied a; applied b; mode", "b; watch:ConfigMap; Reconciling");
}

#[test]
fn a_namespace_that_was_just_applied_takes_objects() {
    let objects = "Namespace/y ConfigMap/a";
    check(Mode::Updating, objects, "applied y", "a");
}

#[test]
fn drift_is_repaired_and_reported_once() {
    let (mode, objects) = (Mode::Updating, "ConfigMap/a");
    let done = "applied a; ";
    check(mode, objects, &format!("{done}drifted"), "watch:ConfigMap; drifted ");
    check(
        mode,
        objects,
        &format!("{done}changed a; drifted; drifted"),
        "watch:ConfigMap; a; drifted ~a; drifted ",
    );
    check(mode, objects, &format!("{done}vanished a; drifted"), "watch:ConfigMap; a; drifted -a");
    check(mode, objects, "changed a; applied a; drifted", "watch:ConfigMap; drifted ");
    // What a sweep reverts is repaired as well.
    let swept = format!("{done}sweep; changed a; applied a; drifted");
    check(mode, objects, &swept, "watch:ConfigMap; a; drifted ~a");
}

#[test]
fn a_sweep_applies_everything_once_more() {
    let objects = "ConfigMap/a ConfigMap/b";
    check(
        Mode::Updating,
        objects,
        "applied a; applied b; sweep; drifted",
        "b; watch:ConfigMap; b a; drifted ",
    );
}

#[test]
fn related_objects_are_filled_in_for_operators_that_no_watch_has_shown() {
    let (mode, objects) = (Mode::Updating, "ConfigMap/a ClusterOperator/dns");
    check(mode, objects, "applied a", "dns+");
    check(mode, objects, "operator Available=True; applied a", "dns");
    check(mode, objects, "operator Available=True; operator gone; applied a", "dns+");
}

#[test]
fn operators_are_judged_anew_when_the_plan_is_complete() {
    let (mode, objects) = (Mode::Initializing, "ClusterOperator/dns");
    check(mode, objects, "applied dns; mode", "Initializing");
    check(
        mode,
        objects,
        "operator Available=True,Degraded=False; applied dns; mode",
        "Reconciling",
    );
    check(mode, objects, "operator Available=False; applied dns; mode", "Initializing");
    check(
        mode,
        objects,
        "applied dns; operator Available=True,Degraded=False; mode",
        "Reconciling",
    );
}

#[test]
fn a_kind_that_is_not_served_is_discovered() {
    let (mode, objects) = (Mode::Updating, "ConfigMap/a Thing/t");
    check(mode, "ConfigMap/a", "applied a; wait 50; discover", "watch:ConfigMap; discover -");
    check(mode, objects, "applied a; wait 19; discover", "watch:ConfigMap; discover -");
    check(mode, objects, "applied a; wait 20; discover", "watch:ConfigMap; discover example.com");
    check(
        mode,
        objects,
        "applied a; wait 20; discover; discovered example.com; wait 40; discover",
        "watch:ConfigMap; discover example.com; discover example.com",
    );
    check(
        mode,
        objects,
        "applied a; wait 20; discover; discovered example.com Thing; wait 99; discover",
        "watch:ConfigMap; discover example.com; watch:Thing t; discover -",
    );
    check(
        mode,
        objects,
        "applied a; wait 20; discover; discovered example.com; definition example.com; wait 20; \
         discover",
        "watch:ConfigMap; discover example.com; discover example.com",
    );
}

#[test]
fn executions_are_counted() {
    let served = [(kind("ConfigMap"), Scope::Namespaced), (kind("Namespace"), Scope::Cluster)];
    let plan = planned("ConfigMap/a ConfigMap/b-", Mode::Updating);
    let now = Timestamp::UNIX_EPOCH;
    let (execution, _) = PlanExecution::new(plan, served, Removals::default(), now);
    let mut run = Script { execution, revision: 0, milliseconds: 0 };
    for line in ["namespace x", "namespaces", "applied a", "deleted b"] {
        run.handle(line);
    }
    let executions = &run.execution.counters().executions;
    assert_eq!(executions[&("apply", "success")], 1);
    assert_eq!(executions[&("delete", "success")], 1);
    assert_eq!(run.execution.removals().tracker().deletions().count(), 1);
}

#[test]
fn another_plan_takes_over_what_is_known() {
    let served = || ["Namespace", "ClusterOperator", "ConfigMap"].map(|it| (kind(it), scope(it)));
    let now = Timestamp::UNIX_EPOCH;
    let first = planned("ConfigMap/a ClusterOperator/dns", Mode::Updating);
    let (execution, _) = PlanExecution::new(first, served(), Removals::default(), now);
    let mut before = Script { execution, revision: 0, milliseconds: 0 };
    for line in
        ["namespace x", "namespaces", "applied a", "operator Available=True,Upgradeable=False"]
    {
        before.handle(line);
    }
    let next = planned("ConfigMap/a ClusterOperator/dns ConfigMap/b", Mode::Updating);
    let (mut after, watches) = PlanExecution::new(next, served(), Removals::default(), now);
    assert!(!watches.is_empty());
    after.succeed(&mut before.execution, now);
    assert!(after.progress().is_done(0), "what is done and unchanged stays done");
    assert!(!after.progress().is_done(2));
    assert_eq!(after.operators().objections().len(), 1);
    assert_eq!(after.counters().executions[&("apply", "success")], 1);
}
