//! A class of Actions that a package of a catalog brings, and that another controller serves, with `kubectl`
//! alone.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, Output};

use k8s_testkit::ClusterKind;
use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::shell::Shell;
use super::{AddOns, Fixture, Named};
use crate::harness::{kubeconfig, on_each_cluster, until};

/// A `kubectl` that records the changes that are made, and interrupts the script at the one with the number
/// AT: it is killed with all of its processes before or after it, or another one runs before it.
const KUBECTL: &str = r#"#!/bin/sh
recording=$PATH
PATH=$KUBECTL_PATH
[ "$1" = patch ] || exec kubectl "$@"
echo "$2" >>"$JOURNAL/requested"
moment=
[ "$(wc -l <"$JOURNAL/requested")" -ne "$AT" ] || moment=$MOMENT
case $moment in
before) kill -9 0 ;;
another) AT=0 PATH=$recording sh "$SCRIPT" once >&2 ;;
esac
kubectl "$@" || exit
echo "$2" >>"$JOURNAL/made"
[ "$moment" != after ] || kill -9 0
"#;

/// Returns an Action in namespace `team-a`.
fn action(name: &str, spec: &Value) -> Value {
    let metadata = json!({ "name": name, "namespace": "team-a" });
    json!({ "apiVersion": "olm.io/v1", "kind": "Action", "metadata": metadata, "spec": spec })
}

/// Returns an Action that seals a ConfigMap.
fn seal(name: &str, config_map: &str, requester: &Value) -> Value {
    let parameters = json!({ "name": config_map });
    let class = "configmap-seal";
    let spec = json!({ "actionClass": class, "parameters": parameters, "requester": requester });
    action(name, &spec)
}

/// Returns the requester who may seal `ConfigMaps` by hand.
fn alice() -> Value {
    json!({ "username": "alice", "groups": ["dev"] })
}

/// Returns the objects of an example.
fn example(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(examples().join(file)).expect("an example");
    let documents = plimsoll_content::yaml::parse(&text);
    documents.into_iter().map(|it| it.value.expect("it is YAML")).collect()
}

fn examples() -> PathBuf {
    std::path::absolute("../../examples/actions").expect("a working directory")
}

/// The script of the other controller, with the permissions of the example.
struct Controller {
    directory: TempDir,
    /// Serves an embedded cluster.
    _listening: JoinSet<()>,
}

impl Controller {
    /// Returns the script for a cluster with namespace `team-a`, where group dev may patch `ConfigMaps`.
    async fn new(add_ons: &AddOns) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for object in objects() {
            add_ons.apply(object).await;
        }
        let (mut kubeconfig, listening) = kubeconfig(&add_ons.harness.cluster).await;
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        write("kubeconfig", &kubeconfig.to_string());
        let kubectl = write("kubectl", KUBECTL);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(kubectl, executable).expect("it is a file of this user");
        let controller = Self { directory, _listening: listening };
        let mut token = Command::new("kubectl");
        token.args(["create", "token", "configmap-seal", "--namespace", "configmap-seal"]);
        let token = controller.output(token, 0, "").await;
        let printed = String::from_utf8_lossy(&token.stdout);
        assert!(token.status.success(), "{}", String::from_utf8_lossy(&token.stderr));
        kubeconfig["users"][0]["user"] = json!({ "token": printed.trim() });
        let path = controller.directory.path().join("kubeconfig");
        std::fs::write(path, kubeconfig.to_string()).expect("a kubeconfig");
        // A server may know of new roles a moment later.
        let ran = || controller.run(0, "");
        until("the script may list Actions", ran, |it| it.status.success()).await;
        controller
    }

    /// Runs the script once, interrupted at the change with this number; 0 for none.
    async fn run(&self, at: usize, moment: &str) -> Output {
        let _ = std::fs::remove_file(self.directory.path().join("requested"));
        let mut command = Command::new("sh");
        command.arg(examples().join("controller.sh")).arg("once");
        self.output(command, at, moment).await
    }

    /// Runs the script once, to its end.
    async fn serve(&self) {
        let ran = self.run(0, "").await;
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    async fn output(&self, mut command: Command, at: usize, moment: &str) -> Output {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let real: Vec<PathBuf> = assets.into_iter().chain(std::env::split_paths(&path)).collect();
        let joined = |paths: &[PathBuf]| std::env::join_paths(paths).expect("no path has a colon");
        let directory = self.directory.path();
        command
            .env("PATH", joined(&[&[directory.to_owned()], real.as_slice()].concat()))
            .env("KUBECTL_PATH", joined(&real))
            .env("KUBECONFIG", directory.join("kubeconfig"))
            .env("HOME", directory)
            .env("JOURNAL", directory)
            .env("SCRIPT", examples().join("controller.sh"))
            .env("AT", at.to_string())
            .env("MOMENT", moment)
            .process_group(0);
        tokio::process::Command::from(command).output().await.expect("it runs")
    }

    /// Checks that what the script has permissions for may not write the status of an Action, for one of the
    /// reasons. If more than one policy denies a request, kube-apiserver answers with the reason of any.
    async fn is_refused(&self, name: &str, reasons: &[&str]) {
        let patch = || async {
            let mut command = Command::new("kubectl");
            command.args(["patch", "actions.olm.io", name, "--namespace", "team-a"]);
            command.args(["--subresource", "status", "--type", "merge", "--patch"]);
            command.arg(json!({ "status": { "explanation": ["text"] } }).to_string());
            let output = self.output(command, 0, "").await;
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        // A server may know of a new policy a moment later.
        let is_refused = |it: &String| reasons.iter().any(|reason| it.contains(reason));
        until("the write is refused", patch, is_refused).await;
    }

    /// Returns how often a `ConfigMap` was changed.
    fn changes(&self, config_map: &str) -> usize {
        let made = std::fs::read_to_string(self.directory.path().join("made")).unwrap_or_default();
        made.lines().filter(|it| it.strip_prefix("configmap/") == Some(config_map)).count()
    }
}

/// Returns what the script needs, and a role of the requesters.
fn objects() -> Vec<Value> {
    let namespace = |name: &str| {
        let metadata = json!({ "name": name });
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
    };
    let account = json!({ "name": "configmap-seal", "namespace": "configmap-seal" });
    let metadata = json!({ "name": "dev", "namespace": "team-a" });
    let version = "rbac.authorization.k8s.io/v1";
    let group = "rbac.authorization.k8s.io";
    let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"] });
    let mut objects = vec![
        namespace("configmap-seal"),
        namespace("team-a"),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": account }),
        json!({ "apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule] }),
        json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": "Role", "name": "dev" },
            "subjects": [{ "apiGroup": group, "kind": "Group", "name": "dev" }],
        }),
    ];
    objects.extend(example("permissions.yaml"));
    objects
}

/// Creates a `ConfigMap`, and an Action of its name.
async fn request(add_ons: &AddOns, name: &str, config_map: &str, requester: &Value) {
    let metadata = json!({ "name": name, "namespace": "team-a" });
    add_ons.apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })).await;
    add_ons.apply(seal(name, config_map, requester)).await;
}

