//! Operators on whole clusters: catalogs are published, Operators installed, upgraded and deleted, and
//! simulated operators play what their bundles run.
//!
//! Most tests are scenarios, lists of steps in `operators/*.yaml` (see `scenarios`).

mod agreement;
mod as_actions;
mod commands;
mod controller;
mod definition;
mod deletion;
mod fixture;
mod foreign;
mod histories;
mod interrupted;
mod migration;
mod owners;
mod platform;
mod refused;
mod revisions;
mod rollout;
mod scenario;
mod scenarios;
mod self_service;
mod shell;
mod survey;
mod takeover;
mod tenants;
mod unserved;
mod waiting;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use http::Request;
use k8s_testkit::ClusterKind;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use plimsoll_api::OPERATOR;
use plimsoll_controller::actions::ActionSettings;
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{
    Error, Leadership, OperatorsView, Reached, WebhookSettings, WindowController,
};
use plimsoll_simulation::simulated_operators::Faults as OperatorFaults;
use plimsoll_source::catalog::CatalogRoots;
use plimsoll_source::store::Signature;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::harness::{
    Harness, OperatorSetup, PATIENCE, ShiftedClock, condition, sample_payloads, until,
};
use crate::install::create_cluster_version;
use crate::updates::store;
use fixture::Fixture;
use shell::Shell;

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

/// How Actions are executed if their webhooks are served.
fn actions_with_webhook() -> ActionSettings {
    let webhook = WebhookSettings {
        listen: "127.0.0.1:0".parse().expect("an address"),
        reached: Reached::Host("127.0.0.1".to_owned()),
    };
    ActionSettings { webhook: Some(webhook) }
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

    /// The same, where Actions are executed and their webhooks are served.
    async fn start_with_webhook(kind: ClusterKind) -> Self {
        Self::start_with(kind, "[]", Some(actions_with_webhook())).await
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
            client: client.clone(),
            clock: Arc::clone(&self.clock) as _,
            settings: OperatorSettings {
                leadership: Leadership::Alone,
                roots: CatalogRoots::new(["/".into()]),
                cache: None,
                actions: self.actions.clone(),
                queries: None,
            },
            view: self.view.clone(),
        };
        let clock = Arc::clone(&self.clock) as _;
        let windows = WindowController { client, clock, leadership: Leadership::Alone };
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let windows = windows.run(stopped.clone());
            tokio::try_join!(controller.run(stopped), windows).map(drop)
        });
        self.controller = Some((stop, task));
    }

    /// Ends the controller as SIGKILL would.
    async fn kill(&mut self) {
        let (stop, task) = self.controller.take().expect("a controller runs");
        task.abort();
        let _ = task.await;
        // Its webhooks end with it.
        stop.cancel();
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

    /// Returns what an Operator reports, as scenarios write it: conditions as `STATUS REASON: MESSAGE` by
    /// type, and the fields that matter as text.
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
            let condition = format!("{} {}: {}", text("status"), text("reason"), text("message"));
            reported.insert(text("type").to_owned(), condition);
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

    /// Returns the warnings of an API server to who would delete an Operator.
    async fn warnings_of_deletion(&self, name: &str) -> String {
        let request = Request::delete(format!("/apis/olm.io/v1/operators/{name}?dryRun=All"));
        let request = request.body(Body::empty()).expect("it is a request");
        let response = self.harness.client.send(request).await.expect("it is answered");
        assert!(response.status().is_success(), "{}", response.status());
        let warnings = response.headers().get_all("warning").iter();
        warnings.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()).collect()
    }

    /// Changes an object by a merge patch, as another client.
    async fn change(&self, named: &str, patch: Value) {
        let named = Named::parse(named);
        let parameters =
            PatchParams { field_manager: Some("another-client".into()), ..PatchParams::default() };
        let (api, patch) = (named.api(&self.harness.client), Patch::Merge(patch));
        api.patch(&named.name, &parameters, &patch).await.expect("it may be changed");
    }
}

/// Returns whether a text begins as expected; nothing else than no text does where none is expected.
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
        let resource = ApiResource::from_gvk(&self.kind);
        match self.namespace.as_str() {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        }
    }
}
