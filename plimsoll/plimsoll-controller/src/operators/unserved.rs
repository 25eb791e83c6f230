//! Kinds that the cluster does not serve, and the packages that provide them.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_content::catalog::CatalogIndex;
use plimsoll_operators::reconciler::UnservedKind;
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_source::catalog::Bytes;

use super::inspect::Cluster;
use crate::resources::{Discovered, Resources};
use crate::write::chain;

/// The number of packages that are named for a kind.
const PROVIDERS_NAMED: usize = 3;

/// Returns those of the kinds that are not served. Groups that are not part of Kubernetes are discovered anew:
/// definitions come and go. What is found is added to the kinds of the cluster.
///
/// # Errors
///
/// When the kinds of a group are not known; the text names it.
pub(super) async fn unserved_kinds(
    cluster: &mut Cluster,
    kinds: &BTreeSet<GroupVersionKind>,
    catalogs: &[Arc<CatalogIndex<Bytes>>],
) -> Result<Vec<UnservedKind>, String> {
    let is_asked = |it: &&GroupVersionKind| {
        !is_of_kubernetes(&it.group) || cluster.resources.get(it).is_none()
    };
    let asked: BTreeSet<(&str, &str)> =
        kinds.iter().filter(is_asked).map(|it| (it.group.as_str(), it.version.as_str())).collect();
    let mut found = Resources::default();
    // An object without a version is of no kind that is served.
    for (group, version) in asked.iter().filter(|(_, version)| !version.is_empty()) {
        let discovered = Resources::discover_version(&cluster.client, group, version).await;
        let discovered = discovered
            .map_err(|error| format!("failed to discover {group}/{version}: {}", chain(&error)))?;
        found.extend(discovered);
    }
    let is_unserved = |it: &&GroupVersionKind| {
        asked.contains(&(it.group.as_str(), it.version.as_str())) && found.get(it).is_none()
    };
    let unserved: Vec<&GroupVersionKind> = kinds.iter().filter(is_unserved).collect();
    let others = match unserved.is_empty() {
        true => Resources::default(),
        // What was known before may have come or gone.
        false => {
            let discovered = Discovered::read(&cluster.client).await;
            let failed =
                |error: kube::Error| format!("failed to discover all kinds: {}", chain(&error));
            discovered.map_err(failed)?.resources
        }
    };
    let unserved = unserved.into_iter().map(|kind| UnservedKind {
        kind: kind.clone(),
        versions: other_versions(&others, kind),
        providers: providers(catalogs, kind),
    });
    let unserved = unserved.collect();
    cluster.resources.extend(found);
    Ok(unserved)
}

/// Returns whether Kubernetes itself serves the kinds of a group.
fn is_of_kubernetes(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Returns the other versions in which a kind is served.
fn other_versions(resources: &Resources, kind: &GroupVersionKind) -> Vec<String> {
    let is_other = |it: &GroupVersionKind| {
        it.group == kind.group && it.kind == kind.kind && it.version != kind.version
    };
    let others = resources.iter().map(|(it, _)| it).filter(|it| is_other(it));
    others.map(|it| it.version.clone()).collect()
}

/// Returns the first packages that provide a kind.
fn providers(catalogs: &[Arc<CatalogIndex<Bytes>>], kind: &GroupVersionKind) -> Vec<String> {
    let found = catalogs.iter().flat_map(|it| it.providers(&kind.group, &kind.version, &kind.kind));
    let found: BTreeSet<&str> = found.collect();
    found.into_iter().take(PROVIDERS_NAMED).map(str::to_owned).collect()
}
