//! What updates of Operators do to the definitions of their kinds.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use plimsoll_api::olm::{BundleReference, CrdUpgradeSafety, OperatorSpec};
use plimsoll_bundle::crd_safety::{UpgradeProblem, UpgradeRule, check};
use plimsoll_controller::operators::render;
use plimsoll_operators::lint::BundleMove;
use serde_json::Value;

use super::super::loadout::LoadoutState;

/// Returns what users of definitions cannot follow in updates, by Operator. A note says of which Operators that
/// is not known, since their bundles cannot be read.
pub(super) fn problems(
    state: &LoadoutState,
    moves: &[BundleMove],
) -> BTreeMap<String, Vec<String>> {
    let mut problems = BTreeMap::new();
    for moved in moves {
        match changes(state, moved) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => {
                problems.insert(moved.operator.clone(), found);
            }
            Err(error) => {
                let name = &moved.operator;
                anstream::eprintln!("note: the definitions of {name} are not compared: {error:#}");
            }
        }
    }
    problems
}

/// Returns what users of definitions cannot follow in an update.
fn changes(state: &LoadoutState, moved: &BundleMove) -> Result<Vec<String>, anyhow::Error> {
    let BundleMove { operator, spec, from, to } = moved;
    let before = definitions(state, operator, spec, from)?;
    let after = definitions(state, operator, spec, to)?;
    let mut found = Vec::new();
    for (name, new) in &after {
        let Some(old) = before.get(name) else { continue };
        let verdict = check(old, new).with_context(|| format!("definition {name}"))?;
        let counts = |it: &&UpgradeProblem| {
            let is_refused =
                matches!(it.rule, UpgradeRule::Scope | UpgradeRule::StoredVersionRemoval);
            is_refused || spec.crd_upgrade_safety != CrdUpgradeSafety::Off
        };
        found.extend(verdict.problems.iter().filter(counts).map(|it| {
            let place = [&it.version, &it.property].into_iter().flatten();
            let place: String = place.map(|part| format!(" {part}")).collect();
            let (from, to) = (&from.version, &to.version);
            format!("the update from v{from} to v{to} changes {name}{place}: {}", it.message)
        }));
    }
    Ok(found)
}

/// Returns the definitions of a bundle by name, each as a cluster has it that stores objects of it.
fn definitions(
    state: &LoadoutState,
    operator: &str,
    spec: &OperatorSpec,
    bundle: &BundleReference,
) -> Result<BTreeMap<String, Value>, anyhow::Error> {
    let catalog = state.catalogs.opened.iter().find(|it| it.name == bundle.catalog);
    let catalog =
        catalog.with_context(|| format!("catalog `{}` is not read from here", bundle.catalog))?;
    // The rules are those of one version of the objects.
    let spec = OperatorSpec { ready_when: Vec::new(), ..spec.clone() };
    let content = render(operator, bundle, &catalog.source, &spec, Vec::new())
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
