//! The outcome of Actions: transcripts of the command line are played once as they are typed, and once with an
//! Action instead of each command that changes Operators. After each step both clusters are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube::api::ListParams;
use plimsoll_api::olm::action::{
    CHANGED_BY_ANNOTATION, CREATED_BY_ANNOTATION, CREATED_IN_ANNOTATION,
};
use plimsoll_api::{ApiKind, CLUSTER_VERSION, CLUSTER_VERSION_NAME, OPERATOR};
use plimsoll_controller::actions::ActionSettings;
use plimsoll_operators::RequestedPackage;
use serde_json::{Value, json};

use super::scenario::ScenarioStep;
use super::shell::Shell;
use super::{AddOns, Named};
use crate::harness::{DEFINITION, on_any_cluster, until};

const INSTALL: &str = include_str!("commands-install.yaml");
const UPDATE: &str = include_str!("commands-update.yaml");
const DELETE: &str = include_str!("commands-delete.yaml");
const CONTROL_FREAK: &str = include_str!("persona-control-freak.yaml");
const POWER_USER: &str = include_str!("persona-power-user.yaml");
const PERSONAS: &str = include_str!("personas.yaml");
/// All commands of these are about files, or there are none.
const WITHOUT_ACTIONS: [&str; 2] =
    [include_str!("persona-gitops.yaml"), include_str!("persona-cluster-user.yaml")];

/// What commands without an Action have among their words, with the reason. They are typed on both clusters.
const TYPED: [(&str, &str); 11] = [
    ("FILES/", "it reads or writes local files"),
    ("resolve", "it writes local files"),
    ("-l", "an Action names the Operators that it is about"),
    ("--rehearse", "what it changes is a copy of the cluster"),
    ("abort", "no class continues with an Operator that was to be deleted"),
    ("action", "it is about Actions itself"),
    ("describe", "it shows what is there"),
    ("show", "it shows what is there"),
    ("tree", "it shows what is there"),
    ("who-provides", "it shows what is there"),
    ("why", "it shows what is there"),
];

/// How an option is written in an Action.
enum Form {
    /// The attribute is true.
    Flag,
    /// The attribute has the value of the option.
    Text,
    /// The attribute has the parts of the value among its items.
    List,
}

/// Options with the attribute of an Action that they set. Those without one are about the output, the questions
/// or the wait, or about what is the same for an Action: the catalogs of the cluster.
const OPTIONS: [(&str, Form, &str); 17] = [
    ("--yes", Form::Flag, ""),
    ("--apply", Form::Flag, ""),
    ("--no-dependencies", Form::Flag, ""),
    ("-o", Form::Text, ""),
    ("--catalog", Form::Text, ""),
    ("--version", Form::Text, "version"),
    ("--version-range", Form::Text, "version"),
    ("--for-range", Form::List, "parameters.ranges"),
    ("--latest", Form::Flag, "parameters.latest"),
    ("--all", Form::Flag, "parameters.latest"),
    ("--force", Form::Flag, "parameters.force"),
    ("--cascade", Form::Flag, "parameters.cascade"),
    ("--keep-crds", Form::Flag, "parameters.keepCRDs"),
    ("--safe", Form::Flag, "ensureConstraintSatisfiability"),
    ("--dry-run", Form::Flag, "dryRun"),
    ("--dry-run=client", Form::Flag, "dryRun"),
    ("--dry-run=server", Form::Flag, "dryRun"),
];

