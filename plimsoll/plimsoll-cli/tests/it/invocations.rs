//! Wrong invocations: what the program answers to each, and with which exit code.
//!
//! `invocations.txt` begins with files (`//- NAME`, then its content); a line `//-` ends them. Then
//! come the invocations: `$` and a command line, the lines of its standard output after `>`, those
//! of standard error after `!`, and the exit code after `?`. They run in a directory with these
//! files and links to the examples of the repository, without a cluster. Those of
//! `invocations-cluster.txt` run on one that has the sample release.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use k8s_testkit::ClusterKind;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use plimsoll_api::{ACTION, ACTION_CLASS, ApiKind, OPERATOR, crd};
use plimsoll_controller::api_resource;
use plimsoll_source::store::Signature;
use serde_json::{Value, json};

use crate::harness::{DEFINITION, Harness, OperatorSetup, kubeconfig, sample_payloads};
use crate::rights::apply_roles;
use crate::updates::store;

/// What kubectl runs to complete `kubectl operator`.
const COMPLETIONS: &str = "kubectl_complete-operator";

/// A row of the table.
#[derive(Default)]
struct Invocation<'a> {
    command: &'a str,
    answer: String,
}

/// The files and the invocations of the table.
fn parse(table: &str) -> (Vec<(&str, String)>, Vec<Invocation<'_>>) {
    let mut files: Vec<(&str, String)> = Vec::new();
    let mut invocations: Vec<Invocation<'_>> = Vec::new();
    let mut in_files = true;
    for line in table.lines() {
        match line.strip_prefix("//-") {
            Some("") => in_files = false,
            Some(name) => files.push((name.trim(), String::new())),
            None if in_files => {
                if let Some((_, content)) = files.last_mut() {
                    content.push_str(line);
                    content.push('\n');
                }
            }
            None if line.is_empty() || line.starts_with('#') => {}
            None => match line.strip_prefix("$ ") {
                Some(command) => {
                    invocations.push(Invocation { command, ..Invocation::default() });
                }
                None => {
                    let row = invocations.last_mut().expect("an answer follows its command");
                    row.answer.push_str(line);
                    row.answer.push('\n');
                }
            },
        }
    }
    (files, invocations)
}

/// The words of a command line; single quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// What the program answers, in the notation of the table.
fn answer(line: &str, directory: &Path, environment: &[(&str, &str)]) -> String {
    let mut command = match line.starts_with(COMPLETIONS) {
        true => Command::new(directory.join(COMPLETIONS)),
        false => Command::new(env!("CARGO_BIN_EXE_plimsoll")),
    };
    command.env_clear().env("HOME", directory.join("home")).current_dir(directory);
    command.envs(environment.iter().copied());
    let mut words = words(line).into_iter().peekable();
    while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
        command.env(name, value);
        words.next();
    }
    let name = words.next();
    assert!(name.is_some_and(|it| it == "plimsoll" || it == COMPLETIONS), "{line}");
    let output = command.args(words).output().expect("the program runs");
    let mut answer = String::new();
    for (sign, bytes) in [('>', output.stdout), ('!', output.stderr)] {
        for text in String::from_utf8_lossy(&bytes).lines() {
            // How old a catalog is depends on the moment.
            let text = match text.split_once(' ') {
                Some(("state:", _)) => "state: …",
                Some(("catalog:", _)) => "catalog: …",
                Some(_) | None => text,
            };
            let text = format!("{sign} {text}");
            writeln!(answer, "{}", text.trim_end()).expect("a string takes everything");
        }
    }
    let code = output.status.code().expect("no signal ends it");
    writeln!(answer, "? {code}").expect("a string takes everything");
    answer
}

/// Runs the invocations of a table in a directory, of which there are `minimum` at least: who
/// shortens a table notices.
fn check(name: &str, minimum: usize, directory: &Path, environment: &[(&str, &str)]) {
    let table = fs::read_to_string(format!("tests/it/{name}")).expect("the table");
    let (files, invocations) = parse(&table);
    let program = directory.join(COMPLETIONS);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), program).expect("a link");
    let examples = std::path::absolute("../../examples").expect("a working directory");
    for name in ["payloads", "catalog", "bundles", "faults"] {
        std::os::unix::fs::symlink(examples.join(name), directory.join(name)).expect("a link");
    }
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("a directory");
        fs::write(path, content).expect("a file");
    }
    let mut wrong = String::new();
    for Invocation { command, answer: expected } in &invocations {
        let actual = answer(command, directory, environment);
        if actual != *expected {
            write!(wrong, "$ {command}\n{actual}\n").expect("a string takes everything");
        }
    }
    assert!(wrong.is_empty(), "answers that differ from {name}:\n\n{wrong}");
    assert!(invocations.len() >= minimum, "{} invocations", invocations.len());
}

#[test]
fn wrong_invocations_are_answered_with_what_is_wrong_and_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    check("invocations.txt", 150, directory.path(), &[]);
}

/// Objects of the add-on layer, which no controller looks at.
fn objects() -> Vec<(ApiKind, &'static str, Value)> {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "olm.io/v1", "kind": kind, "metadata": { "name": name }, "spec": spec,
        })
    };
    let action = |name: &str| {
        object("Action", name, json!({ "actionClass": "operator-delete", "package": "lantern" }))
    };
    let class = json!({
        "controller": "example.com/seal", "description": "Makes a ConfigMap immutable",
        "schema": { "type": "object" },
    });
    vec![
        (OPERATOR, "", object("Operator", "lantern", json!({}))),
        (OPERATOR, "", object("Operator", "ledger", json!({}))),
        (ACTION, "default", action("first")),
        (ACTION, "kube-system", action("second")),
        (ACTION_CLASS, "", object("ActionClass", "seal", class)),
    ]
}

