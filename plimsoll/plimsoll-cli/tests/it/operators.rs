//! Operators on whole clusters: catalogs are published, Operators installed, upgraded and deleted, and
//! simulated operators play what their bundles run.
//!
//! Most tests are scenarios, lists of steps in `operators/*.yaml` (see `scenarios`).

mod commands;
mod fixture;
mod foreign;
mod interrupted;
mod refused;
mod scenario;
mod scenarios;
mod shell;
mod survey;
mod tenants;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clap::Parser;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use k8s_testkit::faults::Requests;
use k8s_testkit::{ClusterKind, Fault, Faults};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::client::Body;
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use plimsoll_api::{CATALOG, OPERATOR, OPERATOR_REVISION, classes, crd, policies};
use plimsoll_cli::commands::deploy::{RbacArguments, rbac};
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_controller::actions::ActionSettings;
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{Clock, Error, Leadership, OperatorsView};
use plimsoll_plan::update::preconditions::FailedPrecondition;
use plimsoll_simulation::cluster_state::ClusterState;
use plimsoll_simulation::sample;
use plimsoll_simulation::simulated_operators::Faults as OperatorFaults;
use plimsoll_source::store::{PayloadSet, Signature};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::harness::{
    Harness, OperatorSetup, PATIENCE, condition, on_any_cluster, on_each_cluster, sample_payloads,
    until,
};
use crate::install::create_cluster_version;
use crate::rights::{apply_roles, limited_client, until_granted};
use crate::updates::store;
use fixture::Fixture;
use shell::Shell;

#[derive(Parser)]
struct RbacLine {
    #[command(flatten)]
    arguments: RbacArguments,
}

/// The time of this machine, set forward by a test.
#[derive(Default)]
struct ShiftedClock(AtomicI64);

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// A cluster with a catalog and a controller of Operators.
pub(crate) struct AddOns {
    pub(crate) harness: Harness,
    catalog: TempDir,
    /// What commands write, or read beside the cluster.
    files: TempDir,
    shell: OnceCell<Shell>,
    clock: Arc<ShiftedClock>,
    view: watch::Sender<OperatorsView>,
    controller: Option<(CancellationToken, JoinHandle<Result<(), Error>>)>,
    /// How Actions are executed; `None` if they are not.
    actions: Option<ActionSettings>,
}

impl AddOns {
    /// Requests an update of the platform whose preconditions do not hold; gives the message.
    async fn rejected_update(&self, version: &str) -> String {
        self.harness.set_spec(json!({ "desiredUpdate": { "version": version } })).await;
        let is_rejected =
            |status: &Value| condition(status, "ReleaseAccepted")["reason"] == "PreconditionChecks";
        let status = self.harness.cluster_version_until(is_rejected).await;
        condition(&status, "ReleaseAccepted")["message"].to_string()
    }

    /// A cluster where Catalog `fixture` is the one that a test publishes to.
    async fn start(kind: ClusterKind, faults: &str) -> Self {
        Self::start_with(kind, faults, None).await
    }

    /// The same, where Actions are executed if it is said how.
    async fn start_with(kind: ClusterKind, faults: &str, actions: Option<ActionSettings>) -> Self {
        let mut add_ons = Self::without_catalog(kind, faults).await;
        add_ons.actions = actions;
        let path = add_ons.catalog.path().to_owned();
        add_ons.control();
        add_ons.add_catalog("fixture", &path).await;
        add_ons
    }

    async fn without_catalog(kind: ClusterKind, faults: &str) -> Self {
        let (first, second) = sample_payloads();
        let faults = OperatorFaults::parse(faults).expect("the faults are in order");
        let setup = OperatorSetup(std::time::Duration::ZERO, faults);
        let harness = Harness::start(kind, &[first, second], setup).await;
        let catalog = tempfile::tempdir().expect("a directory");
        Fixture::begin(catalog.path());
        Self {
            harness,
            catalog,
            files: tempfile::tempdir().expect("a directory"),
            shell: OnceCell::new(),
            clock: Arc::new(ShiftedClock::default()),
            view: watch::Sender::default(),
            controller: None,
            actions: None,
        }
    }

    /// Installs the first version of the sample release, without optional parts.
    async fn install_release(&mut self) {
        self.harness.store = Some(store(Signature::NotSigned));
        create_cluster_version(&self.harness, &json!({ "baselineCapabilitySet": "None" })).await;
        self.harness.control();
        self.harness.completed("1.0.0").await;
    }

    fn control(&mut self) {
        self.control_with(self.harness.client.clone());
    }