/// Annotations that say how an object was written.
const WRITTEN_BY: [&str; 4] = [
    CREATED_BY_ANNOTATION,
    CREATED_IN_ANNOTATION,
    CHANGED_BY_ANNOTATION,
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// The exit code of a command that a person declined.
const DECLINED: i32 = 3;
/// The beginning of the message with which the controller refuses a deletion.
const REFUSED: &str = "It is not deleted: ";

#[test]
fn an_installation_has_the_same_outcome_by_hand_and_as_an_action() {
    check(INSTALL);
}

#[test]
fn an_update_has_the_same_outcome_by_hand_and_as_an_action() {
    check(UPDATE);
}

#[test]
fn a_deletion_has_the_same_outcome_by_hand_and_as_an_action() {
    check(DELETE);
}

#[test]
fn what_the_control_freak_types_has_the_same_outcome_as_actions() {
    check(CONTROL_FREAK);
}

#[test]
fn what_the_power_user_types_has_the_same_outcome_as_actions() {
    check(POWER_USER);
}

#[test]
fn what_all_personas_type_has_the_same_outcome_as_actions() {
    check(PERSONAS);
}

#[test]
fn each_command_has_an_action_or_there_is_a_reason_that_it_has_none() {
    let played = [INSTALL, UPDATE, DELETE, CONTROL_FREAK, POWER_USER, PERSONAS];
    let mut needed = BTreeSet::new();
    for (transcript, has_actions) in
        played.map(|it| (it, true)).into_iter().chain(WITHOUT_ACTIONS.map(|it| (it, false)))
    {
        let steps = steps(transcript);
        let commands: Vec<TypedCommand<'_>> = steps.iter().filter_map(TypedCommand::of).collect();
        let typed = commands.iter().filter(|it| it.action().is_none());
        needed.extend(typed.map(TypedCommand::reason));
        let is_translated = commands.iter().any(|it| it.action().is_some());
        assert_eq!(is_translated, has_actions, "{transcript}");
    }
    for entry in &TYPED {
        assert!(needed.contains(entry), "no command needs {entry:?}");
    }
}

#[test]
fn a_command_line_is_written_as_an_action() {
    let check = |line, expected: Value| {
        let command = TypedCommand {
            line,
            user: "admin",
            shows: &[],
            exit: 0,
            is_kept: false,
            is_declined: false,
        };
        assert_eq!(command.action(), Some(expected), "{line}");
    };
    check(
        "install foo --version-range ^1.2 bar@1.2.5 --no-dependencies --yes -o name",
        json!({
            "actionClass": "operator-install", "package": "foo", "version": "^1.2",
            "installDependencies": false, "ensureConstraintSatisfiability": false,
            "parameters": { "packages": ["bar@1.2.5"] },
        }),
    );
    check(
        "resolve foo --apply --dry-run=server",
        json!({
            "actionClass": "operator-install", "package": "foo", "installDependencies": true,
            "dryRun": true,
        }),
    );
    check(
        "update operator.olm.io/foo --version-range ~1.2",
        json!({
            "actionClass": "operator-update", "package": "foo", "version": "~1.2",
            "parameters": { "follow": true },
        }),
    );
    check(
        "update --for-range 'foo@~1.2;fiz@<3.0.0'",
        json!({
            "actionClass": "operator-update",
            "parameters": { "ranges": ["foo@~1.2", "fiz@<3.0.0"] },
        }),
    );
    check(
        "delete foo --cascade --keep-crds",
        json!({
            "actionClass": "operator-delete", "package": "foo",
            "ensureConstraintSatisfiability": false,
            "parameters": { "cascade": true, "keepCRDs": true },
        }),
    );
    check("autoremove --yes", json!({ "actionClass": "autoremove" }));
}

/// Plays a transcript on two clusters, on one of them with Actions.
fn check(transcript: &'static str) {
    if transcript.contains("- shell:") && !Shell::is_there() {
        return;
    }
    on_any_cluster(|kind| async move {
        let actions = || Some(ActionSettings { webhook: None });
        let mut by_hand = AddOns::start_with(kind, "[]", actions()).await;
        let mut requested = AddOns::start_with(kind, "[]", actions()).await;
        for (index, step) in steps(transcript).iter().enumerate() {
            by_hand.play(step).await;
            let command = TypedCommand::of(step);
            let action = command.as_ref().and_then(TypedCommand::action);
            match command.as_ref().zip(action) {
                Some((command, spec)) => {
                    command.request(&requested, &format!("step-{index}"), spec).await;
                }
                None => {
                    requested.play(step).await;
                }
            }
            let what = format!("the clusters are the same after {step:?}");
            until(&what, || differences(&by_hand, &requested), Vec::is_empty).await;
        }
        by_hand.stop().await;
        requested.stop().await;
    });
}

fn steps(transcript: &str) -> Vec<ScenarioStep> {
    serde_saphyr::from_str(transcript).expect("it is a list of steps")
}

/// A command line of the plug-in in a transcript.
struct TypedCommand<'a> {
    /// What is typed after `kubectl operator`.
    line: &'a str,
    user: &'a str,
    shows: &'a [String],
    exit: i32,
    /// Whether its output is kept in a file.
    is_kept: bool,
    /// Whether the answer to its question is no, or there is none.
    is_declined: bool,
}

