//! Scripts of events and what follows from them. Times are seconds since the start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::config::{ClusterOperatorStatus, OperandVersion};
use serde_json::json;

use super::{ClusterEvent, Simulator, SimulatorAction};
use crate::simulated_operators::faults::Faults;
use crate::simulated_operators::roles::{OperatorRole, ReleaseRole, Roles};
use crate::simulated_operators::template_fingerprint::TemplateFingerprint;

const DELAY: u64 = 5;

fn key() -> ObjectKey {
    ObjectKey {
        group: "apps".into(),
        kind: "Deployment".into(),
        namespace: "crane".into(),
        name: "crane".into(),
    }
}

fn template(image: &str) -> TemplateFingerprint {
    let container = json!({ "name": "crane", "image": image });
    TemplateFingerprint::of(
        &json!({ "spec": { "template": { "spec": { "containers": [container] } } } }),
    )
}

fn versions(version: &str) -> Vec<OperandVersion> {
    vec![OperandVersion { name: "operator".into(), version: version.into() }]
}

/// Releases 1.0.0, 1.1.0, … whose Deployment `crane` has these images; without images the operator
/// has no Deployment.
fn roles(images: &[&str], has_deployment: bool) -> Roles {
    let mut roles = Roles::default();
    let mut role = OperatorRole(BTreeMap::new());
    for (release, image) in images.iter().enumerate() {
        let version = format!("1.{release}.0");
        let workloads = has_deployment
            .then(|| (key(), template(image)))
            .into_iter()
            .collect::<BTreeMap<_, _>>();
        role.0.insert(
            release,
            ReleaseRole { versions: versions(&version), related_objects: Vec::new(), workloads },
        );
        roles.releases.push(version);
    }
    roles.operators.insert("crane".into(), role);
    roles.namespaces = BTreeSet::from(["operand".to_owned()]);
    roles
}

/// A simulation under way.
struct Simulation {
    simulator: Simulator,
    log: Vec<String>,
    now: u64,
}

impl Simulation {
    fn new(roles: Roles, faults: &str) -> Self {
        let faults = Faults::parse(faults).unwrap().operators;
        let simulator = Simulator::new(roles, faults, Duration::from_secs(DELAY));
        Self { simulator, log: Vec::new(), now: 0 }
    }

    /// Both lists have been seen: no ClusterOperator but those reported before, and this version
    /// desired.
    fn listed(&mut self, operators: &[&str], desired: &str) {
        let names = operators.iter().map(|&name| name.to_owned()).collect();
        self.at(0, ClusterEvent::OperatorsListed(names));
        self.at(0, ClusterEvent::Desired(Some(desired.to_owned())));
    }

    fn deployment(&mut self, second: u64, image: &str, rolled_out: bool) {
        self.at(
            second,
            ClusterEvent::Workload { key: key(), template: template(image), rolled_out },
        );
    }

    fn at(&mut self, second: u64, event: ClusterEvent) {
        self.pass(second);
        self.simulator.observe(event, Duration::from_secs(second));
        self.wait(second);
    }

    /// Does what is due, with a server that accepts everything at once.
    fn wait(&mut self, second: u64) {
        let now = Duration::from_secs(second);
        self.now = second;
        loop {
            let actions = self.simulator.actions(now, Timestamp::UNIX_EPOCH);
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.log.push(format!("{second}s {}", summary(&action)));
                if let SimulatorAction::Report { name, status, .. } = action {
                    self.simulator
                        .observe(ClusterEvent::Reported { name, status: Some(status) }, now);
                }
            }
        }
    }

    /// Lets time pass, stopping wherever something is due.
    fn pass(&mut self, to: u64) {
        let next_due =
            |simulation: &Self| simulation.simulator.next_due(Duration::from_secs(simulation.now));
        while let Some(due) = next_due(self).filter(|due| due.as_secs() <= to) {
            self.wait(due.as_secs());
        }
    }

    fn check(&self, expected: &[&str]) {
        assert_eq!(self.log, expected);
    }
}

