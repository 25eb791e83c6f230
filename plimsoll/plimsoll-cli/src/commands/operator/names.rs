//! Names of Operators, packages, Actions and ActionClasses for shell completion.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Error};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use plimsoll_api::{ACTION, ACTION_CLASS, Operator};
use plimsoll_simulation::cluster_state::api;
use tokio::time::timeout;

use super::action::actions;
use super::catalogs::CatalogChoice;
use super::cluster_resolver::{ClusterResolver, ask_in_place_of};
use super::state::{self, operators, status};
use crate::arguments::cluster::ClusterArguments;

/// The time that the API server may take to answer without `--request-timeout`, and the cluster's resolver in any
/// case. It is short, since a user waits for the completion.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// The kind of object that an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedKind {
    /// An Operator of the cluster.
    Operator,
    /// A package of a catalog.
    Package,
    /// An Action of the namespace.
    Action,
    /// An ActionClass of the cluster.
    ActionClass,
}

/// Returns the names that an argument may have, in order: Operators with the installed version,
/// packages with their catalogs, Actions with their class, ActionClasses with the description. The
/// cluster is not read for packages if the command line names catalogs.
///
/// # Errors
///
/// When the cluster or a catalog cannot be read.
pub(crate) async fn names(
    kind: NamedKind,
    cluster: &ClusterArguments,
    namespace: Option<&str>,
    catalogs: &CatalogChoice,
) -> Result<BTreeMap<String, String>, Error> {
    let client = async || cluster.client("operator").await;
    match kind {
        NamedKind::Operator => {
            let operators = operators(&client().await?, "").await?.into_iter();
            let version =
                |it: &Operator| status(it).bundle.map(|it| it.version).unwrap_or_default();
            Ok(operators.map(|(name, it)| (name, version(&it))).collect())
        }
        NamedKind::Action => {
            let client = client().await?;
            let namespace = namespace.unwrap_or(client.default_namespace());
            described(&actions(&client, namespace, ACTION), "actionClass").await
        }
        NamedKind::ActionClass => {
            described(&api(&client().await?, ACTION_CLASS), "description").await
        }
        NamedKind::Package => match catalogs.is_named() {
            true => packages(None, catalogs).await,
            false => packages(Some(&client().await?), catalogs).await,
        },
    }
}

/// Returns the packages of catalogs, each with the catalogs that have it. The resolver of a cluster is asked if some
/// of its catalogs cannot be read on this machine.
///
/// # Errors
///
/// When the cluster or a catalog cannot be read, or the resolver does not answer in time and no catalog can be read
/// on this machine.
pub(super) async fn packages(
    client: Option<&Client>,
    choice: &CatalogChoice,
) -> Result<BTreeMap<String, String>, Error> {
    let listed = match client {
        Some(client) => state::catalogs(client).await?,
        None => BTreeMap::new(),
    };
    let catalogs = choice.open(&listed)?;
    let ask = async |resolver: &ClusterResolver| {
        timeout(ANSWER_TIME_MAX, resolver.search(&[])).await.context("it takes too long")?
    };
    let asked = match client {
        Some(client) => ask_in_place_of(&catalogs, choice, client, ask).await?,
        None => None,
    };
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    match asked {
        Some(summaries) => {
            for it in summaries {
                found.entry(it.name).or_default().extend(it.catalog);
            }
        }
        None => {
            for catalog in catalogs.opened {
                for package in catalog.index.package_names() {
                    found.entry(package.to_owned()).or_default().insert(catalog.name.clone());
                }
            }
        }
    }
    let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
    Ok(found.into_iter().map(|(name, catalogs)| (name, list(catalogs))).collect())
}

/// Returns the names of objects, each with a field of its spec.
async fn described(
    objects: &Api<DynamicObject>,
    field: &str,
) -> Result<BTreeMap<String, String>, Error> {
    let listed = objects.list(&ListParams::default()).await?.items.into_iter();
    let text = |it: &DynamicObject| it.data["spec"][field].as_str().unwrap_or_default().to_owned();
    Ok(listed.map(|it| (it.metadata.name.clone().unwrap_or_default(), text(&it))).collect())
}
