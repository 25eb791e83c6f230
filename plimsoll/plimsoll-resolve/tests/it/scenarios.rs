//! What the upstream resolver answers, in the file named by `PLIMSOLL_SCENARIOS`: the answers are
//! the same, except where a sentence of the design demands another.

use std::collections::BTreeSet;

use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{
    CatalogName, CatalogSource, Channel, ChannelEntry, FollowedChannel, InstalledBundle,
    PackageRequest, Property, Query, Resolution, bundle_from_properties, collect_problem, solve,
};
use serde::Deserialize;

use crate::memory::Memory;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scenario {
    id: String,
    catalogs: Vec<CatalogOf>,
    existing: Vec<BundleOf>,
    subscriptions: Vec<Subscription>,
    namespaces: Vec<String>,
    upstream: Vec<Answer>,
}

#[derive(Deserialize)]
struct CatalogOf {
    name: String,
    namespace: String,
    priority: i64,
    bundles: Vec<BundleOf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BundleOf {
    name: String,
    package: String,
    channel: String,
    default: bool,
    replaces: String,
    skips: Vec<String>,
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
struct Answer {
    install: Option<BTreeSet<String>>,
    error: Option<String>,
}

impl Answer {
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
fn scenarios_are_answered_as_upstream_answers_them() {
    let Ok(path) = std::env::var("PLIMSOLL_SCENARIOS") else { return };
    let text = std::fs::read(path).expect("the file of scenarios");
    let scenarios: Vec<Scenario> = serde_json::from_slice(&text).expect("scenarios");
    assert!(!scenarios.is_empty());
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
            let expected: Vec<_> = scenario.upstream.iter().map(Answer::installs).collect();
            wrong.push(format!("{}: {found:?}, upstream {expected:?}", scenario.id));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is installed, as upstream's answers have it; none when nothing can be.
fn answer(scenario: &Scenario) -> Option<BTreeSet<String>> {
    let memories: Vec<Memory> = scenario.catalogs.iter().map(memory).collect();
    let sources: Vec<CatalogSource<'_>> = scenario
        .catalogs
        .iter()
        .zip(&memories)
        .map(|(catalog, memory)| CatalogSource {
            name: &catalog.name,
            namespace: &catalog.namespace,
            weight: -catalog.priority,
            catalog: memory,
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
            assert!(!explanation.conflict.is_empty(), "{}", scenario.id);
            None
        }
        Resolution::LimitExceeded => panic!("{} is too hard", scenario.id),
    }
}

fn memory(catalog: &CatalogOf) -> Memory {
    let mut memory = Memory::default();
    for bundle in &catalog.bundles {
        let package = memory.of(&bundle.package);
        if bundle.default {
            package.default_channel = Some(bundle.channel.clone());
        }
        let entry = ChannelEntry {
            name: bundle.name.clone(),
            replaces: Some(bundle.replaces.clone()).filter(|name| !name.is_empty()),
            skips: bundle.skips.clone(),
            skip_range: Some(bundle.skip_range.clone()).filter(|range| !range.is_empty()),
        };
        match package.channels.iter_mut().find(|channel| channel.name == bundle.channel) {
            Some(channel) => channel.entries.push(entry),
            None => package
                .channels
                .push(Channel { name: bundle.channel.clone(), entries: vec![entry] }),
        }
        if !package.bundles.iter().any(|known| known.name == bundle.name) {
            memory.add_bundle(&bundle.package, &bundle.name, bundle.properties.clone());
        }
    }
    memory
}

fn installed(scenario: &Scenario, existing: &BundleOf) -> InstalledBundle {
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