/// `create? version Available/Progressing/Degraded/Upgradeable` with T and F.
fn summary(action: &SimulatorAction) -> String {
    let SimulatorAction::Report { create, status, .. } = action else {
        return "create fixtures".to_owned();
    };
    let version = status.versions.first().map_or("none", |it| it.version.as_str());
    let letters: String = status.conditions.iter().map(|it| &it.status.as_str()[..1]).collect();
    format!("{}{version} {letters}", if *create { "create " } else { "" })
}

fn reports(version: &str) -> ClusterEvent {
    let status = ClusterOperatorStatus { versions: versions(version), ..Default::default() };
    ClusterEvent::Operator { name: "crane".into(), status }
}

#[test]
fn an_operator_reports_the_delay_after_its_deployment_rolled_out() {
    let mut simulation = Simulation::new(roles(&["a"], true), "[]");
    simulation.at(0, ClusterEvent::Operator { name: "crane".into(), status: Default::default() });
    simulation.listed(&["crane"], "1.0.0");
    simulation.deployment(10, "a", false);
    simulation.deployment(11, "a", true);
    simulation.pass(60);
    simulation.check(&["11s none FTFT", "16s create fixtures", "16s 1.0.0 TFFT"]);
}

#[test]
fn an_operator_without_a_clusteroperator_creates_it() {
    let mut simulation = Simulation::new(roles(&["a"], true), "[]");
    simulation.listed(&[], "1.0.0");
    simulation.deployment(1, "a", true);
    simulation.check(&["1s create none FTFT"]);
}

#[test]
fn an_operator_with_nothing_to_run_waits_for_its_clusteroperator() {
    let mut simulation = Simulation::new(roles(&["a", "b"], false), "[]");
    simulation.listed(&[], "1.0.0");
    simulation.pass(60);
    simulation.at(60, ClusterEvent::Operator { name: "crane".into(), status: Default::default() });
    simulation.at(70, ClusterEvent::Desired(Some("1.1.0".into())));
    simulation.pass(100);
    simulation.check(&["5s create fixtures", "60s 1.0.0 TFFT", "70s 1.0.0 TTFT", "75s 1.1.0 TFFT"]);
}

#[test]
fn nothing_is_reported_before_everything_is_listed() {
    let mut simulation = Simulation::new(roles(&["a"], true), "[]");
    simulation.deployment(1, "a", true);
    simulation.at(1, ClusterEvent::OperatorsListed(Vec::new()));
    simulation.check(&[]);
    simulation.at(2, ClusterEvent::Desired(None));
    simulation.check(&["2s create none FTFT"]);
}

#[test]
fn an_update_reports_the_old_versions_until_the_new_ones_have_rolled_out() {
    let mut simulation = Simulation::new(roles(&["a", "b"], true), "[]");
    simulation.at(0, reports("1.0.0"));
    simulation.deployment(0, "a", true);
    simulation.listed(&["crane"], "1.0.0");
    simulation.at(10, ClusterEvent::Desired(Some("1.1.0".into())));
    simulation.deployment(20, "b", false);
    simulation.deployment(21, "b", true);
    simulation.pass(60);
    simulation.check(&["0s 1.0.0 TFFT", "5s create fixtures", "21s 1.0.0 TTFT", "26s 1.1.0 TFFT"]);
}

#[test]
fn releases_with_the_same_templates_differ_by_the_desired_version() {
    let mut simulation = Simulation::new(roles(&["a", "a"], true), "[]");
    simulation.at(0, reports("1.0.0"));
    simulation.deployment(0, "a", true);
    simulation.listed(&["crane"], "1.0.0");
    simulation.at(20, ClusterEvent::Desired(Some("1.1.0".into())));
    simulation.pass(60);
    simulation.check(&["0s 1.0.0 TFFT", "5s create fixtures", "20s 1.0.0 TTFT", "25s 1.1.0 TFFT"]);
}

#[test]
fn a_deployment_that_matches_no_release_follows_the_desired_version() {
    for (desired, expected) in [("1.1.0", "1s create none FTFT"), ("2.0.0", "")] {
        let mut simulation = Simulation::new(roles(&["a", "b"], true), "[]");
        simulation.listed(&[], desired);
        simulation.deployment(1, "injected", true);
        assert_eq!(simulation.log.concat(), expected, "{desired}");
    }
}

