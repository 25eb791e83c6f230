//! Scenarios: what is done one after another, and what is waited for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_testkit::ClusterKind;
use kube::Api;
use kube::api::{ListParams, PostParams};
use plimsoll_api::olm::action::OWNER_LABEL;
use plimsoll_controller::actions::ActionSettings;
use serde::Deserialize;
use serde_json::{Value, json};

use super::commands::RunCommand;
use super::shell::{Shell, ShellCommand};
use super::{AddOns, Fixture, Named, actions_with_webhook, begins};
use crate::harness::until;

/// A step of a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ScenarioStep {
    /// Versions appear in the catalog, by package.
    Publish(BTreeMap<String, Vec<String>>),
    /// Versions in the catalog get another image, by package; then the plan is approved that an Action
    /// showed before, if one is named.
    Republish { bundle: BTreeMap<String, String>, approve: Option<String> },
    /// Operators are requested, by name with their specs.
    Apply(BTreeMap<String, Value>),
    /// Operators get labels.
    Label(BTreeMap<String, Value>),
    /// An object is created.
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
    /// A kind whose objects can be listed in the end: a real API server cannot do that in a kind's first
    /// moments. With the name of an object.
    Listed(String),
    /// Objects that are there in the end.
    Present(Vec<String>),
    /// Objects that are gone in the end.
    Absent(Vec<String>),
    /// Objects that have the finalizer of the operator in the end.
    HasFinalizer(Vec<String>),
    /// A person runs a command of `plimsoll operator`.
    Command(RunCommand),
    /// A person runs a command line in a shell, in the directory of the files.
    Shell(ShellCommand),
    /// The files that commands wrote to directories.
    Files(BTreeMap<String, Vec<String>>),
    /// The manifests of a directory that commands wrote are applied.
    ApplyFiles(String),
    /// Two files that commands wrote have the same content.
    Same([String; 2]),
    /// What objects have in their status in the end: fields, and texts that begin so.
    Status(BTreeMap<String, Value>),
    /// What one of the Actions that an object made has in its status in the end, by the object.
    Made(BTreeMap<String, Value>),
    /// Objects are changed by a merge patch.
    Change(BTreeMap<String, Value>),
    /// A plan of an Action is approved, without a digest the one that it shows.
    Approve { action: String, plan: Option<String> },
    /// The clock of the controller is set forward, by seconds, or back if there are fewer than none.
    Later(i64),
    /// Whether a controller runs from now on: it ends as SIGKILL would, or another one begins.
    Control(bool),
}

/// The report of an Operator in the end.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ExpectedReport {
    #[serde(default)]
    mentions: Vec<String>,
    #[serde(flatten)]
    begins: BTreeMap<String, String>,
}

/// A scenario, and what it is played on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scenario {
    /// Its steps, in YAML.
    pub(super) steps: &'static str,
    /// Whether Actions are executed.
    pub(super) has_actions: bool,
    /// Whether the webhooks of Actions are served.
    pub(super) has_webhook: bool,
    /// Whether the cluster has a release.
    pub(super) has_release: bool,
}

impl Scenario {
    /// Plays it on a cluster of its own; with `is_killed` the controller is killed after each change and
    /// followed by another one.
    pub(super) async fn play(self, kind: ClusterKind, is_killed: bool) {
        let steps: Vec<ScenarioStep> =
            serde_saphyr::from_str(self.steps).expect("it is a list of steps");
        let actions = self.has_actions.then(|| match self.has_webhook {
            true => actions_with_webhook(),
            false => ActionSettings::default(),
        });
        let mut add_ons = AddOns::start_with(kind, "[]", actions).await;
        if self.has_release {
            add_ons.install_release().await;
        }
        for step in &steps {
            if let ScenarioStep::Control(runs) = step {
                match runs {
                    true => add_ons.control(),
                    false => add_ons.kill().await,
                }
                continue;
            }
            let is_change = add_ons.play(step).await;
            if is_change && is_killed {
                add_ons.kill().await;
                add_ons.control();
            }
        }
        add_ons.stop().await;
    }
}