impl<'a> TypedCommand<'a> {
    /// Returns the command line of a step; `None` if it has none.
    fn of(step: &'a ScenarioStep) -> Option<Self> {
        match step {
            ScenarioStep::Command(it) => Some(Self {
                line: it.run.strip_prefix("kubectl operator ").unwrap_or(&it.run),
                user: "admin",
                shows: &it.shows,
                exit: it.exit.into(),
                is_kept: !it.into.is_empty(),
                is_declined: i32::from(it.exit) == DECLINED && it.error.is_empty(),
            }),
            ScenarioStep::Shell(it) => Some(Self {
                line: it.run.strip_prefix("kubectl operator ")?.trim_end_matches(" < /dev/null"),
                user: &it.user,
                shows: &it.shows,
                exit: it.exit,
                is_kept: false,
                is_declined: it.exit == DECLINED,
            }),
            _ => None,
        }
    }

    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.line.split_whitespace().map(|it| it.trim_matches('\''))
    }

    /// Returns why it has no Action, as [`TYPED`] has it.
    fn reason(&self) -> (&'static str, &'static str) {
        if self.is_kept {
            return TYPED[0];
        }
        let is_meant = |word: &str, entry: &str| {
            word == entry || (entry.ends_with('/') && word.starts_with(entry))
        };
        let found = TYPED.iter().find(|(entry, _)| self.words().any(|it| is_meant(it, entry)));
        assert!(found.is_some(), "`{}` has no Action, and no reason to have none", self.line);
        found.copied().unwrap_or_default()
    }

    /// Returns the spec of the Action that does the same; `None` if there is none. What is declined is a dry run.
    fn action(&self) -> Option<Value> {
        if self.is_kept {
            return None;
        }
        let mut words = self.words();
        let class = match words.next()? {
            "install" => "operator-install",
            "resolve" if self.words().any(|it| it == "--apply") => "operator-install",
            "update" => "operator-update",
            "delete" => "operator-delete",
            "autoremove" => "autoremove",
            _ => return None,
        };
        let mut spec = json!({ "actionClass": class });
        let mut packages: Vec<RequestedPackage> = Vec::new();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                let word = word.strip_prefix("operator.olm.io/").unwrap_or(word);
                packages.push(word.parse().expect("it is a package"));
                continue;
            }
            let (_, form, attribute) = OPTIONS.iter().find(|(option, ..)| *option == word)?;
            let value = match form {
                Form::Flag => json!(true),
                Form::Text => json!(words.next()?),
                Form::List => words.next()?.split(';').collect(),
            };
            match form {
                _ if attribute.is_empty() => {}
                Form::Flag | Form::Text => *field(&mut spec, attribute) = value,
                Form::List => extend(field(&mut spec, attribute), value),
            }
        }
        if self.is_declined {
            spec["dryRun"] = true.into();
        }
        self.complete(&mut spec, packages);
        Some(spec)
    }

    /// Sets the packages of an Action, and what its class does otherwise than the command.
    fn complete(&self, spec: &mut Value, mut packages: Vec<RequestedPackage>) {
        let range = spec["version"].as_str().map(str::to_owned);
        let class = spec["actionClass"].as_str().unwrap_or_default().to_owned();
        match class.as_str() {
            "operator-install" => {
                let is_alone = self.words().any(|it| it == "--no-dependencies");
                spec["installDependencies"] = (!is_alone).into();
                if is_alone {
                    spec["ensureConstraintSatisfiability"] = false.into();
                }
            }
            "operator-update" if range.is_some() => {
                spec["parameters"]["follow"] = true.into();
            }
            "operator-delete" if spec["ensureConstraintSatisfiability"] == true => {
                // The orphans that the person agreed to delete, too.
                let deleted = self.shows.iter().filter_map(|it| it.strip_suffix(" deleted\n"));
                let deleted = deleted.filter(|it| !it.contains(' '));
                let deleted = deleted.filter(|it| packages.iter().all(|named| named.name != **it));
                let orphans: Vec<RequestedPackage> = deleted.map(RequestedPackage::named).collect();
                packages.extend(orphans);
            }
            "operator-delete" => spec["ensureConstraintSatisfiability"] = false.into(),
            _ => {}
        }
        let mut packages = packages.into_iter();
        if let Some(RequestedPackage { name, range: own }) = packages.next() {
            spec["package"] = name.into();
            if let Some(own) = own {
                spec["version"] = own.into();
            }
        }
        let others = packages.map(|RequestedPackage { name, range: own }| {
            RequestedPackage { name, range: own.or_else(|| range.clone()) }.to_string()
        });
        let others: Vec<String> = others.collect();
        if !others.is_empty() {
            spec["parameters"]["packages"] = json!(others);
        }
    }

    /// Requests an Action instead of the command, and checks that it ends as the command does.
    async fn request(&self, add_ons: &AddOns, name: &str, mut spec: Value) {
        let group = if self.user == "admin" { "system:masters" } else { "dev" };
        spec["requester"] = json!({ "username": self.user, "groups": [group] });
        let metadata = json!({ "name": name, "namespace": "default" });
        add_ons.until_listable().await;
        add_ons
            .apply(json!({
                "apiVersion": "olm.io/v1", "kind": "Action", "metadata": metadata, "spec": spec,
            }))
            .await;
        let named = format!("olm.io/v1 Action default/{name}");
        let status = || async { add_ons.object(&Named::parse(&named)).await["status"].clone() };
        let what = format!("the Action of `{}` ends", self.line);
        let mut ended = until(&what, status, |it| is_ended(it) || is_refused(it)).await;
        if !is_ended(&ended) {
            // The command does not wait any longer either.
            add_ons.change(&named, json!({ "spec": { "cancelled": true } })).await;
            ended = until(&what, status, is_ended).await;
        }
        let succeeds = self.exit == 0 || self.is_declined;
        assert_eq!(ended["state"] == "Succeeded", succeeds, "{}: {ended:#}", self.line);
    }
}

