//! Bundles of other people: they are installed, upgraded where two versions are there, and deleted.
//!
//! They come from `PLIMSOLL_BUNDLES`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_testkit::ClusterKind;
use k8s_testkit::prerequisites::required;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use plimsoll_api::config::MetaCondition;
use plimsoll_api::{Catalog, ConditionStatus, Operator};
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{Error, Leadership, SystemClock};
use plimsoll_simulation::simulated_operators::{self, SimulationOptions};
use plimsoll_source::catalog::CatalogRoots;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::harness::{on_each_cluster, until};

/// The versions of each package.
type Packages = BTreeMap<String, Vec<semver::Version>>;

/// Where each Operator stands: the version that is installed, or the reason why none is.
type States = BTreeMap<String, Result<String, String>>;

/// Fewest packages that must be installed.
const INSTALLED_MIN: usize = 30;

/// Why the others are not: what they need is configured by a person, the directory is called by another
/// version than is in it, their default channel is not there, or they have objects of kinds that are not
/// served any more.
const REFUSED: [&str; 7] = [
    "ChannelNotFound:",
    "belongs to Operator",
    "spec.config.watchNamespace: error [bundle-config]",
    "error [bundle-kind]",
    "NoMatchingVersion:",
    "PackageNotFound:",
    "the bundle has it without an apiVersion",
];

/// The packages, each with its versions; none of those that were made by hand.
fn packages(bundles: &Path) -> Packages {
    let mut packages = Packages::new();
    for entry in std::fs::read_dir(bundles).expect("the bundles can be listed") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let (package, version) = name.split_once('.').unwrap_or((&name, ""));
        let is_made_by_hand = ["bad-", "hm-"].iter().any(|it| name.starts_with(it));
        if let (false, Ok(version)) = (is_made_by_hand, version.parse()) {
            packages.entry(package.to_owned()).or_default().push(version);
        }
    }
    packages.values_mut().for_each(|versions| versions.sort());
    packages
}

/// The first channel of a bundle.
fn channel(bundle: &Path) -> String {
    let annotations = std::fs::read_to_string(bundle.join("metadata/annotations.yaml"));
    let annotations = annotations.expect("a bundle has annotations");
    let line = annotations.lines().find_map(|line| line.split_once("channels.v1: "));
    let (_, channels) = line.expect("they name channels");
    channels.split(',').next().unwrap_or_default().trim_matches(['"', '\'', ' ']).to_owned()
}

async fn request(client: &Client, object: Value) {
    let name = object["metadata"]["name"].as_str().expect("a name");
    let parameters = PatchParams::apply("administrator").force();
    let applied = match object["kind"].as_str() {
        Some("Operator") => {
            let api: Api<Operator> = Api::all(client.clone());
            api.patch(name, &parameters, &Patch::Apply(&object)).await.map(|_| ())
        }
        _ => {
            let api: Api<Catalog> = Api::all(client.clone());
            api.patch(name, &parameters, &Patch::Apply(&object)).await.map(|_| ())
        }
    };
    applied.expect("it is accepted");
}

fn operator(package: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "olm.io/v1", "kind": "Operator", "metadata": { "name": package }, "spec": spec,
    })
}

/// Kinds of other programs that bundles have objects of, as definitions that allow everything.
const OTHERS: [(&str, &str, &str); 6] = [
    ("monitoring.coreos.com", "ServiceMonitor", "v1"),
    ("monitoring.coreos.com", "PodMonitor", "v1"),
    ("monitoring.coreos.com", "PrometheusRule", "v1"),
    ("console.openshift.io", "ConsolePlugin", "v1"),
    ("console.openshift.io", "ConsoleYAMLSample", "v1"),
    ("route.openshift.io", "Route", "v1"),
];

async fn define(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (group, kind, version) in OTHERS {
        let plural = format!("{}s", kind.to_lowercase());
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let name = format!("{plural}.{group}");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": {
                "group": group,
                "names": { "kind": kind, "plural": plural },
                "scope": if kind.starts_with("Console") { "Cluster" } else { "Namespaced" },
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        });
        let parameters = PatchParams::apply("administrator").force();
        api.patch(&name, &parameters, &Patch::Apply(&definition)).await.expect("it is defined");
    }
}

/// The Operators and where they stand.
async fn operator_states(client: &Client) -> States {
    let api: Api<Operator> = Api::all(client.clone());
    let operators = api.list(&ListParams::default()).await.expect("they can be listed");
    let state = |operator: Operator| {
        let name = operator.metadata.name.clone().unwrap_or_default();
        let status = operator.status.unwrap_or_default();
        let condition = |type_: &str| -> Option<&MetaCondition> {
            status.conditions.iter().find(|it| it.type_ == type_)
        };
        let idle = condition("Progressing").is_some_and(|it| it.status == ConditionStatus::False);
        let state = match (idle, &status.bundle, condition("Progressing")) {
            (true, Some(bundle), Some(why)) if why.reason == "AsExpected" => {
                Ok(bundle.version.clone())
            }
            (true, _, Some(why)) => Err(format!("{}: {}", why.reason, why.message)),
            (_, _, progressing) => {
                Err(format!("under way: {}", progressing.map_or("", |it| it.message.as_str())))
            }
        };
        (name, state)
    };
    operators.items.into_iter().map(state).collect()
}