    fn control_with(&mut self, client: Client) {
        let stop = CancellationToken::new();
        let controller = OperatorController {
            client,
            clock: Arc::clone(&self.clock) as _,
            settings: OperatorSettings {
                leadership: Leadership::Alone,
                cache: None,
                actions: self.actions.clone(),
            },
            view: self.view.clone(),
        };
        let task = tokio::spawn(controller.run(stop.clone()));
        self.controller = Some((stop, task));
    }

    /// Ends the controller as SIGKILL would.
    async fn kill(&mut self) {
        let (_, task) = self.controller.take().expect("a controller runs");
        task.abort();
        let _ = task.await;
    }

    async fn stop(&mut self) {
        let (stop, task) = self.controller.take().expect("a controller runs");
        stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, task).await.expect("the controller ends");
        ended.expect("it does not panic").expect("it ends well");
    }

    /// Creates a Catalog of a directory, once the kind is served.
    async fn add_catalog(&self, name: &str, path: &Path) {
        self.apply(json!({
            "apiVersion": "olm.io/v1",
            "kind": "Catalog",
            "metadata": { "name": name },
            "spec": {
                "source": { "type": "Directory", "path": path.to_string_lossy() },
                "pollInterval": "1s",
            },
        }))
        .await;
    }

    /// Applies an object as an administrator does, as soon as its kind is served.
    async fn apply(&self, object: Value) -> Value {
        let parameters = PatchParams::apply("administrator").force();
        let patch = Patch::Apply(object.clone());
        let applied = || async {
            let resource = Named::of(&object);
            let api = resource.api(&self.harness.client);
            match api.patch(&resource.name, &parameters, &patch).await {
                Ok(object) => Ok(serde_json::to_value(object).expect("it is JSON")),
                Err(error) => Err(error.to_string()),
            }
        };
        until("it is applied", applied, Result::is_ok).await.expect("it was applied")
    }

    /// Requests an Operator; what a test sets before and not here is removed.
    async fn request(&self, name: &str, spec: Value) {
        let metadata = json!({ "name": name });
        let kind = "Operator";
        self.apply(json!({
            "apiVersion": "olm.io/v1", "kind": kind, "metadata": metadata, "spec": spec,
        }))
        .await;
    }

    /// What an Operator reports, as scenarios write it: conditions as `STATUS REASON: MESSAGE` by type,
    /// and the fields that matter as text.
    async fn reported(&self, name: &str) -> BTreeMap<String, String> {
        let operator = self.harness.get(OPERATOR, name).await;
        let status = &operator["status"];
        let mut reported: BTreeMap<String, String> = BTreeMap::new();
        // What is reported of an older spec is not what is waited for.
        if status["observedGeneration"] != operator["metadata"]["generation"] {
            return reported;
        }
        for it in status["conditions"].as_array().into_iter().flatten() {
            let text = |field: &str| it[field].as_str().unwrap_or_default();
            let told = format!("{} {}: {}", text("status"), text("reason"), text("message"));
            reported.insert(text("type").to_owned(), told);
        }
        let field = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        reported.insert("version".to_owned(), field(&status["resolvedVersion"]));
        reported.insert("generation".to_owned(), field(&operator["metadata"]["generation"]));
        let orphaned = status["orphaned"].as_bool().unwrap_or(false);
        reported.insert("orphaned".to_owned(), orphaned.to_string());
        let dependants = status["dependants"].as_array().into_iter().flatten();
        let dependants: Vec<&str> = dependants.filter_map(|it| it["operator"].as_str()).collect();
        reported.insert("dependants".to_owned(), dependants.join(" "));
        let dependencies = status["dependencies"].as_array().into_iter().flatten();
        let dependencies: Vec<String> = dependencies
            .map(|it| {
                let text = |field: &str| it[field].as_str().unwrap_or_default();
                let (operator, version) = (text("operator"), text("version"));
                format!("{} {operator} {version} {}", it["satisfied"], text("requirement"))
            })
            .collect();
        reported.insert("dependencies".to_owned(), dependencies.join(", "));
        reported
    }

    /// Waits until an Operator reports what a test expects.
    async fn expect(&self, name: &str, expected: &[(&str, &str)]) {
        let is_as_expected = |found: &BTreeMap<String, String>| {
            expected.iter().all(|(what, text)| found.get(*what).is_some_and(|it| begins(it, text)))
        };
        let what = format!("{name} reports {expected:?}");
        self.until_reported(name, &what, is_as_expected).await;
    }

    async fn object(&self, named: &Named) -> Value {
        let object = named.api(&self.harness.client).get_opt(&named.name).await;
        match object {
            Ok(object) => serde_json::to_value(object).expect("it is JSON"),
            // Nothing is there of a kind that is not served.
            Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
            Err(error) => json!({ "error": error.to_string() }),
        }
    }

    async fn present(&self, named: &str) -> Value {
        let object = || async { self.object(&Named::parse(named)).await };
        let is_there = |it: &Value| {
            it["metadata"]["uid"].is_string() && it["metadata"]["deletionTimestamp"].is_null()
        };
        until(&format!("{named} is there"), object, is_there).await
    }

    async fn absent(&self, named: &str) {
        let object = || async { self.object(&Named::parse(named)).await };
        until(&format!("{named} is gone"), object, Value::is_null).await;
    }

    async fn delete(&self, named: &str) {
        let named = Named::parse(named);
        let api = named.api(&self.harness.client);
        api.delete(&named.name, &DeleteParams::default()).await.expect("it may be deleted");
    }

    /// What an API server warns of who would delete an Operator.
    async fn warnings_of_deletion(&self, name: &str) -> String {
        let request = Request::delete(format!("/apis/olm.io/v1/operators/{name}?dryRun=All"));
        let request = request.body(Body::empty()).expect("it is a request");
        let response = self.harness.client.send(request).await.expect("it is answered");
        assert!(response.status().is_success(), "{}", response.status());
        let warnings = response.headers().get_all("warning").iter();
        warnings.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()).collect()
    }

    /// Changes an object by a merge patch, as somebody else.
    async fn change(&self, named: &str, patch: Value) {
        let named = Named::parse(named);
        let parameters =
            PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
        let (api, patch) = (named.api(&self.harness.client), Patch::Merge(patch));
        api.patch(&named.name, &parameters, &patch).await.expect("it may be changed");
    }
}

