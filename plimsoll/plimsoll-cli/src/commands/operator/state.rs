//! The Operators, Catalogs and OperatorRevisions of a cluster.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, Error};
use plimsoll_api::olm::{INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, OperatorStatus};
use plimsoll_api::{CATALOG, Catalog, OPERATOR, OPERATOR_REVISION, Operator, OperatorRevision};
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_simulation::cluster_state::api;

use super::unreadable::UnreadableObjects;
use crate::arguments::name::hint;
use crate::progress::ProgressLine;

/// The Operators and Catalogs of a cluster, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddOnState {
    /// The Operators, by name.
    pub(crate) operators: BTreeMap<String, Operator>,
    /// The Catalogs, by name.
    pub(crate) catalogs: BTreeMap<String, Catalog>,
    /// Those that cannot be read, which are not among the others.
    pub(crate) unreadable: UnreadableObjects,
}

impl AddOnState {
    /// Reads all Operators and Catalogs. Those that cannot be read are named on standard error.
    ///
    /// # Errors
    ///
    /// When a request fails, or the kinds are not served.
    pub(crate) async fn read(client: &Client) -> Result<Self, anyhow::Error> {
        Self::read_selected(client, "").await
    }

    /// Reads the Operators that a label selector selects, and all Catalogs; an empty selector selects
    /// all. Those that cannot be read are named on standard error.
    ///
    /// # Errors
    ///
    /// When a request fails, the selector is invalid, or the kinds are not served.
    pub(crate) async fn read_selected(
        client: &Client,
        selector: &str,
    ) -> Result<Self, anyhow::Error> {
        let mut unreadable = UnreadableObjects::default();
        let operators = unreadable.read_operators(list_operators(client, selector).await?);
        let catalogs = unreadable.read_catalogs(list_catalogs(client).await?);
        unreadable.warn();
        Ok(Self { operators, catalogs, unreadable })
    }

    /// Returns an Operator by its name.
    ///
    /// # Errors
    ///
    /// When there is none of that name (the error names similar ones), or it cannot be read.
    pub(crate) fn operator(&self, name: &str) -> Result<&Operator, anyhow::Error> {
        self.unreadable.require_readable(name)?;
        let hint = || hint(name, self.operators.keys().map(String::as_str));
        self.operators.get(name).ok_or_else(|| anyhow!("there is no Operator `{name}`{}", hint()))
    }
}

/// Reads the Operators that a label selector selects, by name, as far as they can be read; an empty selector
/// selects all.
///
/// # Errors
///
/// When a request fails, the selector is invalid, or the kind is not served.
pub(crate) async fn operators(
    client: &Client,
    selector: &str,
) -> Result<BTreeMap<String, Operator>, anyhow::Error> {
    let objects = list_operators(client, selector).await?;
    Ok(UnreadableObjects::default().read_operators(objects))
}

/// Reads all Catalogs, by name, as far as they can be read.
///
/// # Errors
///
/// When a request fails, or the kind is not served.
pub(crate) async fn catalogs(client: &Client) -> Result<BTreeMap<String, Catalog>, anyhow::Error> {
    Ok(UnreadableObjects::default().read_catalogs(list_catalogs(client).await?))
}

async fn list_operators(
    client: &Client,
    selector: &str,
) -> Result<Vec<DynamicObject>, anyhow::Error> {
    list(&api(client, OPERATOR), "Operators", selector).await
}

async fn list_catalogs(client: &Client) -> Result<Vec<DynamicObject>, anyhow::Error> {
    list(&api(client, CATALOG), "Catalogs", "").await
}

/// Reads the OperatorRevisions of a cluster. Those that cannot be read are named on standard error.
///
/// # Errors
///
/// When a request fails, or the kind is not served.
pub(crate) async fn revisions(client: &Client) -> Result<Vec<OperatorRevision>, anyhow::Error> {
    let objects = list(&api(client, OPERATOR_REVISION), "OperatorRevisions", "").await?;
    let mut unreadable = UnreadableObjects::default();
    let revisions = unreadable.read_revisions(objects);
    unreadable.warn();
    Ok(revisions)
}