/// Starts simulated operators and a controller of Operators.
fn start(client: &Client, stop: &CancellationToken) -> JoinHandle<Result<(), Error>> {
    let options = SimulationOptions::default();
    tokio::spawn(simulated_operators::run(client.clone(), options, stop.clone()));
    let settings = OperatorSettings {
        leadership: Leadership::Alone,
        roots: CatalogRoots::new(["/".into()]),
        cache: None,
        actions: None,
        queries: None,
    };
    let clock = Arc::new(SystemClock);
    let controller = OperatorController {
        client: client.clone(),
        clock,
        settings,
        view: tokio::sync::watch::Sender::default(),
    };
    tokio::spawn(controller.run(stop.clone()))
}

/// Requests all packages, of a catalog that is the directory.
async fn install(client: &Client, bundles: &Path, packages: &Packages) {
    let catalogs: Api<Catalog> = Api::all(client.clone());
    let operators: Api<Operator> = Api::all(client.clone());
    // Each kind is established by itself.
    let served = || async {
        catalogs.list(&ListParams::default()).await.is_ok()
            && operators.list(&ListParams::default()).await.is_ok()
    };
    until("the kinds are served", served, |it| *it).await;
    let source = json!({ "type": "Directory", "path": bundles });
    let catalog = json!({
        "apiVersion": "olm.io/v1", "kind": "Catalog", "metadata": { "name": "others" },
        "spec": { "source": source },
    });
    request(client, catalog).await;
    define(client).await;
    for (package, versions) in packages {
        // The directory need not be called by the version that is in it.
        let version = if versions.len() > 1 { versions[0].to_string() } else { String::new() };
        let spec = json!({ "version": version, "collisionProtection": "None" });
        request(client, operator(package, &spec)).await;
    }
}

fn newest(packages: &Packages, name: &str) -> Option<String> {
    packages[name].last().map(ToString::to_string)
}

/// Requests the newest version of the packages that are installed.
async fn upgrade(client: &Client, bundles: &Path, packages: &Packages, states: &States) {
    for (name, state) in states {
        if state.is_ok() {
            let newest = newest(packages, name).unwrap_or_default();
            let spec = json!({
                "version": newest, "upgradePolicy": "Semver",
                "channel": channel(&bundles.join(format!("{name}.{newest}"))),
                "crdUpgradeSafety": "Warn", "collisionProtection": "None",
                "constraintPolicy": { "upgrade": "Warn" },
            });
            request(client, operator(name, &spec)).await;
        }
    }
}

#[test]
fn bundles_of_others_are_installed_upgraded_and_deleted() {
    let Some(golden) = required("PLIMSOLL_BUNDLES") else { return };
    let bundles = PathBuf::from(golden).join("bundles");
    on_each_cluster(|kind: ClusterKind| {
        let bundles = bundles.clone();
        async move {
            let packages = packages(&bundles);
            let cluster = kind.start().await.expect("the cluster starts");
            let client = cluster.client();
            let stop = CancellationToken::new();
            let running = start(&client, &stop);
            install(&client, &bundles, &packages).await;
            let is_over = |states: &States| {
                let is_final = |it: &Result<String, String>| match it {
                    Ok(_) => true,
                    Err(why) => REFUSED.iter().any(|known| why.contains(known)),
                };
                states.len() == packages.len() && states.values().all(is_final)
            };
            let states =
                until("all are installed or refused", || operator_states(&client), is_over).await;
            let installed = states.values().filter(|it| it.is_ok()).count();
            assert!(installed >= INSTALLED_MIN, "{states:#?}");

            let states: States =
                states.into_iter().filter(|(name, _)| packages[name].len() > 1).collect();
            upgrade(&client, &bundles, &packages, &states).await;
            let is_upgraded = |now: &States| {
                states.iter().all(|(name, before)| {
                    let is_newest = now[name].as_ref().ok() == newest(&packages, name).as_ref();
                    before.is_err() || is_newest
                })
            };
            until("all have the newest version", || operator_states(&client), is_upgraded).await;

            let api: Api<Operator> = Api::all(client.clone());
            for name in packages.keys() {
                api.delete(name, &DeleteParams::default()).await.expect("it may be deleted");
            }
            until("all are deleted", || operator_states(&client), BTreeMap::is_empty).await;
            // Revisions go when the garbage collector has seen that their Operators are gone.
            until("nothing is left", || left(&client), BTreeSet::is_empty).await;
            stop.cancel();
            running.await.expect("it does not panic").expect("it ends well");
        }
    });
}

/// What is left in the cluster that carries the label of an Operator, or why that is not known.
async fn left(client: &Client) -> BTreeSet<String> {
    // A group may go while it is asked for.
    let discovery = match kube::discovery::Discovery::new(client.clone()).run().await {
        Ok(discovery) => discovery,
        Err(error) => return BTreeSet::from([error.to_string()]),
    };
    let mut left = BTreeSet::new();
    for group in discovery.groups() {
        for (resource, _) in group.recommended_resources() {
            let api: Api<kube::core::DynamicObject> = Api::all_with(client.clone(), &resource);
            let labelled = ListParams::default().labels(plimsoll_api::olm::OPERATOR_LABEL);
            let Ok(found) = api.list_metadata(&labelled).await else { continue };
            let name = |it: kube::core::PartialObjectMeta<_>| {
                format!("{} {}", resource.kind, it.metadata.name.unwrap_or_default())
            };
            left.extend(found.items.into_iter().map(name));
        }
    }
    left
}