/// Whether a text begins as expected; nothing else than no text does where none is expected.
fn begins(found: &str, expected: &str) -> bool {
    if expected.is_empty() { found.is_empty() } else { found.starts_with(expected) }
}

impl Drop for AddOns {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.controller {
            task.abort();
        }
    }
}

/// An object, written `VERSION KIND [NAMESPACE/]NAME`.
struct Named {
    kind: GroupVersionKind,
    namespace: String,
    name: String,
}

impl Named {
    fn parse(text: &str) -> Self {
        let (version, rest) = text.split_once(' ').expect("a version comes first");
        let (kind, name) = rest.split_once(' ').expect("a kind and a name follow");
        let (namespace, name) = name.rsplit_once('/').unwrap_or(("", name));
        Self::new(version, kind, namespace, name)
    }

    fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let text = |pointer: &str| text(pointer).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        Self::new(text("/apiVersion"), text("/kind"), namespace, name)
    }

    fn new(version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, kind);
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        let resource = kube::core::ApiResource::from_gvk(&self.kind);
        match self.namespace.as_str() {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        }
    }
}

#[test]
fn a_deletion_stops_if_the_cluster_is_not_any_more_as_it_was_shown() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "foo", "1.2.3");
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.5");
        for (name, version) in [("foo", "1.2.3"), ("bar", "1.2.5")] {
            add_ons.request(name, json!({ "version": version })).await;
        }
        add_ons.expect("bar", &[("Progressing", "False AsExpected"), ("dependants", "foo")]).await;
        // Somebody creates an object of its kind while the person thinks.
        let named = Named::parse("bar.example.com/v1 Bar default/one");
        let bars = named.api(&add_ons.harness.client);
        let somebody = async move {
            let object = DynamicObject::new("one", &kube::core::ApiResource::from_gvk(&named.kind));
            bars.create(&Default::default(), &object).await.expect("it may be created");
        };
        let shows = [
            "The cluster has changed since this was planned:\n",
            "+   workloads: 1 Bar.bar.example.com in default\n",
        ];
        let error = "nothing was deleted: run the command again to see the present plan";
        commands::RunCommand::failing("delete bar", &shows, error)
            .play_with(&add_ons, commands::answered_after(somebody, "y\n"))
            .await;
        add_ons.present("apps/v1 Deployment bar/bar-operator").await;
        add_ons.present("olm.io/v1 Operator bar").await;
        add_ons.stop().await;
    });
}

