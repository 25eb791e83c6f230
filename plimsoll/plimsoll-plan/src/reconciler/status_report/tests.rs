//! When statuses are computed and written, and what the cluster is known to have.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{
    ClusterVersionSpec, ClusterVersionStatus, Release, UpdateHistory, UpdateState,
};
use plimsoll_api::progress::{CapabilitiesProgress, Orphan, ReleaseProgressStatus};
use plimsoll_api::{ObjectKey, Reason};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::Context;
use serde_json::json;

use super::{StatusContext, StatusReport, StatusWrite};
use crate::capabilities::Capabilities;
use crate::plan::mode::Mode;
use crate::plan::{GroupVersionKind, plan};
use crate::progress::{
    Event, Mark, NamespaceState, Progress, Scope, StepOutcome, Trace, Transience, TryError, World,
};
use crate::reconciler::Uptime;
use crate::reconciler::cluster_operators::UnhealthyOperators;
use crate::reconciler::counters::StepCounts;
use crate::reconciler::removals::Removals;
use crate::spec::overrides::Overrides;
use crate::status::{Limits, Updates};
use crate::update::acceptance::{LoadStatus, LoadStep};

fn release(version: &str) -> Release {
    Release {
        version: version.to_owned(),
        image: format!("registry/release@sha256:{version}"),
        ..Release::default()
    }
}

fn names(list: &str) -> BTreeSet<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// A plan of two ConfigMaps, `a` and `b`, on a cluster that takes them.
fn progress() -> Progress {
    let manifest = |name: &str| {
        let annotations = json!({ "include.release.openshift.io/here": "true" });
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "x", "annotations": annotations },
        });
        Manifest::read(format!("0000_10_a_{name}.yaml").into(), 0, &object).expect("a manifest")
    };
    let manifests = ["a", "b"].map(manifest);
    let plan = plan(&manifests, &Context::new("here", ""), release("1.1.0"), Mode::Initializing);
    let mut world = World::default();
    let kind = GroupVersionKind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
    };
    world.serve(kind, Scope::Namespaced);
    world.set_namespace("x", Some(NamespaceState::Active));
    let mut progress = Progress::new(Arc::new(plan), world, Timestamp::UNIX_EPOCH);
    progress.start(Timestamp::UNIX_EPOCH);
    progress
}

/// A report with all that it is computed from.
struct Script {
    report: StatusReport,
    progress: Progress,
    capabilities: Capabilities,
    unreadable_spec: Option<&'static str>,
    milliseconds: u64,
}

impl Script {
    fn new(recorded: &ReleaseProgressStatus) -> Self {
        let status = ClusterVersionStatus::default();
        let report = StatusReport::new(status, recorded, Uptime::default());
        let capabilities = Capabilities::default();
        let unreadable_spec = None;
        Self { report, progress: progress(), capabilities, unreadable_spec, milliseconds: 0 }
    }

    fn uptime(&self) -> Uptime {
        Uptime::from_start(Duration::from_millis(self.milliseconds))
    }