/// Returns an attribute of a spec; it is null if it is not there.
fn field<'a>(spec: &'a mut Value, attribute: &str) -> &'a mut Value {
    match attribute.split_once('.') {
        Some((outer, inner)) => &mut spec[outer][inner],
        None => &mut spec[attribute],
    }
}

/// Adds the items of a list to another one, which may be null.
fn extend(list: &mut Value, more: Value) {
    let items = [list.take(), more].into_iter().filter_map(|it| it.as_array().cloned());
    *list = items.flatten().collect();
}

/// Returns whether the status is that of an Action that has ended.
fn is_ended(status: &Value) -> bool {
    matches!(status["state"].as_str(), Some("Succeeded" | "Failed" | "Cancelled"))
}

/// Returns whether the status is that of an Action whose deletion the controller refuses.
fn is_refused(status: &Value) -> bool {
    let mut plan = status["plan"].as_array().into_iter().flatten();
    plan.any(|it| it["message"].as_str().is_some_and(|it| it.starts_with(REFUSED)))
}

/// Returns how two clusters differ, or which of their objects are not at rest.
async fn differences(by_hand: &AddOns, requested: &AddOns) -> Vec<String> {
    let (by_hand, requested) = match (compared(by_hand).await, compared(requested).await) {
        (Ok(by_hand), Ok(requested)) => (by_hand, requested),
        (by_hand, requested) => {
            return [by_hand.err(), requested.err()].into_iter().flatten().collect();
        }
    };
    let names: BTreeSet<&String> = by_hand.keys().chain(requested.keys()).collect();
    let differing = names.into_iter().filter(|name| by_hand.get(*name) != requested.get(*name));
    let texts = differing.map(|name| {
        let [by_hand, requested] =
            [&by_hand, &requested].map(|it| it.get(name).unwrap_or(&Value::Null));
        format!("{name} by hand: {by_hand}, by Actions: {requested}")
    });
    texts.collect()
}