#[test]
fn what_is_agreed_to_is_not_done_if_it_is_planned_differently_by_then() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        for (package, version) in
            [("foo", "1.2.2"), ("bar", "1.2.7"), ("baz", "1.5.6"), ("fiz", "2.9.2")]
        {
            Fixture::publish(add_ons.catalog.path(), package, version);
        }
        add_ons.request("fiz", json!({ "version": "2.9.2" })).await;
        add_ons.expect("fiz", &[("Installed", "True"), ("Progressing", "False")]).await;
        Fixture::publish(add_ons.catalog.path(), "fiz", "2.9.6");
        let resolve = "resolve foo --version-range <3 --catalog fixture=CATALOG";
        // What is published while the person thinks, and the lines that differ then.
        let cases = [
            (
                "install foo --catalog fixture=CATALOG".to_owned(),
                ("foo", "1.2.3"),
                ["- - foo@v1.2.2\n", "+ - foo@v1.2.3\n"],
            ),
            (
                format!("{resolve} --apply"),
                ("foo", "1.2.9"),
                ["- - foo@v1.2.3\n", "+ - foo@v1.2.9\n"],
            ),
            (
                format!("{resolve} --write FILES/loadout"),
                ("foo", "2.0.1"),
                ["- - foo@v1.2.9\n", "+ - foo@v2.0.1\n"],
            ),
            (
                "update --latest --catalog fixture=CATALOG".to_owned(),
                ("fiz", "3.0.1"),
                ["- fiz@v2.9.2 -> fiz@v2.9.6\n", "+ fiz@v2.9.2 -> fiz@v3.0.1\n"],
            ),
        ];
        for (line, (package, version), [before, after]) in cases {
            let catalog = add_ons.catalog.path().to_owned();
            let somebody = async move { Fixture::publish(&catalog, package, version) };
            let shows = ["What this was planned from has changed:\n", before, after];
            let error = "nothing was changed: run the command again to see the present plan";
            commands::RunCommand::failing(&line, &shows, error)
                .play_with(&add_ons, commands::answered_after(somebody, "y\n"))
                .await;
        }
        add_ons.absent("olm.io/v1 Operator foo").await;
        add_ons.absent("olm.io/v1 Operator bar").await;
        assert!(!add_ons.files.path().join("loadout").exists());
        assert_eq!(add_ons.harness.get(OPERATOR, "fiz").await["spec"]["version"], "2.9.2");
        add_ons.stop().await;
    });
}

#[test]
fn a_deletion_that_is_aborted_leaves_what_there_is_and_the_operator_is_managed_again() {
    on_each_cluster(|kind| async move {
        let faults = "- {package: bar, fault: KeepsFinalizers}";
        let mut add_ons = AddOns::start(kind, faults).await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let bar = "bar.example.com/v1 Bar default/one";
        let metadata = json!({ "name": "one", "namespace": "default" });
        let version = "bar.example.com/v1";
        add_ons.apply(json!({ "apiVersion": version, "kind": "Bar", "metadata": metadata })).await;
        add_ons.looked_after(bar).await;
        let before = add_ons.harness.get(OPERATOR, "bar").await;
        let run = commands::RunCommand::new;
        run("delete bar --no-wait --yes", "bar is being deleted").play(&add_ons).await;
        let deletion =
            || async { add_ons.harness.get(OPERATOR, "bar").await["status"]["deletion"].clone() };
        until("it waits for the object", deletion, |it| it["phase"] == "Operands").await;
        run("describe bar", "Deletion:\n  phase Operands\n  1 Bar.bar.example.com in default\n")
            .play(&add_ons)
            .await;
        run("abort bar", "deletion of bar aborted\n").play(&add_ons).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False AsExpected")]).await;
        let after = add_ons.harness.get(OPERATOR, "bar").await;
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["spec"], before["spec"]);
        let history = |it: &Value| it["status"]["history"].as_array().cloned().unwrap_or_default();
        assert_eq!(history(&after).last(), history(&before).last(), "{after:#}");
        assert_eq!(history(&after)[0]["revision"], 2, "{after:#}");
        add_ons.present("apps/v1 Deployment bar/bar-operator").await;
        let object = add_ons.object(&Named::parse(bar)).await;
        assert!(object["metadata"]["uid"].is_string(), "{object}");
        add_ons.stop().await;
    });
}

#[test]
fn an_operator_that_does_not_run_on_it_holds_up_the_next_minor_version_of_the_platform() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let store = PayloadSet::new();
        let first = store.add(sample::v1(), None, Signature::NotSigned).expect("in order");
        let second = store.add(sample::v2(), None, Signature::NotSigned).expect("in order");
        add_ons.harness.store = Some(Arc::new(store));
        // The kind of Operators is defined later.
        add_ons.harness.control();
        add_ons.harness.completed(&first.release.version).await;
        add_ons.control();
        let path = add_ons.catalog.path().to_owned();
        add_ons.add_catalog("fixture", &path).await;
        Fixture::publish(&path, "lamp", "1.0.0");
        add_ons.request("lamp", json!({ "version": ">=1" })).await;
        add_ons.expect("lamp", &[("Installed", "True")]).await;
        let held = add_ons
            .harness
            .cluster_version_until(|status| {
                condition(status, "Upgradeable")["reason"] == "IncompatibleOperatorsInstalled"
            })
            .await;
        let message = condition(&held, "Upgradeable")["message"].to_string();
        assert!(
            message.contains("Operator lamp 1.0.0: it runs on OpenShift 1.0 at most"),
            "{message}"
        );
        let version = &second.release.version;
        let message = add_ons.rejected_update(version).await;
        assert!(message.contains("lamp"), "{message}");
        // So says the plan of an update.
        let cluster = ClusterState::read(&add_ons.harness.client).await.expect("it can be read");
        let (_, next) = sample_payloads();
        let target = cluster.target(DEFAULT_PROFILE, None, Timestamp::now());
        let findings = cluster.findings(&next, &target);
        let is_it = |it: &FailedPrecondition| it.blocking && it.message.contains("lamp 1.0.0");
        assert!(findings.iter().any(is_it), "{findings:#?}");
        // A version that runs on it ends the wait.
        Fixture::publish(&path, "lamp", "1.1.0");
        add_ons.harness.cluster_version_until(|it| it["desired"]["version"] == *version).await;
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}

