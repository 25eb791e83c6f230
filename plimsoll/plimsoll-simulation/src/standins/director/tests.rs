//! Plays, told as events and what follows from them. Times are seconds since the start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::config::{ClusterOperatorStatus, OperandVersion};
use serde_json::json;

use super::{Act, Director, Event};
use crate::standins::cast::{Cast, Part, Role};
use crate::standins::faults::Faults;
use crate::standins::look::Look;

const DELAY: u64 = 5;

fn key() -> ObjectKey {
    ObjectKey {
        group: "apps".into(),
        kind: "Deployment".into(),
        namespace: "crane".into(),
        name: "crane".into(),
    }
}

fn look(image: &str) -> Look {
    let container = json!({ "name": "crane", "image": image });
    Look::of(&json!({ "spec": { "template": { "spec": { "containers": [container] } } } }))
}

fn versions(version: &str) -> Vec<OperandVersion> {
    vec![OperandVersion { name: "operator".into(), version: version.into() }]
}

/// Releases 1.0.0, 1.1.0, … whose Deployment `crane` has these images; without images the operator
/// has no Deployment.
fn cast(images: &[&str], has_deployment: bool) -> Cast {
    let mut cast = Cast::default();
    let mut role = Role(BTreeMap::new());
    for (release, image) in images.iter().enumerate() {
        let version = format!("1.{release}.0");
        let workloads =
            has_deployment.then(|| (key(), look(image))).into_iter().collect::<BTreeMap<_, _>>();
        role.0.insert(
            release,
            Part { versions: versions(&version), related_objects: Vec::new(), workloads },
        );
        cast.releases.push(version);
    }
    cast.operators.insert("crane".into(), role);
    cast.namespaces = BTreeSet::from(["operand".to_owned()]);
    cast
}

/// A play under way.
struct Play {
    director: Director,
    log: Vec<String>,
    now: u64,
}

impl Play {
    fn new(cast: Cast, faults: &str) -> Self {
        let faults = Faults::parse(faults).unwrap();
        let director = Director::new(cast, faults, Duration::from_secs(DELAY));
        Self { director, log: Vec::new(), now: 0 }
    }

    /// Both lists have been seen: no ClusterOperator but those told before, and this version
    /// desired.
    fn listed(&mut self, operators: &[&str], desired: &str) {
        let names = operators.iter().map(|&name| name.to_owned()).collect();
        self.at(0, Event::OperatorsListed(names));
        self.at(0, Event::Desired(Some(desired.to_owned())));
    }

    fn deployment(&mut self, second: u64, image: &str, rolled_out: bool) {
        self.at(second, Event::Workload { key: key(), look: look(image), rolled_out });
    }

    fn at(&mut self, second: u64, event: Event) {
        self.pass(second);
        self.director.observe(event, Duration::from_secs(second));
        self.wait(second);
    }

    /// Does what is due, with a server that accepts everything at once.
    fn wait(&mut self, second: u64) {
        let now = Duration::from_secs(second);
        self.now = second;
        loop {
            let acts = self.director.act(now, Timestamp::UNIX_EPOCH);
            if acts.is_empty() {
                return;
            }
            for act in acts {
                self.log.push(format!("{second}s {}", told(&act)));
                if let Act::Report { name, status, .. } = act {
                    self.director.observe(Event::Reported { name, status: Some(status) }, now);
                }
            }
        }
    }

    /// Lets time pass, stopping wherever something is due.
    fn pass(&mut self, to: u64) {
        let next_due = |play: &Self| play.director.next_due(Duration::from_secs(play.now));
        while let Some(due) = next_due(self).filter(|due| due.as_secs() <= to) {
            self.wait(due.as_secs());
        }
    }

    fn check(&self, expected: &[&str]) {
        assert_eq!(self.log, expected);
    }
}

/// `create? version Available/Progressing/Degraded/Upgradeable` with T and F.
fn told(act: &Act) -> String {
    let Act::Report { create, status, .. } = act else {
        return "furnish".to_owned();
    };
    let version = status.versions.first().map_or("none", |it| it.version.as_str());
    let letters: String = status.conditions.iter().map(|it| &it.status.as_str()[..1]).collect();
    format!("{}{version} {letters}", if *create { "create " } else { "" })
}

fn reports(version: &str) -> Event {
    let status = ClusterOperatorStatus { versions: versions(version), ..Default::default() };
    Event::Operator { name: "crane".into(), status }
}

#[test]
fn an_operator_reports_the_delay_after_its_deployment_rolled_out() {
    let mut play = Play::new(cast(&["a"], true), "[]");
    play.at(0, Event::Operator { name: "crane".into(), status: Default::default() });
    play.listed(&["crane"], "1.0.0");
    play.deployment(10, "a", false);
    play.deployment(11, "a", true);
    play.pass(60);
    play.check(&["11s none FTFT", "16s furnish", "16s 1.0.0 TFFT"]);
}

