//! Scripts of requests, of what the release loader finds, and of its commands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{ClusterVersionStatus, Update, UpdateHistory, UpdateState};
use plimsoll_api::olm::window::{MaintenanceWindowSpec, WindowExclusion, WindowTimes};
use plimsoll_api::olm::{BundleReference, OperatorStatus, PlatformRequirements};
use plimsoll_content::Payload;
use plimsoll_content::payload::{ReleaseHeader, ReleaseInfo};

use super::{LoadCommand, LoadEvent, UpdateContext, UpdateRequests, architecture, go_architecture};
use crate::plan::mode::Mode;
use crate::reconciler::Uptime;
use crate::reconciler::desired::DesiredState;
use crate::reconciler::execution::PlanExecution;
use crate::reconciler::testing::{at, desired, execution, image, payload, requesting};
use crate::update::acceptance::Verification;
use crate::update::acknowledge::{ACKS, GATES};
use crate::update::operators::OperatorsOnPlatform;
use crate::windows::{MaintenanceWindows, NamedWindow};

/// The releases of a store: versions that updates from 4.3.2 lead to.
fn heads(versions: &str) -> Vec<ReleaseHeader> {
    let head = |version: &str| ReleaseHeader {
        image: image(version),
        release: ReleaseInfo {
            version: version.to_owned(),
            channels: vec!["stable".to_owned()],
            next: versions.split_whitespace().map(str::to_owned).collect(),
            previous: vec!["4.3.2".to_owned()],
            ..ReleaseInfo::default()
        },
    };
    versions.split_whitespace().chain(["4.3.2"]).map(head).collect()
}

#[test]
fn an_update_under_way_offers_what_leads_on_from_the_release_before() {
    let head = |version: &str| ReleaseHeader {
        image: image(version),
        release: ReleaseInfo {
            version: version.to_owned(),
            channels: vec!["stable".to_owned()],
            previous: vec!["4.3.1".to_owned()],
            ..ReleaseInfo::default()
        },
    };
    let mut script = Script::new(Some(""), Mode::Updating, "");
    let listed = LoadEvent::Listed(Ok(vec![head("4.3.2"), head("4.3.3")]));
    script.with_context(|requests, context| requests.handle(listed, context));
    let entry = |state, version: &str| UpdateHistory {
        state,
        started_time: at(0),
        completion_time: None,
        version: version.to_owned(),
        image: image(version),
        verified: false,
        accepted_risks: String::new(),
    };
    let mut check = |state, is_changed: bool, expected: &str| {
        let history = [entry(state, "4.3.2"), entry(UpdateState::Completed, "4.3.1")];
        assert_eq!(script.requests.history_changed(&history, &script.desired), is_changed);
        assert_eq!(script.handle("available").as_deref(), Some(expected));
    };
    check(UpdateState::Completed, false, "[]");
    check(UpdateState::Partial, true, "[4.3.3]");
    check(UpdateState::Partial, false, "[4.3.3]");
    check(UpdateState::Completed, true, "[]");
}

struct Script {
    requests: UpdateRequests,
    desired: DesiredState,
    execution: PlanExecution,
    milliseconds: u64,
    ticket: u64,
}

impl Script {
    fn new(store: Option<&str>, mode: Mode, applied: &str) -> Self {
        Self::with("a", store, mode, applied)
    }

    /// Starts with a release of some objects.
    fn with(objects: &str, store: Option<&str>, mode: Mode, applied: &str) -> Self {
        let mut spec = requesting("");
        spec.channel = "stable".to_owned();
        let desired = desired(payload("4.3.2", objects), spec, "");
        let execution = execution(&desired, mode, applied);
        let requests = UpdateRequests::new(
            &desired,
            store.map(heads),
            OperatorsOnPlatform::default(),
            "amd64",
            Uptime::default(),
        );
        Self { requests, desired, execution, milliseconds: 0, ticket: 0 }
    }