#[test]
fn operators_that_may_not_be_listed_hold_up_updates_of_the_platform() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let store = PayloadSet::new();
        let first = store.add(sample::v1(), None, Signature::NotSigned).expect("in order");
        let second = store.add(sample::v2(), None, Signature::NotSigned).expect("in order");
        add_ons.harness.store = Some(Arc::new(store));
        let forbidden = Faults::none();
        forbidden.add(Requests::any().resource("operators").always(), Fault::refused(403));
        add_ons.harness.control_with(add_ons.harness.cluster.client_with_faults(forbidden.clone()));
        add_ons.harness.completed(&first.release.version).await;
        let definition =
            Named::parse("apiextensions.k8s.io/v1 CustomResourceDefinition operators.olm.io");
        assert_eq!(add_ons.object(&definition).await, Value::Null);
        // Nothing is watched before there is such a kind.
        let before = forbidden.fired().len();
        add_ons.control();
        until(
            "the watch of Operators is refused",
            || async { forbidden.fired().len() },
            // It is tried again once the controller has been told: what is requested later is seen later.
            |fired| *fired >= before + 2,
        )
        .await;
        let version = &second.release.version;
        let message = add_ons.rejected_update(version).await;
        assert!(message.contains("grant get, list and watch on operators.olm.io"), "{message}");
        forbidden.stop();
        add_ons.harness.cluster_version_until(|it| it["desired"]["version"] == *version).await;
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}

#[test]
fn a_capability_that_is_enabled_lets_an_operator_be_installed() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let capabilities = json!({ "baselineCapabilitySet": "None" });
        create_cluster_version(&add_ons.harness, &capabilities).await;
        add_ons.harness.control();
        add_ons.harness.completed("1.0.0").await;
        add_ons.control();
        let path = add_ons.catalog.path().to_owned();
        add_ons.add_catalog("fixture", &path).await;
        Fixture::publish(&path, "plug", "1.0.0");
        add_ons.request("plug", json!({})).await;
        add_ons.expect("plug", &[("Progressing", "False ClusterIncompatible")]).await;
        let enabled = json!({ "baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Console"] });
        add_ons.harness.set_spec(json!({ "capabilities": enabled })).await;
        add_ons.expect("plug", &[("Installed", "True")]).await;
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}

#[test]
fn what_is_missing_is_an_event_once() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "foo", "1.2.3");
        add_ons.request("foo", json!({ "version": "1.2.3" })).await;
        add_ons.expect("foo", &[("ConstraintsSatisfied", "False"), ("Installed", "True")]).await;
        // It is told after it is reported, and not by one that is killed meanwhile.
        let told = || crate::events::reported(&add_ons.harness);
        until("it is told", told, |it| it.contains_key("UnmetDependency")).await;
        add_ons.kill().await;
        add_ons.control();
        // It decides again, and reports nothing new.
        add_ons.change("olm.io/v1 Operator foo", json!({ "spec": { "paused": true } })).await;
        add_ons.expect("foo", &[("Progressing", "False Paused")]).await;
        let mut views = add_ons.view.subscribe();
        let is_paused = |view: &OperatorsView| {
            let conditions = view.operators.get("foo").map(|it| &it.conditions);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it.type_ == "Progressing" && it.reason == "Paused")
        };
        assert!(views.wait_for(is_paused).await.expect("it is published").is_leader);
        add_ons.stop().await;
        let reported = crate::events::reported(&add_ons.harness).await;
        let unmet = reported.get("UnmetDependency").map(Vec::as_slice).unwrap_or_default();
        assert_eq!(unmet, ["foo depends on bar >=1.2.3 but bar is not installed"], "{reported:#?}");
        assert_eq!(*add_ons.view.borrow(), OperatorsView::default(), "it leads no more");
    });
}