impl AddOns {
    /// Plays a step; returns whether it changes anything.
    pub(super) async fn play(&self, step: &ScenarioStep) -> bool {
        let is_change = self.carry_out(step).await;
        assert!(is_change || self.fulfils(step).await, "{step:?}");
        is_change
    }

    /// Makes the change of a step; returns false if it makes none.
    async fn carry_out(&self, step: &ScenarioStep) -> bool {
        match step {
            ScenarioStep::Publish(packages) => {
                for (package, versions) in packages {
                    for version in versions {
                        Fixture::publish(self.catalog.path(), package, version);
                    }
                }
            }
            ScenarioStep::Republish { bundle, approve } => {
                self.republish(bundle, approve.as_deref()).await;
            }
            ScenarioStep::Apply(operators) => {
                for (name, spec) in operators {
                    self.request(name, spec.clone()).await;
                }
            }
            ScenarioStep::Label(operators) => {
                for (name, labels) in operators {
                    let patch = json!({ "metadata": { "labels": labels } });
                    self.change(&format!("olm.io/v1 Operator {name}"), patch).await;
                }
            }
            ScenarioStep::Create(object) => drop(self.apply(object.clone()).await),
            ScenarioStep::Delete(operator) => {
                self.delete(&format!("olm.io/v1 Operator {operator}")).await;
            }
            ScenarioStep::Remove(named) => self.delete(named).await,
            ScenarioStep::Command(command) => command.play(self).await,
            ScenarioStep::Shell(command) => {
                if command.deletes() {
                    self.until_listable().await;
                }
                let shell = self.shell.get_or_init(|| Shell::open(&self.harness.cluster)).await;
                shell.play(command, self.files.path()).await;
            }
            ScenarioStep::ApplyFiles(directory) => {
                let directory = self.files.path().join(directory);
                for name in names(&directory).iter().filter(|it| it.ends_with(".yaml")) {
                    let text = std::fs::read_to_string(directory.join(name)).expect("a file");
                    self.apply(serde_saphyr::from_str(&text).expect("a manifest")).await;
                }
            }
            ScenarioStep::Change(objects) => {
                for (named, patch) in objects {
                    self.change(named, patch.clone()).await;
                }
            }
            ScenarioStep::Approve { action: named, plan } => {
                let shown = self.object(&Named::parse(named)).await["status"]["planDigest"].clone();
                self.approve(named, plan.clone().map_or(shown, Value::from)).await;
            }
            ScenarioStep::Later(seconds) => {
                self.clock.0.fetch_add(*seconds, Ordering::SeqCst);
            }
            _ => return false,
        }
        true
    }

    /// Waits until what a step expects is so; returns false if it expects nothing.
    async fn fulfils(&self, step: &ScenarioStep) -> bool {
        match step {
            ScenarioStep::Warned { delete, warning } => {
                // A server takes up a policy a moment after it is there.
                let given = || self.warnings_of_deletion(delete);
                until(&format!("{delete}: {warning}"), given, |it| it.contains(warning)).await;
            }
            ScenarioStep::Expect(operators) => {
                for (name, expected) in operators {
                    self.expect_report(name, expected).await;
                }
            }
            ScenarioStep::Listed(named) => self.listed(named).await,
            ScenarioStep::Present(objects) => {
                for named in objects {
                    self.present(named).await;
                }
            }
            ScenarioStep::Absent(objects) => {
                for named in objects {
                    self.absent(named).await;
                }
            }
            ScenarioStep::HasFinalizer(objects) => {
                for named in objects {
                    self.has_finalizer(named).await;
                }
            }
            ScenarioStep::Files(directories) => {
                for (directory, expected) in directories {
                    assert_eq!(names(&self.files.path().join(directory)), *expected, "{directory}");
                }
            }
            ScenarioStep::Same(names) => {
                let [left, right] = names.each_ref().map(|name| {
                    std::fs::read_to_string(self.files.path().join(name)).expect("a file")
                });
                assert_eq!(left, right, "{names:?}");
            }
            ScenarioStep::Status(objects) => {
                for (named, expected) in objects {
                    let object = || async { self.object(&Named::parse(named)).await };
                    let is_so = |it: &Value| has(&it["status"], expected);
                    until(&format!("{named} reports {expected}"), object, is_so).await;
                }
            }
            ScenarioStep::Made(objects) => {
                for (named, expected) in objects {
                    self.made(named, expected).await;
                }
            }
            _ => return false,
        }
        true
    }

