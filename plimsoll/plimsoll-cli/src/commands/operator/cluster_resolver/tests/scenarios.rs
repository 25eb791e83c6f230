//! Scenarios of resolutions, each as catalogs and Operators of a cluster: three ways to ask, one answer.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_testkit::prerequisites::required;
use plimsoll_api::GroupKind;
use plimsoll_api::olm::{BundleReference, OperatorSpec};
use plimsoll_operators::{InstalledOperator, RequestedOperator};
use plimsoll_resolve::{Bundle, Property, bundle_from_properties};
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Deserialize)]
struct Scenario {
    id: String,
    catalogs: Vec<ScenarioCatalog>,
    existing: Vec<ScenarioBundle>,
    subscriptions: Vec<Subscription>,
}

#[derive(Deserialize)]
struct ScenarioCatalog {
    name: String,
    namespace: String,
    priority: i64,
    bundles: Vec<ScenarioBundle>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScenarioBundle {
    name: String,
    package: String,
    channel: String,
    default: bool,
    #[serde(default)]
    replaces: String,
    #[serde(default)]
    skips: Vec<String>,
    #[serde(default)]
    skip_range: String,
    properties: Vec<Property>,
    subscription: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subscription {
    name: String,
    package: String,
    channel: String,
    catalog: String,
    catalog_namespace: String,
}

impl Subscription {
    fn repository(&self) -> String {
        catalog_name(&self.catalog_namespace, &self.catalog)
    }
}

/// Returns the name of a catalog, which a namespace has no part in here.
fn catalog_name(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

/// Returns a catalog as documents.
fn documents(catalog: &ScenarioCatalog) -> Documents {
    let mut documents: Vec<Value> = Vec::new();
    let packages: BTreeSet<&str> = catalog.bundles.iter().map(|it| it.package.as_str()).collect();
    for package in packages {
        let of_package = || catalog.bundles.iter().filter(|it| it.package == package);
        let default = of_package().find(|it| it.default).map(|it| it.channel.as_str());
        documents.push(json!({
            "schema": "olm.package", "name": package, "defaultChannel": default.unwrap_or_default(),
        }));
        let channels: BTreeSet<&str> = of_package().map(|it| it.channel.as_str()).collect();
        for channel in channels {
            let entries = of_package().filter(|it| it.channel == channel).map(|it| {
                json!({
                    "name": it.name, "replaces": it.replaces, "skips": it.skips,
                    "skipRange": it.skip_range,
                })
            });
            documents.push(json!({
                "schema": "olm.channel", "package": package, "name": channel,
                "entries": entries.collect::<Vec<_>>(),
            }));
        }
        let mut names = BTreeSet::new();
        for bundle in of_package().filter(|it| names.insert(it.name.as_str())) {
            documents.push(json!({
                "schema": "olm.bundle", "package": package, "name": bundle.name, "image": "image",
                "properties": bundle.properties,
            }));
        }
    }
    let lines: Vec<String> = documents.iter().map(Value::to_string).collect();
    Documents {
        name: catalog_name(&catalog.namespace, &catalog.name),
        weight: -catalog.priority,
        text: lines.join("\n"),
    }
}

/// Returns an Operator with the bundle that is installed; it follows its channel if a subscription does.
fn operator(scenario: &Scenario, existing: &ScenarioBundle) -> RequestedOperator {
    let bundle: Bundle =
        bundle_from_properties(&existing.name, &existing.package, &existing.properties);
    let bundle = Bundle { properties: existing.properties.clone(), ..bundle };
    let subscription = existing.subscription.as_ref().and_then(|name| {
        scenario.subscriptions.iter().find(|subscription| subscription.name == *name)
    });
    let version = bundle.version.to_string();
    let kinds = bundle.provides.iter().map(|it| GroupKind::new(&it.group, &it.kind)).collect();
    let pinned = if subscription.is_none() { version.clone() } else { String::new() };
    RequestedOperator {
        spec: OperatorSpec { version: pinned, ..OperatorSpec::default() },
        created: jiff::Timestamp::UNIX_EPOCH,
        is_dependency: false,
        is_of_user: false,
        is_undeclared: false,
        change_set: None,
        is_deleting: false,
        installed: Some(InstalledOperator {
            reference: BundleReference {
                name: bundle.name.clone(),
                version,
                channel: subscription.map(|it| it.channel.clone()).unwrap_or_default(),
                catalog: subscription.map(Subscription::repository).unwrap_or_default(),
                ..BundleReference::default()
            },
            bundle,
            revision: 1,
            upgrade_block: None,
        }),
        returns_to: None,
        owned: kinds,
    }
}

/// Returns the queries of a scenario: its packages by themselves, and its subscriptions.
fn queries(scenario: &Scenario) -> Vec<ResolutionQuery> {
    let bundles = scenario.catalogs.iter().flat_map(|it| &it.bundles);
    let packages: BTreeSet<&str> = bundles.map(|it| it.package.as_str()).collect();
    let by_name = packages.into_iter().map(|name| ResolutionQuery {
        packages: vec![name.to_owned()],
        ..ResolutionQuery::default()
    });
    let subscribed = scenario.subscriptions.iter().map(|it| ResolutionQuery {
        packages: vec![it.package.clone()],
        channel: Some(it.channel.clone()).filter(|it| !it.is_empty()),
        repository: Some(it.repository()),
        ..ResolutionQuery::default()
    });
    by_name.chain(subscribed).collect()
}

/// Asks the three ways about each scenario of a file; the number of plans and of conflicts that were compared.
async fn check(path: &Path) -> [usize; 2] {
    let text = std::fs::read_to_string(path).expect("a file");
    let scenarios: Vec<Scenario> = serde_json::from_str(&text).expect("scenarios");
    let mut compared = [0; 2];
    for scenario in &scenarios {
        let existing = scenario.existing.iter();
        let operators = existing.map(|it| (it.package.clone(), operator(scenario, it))).collect();
        let inventory = OperatorInventory { operators, ..OperatorInventory::default() };
        let catalogs = scenario.catalogs.iter().map(documents).collect();
        let setup = Setup::new(catalogs, inventory);
        for query in queries(scenario) {
            let served = setup.served(&query).await;
            let (id, printed) = (&scenario.id, setup.printed(&query).await);
            assert_eq!(printed, served, "{id}: {query:?}: the command and the service");
            let reported = setup.reported(&query).await;
            assert_eq!(reported, served, "{id}: {query:?}: the Action and the service");
            if let Some(text) = served {
                compared[usize::from(text.contains("\nError: "))] += 1;
            }
        }
    }
    compared
}

#[tokio::test]
async fn three_ways_to_ask_have_one_answer() {
    let path = std::path::absolute("../plimsoll-source/tests/golden/scenarios.json");
    let [plans, conflicts] = check(&path.expect("a working directory")).await;
    assert!(plans > 0 && conflicts > 0, "{plans} plans, {conflicts} conflicts");
}

#[tokio::test]
async fn three_ways_to_ask_have_one_answer_in_all_scenarios() {
    let Some(path) = required("PLIMSOLL_SCENARIOS") else { return };
    let [plans, conflicts] = check(Path::new(&path)).await;
    assert!(plans > 0 && conflicts > 0, "{plans} plans, {conflicts} conflicts");
}