#[test]
fn what_somebody_changes_comes_back_and_what_people_add_survives_an_upgrade() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        for version in ["1.2.1", "1.2.5"] {
            Fixture::publish(add_ons.catalog.path(), "bar", version);
        }
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let (config, deployment) =
            ("v1 ConfigMap bar/bar-config", "apps/v1 Deployment bar/bar-operator");
        add_ons.change(config, json!({ "data": { "version": "theirs", "more": "theirs" } })).await;
        let data = || async { add_ons.object(&Named::parse(config)).await["data"].clone() };
        let wanted = json!({ "version": "1.2.1", "more": "theirs" });
        until("the change is reverted", data, |it| *it == wanted).await;
        let before = add_ons.present(config).await["metadata"]["uid"].clone();
        add_ons.delete(config).await;
        let uid =
            || async { add_ons.object(&Named::parse(config)).await["metadata"]["uid"].clone() };
        until("it is made again", uid, |it| it.is_string() && *it != before).await;

        let restarted = json!({ "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" });
        add_ons
            .change(
                deployment,
                json!({
                    "metadata": { "labels": { "team": "harbour" } },
                    "spec": {
                        "replicas": 3,
                        "template": { "metadata": { "annotations": restarted } },
                    },
                }),
            )
            .await;
        add_ons.request("bar", json!({ "version": "1.2.5" })).await;
        let version = ("version", "1.2.5 (@v1.2.5)");
        add_ons.expect("bar", &[version, ("Progressing", "False AsExpected")]).await;
        let object = add_ons.present(deployment).await;
        assert_eq!(object["metadata"]["labels"]["team"], "harbour");
        assert_eq!(object["spec"]["replicas"], 3);
        let template = &object["spec"]["template"];
        let annotations = &template["metadata"]["annotations"];
        let restarted_at = "kubectl.kubernetes.io/restartedAt";
        assert_eq!(annotations[restarted_at], restarted[restarted_at]);
        let image = &template["spec"]["containers"][0]["image"];
        assert_eq!(image, "registry.example.com/bar-operator:1.2.5");
        add_ons.stop().await;
    });
}

#[test]
fn an_operator_that_does_not_come_up_stops_its_rollout_and_its_upgrade_leaves_the_old_one() {
    on_any_cluster(|kind| async move {
        let faults = "- {package: bar, fault: NeverAvailable, version: 1.2.5}";
        let mut add_ons = AddOns::start(kind, faults).await;
        for version in ["1.2.1", "1.2.5"] {
            Fixture::publish(add_ons.catalog.path(), "bar", version);
        }
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        add_ons.request("bar", json!({ "version": "1.2.5" })).await;
        let waits = "True RollingOut: Rolling out v1.2.5";
        add_ons.expect("bar", &[("Progressing", waits), ("version", "1.2.5 (@v1.2.1)")]).await;
        // Of the old revision nothing is deleted before the new one is complete.
        add_ons.present("v1 ConfigMap bar/bar-of-1.2.1").await;
        let back = json!({ "version": "1.2.1", "upgradePolicy": "Any" });
        add_ons.request("bar", back).await;
        let version = ("version", "1.2.1 (@v1.2.1)");
        add_ons.expect("bar", &[version, ("Progressing", "False AsExpected")]).await;
        add_ons.stop().await;
    });
}

#[test]
fn an_upgrade_that_is_late_is_rolled_back_if_that_is_wanted() {
    on_any_cluster(|kind| async move {
        let faults = "- {package: bar, fault: NeverAvailable, version: 1.2.5}";
        let mut add_ons = AddOns::start(kind, faults).await;
        for version in ["1.2.1", "1.2.5"] {
            Fixture::publish(add_ons.catalog.path(), "bar", version);
        }
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let spec = json!({ "version": "1.2.5", "rollback": "Automatic", "progressDeadline": "2s" });
        add_ons.request("bar", spec).await;
        let history = || async {
            let operator = add_ons.harness.get(OPERATOR, "bar").await;
            let history = operator["status"]["history"].as_array().cloned().unwrap_or_default();
            let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
            let entries = history.iter().map(|it| (text(it, "version"), text(it, "state")));
            entries.collect::<Vec<_>>()
        };
        let entry = |version: &str, state: &str| (version.to_owned(), state.to_owned());
        let expected =
            [entry("1.2.1", "Completed"), entry("1.2.5", "Partial"), entry("1.2.1", "Completed")];
        until("it is rolled back", history, |it| *it == expected).await;
        let version = ("version", "1.2.5 (@v1.2.1)");
        add_ons.expect("bar", &[version, ("Available", "True"), ("Installed", "True")]).await;
        add_ons.present("v1 ConfigMap bar/bar-of-1.2.1").await;
        add_ons.absent("v1 ConfigMap bar/bar-of-1.2.5").await;
        add_ons.stop().await;
    });
}