    /// Gives versions another image, and approves the plan that an Action showed before.
    async fn republish(&self, bundles: &BTreeMap<String, String>, approve: Option<&str>) {
        let shown = match approve {
            Some(named) => self.object(&Named::parse(named)).await["status"]["planDigest"].clone(),
            None => Value::Null,
        };
        let catalog = Named::parse("olm.io/v1 Catalog fixture");
        let digest = || async { self.object(&catalog).await["status"]["digest"].clone() };
        let before = digest().await;
        for (package, version) in bundles {
            Fixture::republish(self.catalog.path(), package, version);
        }
        until("the Catalog reports the change", digest, |it| *it != before).await;
        if let Some(named) = approve {
            self.approve(named, shown).await;
        }
    }

    /// Waits until an object can be listed.
    pub(super) async fn listed(&self, named: &str) {
        let api = Named::parse(named).api(&self.harness.client);
        let names = || async {
            let listed = api.list(&ListParams::default()).await;
            let items = listed.map(|it| it.items).unwrap_or_default();
            items.into_iter().filter_map(|it| it.metadata.name).collect::<Vec<String>>()
        };
        let name = Named::parse(named).name;
        until(&format!("{named} is listed"), names, |it| it.contains(&name)).await;
    }

    /// Waits until one of the Actions that an object made has something in its status.
    async fn made(&self, named: &str, expected: &Value) {
        let owner = Named::parse(named);
        let made = ListParams::default().labels(&format!("{OWNER_LABEL}={}", owner.name));
        let action = Named::new("olm.io/v1", "Action", &owner.namespace, "");
        let api = action.api(&self.harness.client);
        let statuses = || async {
            let listed = api.list(&made).await.map(|it| it.items).unwrap_or_default();
            listed.into_iter().map(|it| it.data["status"].clone()).collect::<Vec<Value>>()
        };
        let is_so = |found: &Vec<Value>| found.iter().any(|it| has(it, expected));
        until(&format!("{named} made what reports {expected}"), statuses, is_so).await;
    }

    /// Approves a plan of an Action, by its digest.
    async fn approve(&self, named: &str, plan: Value) {
        let reviews: Api<SelfSubjectReview> = Api::all(self.harness.client.clone());
        let review = reviews.create(&PostParams::default(), &Default::default()).await;
        let status = review.expect("it is answered").status;
        let approver = status.and_then(|it| it.user_info?.username);
        let approval = json!({ "plan": plan, "approver": approver });
        self.change(named, json!({ "spec": { "approvals": [approval] } })).await;
    }

    async fn expect_report(&self, name: &str, expected: &ExpectedReport) {
        let is_as_expected = |found: &BTreeMap<String, String>| {
            let is_so = |what, text| found.get(what).is_some_and(|it: &String| begins(it, text));
            let mut mentions = expected.mentions.iter();
            expected.begins.iter().all(|(what, text)| is_so(what, text))
                && mentions.all(|text| found.values().any(|it| it.contains(text)))
        };
        let what = format!("{name} reports {expected:?}");
        self.until_reported(name, &what, is_as_expected).await;
    }

    /// Waits until an object has the finalizer of its operator.
    pub(super) async fn has_finalizer(&self, named: &str) {
        let object = || async { self.object(&Named::parse(named)).await };
        let is_set = |it: &Value| it["metadata"]["finalizers"].is_array();
        until(&format!("{named} has its finalizer"), object, is_set).await;
    }
}

/// Returns whether a value has all that is expected: lists have as many items, texts begin so, and of a
/// number it can be expected that it is at least another one, written `>=1`.
fn has(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(name, it)| has(found.get(name).unwrap_or(&Value::Null), it))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| has(a, b))
        }
        (Value::String(found), Value::String(expected)) => begins(found, expected),
        (Value::Number(found), Value::String(expected)) => {
            let least = expected.strip_prefix(">=").and_then(|it| it.parse::<u64>().ok());
            least.zip(found.as_u64()).is_some_and(|(least, found)| found >= least)
        }
        (found, expected) => found == expected,
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