#[test]
fn an_operator_without_a_clusteroperator_creates_it() {
    let mut play = Play::new(cast(&["a"], true), "[]");
    play.listed(&[], "1.0.0");
    play.deployment(1, "a", true);
    play.check(&["1s create none FTFT"]);
}

#[test]
fn an_operator_with_nothing_to_run_waits_for_its_clusteroperator() {
    let mut play = Play::new(cast(&["a", "b"], false), "[]");
    play.listed(&[], "1.0.0");
    play.pass(60);
    play.at(60, Event::Operator { name: "crane".into(), status: Default::default() });
    play.at(70, Event::Desired(Some("1.1.0".into())));
    play.pass(100);
    play.check(&["5s furnish", "60s 1.0.0 TFFT", "70s 1.0.0 TTFT", "75s 1.1.0 TFFT"]);
}

#[test]
fn nobody_acts_before_everything_is_listed() {
    let mut play = Play::new(cast(&["a"], true), "[]");
    play.deployment(1, "a", true);
    play.at(1, Event::OperatorsListed(Vec::new()));
    play.check(&[]);
    play.at(2, Event::Desired(None));
    play.check(&["2s create none FTFT"]);
}

#[test]
fn an_update_reports_the_old_versions_until_the_new_ones_have_rolled_out() {
    let mut play = Play::new(cast(&["a", "b"], true), "[]");
    play.at(0, reports("1.0.0"));
    play.deployment(0, "a", true);
    play.listed(&["crane"], "1.0.0");
    play.at(10, Event::Desired(Some("1.1.0".into())));
    play.deployment(20, "b", false);
    play.deployment(21, "b", true);
    play.pass(60);
    play.check(&["0s 1.0.0 TFFT", "5s furnish", "21s 1.0.0 TTFT", "26s 1.1.0 TFFT"]);
}

#[test]
fn releases_that_look_the_same_are_told_apart_by_the_desired_version() {
    let mut play = Play::new(cast(&["a", "a"], true), "[]");
    play.at(0, reports("1.0.0"));
    play.deployment(0, "a", true);
    play.listed(&["crane"], "1.0.0");
    play.at(20, Event::Desired(Some("1.1.0".into())));
    play.pass(60);
    play.check(&["0s 1.0.0 TFFT", "5s furnish", "20s 1.0.0 TTFT", "25s 1.1.0 TFFT"]);
}

#[test]
fn a_deployment_that_looks_like_no_release_follows_the_desired_version() {
    for (desired, expected) in [("1.1.0", "1s create none FTFT"), ("2.0.0", "")] {
        let mut play = Play::new(cast(&["a", "b"], true), "[]");
        play.listed(&[], desired);
        play.deployment(1, "injected", true);
        assert_eq!(play.log.concat(), expected, "{desired}");
    }
}

#[test]
fn a_restart_or_a_repaired_deployment_is_no_news() {
    let mut play = Play::new(cast(&["a", "b"], true), "[]");
    play.at(0, reports("1.1.0"));
    play.deployment(0, "b", true);
    play.listed(&["crane"], "1.1.0");
    play.deployment(10, "b", false);
    play.deployment(11, "b", true);
    play.pass(60);
    play.check(&["0s 1.1.0 TFFT", "5s furnish"]);
}

#[test]
fn a_deleted_clusteroperator_comes_back_at_once() {
    let mut play = Play::new(cast(&["a"], true), "[]");
    play.at(0, reports("1.0.0"));
    play.deployment(0, "a", true);
    play.listed(&["crane"], "1.0.0");
    play.at(9, Event::OperatorGone("crane".into()));
    play.check(&["0s 1.0.0 TFFT", "5s furnish", "9s create 1.0.0 TFFT"]);
}

#[test]
fn a_report_that_could_not_be_written_is_written_later() {
    let mut play = Play::new(cast(&["a"], true), "[]");
    play.director.observe(reports("1.0.0"), Duration::ZERO);
    play.director.observe(Event::OperatorsListed(vec!["crane".into()]), Duration::ZERO);
    play.director.observe(Event::Desired(None), Duration::ZERO);
    let act = |play: &mut Play, second| {
        play.director.act(Duration::from_secs(second), Timestamp::UNIX_EPOCH)
    };
    assert_eq!(act(&mut play, 0).len(), 1);
    assert_eq!(act(&mut play, 0), [], "one report at a time");
    let lost = Event::Reported { name: "crane".into(), status: None };
    play.director.observe(lost, Duration::ZERO);
    assert_eq!(act(&mut play, 0), [], "not at once");
    assert_eq!(play.director.next_due(Duration::ZERO), Some(Duration::from_secs(1)));
    assert_eq!(act(&mut play, 1).len(), 1);
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
        let mut play = Play::new(cast(&["a", "b"], true), &fault);
        play.at(0, reports("1.0.0"));
        play.deployment(0, "a", true);
        play.listed(&["crane"], "1.0.0");
        play.pass(9);
        play.log.clear();
        play.deployment(10, "b", true);
        play.pass(200);
        assert_eq!(play.log, expected, "{fault}");
    }
}
