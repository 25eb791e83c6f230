//! Scenarios: what is done one after another, and what is waited for.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_testkit::ClusterKind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::commands::RunCommand;
use super::{AddOns, Fixture, Named};
use crate::harness::until;

/// A step of a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum ScenarioStep {
    /// Versions appear in the catalog, by package.
    Publish(BTreeMap<String, Vec<String>>),
    /// Operators are requested, by name with their specs.
    Apply(BTreeMap<String, Value>),
    /// Operators get labels.
    Label(BTreeMap<String, Value>),
    /// Somebody creates an object.
    Create(Value),
    /// An Operator is deleted.
    Delete(String),
    /// Who would delete an Operator is warned; nothing is deleted.
    Warned { delete: String, warning: String },
    /// Some object is deleted.
    Remove(String),
    /// What Operators report in the end: conditions and fields that begin with a text, and texts that
    /// any of the conditions contains.
    Expect(BTreeMap<String, ExpectedReport>),
    /// Objects that are there in the end.
    Present(Vec<String>),
    /// Objects that are gone in the end.
    Absent(Vec<String>),
    /// Objects that have the finalizer of the operator in the end.
    LookedAfter(Vec<String>),
    /// A person runs a command of `plimsoll operator`.
    Command(RunCommand),
    /// The files that commands wrote to directories.
    Files(BTreeMap<String, Vec<String>>),
    /// Somebody applies the manifests of a directory that commands wrote.
    ApplyFiles(String),
    /// Two files that commands wrote have the same content.
    Same([String; 2]),
}

/// What an Operator reports in the end.
#[derive(Debug, Clone, Deserialize)]
struct ExpectedReport {
    #[serde(default)]
    mentions: Vec<String>,
    #[serde(flatten)]
    begins: BTreeMap<String, String>,
}

/// The steps of a scenario.
pub(super) struct Scenario(Vec<ScenarioStep>);

/// What the controller does with Operators.
pub(super) fn all() -> Vec<Scenario> {
    let files = [
        include_str!("a01-a02-unmet-dependency.yaml"),
        include_str!("a03-enforce.yaml"),
        include_str!("a04-blocked-upgrade.yaml"),
        include_str!("a05-range.yaml"),
        include_str!("a06-orphan.yaml"),
        include_str!("a17-deletion.yaml"),
        include_str!("collision.yaml"),
        include_str!("deletion-orphan.yaml"),
        include_str!("deletion-refuse.yaml"),
        include_str!("invalidated-objects.yaml"),
        include_str!("other-catalog.yaml"),
        include_str!("protection.yaml"),
        include_str!("rollback.yaml"),
    ];
    files.map(read).into()
}

/// What commands of `plimsoll operator` show and do.
pub(super) fn commands() -> Vec<Scenario> {
    let files = [
        include_str!("commands-delete.yaml"),
        include_str!("commands-install.yaml"),
        include_str!("commands-read.yaml"),
        include_str!("commands-update.yaml"),
        include_str!("persona-control-freak.yaml"),
        include_str!("persona-gitops.yaml"),
        include_str!("persona-power-user.yaml"),
    ];
    files.map(read).into()
}

fn read(text: &str) -> Scenario {
    Scenario(serde_saphyr::from_str(text).expect("it is a list of steps"))
}

/// Plays a scenario on a cluster of its own; with `is_killed` the controller is killed after each change
/// and followed by another one.
pub(super) async fn play(kind: ClusterKind, Scenario(steps): &Scenario, is_killed: bool) {
    let mut add_ons = AddOns::start(kind, "[]").await;
    for step in steps {
        let is_change = add_ons.play(step).await;
        if is_change && is_killed {
            add_ons.kill().await;
            add_ons.control();
        }
    }
    add_ons.stop().await;
}

impl AddOns {
    /// Plays a step; whether it changes anything.
    async fn play(&self, step: &ScenarioStep) -> bool {
        match step {
            ScenarioStep::Publish(packages) => {
                for (package, versions) in packages {
                    for version in versions {
                        Fixture::publish(self.catalog.path(), package, version);
                    }
                }
                true
            }
            ScenarioStep::Apply(operators) => {
                for (name, spec) in operators {
                    self.request(name, spec.clone()).await;
                }
                true
            }
            ScenarioStep::Label(operators) => {
                for (name, labels) in operators {
                    let patch = json!({ "metadata": { "labels": labels } });
                    self.change(&format!("olm.io/v1 Operator {name}"), patch).await;
                }
                true
            }
            ScenarioStep::Create(object) => {
                self.apply(object.clone()).await;
                true
            }
            ScenarioStep::Delete(operator) => {
                self.delete(&format!("olm.io/v1 Operator {operator}")).await;
                true
            }
            ScenarioStep::Warned { delete, warning } => {
                let given = self.warnings_of_deletion(delete).await;
                assert!(given.contains(warning), "{delete}: {given}");
                false
            }
            ScenarioStep::Remove(named) => {
                self.delete(named).await;
                true
            }
            ScenarioStep::Expect(operators) => {
                for (name, expected) in operators {
                    self.expect_report(name, expected).await;
                }
                false
            }
            ScenarioStep::Present(objects) => {
                for named in objects {
                    self.present(named).await;
                }
                false
            }
            ScenarioStep::Absent(objects) => {
                for named in objects {
                    self.absent(named).await;
                }
                false
            }
            ScenarioStep::Command(command) => {
                command.play(self).await;
                true
            }
            ScenarioStep::Files(directories) => {
                for (directory, expected) in directories {
                    assert_eq!(names(&self.files.path().join(directory)), *expected, "{directory}");
                }
                false
            }
            ScenarioStep::ApplyFiles(directory) => {
                let directory = self.files.path().join(directory);
                for name in names(&directory).iter().filter(|it| it.ends_with(".yaml")) {
                    let text = std::fs::read_to_string(directory.join(name)).expect("a file");
                    self.apply(serde_saphyr::from_str(&text).expect("a manifest")).await;
                }
                true
            }
            ScenarioStep::Same(names) => {
                let [left, right] = names.each_ref().map(|name| {
                    std::fs::read_to_string(self.files.path().join(name)).expect("a file")
                });
                assert_eq!(left, right, "{names:?}");
                false
            }
            ScenarioStep::LookedAfter(objects) => {
                for named in objects {
                    self.looked_after(named).await;
                }
                false
            }
        }
    }

    async fn expect_report(&self, name: &str, expected: &ExpectedReport) {
        let is_as_expected = |found: &BTreeMap<String, String>| {
            let begins = expected.begins.iter();
            let mut begins = begins.map(|(what, text)| {
                found.get(what).is_some_and(|it| it.starts_with(text.as_str()))
            });
            let mut mentions = expected.mentions.iter();
            begins.all(|it| it) && mentions.all(|text| found.values().any(|it| it.contains(text)))
        };
        let what = format!("{name} reports {expected:?}");
        until(&what, || self.reported(name), is_as_expected).await;
    }

    /// Waits until an object has the finalizer of its operator.
    pub(super) async fn looked_after(&self, named: &str) {
        let object = || async { self.object(&Named::parse(named)).await };
        let has_finalizer = |it: &Value| it["metadata"]["finalizers"].is_array();
        until(&format!("{named} is looked after"), object, has_finalizer).await;
    }
}

/// The names of the files of a directory, in order; none if it is not there.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|it| it.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