#[test]
fn a_restart_or_a_repaired_deployment_is_no_news() {
    let mut simulation = Simulation::new(roles(&["a", "b"], true), "[]");
    simulation.at(0, reports("1.1.0"));
    simulation.deployment(0, "b", true);
    simulation.listed(&["crane"], "1.1.0");
    simulation.deployment(10, "b", false);
    simulation.deployment(11, "b", true);
    simulation.pass(60);
    simulation.check(&["0s 1.1.0 TFFT", "5s create fixtures"]);
}

#[test]
fn a_deleted_clusteroperator_comes_back_at_once() {
    let mut simulation = Simulation::new(roles(&["a"], true), "[]");
    simulation.at(0, reports("1.0.0"));
    simulation.deployment(0, "a", true);
    simulation.listed(&["crane"], "1.0.0");
    simulation.at(9, ClusterEvent::OperatorGone("crane".into()));
    simulation.check(&["0s 1.0.0 TFFT", "5s create fixtures", "9s create 1.0.0 TFFT"]);
}

#[test]
fn a_report_that_could_not_be_written_is_written_later() {
    let mut simulation = Simulation::new(roles(&["a"], true), "[]");
    simulation.simulator.observe(reports("1.0.0"), Duration::ZERO);
    simulation
        .simulator
        .observe(ClusterEvent::OperatorsListed(vec!["crane".into()]), Duration::ZERO);
    simulation.simulator.observe(ClusterEvent::Desired(None), Duration::ZERO);
    let action = |simulation: &mut Simulation, second| {
        simulation.simulator.actions(Duration::from_secs(second), Timestamp::UNIX_EPOCH)
    };
    assert_eq!(action(&mut simulation, 0).len(), 1);
    assert_eq!(action(&mut simulation, 0), [], "one report at a time");
    let lost = ClusterEvent::Reported { name: "crane".into(), status: None };
    simulation.simulator.observe(lost, Duration::ZERO);
    assert_eq!(action(&mut simulation, 0), [], "not at once");
    assert_eq!(simulation.simulator.next_due(Duration::ZERO), Some(Duration::from_secs(1)));
    assert_eq!(action(&mut simulation, 1).len(), 1);
}

#[test]
fn faults_change_what_is_reported() {
    let cases: [(&str, &[&str]); 7] = [
        ("NeverAvailable}", &["10s 1.0.0 FTFT", "15s 1.1.0 FFFT"]),
        ("NotUpgradeable}", &["10s 1.0.0 TTFF", "15s 1.1.0 TFFF"]),
        ("Degraded, minutes: 1}", &["10s 1.0.0 TTTT", "15s 1.1.0 TFTT", "70s 1.1.0 TFFT"]),
        ("VersionStuck}", &["10s 1.0.0 TTFT"]),
        ("VersionStuck, release: 1.0.0}", &["10s 1.0.0 TTFT", "15s 1.1.0 TFFT"]),
        ("NeverAvailable, after: 20s}", &["10s 1.0.0 TTFT", "15s 1.1.0 TFFT", "20s 1.1.0 FFFT"]),
        (
            "Degraded, minutes: 1, after: 20s, release: 1.0.0}",
            &["10s 1.0.0 TTFT", "15s 1.1.0 TFFT"],
        ),
    ];
    for (fault, expected) in cases {
        // Faults of this table begin with the update, unless they say otherwise.
        let mut fault = format!("- {{operator: crane, fault: {fault}");
        if !fault.contains("release") {
            fault = fault.replace('}', ", release: 1.1.0}");
        }
        let mut simulation = Simulation::new(roles(&["a", "b"], true), &fault);
        simulation.at(0, reports("1.0.0"));
        simulation.deployment(0, "a", true);
        simulation.listed(&["crane"], "1.0.0");
        simulation.pass(9);
        simulation.log.clear();
        simulation.deployment(10, "b", true);
        simulation.pass(200);
        assert_eq!(simulation.log, expected, "{fault}");
    }
}