#[test]
fn what_does_not_go_is_named_with_its_finalizer_and_goes_once_it_may() {
    on_each_cluster(|kind| async move {
        let faults = "- {package: bar, fault: KeepsFinalizers}";
        let mut add_ons = AddOns::start(kind, faults).await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let bar = "bar.example.com/v1 Bar default/one";
        let metadata = json!({ "name": "one", "namespace": "default" });
        let version = "bar.example.com/v1";
        add_ons.apply(json!({ "apiVersion": version, "kind": "Bar", "metadata": metadata })).await;
        add_ons.looked_after(bar).await;
        let error = "Operator `bar` is not being deleted: run `operator delete bar` first, which lets \
                     the operator remove its finalizers itself";
        commands::RunCommand::failing("delete bar --force-finalizers", &[], error)
            .play(&add_ons)
            .await;
        add_ons.delete("olm.io/v1 Operator bar").await;
        let deletion =
            || async { add_ons.harness.get(OPERATOR, "bar").await["status"]["deletion"].clone() };
        until("it waits for the object", deletion, |it| it["phase"] == "Operands").await;
        // The operator is there as long as its objects are.
        add_ons.present("apps/v1 Deployment bar/bar-operator").await;
        add_ons.clock.0.store(3600, Ordering::SeqCst);
        let stuck = until("it is named", deletion, |it| it["stuck"].is_array()).await;
        let named = stuck["stuck"][0].as_str().unwrap_or_default();
        assert!(
            named.contains("one") && named.contains("simulation.plimsoll.io/operand"),
            "{stuck}"
        );
        let status = add_ons.harness.get(OPERATOR, "bar").await["status"].clone();
        let progressing = condition(&status, "Progressing");
        let message = progressing["message"].as_str().unwrap_or_default();
        assert!(message.contains("stuck: ") && message.contains(named), "{status:#}");
        assert_eq!(progressing["reason"], "OperandsStuck");
        let object = "bar.bar.example.com \"default/one\"";
        let shown = format!("{object}: simulation.plimsoll.io/operand\n");
        let run = commands::RunCommand::new;
        run("delete bar --force-finalizers --dry-run", &shown).play(&add_ons).await;
        let removed = format!("finalizers of {object} removed\n");
        run("delete bar --force-finalizers --yes", &removed).play(&add_ons).await;
        add_ons.absent("olm.io/v1 Operator bar").await;
        add_ons.absent("apps/v1 Deployment bar/bar-operator").await;
        add_ons.stop().await;
        let reported = crate::events::reported(&add_ons.harness).await;
        let stuck = reported.get("OperandsStuck").map(Vec::as_slice).unwrap_or_default();
        assert!(stuck.len() == 1 && stuck[0].contains(named), "{reported:#?}");
    });
}

#[test]
fn what_is_recorded_is_what_there_is() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        add_ons.control();
        let examples = std::path::absolute("../../examples/catalog").expect("a working directory");
        add_ons.add_catalog("examples", &examples).await;
        for (name, version) in [("ledger", "2.0.0"), ("tide", "~0.4"), ("lantern", "2.0.0")] {
            add_ons.request(name, json!({ "version": version })).await;
        }
        for name in ["ledger", "tide", "lantern"] {
            let satisfied = ("ConstraintsSatisfied", "True");
            add_ons.expect(name, &[satisfied, ("Progressing", "False AsExpected")]).await;
        }
        let catalog = || async { add_ons.harness.get(CATALOG, "examples").await["status"].clone() };
        let is_served = |it: &Value| condition(it, "Serving")["status"] == "True";
        let is_read = |it: &Value| it["packages"] == 3 && is_served(it);
        until("the Catalog is read", catalog, is_read).await;
        let revisions = add_ons.harness.api(OPERATOR_REVISION);
        let revisions = revisions.list(&ListParams::default()).await.expect("a list");
        let mut recorded = 0;
        for revision in revisions {
            let objects = revision.data["spec"]["objects"].as_array().cloned().unwrap_or_default();
            for object in objects {
                let named = Named::of(&object["object"]);
                let live = add_ons.object(&named).await;
                let operator = &live["metadata"]["labels"]["olm.io/operator"];
                assert_eq!(*operator, revision.data["spec"]["operator"], "{object:#}\n{live:#}");
                recorded += 1;
            }
        }
        assert!(recorded > 20, "{recorded}");
        add_ons.stop().await;
    });
}

