//! Resolution problems with what the upstream resolver installs for them: the answers are the same,
//! except where a statement of the design demands another.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_content::catalog::{CatalogIndex, CatalogLoader, IndexedCatalog};
use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{
    CatalogName, CatalogSource, FollowedChannel, InstalledBundle, PackageRequest, Property, Query,
    Resolution, bundle_from_properties, collect_problem, solve,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{committed, full_data, read_json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scenario {
    id: String,
    catalogs: Vec<ScenarioCatalog>,
    existing: Vec<ScenarioBundle>,
    subscriptions: Vec<Subscription>,
    namespaces: Vec<String>,
    upstream: Vec<ScenarioAnswer>,
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
    #[serde(rename = "startingCSV")]
    starting_csv: String,
    #[serde(rename = "installedCSV")]
    installed_csv: String,
}

#[derive(Deserialize)]
struct ScenarioAnswer {
    install: Option<BTreeSet<String>>,
    error: Option<String>,
}

impl ScenarioAnswer {
    /// None when it is an error; nothing to do is an answer too.
    fn installs(&self) -> Option<BTreeSet<String>> {
        match self.error {
            Some(_) => None,
            None => Some(self.install.clone().unwrap_or_default()),
        }
    }
}

/// Where the design wins over upstream, with what is answered instead; docs/resolution.md has the
/// sentences that demand it.
const DIFFERENT: &[(&str, Option<&[&str]>)] = &[
    // "The new model will only attempt to resolve dependencies using the default channel."
    ("S10", None),
    // "the preference of same catalog, then same namespace", then weight
    ("S14", Some(&["cat/stable/a.v1", "local/stable/b.v1"])),
];

#[test]
fn scenarios_are_resolved_as_upstream_resolves_them() {
    check(&committed("scenarios.json"));
}

#[test]
fn all_scenarios_are_resolved_as_upstream_resolves_them() {
    let Some([path]) = full_data(["PLIMSOLL_SCENARIOS"]) else { return };
    check(&path);
}

fn check(path: &Path) {
    let scenarios: Vec<Scenario> = read_json(path);
    assert!(!scenarios.is_empty(), "no scenarios");
    let mut wrong = Vec::new();
    for scenario in &scenarios {
        let found = answer(scenario);
        let different = DIFFERENT.iter().find(|(id, _)| *id == scenario.id);
        let agrees = match different {
            Some((_, expected)) => {
                let names = expected.map(|names| names.iter().map(|it| (*it).to_owned()).collect());
                found == names
            }
            None => scenario.upstream.iter().any(|answer| answer.installs() == found),
        };
        if !agrees {
            let expected: Vec<_> = scenario.upstream.iter().map(ScenarioAnswer::installs).collect();
            wrong.push(format!("{}: {found:?}, upstream {expected:?}", scenario.id));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is installed, as upstream's answers have it; none when nothing can be.
fn answer(scenario: &Scenario) -> Option<BTreeSet<String>> {
    let indexes: Vec<CatalogIndex> = scenario.catalogs.iter().map(index).collect();
    let offers: Vec<_> = indexes.iter().map(IndexedCatalog::new).collect();
    let sources: Vec<CatalogSource<'_>> = scenario
        .catalogs
        .iter()
        .zip(&offers)
        .map(|(catalog, offer)| CatalogSource {
            name: &catalog.name,
            namespace: &catalog.namespace,
            weight: -catalog.priority,
            catalog: offer,
        })
        .collect();
    let namespace = &scenario.namespaces[0];
    let query = Query {
        global_namespaces: scenario.namespaces[1..].to_vec(),
        installed: scenario.existing.iter().map(|it| installed(scenario, it)).collect(),
        requests: scenario.subscriptions.iter().map(|it| request(namespace, it)).collect(),
        ..Query::default()
    };
    let problem = collect_problem(&sources, query, &Cel);
    match solve(&problem, &Cel) {
        Resolution::Solved(solution) => Some(
            solution
                .install
                .iter()
                .map(|item| {
                    let place = format!("{}/{}/{}", item.catalog.name, item.channel, item.bundle);
                    match item.updates.as_ref().or(item.replaces.as_ref()) {
                        Some(replaced) => format!("{place}<-{replaced}"),
                        None => place,
                    }
                })
                .collect(),
        ),
        Resolution::Unsatisfiable(explanation) => {
            assert!(
                explanation.conflicts.iter().all(|it| !it.steps.is_empty())
                    && !explanation.conflicts.is_empty(),
                "{}",
                scenario.id
            );
            None
        }
        Resolution::LimitExceeded => panic!("{} is too hard", scenario.id),
    }
}

/// The catalog as file-based documents, and the index of those.
fn index(catalog: &ScenarioCatalog) -> CatalogIndex {
    let mut documents: Vec<Value> = Vec::new();
    let packages: BTreeSet<&str> = catalog.bundles.iter().map(|it| it.package.as_str()).collect();
    for package in packages {
        let bundles: Vec<&ScenarioBundle> =
            catalog.bundles.iter().filter(|it| it.package == package).collect();
        let default = bundles.iter().find(|it| it.default).map(|it| it.channel.as_str());
        documents.push(json!({
            "schema": "olm.package", "name": package, "defaultChannel": default.unwrap_or_default(),
        }));
        let channels: BTreeSet<&str> = bundles.iter().map(|it| it.channel.as_str()).collect();
        for channel in channels {
            let entries = bundles.iter().filter(|it| it.channel == channel).map(|it| {
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
        for bundle in bundles.iter().filter(|it| names.insert(it.name.as_str())) {
            documents.push(json!({
                "schema": "olm.bundle", "package": package, "name": bundle.name, "image": "image",
                "properties": bundle.properties,
            }));
        }
    }
    let lines: Vec<String> = documents.iter().map(Value::to_string).collect();
    let mut loader = CatalogLoader::new();
    loader.read_file(&catalog.name, lines.join("\n").as_bytes());
    loader.finish().open()
}

fn installed(scenario: &Scenario, existing: &ScenarioBundle) -> InstalledBundle {
    let subscription = existing.subscription.as_ref().and_then(|name| {
        scenario.subscriptions.iter().find(|subscription| subscription.name == *name)
    });
    let mut bundle =
        bundle_from_properties(&existing.name, &existing.package, &existing.properties);
    bundle.properties = existing.properties.clone();
    InstalledBundle {
        namespace: scenario.namespaces[0].clone(),
        package: Some(existing.package.clone()),
        follows: subscription.map(|subscription| FollowedChannel {
            channel: subscription.channel.clone(),
            catalog: Some(CatalogName {
                namespace: subscription.catalog_namespace.clone(),
                name: subscription.catalog.clone(),
            }),
        }),
        catalog: None,
        ignore_dependencies: false,
        bundle,
    }
}

fn request(namespace: &str, subscription: &Subscription) -> PackageRequest {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    PackageRequest {
        namespace: namespace.to_owned(),
        package: subscription.package.clone(),
        channel: some(&subscription.channel),
        bundle: some(&subscription.starting_csv),
        catalog: Some(CatalogName {
            namespace: subscription.catalog_namespace.clone(),
            name: subscription.catalog.clone(),
        }),
        installed: some(&subscription.installed_csv),
        name: subscription.name.clone(),
        ..PackageRequest::default()
    }
}