/// Returns the status of an Operator; empty before the controller's first write.
pub(crate) fn status(operator: &Operator) -> OperatorStatus {
    operator.status.clone().unwrap_or_default()
}

/// Returns whether an Operator was installed because another one requires it.
pub(crate) fn is_dependency(operator: &Operator) -> bool {
    let labels = operator.metadata.labels.as_ref();
    let label = labels.and_then(|it| it.get(INSTALLED_AS_LABEL));
    label.is_some_and(|it| it == INSTALLED_AS_DEPENDENCY)
}

/// Returns Operators in the form that plans are made from.
pub(crate) fn observed(
    operators: &BTreeMap<String, Operator>,
) -> BTreeMap<String, ObservedOperator> {
    let read = |it: &Operator| {
        let object = serde_json::to_value(it).expect("its keys are strings");
        ObservedOperator::read(&object)
    };
    operators.iter().map(|(name, it)| (name.clone(), read(it))).collect()
}

/// Lists objects. They are not parsed yet, so that one that cannot be read does not hide the others.
async fn list(
    api: &Api<DynamicObject>,
    kinds: &str,
    selector: &str,
) -> Result<Vec<DynamicObject>, anyhow::Error> {
    let parameters = ListParams::default().labels(selector);
    let progress = ProgressLine::begin(format!("reading {kinds} of the cluster"));
    let listed = api.list(&parameters).await;
    drop(progress);
    match listed {
        Ok(list) => Ok(list.items),
        Err(Error::Api(status)) if status.code == 404 => Err(anyhow!(
            "the cluster has no {kinds}: deploy the controller first; `plimsoll manifests --operators` \
             prints what it needs"
        )),
        Err(error) => Err(error).with_context(|| match selector {
            "" => format!("failed to list {kinds}"),
            _ => format!("failed to list {kinds} with labels `{selector}`"),
        }),
    }
}

#[cfg(test)]
pub(super) mod samples {
    //! Operators for tests.

    use std::collections::BTreeMap;

    use plimsoll_api::Operator;
    use plimsoll_api::olm::{Dependant, DependencyStatus, INSTALLED_AS_LABEL, OperatorStatus};

    /// Parses Operators, one per line: `NAME [dependency]: DEPENDENCY…`; `!PACKAGE` is a
    /// requirement that is not satisfied.
    pub(in super::super) fn operators(text: &str) -> BTreeMap<String, Operator> {
        let mut operators: BTreeMap<String, Operator> = BTreeMap::new();
        let mut statuses: BTreeMap<String, OperatorStatus> = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let (left, right) = line.split_once(':').unwrap();
            let (name, label) = left.split_once(' ').unwrap_or((left, ""));
            let mut operator = Operator::default();
            if !label.is_empty() {
                let label = (INSTALLED_AS_LABEL.to_owned(), label.to_owned());
                operator.metadata.labels = Some(BTreeMap::from([label]));
            }
            operators.insert(name.to_owned(), operator);
            for dependency in right.split_whitespace() {
                let requirements = &mut statuses.entry(name.to_owned()).or_default().dependencies;
                if let Some(missing) = dependency.strip_prefix('!') {
                    let requirement = missing.to_owned();
                    requirements.push(DependencyStatus { requirement, ..Default::default() });
                    continue;
                }
                requirements.push(DependencyStatus {
                    operator: dependency.to_owned(),
                    requirement: dependency.to_owned(),
                    satisfied: true,
                    ..DependencyStatus::default()
                });
                statuses
                    .entry(dependency.to_owned())
                    .or_default()
                    .dependants
                    .push(Dependant { operator: name.to_owned(), requirement: name.to_owned() });
            }
        }
        for (name, operator) in &mut operators {
            operator.status = Some(statuses.remove(name).unwrap_or_default());
        }
        operators
    }
}