#[test]
fn what_the_controller_installs_for_itself_comes_back() {
    on_each_cluster(|kind| async move {
        let actions = Some(ActionSettings::default());
        let mut add_ons = AddOns::start_with(kind, "[]", actions).await;
        let installed = [
            policies::operator_policies(),
            policies::action_policies(),
            classes::built_in(),
            crd::operator_manifests(),
            crd::action_manifests(),
        ];
        let installed: Vec<Named> = installed.iter().flatten().map(Named::of).collect();
        assert!(installed.len() > 20, "{}", installed.len());
        let uid = async |named: &Named| {
            let object = add_ons.object(named).await;
            object["metadata"]["uid"].as_str().map(str::to_owned)
        };
        let mut before = Vec::new();
        for named in &installed {
            before.push(until("it is installed", || uid(named), Option::is_some).await);
        }
        let policy = installed.first().expect("there is one");
        let api = policy.api(&add_ons.harness.client);
        let emptied =
            Patch::Merge(json!({ "spec": { "validations": [{ "expression": "true" }] } }));
        let was = add_ons.object(policy).await["spec"]["validations"].clone();
        let parameters = PatchParams::default();
        api.patch(&policy.name, &parameters, &emptied).await.expect("it may be changed");
        let now = || async { add_ons.object(policy).await["spec"]["validations"].clone() };
        until("it is changed back", now, |it| *it == was).await;

        for named in &installed {
            let api = named.api(&add_ons.harness.client);
            api.delete(&named.name, &DeleteParams::default()).await.expect("it may be deleted");
        }
        for (named, before) in installed.iter().zip(&before) {
            let is_another = |it: &Option<String>| it.is_some() && it != before;
            until(&format!("{} comes back", named.name), || uid(named), is_another).await;
        }
        add_ons.add_catalog("fixture", add_ons.catalog.path()).await;
        add_ons.request("anchor", json!({})).await;
        add_ons.expect("anchor", &[("Progressing", "False AsExpected")]).await;
        add_ons.stop().await;
    });
}

#[test]
fn the_permissions_of_bundles_are_enough_to_install_upgrade_and_delete_them() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let examples = std::path::absolute("../../examples/catalog").expect("a working directory");
        let catalog = &*examples.to_string_lossy();
        let line = ["rbac", "--operators", "--actions", "--catalog", catalog];
        let packages = ["--package", "ledger", "--package", "lantern"];
        let arguments = RbacLine::parse_from(line.into_iter().chain(packages)).arguments;
        let mut out = Vec::new();
        rbac(&arguments, &mut out).expect("they are printed");
        let out = String::from_utf8(out).expect("it is text");
        let roles = plimsoll_content::yaml::parse(&out).into_iter();
        let roles: Vec<Value> =
            roles.map(|it| it.value.expect("it is YAML")).filter(|it| !it.is_null()).collect();
        apply_roles(&add_ons.harness, &roles).await;
        add_ons.actions = Some(ActionSettings::default());
        let client = limited_client(&add_ons.harness);
        until_granted(&client, &roles).await;
        add_ons.control_with(client);
        add_ons.add_catalog("examples", &examples).await;
        add_ons.request("ledger", json!({ "version": "1.4.0" })).await;
        add_ons.request("lantern", json!({ "version": "1.0.0" })).await;
        let installed = [("Progressing", "False AsExpected"), ("ConstraintsSatisfied", "True")];
        add_ons.expect("lantern", &installed).await;
        add_ons.request("lantern", json!({ "version": "1.1.1" })).await;
        let version = ("version", "1.1.1 (@v1.1.1)");
        add_ons.expect("lantern", &[version, ("Progressing", "False AsExpected")]).await;
        add_ons.absent("v1 ConfigMap lantern/lantern-palette").await;
        let beacon = "lantern.example.com/v1 Beacon default/north";
        add_ons
            .apply(json!({
                "apiVersion": "lantern.example.com/v1",
                "kind": "Beacon",
                "metadata": { "name": "north", "namespace": "default" },
                "spec": { "colour": "green" },
            }))
            .await;
        add_ons.looked_after(beacon).await;
        add_ons
            .apply(json!({
                "apiVersion": "olm.io/v1",
                "kind": "RetryAction",
                "metadata": { "name": "delete", "namespace": "default" },
                "spec": {
                    "template": { "actionClass": "operator-delete", "package": "lantern" },
                    "requester": { "username": "admin", "groups": ["system:masters"] },
                },
            }))
            .await;
        add_ons.absent("olm.io/v1 Operator lantern").await;
        add_ons.absent("v1 Namespace lantern").await;
        add_ons.present("apps/v1 Deployment ledger-system/ledger-operator").await;
        add_ons.stop().await;
    });
}
