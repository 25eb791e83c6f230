//! What a cluster has of the add-on layer: its Operators, Catalogs and OperatorRevisions.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use kube::api::ListParams;
use kube::{Api, Client, Error};
use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::{Catalog, Operator, OperatorRevision};
use serde::de::DeserializeOwned;

use crate::arguments::name::hint;

/// The Operators and Catalogs of a cluster, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddOnState {
    /// The Operators.
    pub(crate) operators: BTreeMap<String, Operator>,
    /// The Catalogs.
    pub(crate) catalogs: BTreeMap<String, Catalog>,
}

impl AddOnState {
    /// Reads all Operators and Catalogs.
    ///
    /// # Errors
    ///
    /// When a request fails, or the kinds are not served.
    pub(crate) async fn read(client: &Client) -> Result<Self, anyhow::Error> {
        Self::read_selected(client, "").await
    }

    /// Reads the Operators that a label selector selects, and all Catalogs; an empty selector selects
    /// all.
    ///
    /// # Errors
    ///
    /// When a request fails, the selector is invalid, or the kinds are not served.
    pub(crate) async fn read_selected(
        client: &Client,
        selector: &str,
    ) -> Result<Self, anyhow::Error> {
        let operators = list::<Operator>(client, "Operators", selector).await?;
        let catalogs = list::<Catalog>(client, "Catalogs", "").await?;
        let name = |name: Option<String>| name.unwrap_or_default();
        Ok(Self {
            operators: operators
                .into_iter()
                .map(|it| (name(it.metadata.name.clone()), it))
                .collect(),
            catalogs: catalogs.into_iter().map(|it| (name(it.metadata.name.clone()), it)).collect(),
        })
    }

    /// An Operator by its name.
    ///
    /// # Errors
    ///
    /// When there is none of that name; the error names similar ones.
    pub(crate) fn operator(&self, name: &str) -> Result<&Operator, anyhow::Error> {
        let hint = || hint(name, self.operators.keys().map(String::as_str));
        self.operators.get(name).ok_or_else(|| anyhow!("there is no Operator `{name}`{}", hint()))
    }
}

/// Reads the OperatorRevisions of a cluster.
///
/// # Errors
///
/// When a request fails, or the kind is not served.
pub(crate) async fn revisions(client: &Client) -> Result<Vec<OperatorRevision>, anyhow::Error> {
    list::<OperatorRevision>(client, "OperatorRevisions", "").await
}

/// What an Operator reports; empty before the controller's first write.
pub(crate) fn status(operator: &Operator) -> OperatorStatus {
    operator.status.clone().unwrap_or_default()
}

async fn list<K>(client: &Client, kinds: &str, selector: &str) -> Result<Vec<K>, anyhow::Error>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let parameters = ListParams::default().labels(selector);
    match Api::<K>::all(client.clone()).list(&parameters).await {
        Ok(list) => Ok(list.items),
        Err(Error::Api(status)) if status.code == 404 => Err(anyhow!(
            "the cluster has no {kinds}: deploy the controller first; `plimsoll manifests --operators` \
             prints what it needs"
        )),
        Err(error) => Err(error).with_context(|| format!("failed to list {kinds}")),
    }
}
