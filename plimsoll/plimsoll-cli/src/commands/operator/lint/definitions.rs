//! What updates of Operators do to the definitions of their kinds.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, anyhow};
use plimsoll_api::olm::{BundleReference, CrdUpgradeSafety, OperatorSpec};
use plimsoll_bundle::crd_safety::{UpgradeProblem, UpgradeRule, check};
use plimsoll_controller::render;
use plimsoll_operators::lint::BundleMove;
use serde_json::Value;

use super::super::loadout::LoadoutState;

/// The definitions of a bundle by name, each as a cluster has it that stores objects of it.
type Definitions = BTreeMap<String, Value>;

/// Returns what users of definitions cannot follow in the steps of updates, by Operator. A note says of which
/// Operators that is not known, since a bundle cannot be read.
pub(super) fn problems(
    state: &LoadoutState,
    moves: &[BundleMove],
) -> BTreeMap<String, Vec<String>> {
    let mut problems: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    // What a step leads to is where the next one begins.
    let mut reached: Option<(&BundleMove, Definitions)> = None;
    for moved in moves {
        let is_next = |it: &BundleMove| it.operator == moved.operator && it.to == moved.from;
        let before = reached.take().filter(|(it, _)| is_next(it)).map(|(_, found)| found);
        let before = before.map_or_else(|| definitions(state, moved, &moved.from), Ok);
        let found = before.and_then(|before| {
            let after = definitions(state, moved, &moved.to)?;
            let found = changes(moved, &before, &after);
            reached = Some((moved, after));
            found
        });
        match found {
            Ok(found) if found.is_empty() => {}
            Ok(found) => problems.entry(moved.operator.clone()).or_default().extend(found),
            Err(error) => {
                let name = &moved.operator;
                if unknown.insert(name) {
                    anstream::eprintln!(
                        "note: the definitions of {name} are not compared: {error:#}"
                    );
                }
            }
        }
    }
    problems
}

/// Returns what users of definitions cannot follow in a step of an update.
fn changes(
    moved: &BundleMove,
    before: &Definitions,
    after: &Definitions,
) -> Result<Vec<String>, anyhow::Error> {
    let mut found = Vec::new();
    for (name, new) in after {
        let Some(old) = before.get(name) else { continue };
        let verdict = check(old, new).with_context(|| format!("definition {name}"))?;
        let counts = |it: &&UpgradeProblem| {
            let is_refused =
                matches!(it.rule, UpgradeRule::Scope | UpgradeRule::StoredVersionRemoval);
            is_refused || moved.spec.crd_upgrade_safety != CrdUpgradeSafety::Off
        };
        found.extend(verdict.problems.iter().filter(counts).map(|it| {
            let place = [&it.version, &it.property].into_iter().flatten();
            let place: String = place.map(|part| format!(" {part}")).collect();
            format!("{} changes {name}{place}: {}", moved.text(), it.message)
        }));
    }
    Ok(found)
}

/// Returns the definitions of a bundle that an Operator moves from or to.
fn definitions(
    state: &LoadoutState,
    moved: &BundleMove,
    bundle: &BundleReference,
) -> Result<Definitions, anyhow::Error> {
    let catalog = state.catalogs.opened.iter().find(|it| it.name == bundle.catalog);
    let catalog =
        catalog.with_context(|| format!("catalog `{}` is not read from here", bundle.catalog))?;
    // The rules are those of one version of the objects.
    let spec = OperatorSpec { ready_when: Vec::new(), ..moved.spec.clone() };
    let content = render(&moved.operator, bundle, &catalog.source, &spec, Vec::new())
        .map_err(|error| anyhow!("bundle {}: {error}", bundle.name))?;
    let definitions =
        content.objects.into_iter().filter(|it| it["kind"] == "CustomResourceDefinition");
    let named = definitions.map(|it| {
        let name = it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (name, stored(it))
    });
    Ok(named.collect())
}

/// Adds the version that objects are stored in to the status of a definition.
fn stored(mut definition: Value) -> Value {
    let versions = definition["spec"]["versions"].as_array();
    let stored = versions.into_iter().flatten().filter(|it| it["storage"] == true);
    let stored: Vec<Value> = stored.map(|it| it["name"].clone()).collect();
    definition["status"]["storedVersions"] = stored.into();
    definition
}