    /// Calls one of the methods that need a context.
    fn with_context<T>(
        &mut self,
        call: impl FnOnce(&mut StatusReport, &StatusContext<'_>, Uptime) -> T,
    ) -> T {
        let uptime = self.uptime();
        let elapsed = SignedDuration::try_from(uptime.since_start()).expect("a short time");
        let release = release("1.1.0");
        let load = LoadStatus {
            step: LoadStep::Loaded,
            version: release.version.clone(),
            image: release.image.clone(),
            architecture: "amd64".to_owned(),
            failure: None,
        };
        let context = StatusContext {
            progress: &self.progress,
            release: &release,
            spec: &ClusterVersionSpec::default(),
            generation: 1,
            unreadable_spec: self.unreadable_spec,
            annotations: &[],
            capabilities: &self.capabilities,
            implied: &[],
            objections: Vec::new(),
            load: &load,
            updates: &Updates::default(),
            verified: false,
            accepted_risks: "",
            unhealthy: UnhealthyOperators::default(),
            feature_set: None,
            removals: &Removals::default(),
            overrides: &Overrides::default(),
            begun: None,
            limits: &Limits::default(),
            now: Timestamp::UNIX_EPOCH + elapsed,
            steady_now: Timestamp::UNIX_EPOCH + elapsed,
        };
        call(&mut self.report, &context, uptime)
    }

    /// Hands the outcome of a step to the progress, which the report is then computed from.
    fn executed(&mut self, name: &str, outcome: StepOutcome, now: Timestamp) {
        let steps = &self.progress.plan().steps;
        let step = steps.iter().position(|it| it.manifest.key.name == name).expect("a step");
        self.progress.handle(Event::Executed { step, outcome }, now);
        self.report.touch();
    }

    /// Carries out a line; what it shows.
    fn handle(&mut self, line: &str) -> Option<String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let uptime = self.uptime();
        match verb {
            "wait" => self.milliseconds += rest.parse::<u64>().expect("milliseconds"),
            "touch" => self.report.touch(),
            "definition" => self.report.definition_changed(uptime),
            "failed" => self.report.write_failed(self.uptime()),
            "superseded" => self.report.superseded(),
            "written" => self.report.write_succeeded(Some(names(rest)), uptime),
            "applied" => {
                let outcome = StepOutcome::Applied(Mark::new(1, Trace::Ours(1)));
                self.executed(rest, outcome, Timestamp::UNIX_EPOCH);
            }
            "fails" => {
                let outcome = StepOutcome::Failed(TryError {
                    reason: Reason::UpdatePayloadFailed,
                    cause: "no".to_owned(),
                    transience: Transience::Lasting,
                    retry_after: None,
                });
                let elapsed = SignedDuration::try_from(uptime.since_start()).expect("short");
                self.executed(rest, outcome, Timestamp::UNIX_EPOCH + elapsed);
            }
            "counts" => {
                return Some(self.with_context(|report, context, _| {
                    report.compute(context);
                    let StepCounts { done, pending, waiting, failed } = context.step_counts();
                    let failing =
                        report.status().conditions.iter().find(|it| it.type_ == "Failing");
                    let failing = failing.map_or("", |condition| condition.status.as_str());
                    format!("{done} {pending} {waiting} {failed} {failing}")
                }));
            }
            "enabled" => {
                self.capabilities.enabled = names(rest);
                self.capabilities.known = names(rest);
                self.report.touch();
            }
            "report" => {
                let (conditions, write) =
                    self.with_context(|report, context, uptime| report.report(context, uptime));
                let computed = if conditions.is_some() { "computed" } else { "-" };
                return Some(format!("{computed}{}", shown(write.as_ref())));
            }
            "finish" => {
                let write =
                    self.with_context(|report, context, uptime| report.finish(context, uptime));
                return Some(format!("finished{}", shown(write.as_ref())));
            }
            "next" => {
                let next = self.report.wake_at(uptime).since_start().as_millis();
                return Some(if next >= 1_000_000 { "-".to_owned() } else { next.to_string() });
            }
            "unwritable" => return Some(self.report.is_unwritable(uptime).to_string()),
            "lose" if rest == "progress" => self.report.release_progress_lost(),
            "lose" => self.report.cluster_version_lost(),
            "stale" => return Some(self.report.is_stale().to_string()),
            other => panic!("no such verb: {other}"),
        }
        None
    }
}

fn shown(write: Option<&StatusWrite>) -> String {
    let Some(StatusWrite { release_progress, cluster_version }) = write else {
        return String::new();
    };
    let progress = if release_progress.is_some() { "+progress" } else { "" };
    let version = cluster_version.as_ref().map_or(String::new(), |write| {
        let names: Vec<&str> = write.left_out.iter().map(String::as_str).collect();
        if names.is_empty() {
            "+version".to_owned()
        } else {
            format!("+version-{}", names.join(","))
        }
    });
    format!("{progress}{version}")
}

#[track_caller]
fn check_recorded(recorded: &ReleaseProgressStatus, script: &str, expected: &str) {
    let mut run = Script::new(recorded);
    let outputs: Vec<String> = script.split("; ").filter_map(|line| run.handle(line)).collect();
    assert_eq!(outputs.join("; "), expected, "{script}");
}

#[track_caller]
fn check(script: &str, expected: &str) {
    check_recorded(&ReleaseProgressStatus::default(), script, expected);
}

#[test]
fn the_first_report_is_written_at_once() {
    check("next; report", "0; computed+progress+version");
    check("report; report", "computed+progress+version; -");
    check("report; written; report", "computed+progress+version; -");
}