/// Returns the status of an Action.
async fn status(add_ons: &AddOns, name: &str) -> Value {
    add_ons.object(&Named::parse(&format!("olm.io/v1 Action team-a/{name}"))).await["status"]
        .clone()
}

/// Checks how an Action ended, and whether the `ConfigMap` of its name is sealed.
async fn check(add_ons: &AddOns, name: &str, outcome: &str, reason: &str, is_sealed: bool) {
    let status = status(add_ons, name).await;
    let succeeded = if outcome == "SUCCEEDED" { "True" } else { "False" };
    let condition = &status["conditions"][0];
    assert_eq!(status["outcome"], outcome, "{name}: {status:#}");
    assert_eq!(status["state"].as_str().map(str::to_uppercase).as_deref(), Some(outcome), "{name}");
    assert_eq!(condition["type"], "ActionSucceeded", "{name}: {status:#}");
    assert_eq!(condition["status"], succeeded, "{name}: {status:#}");
    assert_eq!(condition["reason"], reason, "{name}: {status:#}");
    assert!(status["completionTime"].is_string(), "{name}: {status:#}");
    if reason == "PatchFailed" {
        assert_eq!(status["failure"]["item"], name, "{status:#}");
        assert_eq!(status["failure"]["left"][0], format!("seal ConfigMap {name}"), "{status:#}");
    }
    let config_map = Named::parse(&format!("v1 ConfigMap team-a/{name}"));
    let sealed = add_ons.object(&config_map).await["immutable"] == true;
    assert_eq!(sealed, is_sealed, "{name}: {status:#}");
}

/// Returns a cluster that has the class of the example and nothing else, and the script that serves it.
async fn served(kind: ClusterKind) -> (AddOns, Controller) {
    let add_ons = AddOns::start_with(kind, "[]", Some(ActionSettings::default())).await;
    for object in example("class.yaml") {
        add_ons.apply(object).await;
    }
    let controller = Controller::new(&add_ons).await;
    (add_ons, controller)
}

#[test]
fn a_class_of_another_controller_is_served_by_that_one_alone() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start_with(kind, "[]", Some(ActionSettings::default())).await;
        let mut objects = example("class.yaml").into_iter();
        let policy = objects.find(|it| it["kind"] == "ActionPolicy").expect("the class is guarded");
        // The policy is the administrator's, and the class that of the package.
        add_ons.apply(policy).await;
        Fixture::publish(add_ons.catalog.path(), "seal", "1.0.0");
        add_ons.request("seal", json!({ "version": "1.0.0" })).await;
        add_ons.present("olm.io/v1 ActionClass configmap-seal").await;
        // Classes and Actions are watched each by itself. One that begins now knows the class first.
        add_ons.stop().await;
        add_ons.control();
        let namespace = json!({ "name": "team-a" });
        add_ons
            .apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": namespace }))
            .await;
        request(&add_ons, "settings", "settings", &alice()).await;
        add_ons.apply(seal("missing", "missing", &alice())).await;
        // An Action of this controller that comes later is executed: the others were observed and ignored.
        let requester = json!({ "username": "admin", "groups": ["system:masters"] });
        let ours = json!({ "actionClass": "autoremove", "requester": requester });
        add_ons.apply(action("ours", &ours)).await;
        let state = || async { status(&add_ons, "ours").await["state"].clone() };
        until("our Action ends", state, |it| it == "Succeeded").await;
        for name in ["settings", "missing"] {
            assert_eq!(status(&add_ons, name).await, Value::Null);
        }
        if Shell::is_there() {
            Controller::new(&add_ons).await.serve().await;
            check(&add_ons, "settings", "SUCCEEDED", "ActionSucceeded", true).await;
            check(&add_ons, "missing", "FAILED", "PatchFailed", false).await;
        }
        // The class goes with its package, and what is requested of it waits until it is back.
        add_ons.delete("olm.io/v1 Operator seal").await;
        add_ons.absent("olm.io/v1 ActionClass configmap-seal").await;
        add_ons.apply(seal("late", "settings", &alice())).await;
        let late = || async { status(&add_ons, "late").await["conditions"][0]["reason"].clone() };
        until("it waits for its class", late, |it| it == "ActionClassNotFound").await;
        add_ons.stop().await;
    });
}