/// Returns what is compared of a cluster.
///
/// # Errors
///
/// When the cluster is not at rest.
async fn compared(add_ons: &AddOns) -> Result<BTreeMap<String, Value>, String> {
    let bundles = bundles(add_ons.catalog.path());
    let catalog = add_ons.object(&Named::parse("olm.io/v1 Catalog fixture")).await;
    if catalog["status"]["bundles"] != bundles {
        return Err(format!("{bundles} bundles are published: {}", catalog["status"]));
    }
    let release = add_ons.harness.get(CLUSTER_VERSION, CLUSTER_VERSION_NAME).await;
    let definitions = objects(add_ons, DEFINITION).await?;
    let names: BTreeSet<String> =
        definitions.iter().map(|it| it["metadata"]["name"].to_string()).collect();
    let mut found = BTreeMap::from([
        ("the ClusterVersion".to_owned(), release["spec"].clone()),
        ("definitions".to_owned(), json!(names)),
    ]);
    for operator in objects(add_ons, OPERATOR).await? {
        let metadata = &operator["metadata"];
        let name = format!("Operator {}", metadata["name"]);
        if operator["status"]["observedGeneration"] != metadata["generation"] {
            return Err(format!("{name} is not at rest: {operator}"));
        }
        found.insert(name, compared_of(&operator));
    }
    Ok(found)
}

/// Returns what is compared of an Operator: nothing that depends on the moment.
fn compared_of(operator: &Value) -> Value {
    let (metadata, status) = (&operator["metadata"], &operator["status"]);
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    annotations.retain(|name, _| !WRITTEN_BY.contains(&name.as_str()));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions: BTreeMap<String, String> = conditions
        .map(|it| (it["type"].to_string(), format!("{} {}", it["status"], it["reason"])))
        .collect();
    json!({
        "spec": operator["spec"],
        "labels": metadata["labels"].as_object().cloned().unwrap_or_default(),
        "annotations": annotations,
        "isDeleting": metadata["deletionTimestamp"].is_string(),
        "bundle": [status["bundle"]["name"], status["bundle"]["version"]],
        "conditions": conditions,
    })
}

/// Returns all objects of a kind.
///
/// # Errors
///
/// When they cannot be listed, or not yet.
async fn objects(add_ons: &AddOns, kind: ApiKind) -> Result<Vec<Value>, String> {
    let listed = add_ons.harness.api(kind).list(&ListParams::default()).await;
    let listed = listed.map_err(|error| format!("{}: {error}", kind.plural))?;
    let objects = listed.items.into_iter();
    Ok(objects.map(|it| serde_json::to_value(it).expect("it is JSON")).collect())
}

/// Returns the number of the bundles of a catalog, which has a directory for each in that of its package.
fn bundles(catalog: &Path) -> u64 {
    let directories = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let packages = directories(catalog).map(|it| directories(&it.path()).count());
    packages.map(|it| it as u64).sum()
}