/// The kubeconfigs beside the administrator's: users who may only read, or do nothing.
const USERS: [&str; 2] = ["reader", "nobody"];

#[test]
fn a_cluster_is_not_changed_by_what_is_unknown_or_not_permitted() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let (harness, _listening) = runtime.block_on(async {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&first), second];
        let setup = OperatorSetup::default();
        let mut harness = Harness::start(ClusterKind::Embedded, &payloads, setup).await;
        harness.store = Some(store(Signature::NotSigned));
        harness.control();
        harness.completed(&first.release.version).await;
        harness.cluster_version_until(|status| status["availableUpdates"].is_array()).await;
        for manifest in [crd::operator_manifests(), crd::action_manifests()].concat() {
            let object = serde_json::from_value(manifest).expect("a definition");
            let created = harness.api(DEFINITION).create(&PostParams::default(), &object).await;
            created.expect("it is accepted");
        }
        for (kind, namespace, object) in objects() {
            let resource = api_resource(kind);
            let api: Api<DynamicObject> = match namespace {
                "" => Api::all_with(harness.client.clone(), &resource),
                namespace => Api::namespaced_with(harness.client.clone(), namespace, &resource),
            };
            let object = serde_json::from_value(object).expect("an object");
            api.create(&PostParams::default(), &object).await.expect("it is accepted");
        }
        let rule =
            json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"] });
        let group = "rbac.authorization.k8s.io";
        apply_roles(
            &harness,
            &[
                json!({
                    "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
                    "metadata": { "name": "reader" }, "rules": [rule],
                }),
                json!({
                    "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
                    "metadata": { "name": "reader" },
                    "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "reader" },
                    "subjects": [{ "apiGroup": group, "kind": "User", "name": "reader" }],
                }),
            ],
        )
        .await;
        let (kubeconfig, listening) = kubeconfig(&harness.cluster).await;
        let write = |name: &str, kubeconfig: &Value| {
            let path = directory.path().join(name);
            fs::write(path, kubeconfig.to_string()).expect("a kubeconfig");
        };
        write("admin.yaml", &kubeconfig);
        for user in USERS {
            let mut kubeconfig = kubeconfig.clone();
            kubeconfig["users"][0]["user"]["as"] = json!(user);
            write(&format!("{user}.yaml"), &kubeconfig);
        }
        harness.stop().await;
        (harness.without_operators(), listening)
    });
    let server = harness.cluster.server().expect("it is embedded").clone();
    let before = server.resource_version();
    check("invocations-cluster.txt", 70, directory.path(), &[("KUBECONFIG", "admin.yaml")]);
    assert_eq!(server.resource_version(), before, "nothing is written");
}

/// Commands that write JSON without a cluster.
const JSON: [&str; 22] = [
    "release info payloads/v1.0.0",
    "release list payloads",
    "release tree payloads/v1.0.0",
    "release images payloads/v1.0.0",
    "release lint payloads/v1.0.0",
    "release plan --from payloads/v1.0.0 --to payloads/v1.1.0",
    "release diff payloads/v1.0.0 payloads/v1.1.0",
    "capability list --release payloads/v1.0.0",
    "capability explain Console --release payloads/v1.0.0",
    "cluster-version render --release payloads/v1.0.0",
    "rehearse --from payloads/v1.0.0 --to payloads/v1.1.0",
    "catalog search catalog",
    "catalog show catalog lantern",
    "catalog lint catalog",
    "catalog info catalog",
    "bundle validate bundles/lantern/2.2.0",
    "bundle render bundles/lantern/2.2.0",
    "resolve lantern --catalog catalog",
    "operator search --catalog catalog",
    "operator show lantern --catalog catalog",
    "operator who-provides Beacon --catalog catalog",
    "version",
];

/// Fields with what is named by payloads, or is theirs.
const FOREIGN: [&str; 9] = [
    "annotations",
    "labels",
    "matchLabels",
    "data",
    "counts",
    "images",
    "expects",
    "before",
    "after",
];

/// The fields that are not in camelCase, each with its place.
fn other_names(value: &Value, place: &str, found: &mut Vec<String>) {
    let Value::Object(fields) = value else {
        let items = value.as_array().into_iter().flatten();
        return items.for_each(|item| other_names(item, place, found));
    };
    for (name, value) in fields {
        let place = format!("{place}.{name}");
        let is_camel_case = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|it| it.is_ascii_alphanumeric());
        if !is_camel_case {
            found.push(place.clone());
        }
        if !FOREIGN.contains(&name.as_str()) {
            other_names(value, &place, found);
        }
    }
}

#[test]
fn fields_of_json_are_in_camel_case() {
    let home = tempfile::tempdir().expect("a directory");
    let mut wrong = Vec::new();
    for line in JSON {
        let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(line.split(' '))
            .args(["-o", "json"])
            .env_clear()
            .env("HOME", home.path())
            .current_dir("../../examples")
            .output()
            .expect("the program runs");
        match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(value) => other_names(&value, line, &mut wrong),
            Err(error) => {
                let said = String::from_utf8_lossy(&output.stderr);
                wrong.push(format!("{line}: {error}: {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