#[test]
fn a_script_that_is_killed_at_any_write_changes_everything_once() {
    if !Shell::is_there() {
        return;
    }
    on_each_cluster(|kind| async move {
        let (mut add_ons, controller) = served(kind).await;
        // It claims, changes the ConfigMap, and reports: how often it had to begin.
        for (at, moment, attempts) in [
            (1, "before", 1),
            (1, "after", 2),
            (1, "another", 1),
            (2, "before", 2),
            (2, "after", 2),
            (2, "another", 2),
            (3, "before", 2),
            (3, "after", 1),
            (3, "another", 2),
        ] {
            let name = format!("interrupted-{moment}-{at}");
            request(&add_ons, &name, &name, &alice()).await;
            let ran = controller.run(at, moment).await;
            let signal = (moment != "another").then_some(9);
            let printed = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.signal(), signal, "{name}: {printed}");
            let started = status(&add_ons, &name).await["startTime"].clone();
            controller.serve().await;
            check(&add_ons, &name, "SUCCEEDED", "ActionSucceeded", true).await;
            assert_eq!(controller.changes(&name), 1, "{name}");
            let ended = status(&add_ons, &name).await;
            assert_eq!(ended["attempts"], attempts, "{name}: {ended:#}");
            assert!(started.is_null() || ended["startTime"] == started, "{name}: {ended:#}");
            // What has ended stays as it is.
            controller.serve().await;
            assert_eq!(status(&add_ons, &name).await, ended, "{name}");
        }
        add_ons.stop().await;
    });
}

#[test]
fn a_script_cancels_what_it_has_not_done_and_exceeds_no_permission() {
    if !Shell::is_there() {
        return;
    }
    on_each_cluster(|kind| async move {
        let (mut add_ons, controller) = served(kind).await;
        // At which write the script is killed before it is cancelled, and what has become of the change.
        for (at, moment, outcome, reason, is_sealed) in [
            (1, "before", "CANCELLED", "ActionCancelled", false),
            (1, "after", "CANCELLED", "ActionCancelled", false),
            (2, "before", "CANCELLED", "ActionCancelled", false),
            (2, "after", "SUCCEEDED", "ActionSucceeded", true),
        ] {
            let name = format!("cancelled-{moment}-{at}");
            request(&add_ons, &name, &name, &alice()).await;
            controller.run(at, moment).await;
            let named = format!("olm.io/v1 Action team-a/{name}");
            add_ons.change(&named, json!({ "spec": { "cancelled": true } })).await;
            controller.serve().await;
            check(&add_ons, &name, outcome, reason, is_sealed).await;
            assert_eq!(controller.changes(&name), usize::from(is_sealed), "{name}");
        }
        // What a requester may not do by hand is not done for them either, whatever they write.
        let bob = json!({ "username": "bob" });
        let two = json!({ "username": "bob\nalice", "groups": ["system:masters"] });
        let (option, lines) = ("--as-group=system:masters", "of-lines\nalice\ndev");
        for (name, config_map, requester, reason) in [
            ("of-bob", "of-bob", &bob, "PatchFailed"),
            ("of-two", "of-two", &two, "InvalidAction"),
            ("of-option", option, &bob, "InvalidAction"),
            ("of-lines", lines, &bob, "InvalidAction"),
        ] {
            request(&add_ons, name, config_map, requester).await;
            controller.serve().await;
            check(&add_ons, name, "FAILED", reason, false).await;
            assert_eq!(controller.changes(name), 0, "{name}");
        }
        let requester = json!({ "username": "admin", "groups": ["system:masters"] });
        let ours = json!({ "actionClass": "autoremove", "requester": requester });
        add_ons.apply(action("ours", &ours)).await;
        let by_plimsoll = "may not write the status of Actions of class autoremove";
        let by_the_example = "this controller serves the class configmap-seal alone";
        controller.is_refused("ours", &[by_plimsoll, by_the_example]).await;
        controller.is_refused("of-bob", &["the Action has ended"]).await;
        add_ons.stop().await;
    });
}