#[test]
fn a_spec_that_cannot_be_read_is_reported() {
    let mut run = Script::new(&ReleaseProgressStatus::default());
    let invalid = |run: &mut Script| {
        run.with_context(|report, context, _| {
            report.compute(context);
            let conditions = &report.status().conditions;
            let invalid = conditions.iter().find(|it| it.type_ == "Invalid");
            invalid.map(|it| it.message.clone()).unwrap_or_default()
        })
    };
    let unreadable = "spec.channel: WHY; the last spec that could be read stays in force until this is \
                      corrected";
    assert!(!invalid(&mut run).contains(unreadable));
    run.unreadable_spec = Some("spec.channel: WHY");
    let message = invalid(&mut run);
    assert!(message.contains(unreadable), "{message}");
}

#[test]
fn a_burst_of_events_costs_one_computation() {
    check("report; written; touch; next; report", "computed+progress+version; 50; -");
    check("report; written; wait 49; touch; report", "computed+progress+version; -");
    check("report; written; wait 50; touch; report", "computed+progress+version; computed");
}

#[test]
fn numbers_are_written_once_a_second() {
    let first = "report; written; wait 50; applied a; ";
    check(&format!("{first}report; next"), "computed+progress+version; computed; 1000");
    check(
        &format!("{first}report; wait 950; report"),
        "computed+progress+version; computed; computed+progress+version",
    );
}

#[test]
fn a_condition_that_changes_is_written_at_once() {
    check(
        "report; written; wait 50; applied a; applied b; report",
        "computed+progress+version; computed+progress+version",
    );
}

#[test]
fn what_was_deleted_is_written_again_although_nothing_happened() {
    #[track_caller]
    fn check_lost(lost: &str, written: &str) {
        let first = "report; written; wait 1000; report; ";
        let expected = format!("computed+progress+version; computed; 1000; -+{written}");
        check(&format!("{first}lose {lost}; next; report"), &expected);
    }
    check_lost("progress", "progress");
    check_lost("version", "version");
    // Deleted after it was written, and before that was known.
    check(
        "report; lose progress; written; wait 1000; report; written; wait 1000; report",
        "computed+progress+version; computed+progress; computed",
    );
}

#[test]
fn writes_that_fail_for_long_are_reported() {
    let write = "computed+progress+version";
    check("unwritable; report; failed; unwritable", &format!("false; {write}; false"));
    let failing = "report; failed; wait 29999; report; failed; unwritable; wait 1; unwritable";
    check(failing, &format!("{write}; {write}; false; true"));
    check(
        &format!("{failing}; wait 1000; report; written; unwritable"),
        &format!("{write}; {write}; false; true; {write}; false"),
    );
}

#[test]
fn one_write_is_under_way_at_a_time() {
    check(
        "report; wait 50; applied a; applied b; report; next",
        "computed+progress+version; computed; -",
    );
    check(
        "report; wait 50; applied a; applied b; report; written; next",
        "computed+progress+version; computed; 1000",
    );
}

#[test]
fn a_failed_write_is_repeated() {
    check("report; failed; next", "computed+progress+version; 1000");
    check(
        "report; failed; wait 1000; report",
        "computed+progress+version; computed+progress+version",
    );
}

#[test]
fn the_last_status_is_computed_and_written_whatever_the_time() {
    check("finish", "finished+progress+version");
    check("finish; written; finish", "finished+progress+version; finished");
    check(
        "finish; written; applied a; finish",
        "finished+progress+version; finished+progress+version",
    );
}

#[test]
fn time_that_passes_is_reported_while_something_waits() {
    check("report; written; next; wait 999; report", "computed+progress+version; 1000; computed");
    check(
        "report; applied a; applied b; wait 50; report; written; wait 1000; report; written; next",
        "computed+progress+version; computed; -+progress+version; -",
    );
}

#[test]
fn rejected_capabilities_are_left_out_and_retried() {
    let first = "enabled A B; report; written B; ";
    let shown = "computed+progress+version; ";
    check(&format!("{first}stale"), &format!("{shown}true"));
    check(&format!("{first}wait 1000; report"), &format!("{shown}computed+progress"));
    check(
        &format!("{first}wait 1000; applied a; report; written B; stale"),
        &format!("{shown}computed+progress+version-B; false"),
    );
    check(
        &format!("{first}wait 10000; report; written; stale"),
        &format!("{shown}computed+progress+version; true"),
    );
    check(
        &format!("{first}wait 1000; report; written B; definition; wait 1000; report"),
        &format!("{shown}computed+progress; computed+version"),
    );
}