    fn with_context<T>(
        &mut self,
        call: impl FnOnce(&mut UpdateRequests, &UpdateContext<'_>) -> T,
    ) -> T {
        let elapsed = Duration::from_millis(self.milliseconds);
        let history = UpdateHistory {
            state: UpdateState::Completed,
            started_time: at(0),
            completion_time: Some(at(0)),
            version: "4.3.2".to_owned(),
            image: image("4.3.2"),
            verified: false,
            accepted_risks: String::new(),
        };
        let status =
            ClusterVersionStatus { history: vec![history], ..ClusterVersionStatus::default() };
        let context = UpdateContext {
            desired: &self.desired,
            execution: &self.execution,
            status: &status,
            now: at(0) + SignedDuration::try_from(elapsed).expect("a short time"),
            uptime: Uptime::from_start(elapsed),
        };
        call(&mut self.requests, &context)
    }

    /// Requests a release by its version, by its image, or by that with force, or withdraws the request.
    fn request(&mut self, verb: &str, version: &str) {
        let mut spec = self.desired.spec().clone();
        spec.desired_update = (verb != "clear").then(|| Update {
            architecture: String::new(),
            version: version.to_owned(),
            image: if verb == "request" { String::new() } else { image(version) },
            force: verb == "force",
            accept_risks: Vec::new(),
        });
        self.desired.cluster_version_changed(spec, None, &[]);
        self.requests.refresh(&self.desired);
    }

    /// Executes a line and returns the command of the loader.
    fn handle(&mut self, line: &str) -> Option<String> {
        let (verb, version) = line.split_once(' ').unwrap_or((line, ""));
        let ticket = self.ticket;
        let event = match verb {
            "request" | "image" | "force" | "clear" => {
                self.request(verb, version);
                return None;
            }
            "wait" => {
                self.milliseconds += version.parse::<u64>().expect("milliseconds");
                return None;
            }
            "touch" => {
                self.requests.touch();
                return None;
            }
            "gate" | "ack" => {
                let name = if verb == "gate" { GATES.name } else { ACKS.name };
                let value = if verb == "gate" { "read the notes" } else { "true" };
                let data = BTreeMap::from([("ack-4.3-kube".to_owned(), value.to_owned())]);
                let (desired, uptime) = (&self.desired, self.uptime());
                self.requests.config_map_changed(name, Some(data), desired, uptime);
                return None;
            }
            "operator" => {
                let mut operators = OperatorsOnPlatform::default();
                operators.observed("lamp", Some(&operator_up_to(version)));
                self.requests.operators_changed(operators, &self.desired, self.uptime());
                return None;
            }
            "forbidden" => {
                let operators = OperatorsOnPlatform::unknown("WHY");
                self.requests.operators_changed(operators, &self.desired, self.uptime());
                return None;
            }
            "window" => {
                self.desired.maintenance_window_changed(Some(version.to_owned()));
                self.requests.refresh(&self.desired);
                return None;
            }
            "unknown" => {
                let windows = Arc::new(MaintenanceWindows::unknown("WHY"));
                self.requests.windows_changed(windows, self.uptime());
                return None;
            }
            "never" => {
                let windows = Arc::new(nights(Timestamp::MAX.duration_since(at(0))));
                self.requests.windows_changed(windows, self.uptime());
                return None;
            }
            "closed" => {
                let until: i64 = version.parse().expect("milliseconds");
                let windows = Arc::new(nights(SignedDuration::from_millis(A_DAY + until)));
                self.requests.windows_changed(windows, self.uptime());
                return None;
            }
            "opens" => {
                let opens = self.requests.opens_at();
                return Some(
                    opens.map_or("-".to_owned(), |it| (it.as_millisecond() - A_DAY).to_string()),
                );
            }
            "available" => {
                let available = self.requests.updates().available.clone().unwrap_or_default();
                let versions: Vec<&str> = available.iter().map(|it| it.version.as_str()).collect();
                return Some(format!("[{}]", versions.join(" ")));
            }
            "condition" => {
                let (status, reason, _) = self.requests.load().condition();
                return Some(format!("{status:?} {reason}"));
            }
            "consider" => {
                let command = self.with_context(|requests, context| requests.consider(context));
                return Some(self.shown(&command));
            }
            "listed" => LoadEvent::Listed(Ok(heads(version))),
            "unlisted" => LoadEvent::Listed(Err("WHY".to_owned())),
            "retrieved" => LoadEvent::Retrieved(ticket, Ok(Verification::NotSigned)),
            "unverified" => {
                LoadEvent::Retrieved(ticket, Ok(Verification::Failed("WHY".to_owned())))
            }
            "lost" => LoadEvent::Retrieved(ticket, Err("WHY".to_owned())),
            "late" => LoadEvent::Retrieved(ticket - 1, Ok(Verification::NotSigned)),
            "loaded" => LoadEvent::Loaded(ticket, Ok(payload(version, "a"))),
            "declared" => {
                let mut payload = Payload::clone(&payload(version, "a"));
                payload.release.previous = vec!["4.3.2".to_owned()];
                LoadEvent::Loaded(ticket, Ok(Arc::new(payload)))
            }
            "broken" => LoadEvent::Loaded(ticket, Err("WHY".to_owned())),
            other => panic!("no such verb: {other}"),
        };
        let (command, _) = self.with_context(|requests, context| requests.handle(event, context));
        Some(self.shown(&command))
    }

    fn uptime(&self) -> Uptime {
        Uptime::from_start(Duration::from_millis(self.milliseconds))
    }

    fn shown(&mut self, command: &LoadCommand) -> String {
        let version = |image: &str| image.rsplit(':').next().unwrap_or_default().to_owned();
        match command {
            LoadCommand::Nothing => "-".to_owned(),
            LoadCommand::Cancel => "cancel".to_owned(),
            LoadCommand::Retrieve { ticket, image } => {
                self.ticket = *ticket;
                format!("retrieve {}", version(image))
            }
            LoadCommand::Load { image, .. } => format!("load {}", version(image)),
            LoadCommand::Apply(accepted) => {
                let risks = if accepted.accepted_risks.is_empty() { "" } else { " with risks" };
                format!("apply {}{risks}", accepted.payload.release.version)
            }
        }
    }
}

/// The milliseconds of a day.
const A_DAY: i64 = 86_400_000;

/// The MaintenanceWindow `nights`, which is open from this time after the start on.
fn nights(closed: SignedDuration) -> MaintenanceWindows {
    let spec = MaintenanceWindowSpec {
        windows: vec![WindowTimes {
            schedule: "0 0 * * *".to_owned(),
            duration: "24h".to_owned(),
            ..WindowTimes::default()
        }],
        exclusions: vec![WindowExclusion {
            from: at(-1),
            until: at(0) + closed,
            ..WindowExclusion::default()
        }],
    };
    [NamedWindow { name: "nights".to_owned(), spec }].into_iter().collect()
}

/// The status of an Operator that runs on a version of OpenShift at most.
fn operator_up_to(version: &str) -> OperatorStatus {
    let bundle = BundleReference { version: "1.0.0".to_owned(), ..BundleReference::default() };
    let platform = PlatformRequirements {
        max_openshift_version: version.to_owned(),
        ..PlatformRequirements::default()
    };
    OperatorStatus { bundle: Some(bundle), platform: Some(platform), ..OperatorStatus::default() }
}

#[track_caller]
fn check_with(mut run: Script, script: &str, expected: &str) {
    let outputs: Vec<String> = script.split("; ").filter_map(|line| run.handle(line)).collect();
    assert_eq!(outputs.join("; "), expected, "{script}");
}

/// Runs a script on a cluster that has completed 4.3.2, with a store that has 4.3.3, 4.4.0 and
/// 4.9.0.
#[track_caller]
fn check(script: &str, expected: &str) {
    check_with(Script::new(Some("4.3.3 4.4.0 4.9.0"), Mode::Reconciling, "a"), script, expected);
}

#[test]
fn a_requested_release_is_retrieved_loaded_and_applied() {
    check("consider", "-");
    check("available", "[4.9.0 4.4.0 4.3.3]");
    check("request 4.3.3; consider; consider", "retrieve 4.3.3; -");
    check(
        "request 4.3.3; consider; retrieved; loaded 4.3.3",
        "retrieve 4.3.3; load 4.3.3; apply 4.3.3",
    );
    check(
        "request 4.3.3; consider; condition; retrieved; condition",
        "retrieve 4.3.3; Unknown RetrievePayload; load 4.3.3; Unknown LoadPayload",
    );
}

#[test]
fn a_release_that_is_not_available_is_not_requested() {
    check("request 4.3.9; consider", "-");
    check("request 4.3.2; consider", "-");
}

#[test]
fn a_withdrawn_request_is_cancelled() {
    check("request 4.3.3; consider; clear; consider", "retrieve 4.3.3; cancel");
    check(
        "request 4.3.3; consider; request 4.4.0; consider; late",
        "retrieve 4.3.3; retrieve 4.4.0; -",
    );
    check("request 4.3.3; consider; clear; consider; retrieved", "retrieve 4.3.3; cancel; -");
}

#[test]
fn a_release_that_cannot_be_retrieved_or_loaded_is_retried() {
    let lost = "request 4.3.3; consider; lost; condition; ";
    let shown = "retrieve 4.3.3; -; False RetrievePayload; ";
    check(&format!("{lost}consider; wait 4999; consider"), &format!("{shown}-; -"));
    check(&format!("{lost}wait 5000; consider"), &format!("{shown}retrieve 4.3.3"));
    check(
        "request 4.3.3; consider; retrieved; broken; condition; wait 5000; consider",
        "retrieve 4.3.3; load 4.3.3; -; False LoadPayload; retrieve 4.3.3",
    );
    check(
        "request 4.3.3; consider; unverified; condition",
        "retrieve 4.3.3; -; False RetrievePayload",
    );
}

#[test]
fn another_version_than_the_requested_one_is_rejected() {
    check(
        "request 4.3.3; consider; retrieved; loaded 4.3.4; condition",
        "retrieve 4.3.3; load 4.3.3; -; False VerifyPayloadVersion",
    );
}

#[test]
fn preconditions_are_checked_again_once_a_second() {
    let held = "gate; request 4.4.0; consider; retrieved; loaded 4.4.0; condition; ";
    let shown = "retrieve 4.4.0; load 4.4.0; -; False PreconditionChecks; ";
    check(&format!("{held}consider; wait 999; ack; consider"), &format!("{shown}-; apply 4.4.0"));
    check(
        &format!("{held}consider; wait 500; consider; wait 500; consider"),
        &format!("{shown}-; -; -"),
    );
}

#[test]
fn an_operator_that_does_not_run_on_it_holds_up_another_minor_version() {
    let held = "operator 4.3; request 4.4.0; consider; retrieved; loaded 4.4.0; condition; ";
    let shown = "retrieve 4.4.0; load 4.4.0; -; False PreconditionChecks; ";
    check(&format!("{held}consider; operator 4.4; consider"), &format!("{shown}-; apply 4.4.0"));
    check(
        "operator 4.3; force 4.4.0; consider; retrieved; loaded 4.4.0",
        "retrieve 4.4.0; load 4.4.0; apply 4.4.0 with risks",
    );
    check(
        "operator 4.3; request 4.3.3; consider; retrieved; loaded 4.3.3",
        "retrieve 4.3.3; load 4.3.3; apply 4.3.3",
    );
}

#[test]
fn operators_that_may_not_be_listed_hold_up_any_release_unless_forced() {
    for version in ["4.3.3", "4.4.0"] {
        check(
            &format!(
                "forbidden; request {version}; consider; retrieved; loaded {version}; condition; \
                 consider; operator 4.4; consider"
            ),
            &format!(
                "retrieve {version}; load {version}; -; False PreconditionChecks; -; apply {version}"
            ),
        );
        check(
            &format!("forbidden; force {version}; consider; retrieved; loaded {version}"),
            &format!("retrieve {version}; load {version}; apply {version} with risks"),
        );
    }
}

#[test]
fn an_update_begins_when_its_maintenance_window_opens() {
    let check = |script: &str, expected: &str| {
        // No window opens before the second day.
        check(&format!("wait {A_DAY}; {script}"), expected);
    };
    let held =
        "window nights; closed 1500; request 4.3.3; consider; retrieved; loaded 4.3.3; condition; ";
    let shown = "retrieve 4.3.3; load 4.3.3; -; False MaintenanceWindowClosed; ";
    // Not only when it is looked at once a second.
    check(
        &format!(
            "{held}opens; consider; wait 1000; consider; wait 499; consider; wait 1; consider"
        ),
        &format!("{shown}1500; -; -; -; apply 4.3.3"),
    );
    // The window is changed, or another one is named, or none.
    check(
        &format!("{held}consider; closed 0; consider; opens"),
        &format!("{shown}-; apply 4.3.3; -"),
    );
    check(&format!("{held}window; consider"), &format!("{shown}apply 4.3.3"));
    check(
        &format!("{held}window days; consider; opens; wait 1500; consider"),
        &format!("{shown}-; -; -"),
    );
    check(
        "window nights; closed 0; request 4.3.3; consider; retrieved; loaded 4.3.3",
        "retrieve 4.3.3; load 4.3.3; apply 4.3.3",
    );
    // One that never opens, or does not exist, does not begin by itself.
    check(
        "window nights; never; request 4.3.3; consider; retrieved; loaded 4.3.3; condition; opens",
        "retrieve 4.3.3; load 4.3.3; -; False PreconditionChecks; -",
    );
    check(
        "window days; closed 0; request 4.3.3; consider; retrieved; loaded 4.3.3; condition",
        "retrieve 4.3.3; load 4.3.3; -; False PreconditionChecks",
    );
    // What else is in the way stays in the way.
    check(
        "window nights; closed 1500; gate; request 4.4.0; consider; retrieved; loaded 4.4.0; condition; wait 1500; \
         consider; condition; opens; ack; consider",
        "retrieve 4.4.0; load 4.4.0; -; False PreconditionChecks; -; False PreconditionChecks; -; apply 4.4.0",
    );
    check(
        "window nights; closed 1500; force 4.3.3; consider; retrieved; loaded 4.3.3",
        "retrieve 4.3.3; load 4.3.3; apply 4.3.3 with risks",
    );
    check(
        "window nights; unknown; request 4.3.3; consider; retrieved; loaded 4.3.3; opens; closed 0; consider",
        "retrieve 4.3.3; load 4.3.3; -; -; apply 4.3.3",
    );
    // Without a name, no window counts.
    check(
        "unknown; request 4.3.3; consider; retrieved; loaded 4.3.3",
        "retrieve 4.3.3; load 4.3.3; apply 4.3.3",
    );
}

#[test]
fn the_graph_decides_what_may_follow() {
    check(
        "request 4.9.0; consider; retrieved; loaded 4.9.0",
        "retrieve 4.9.0; load 4.9.0; apply 4.9.0",
    );
    let updating = || Script::new(Some("4.3.3"), Mode::Updating, "");
    let held = "image 4.4.0; consider; retrieved; loaded 4.4.0; condition";
    let shown = "retrieve 4.4.0; load 4.4.0; -; False PreconditionChecks";
    check_with(updating(), held, shown);
    // The risk is that the store does not offer it.
    let declared = "image 4.4.0; consider; retrieved; declared 4.4.0";
    check_with(updating(), declared, "retrieve 4.4.0; load 4.4.0; apply 4.4.0 with risks");
    let offered = || Script::new(Some("4.4.0"), Mode::Updating, "a");
    let listed = "request 4.4.0; consider; retrieved; loaded 4.4.0";
    check_with(offered(), listed, "retrieve 4.4.0; load 4.4.0; apply 4.4.0");
}

#[test]
fn a_forced_release_is_applied_with_its_risks() {
    check(
        "gate; request 4.9.0; consider; retrieved; loaded 4.9.0; condition",
        "retrieve 4.9.0; load 4.9.0; -; False PreconditionChecks",
    );
    check(
        "gate; force 4.9.0; consider; retrieved; loaded 4.9.0",
        "retrieve 4.9.0; load 4.9.0; apply 4.9.0 with risks",
    );
    check(
        "force 4.3.3; consider; unverified; loaded 4.3.3",
        "retrieve 4.3.3; load 4.3.3; apply 4.3.3 with risks",
    );
}

#[test]
fn a_release_of_another_product_is_rejected_unless_forced() {
    let objects = "a b c d e f g h i j k l";
    let run = || Script::with(objects, Some("4.3.3"), Mode::Reconciling, objects);
    let mut rejected = run();
    let retrieved = ["request 4.3.3", "consider", "retrieved", "loaded 4.3.3"];
    let outputs: Vec<String> =
        retrieved.into_iter().filter_map(|line| rejected.handle(line)).collect();
    assert_eq!(outputs, ["retrieve 4.3.3", "load 4.3.3", "-"]);
    let failure = rejected.requests.load().failure.clone().unwrap_or_default();
    let reason = "Precondition \"ClusterVersionOtherProduct\" failed because of \"OtherProduct\": release \
                  4.3.3 is of another product: of the 12 objects that release 4.3.2 applied to this \
                  cluster it has 1";
    assert_eq!(failure, reason);
    check_with(
        run(),
        "force 4.3.3; consider; retrieved; loaded 4.3.3",
        "retrieve 4.3.3; load 4.3.3; apply 4.3.3 with risks",
    );
}

#[test]
fn a_first_installation_is_completed_before_another_release_is_begun() {
    let run = |applied: &str| Script::new(Some("4.3.3"), Mode::Initializing, applied);
    check_with(run(""), "request 4.3.3; consider", "-");
    check_with(run("a"), "request 4.3.3; consider", "retrieve 4.3.3");
}

#[test]
fn without_a_store_nothing_can_be_requested() {
    let run = || Script::new(None, Mode::Reconciling, "a");
    check_with(run(), "available; request 4.3.3; consider", "[]; -");
    check_with(run(), "force 4.3.3; consider; condition", "-; False RetrievePayload");
}

#[test]
fn the_available_updates_follow_the_store() {
    check("listed 4.3.3; available", "-; [4.3.3]");
    check("unlisted; available", "-; [4.9.0 4.4.0 4.3.3]");
    check("unlisted; request 4.3.3; consider", "-; retrieve 4.3.3");
    check("request 4.3.5; consider; listed 4.3.5; consider", "-; -; retrieve 4.3.5");
}

#[test]
fn architectures_are_named_as_in_go() {
    for (rust, go) in
        [("x86_64", "amd64"), ("aarch64", "arm64"), ("powerpc64", "ppc64le"), ("s390x", "s390x")]
    {
        assert_eq!(go_architecture(rust), go);
    }
    let mut payload = (*payload("1.0.0", "")).clone();
    assert_eq!(architecture(&payload, "amd64"), "amd64");
    payload.release.architecture = "Multi".to_owned();
    assert_eq!(architecture(&payload, "amd64"), "Multi");
}