#[test]
fn names_that_an_earlier_process_left_out_are_left_out_at_first() {
    let capabilities =
        CapabilitiesProgress { withheld: vec!["B".to_owned()], ..CapabilitiesProgress::default() };
    let recorded = ReleaseProgressStatus { capabilities, ..ReleaseProgressStatus::default() };
    check_recorded(&recorded, "enabled A B; report", "computed+progress+version-B");
    check_recorded(&recorded, "wait 10000; enabled A B; report", "computed+progress+version");
}

#[test]
fn what_the_cluster_has_is_known_from_what_was_read_and_written() {
    #[track_caller]
    fn check(desired: &str, newest: &str, named: &str, enabled: &str, expected: bool) {
        let history = UpdateHistory {
            state: UpdateState::Partial,
            started_time: Timestamp::UNIX_EPOCH,
            completion_time: None,
            version: newest.to_owned(),
            image: release(newest).image,
            verified: false,
            accepted_risks: String::new(),
        };
        let mut status = ClusterVersionStatus {
            desired: release(desired),
            history: vec![history],
            ..ClusterVersionStatus::default()
        };
        status.capabilities.enabled_capabilities = names(named).into_iter().collect();
        let recorded = ReleaseProgressStatus::default();
        let report = StatusReport::new(status, &recorded, Uptime::default());
        assert_eq!(report.has_written(&release("1.1.0"), &names(enabled)), expected);
    }
    check("1.1.0", "1.1.0", "", "", true);
    check("1.0.0", "1.1.0", "", "", false);
    check("1.1.0", "1.0.0", "", "", false);
    check("1.1.0", "1.1.0", "A B", "A", true);
    check("1.1.0", "1.1.0", "A", "A B", false);
    let none = StatusReport::new(
        ClusterVersionStatus::default(),
        &ReleaseProgressStatus::default(),
        Uptime::default(),
    );
    assert!(none.has_written(&Release::default(), &names("")), "a release without an image");
    assert!(!none.has_written(&Release::default(), &names("A")));
    assert!(!none.has_written(&release("1.1.0"), &names("")));
}

#[test]
fn orphans_are_written_once_the_cluster_lists_the_same() {
    let orphan = |name: &str| {
        let key = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "x".to_owned(),
            name: name.to_owned(),
        };
        Orphan::new(&key, "v1", "a.yaml", "1.0.0", "", Timestamp::UNIX_EPOCH)
    };
    let check = |written: &[Orphan], orphans: &[Orphan], expected: bool| {
        let recorded = ReleaseProgressStatus { orphans: written.to_vec(), ..Default::default() };
        let status = ClusterVersionStatus::default();
        let report = StatusReport::new(status, &recorded, Uptime::default());
        assert_eq!(report.has_written_orphans(orphans), expected);
    };
    check(&[], &[], true);
    check(&[orphan("a")], &[orphan("a")], true);
    check(&[orphan("a")], &[], false);
    check(&[], &[orphan("a")], false);
    check(&[orphan("a")], &[orphan("b")], false);
}

/// Done, pending, waiting and failed steps, and whether the ClusterVersion is failing.
#[test]
fn steps_are_counted_as_the_cluster_version_reports_them() {
    check("counts", "0 2 0 0 False");
    check("applied a; counts", "1 1 0 0 False");
    // A failure that may pass is not yet reported.
    check("fails a; counts", "0 1 1 0 False");
    check("fails a; fails a; fails a; counts", "0 1 0 1 True");
    check("applied b; fails a; fails a; fails a; counts", "1 0 0 1 True");
    check("fails a; fails a; fails a; applied a; counts", "1 1 0 0 False");
    check("applied a; applied b; counts", "2 0 0 0 False");
}

#[test]
fn the_objects_of_the_release_are_recorded_before_they_are_applied() {
    let mut script = Script::new(&ReleaseProgressStatus::default());
    let write = script.with_context(|report, context, uptime| report.finish(context, uptime));
    let progress = write.and_then(|it| it.release_progress).expect("it is written");
    assert_eq!((progress.done, progress.inventory.len()), (0, 1));
    assert_eq!(progress.inventory[0].names, ["a", "b"]);
}
