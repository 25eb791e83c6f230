//! What the controller of Operators tells the one of Actions: what Operators and catalogs report, as it
//! happens, and on request all that plans are made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_api::olm::action::PlannedChange;
use plimsoll_content::catalog::{CatalogIndex, IndexedCatalog, PackageBlock};
use plimsoll_content::expressions::Cel;
use plimsoll_operators::inventory::AddOnInventory;
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_operators::reconciler::OperatorKind;
use plimsoll_resolve::{CatalogPart, CatalogSource, PackageRequest, Query, collect_problem};
use plimsoll_source::catalog::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Something that changed in the add-on layer.
#[derive(Debug)]
pub(crate) enum AddOnChange {
    /// An Operator is as it is; `None` when it is gone.
    Operator(String, Option<Box<ObservedOperator>>),
    /// The digest of a catalog, empty if it was not read yet; `None` when it is gone.
    Catalog(String, Option<String>),
    /// All objects of a kind have been shown.
    Listed(OperatorKind),
}

/// All that plans are made from.
pub(crate) struct CatalogInventory {
    /// The Operators, but for what the API server has of them.
    pub(crate) inventory: AddOnInventory,
    /// The catalogs that are served: their names and weights.
    pub(crate) served: Vec<(String, i64)>,
    /// What they have, by name.
    pub(crate) indexes: BTreeMap<String, Arc<CatalogIndex<Bytes>>>,
    /// The digests of what they have, by name.
    pub(crate) digests: BTreeMap<String, String>,
}

impl CatalogInventory {
    /// What the catalogs have that packages lead to. Blocks.
    pub(crate) fn parts(&self, packages: Vec<String>) -> Vec<CatalogPart> {
        let indexed = |(name, weight): &(String, i64)| {
            Some((name.clone(), *weight, IndexedCatalog::new(self.indexes.get(name)?)))
        };
        let indexed: Vec<_> = self.served.iter().filter_map(indexed).collect();
        let sources = indexed.iter().map(|(name, weight, catalog)| CatalogSource {
            name,
            namespace: "",
            weight: *weight,
            catalog,
        });
        let sources: Vec<CatalogSource<'_>> = sources.collect();
        let request = |package| PackageRequest { package, ..PackageRequest::default() };
        let query =
            Query { requests: packages.into_iter().map(request).collect(), ..Query::default() };
        collect_problem(&sources, query, &Cel).catalogs
    }

    /// The image of the bundle that a change installs, or the digest of its catalog if that has the
    /// content itself; empty if the catalog has no such bundle, `None` if the catalog has not been read.
    pub(crate) fn image(&self, change: &PlannedChange) -> Option<String> {
        let index = self.indexes.get(&change.catalog)?;
        let block = index.package(&change.operator).ok()?;
        let package = block.as_ref().map(PackageBlock::read).transpose().ok()?;
        let bundle = package.as_ref().and_then(|it| it.bundle(&change.bundle));
        Some(match bundle.map(|it| it.image.to_string()) {
            Some(image) if image.is_empty() => {
                self.digests.get(&change.catalog).cloned().unwrap_or_default()
            }
            image => image.unwrap_or_default(),
        })
    }
}

/// A request for all that plans are made from; the answer is `None` before that is known.
pub(crate) type InventoryRequest = oneshot::Sender<Option<CatalogInventory>>;

/// The end of the controller of Operators.
pub(crate) struct InventoryProvider {
    changes: mpsc::UnboundedSender<AddOnChange>,
    requests: mpsc::Receiver<InventoryRequest>,
}

/// The end of the controller of Actions.
pub(crate) struct InventoryClient {
    pub(crate) changes: mpsc::UnboundedReceiver<AddOnChange>,
    requests: mpsc::Sender<InventoryRequest>,
}

/// Both ends.
pub(crate) fn channel() -> (InventoryProvider, InventoryClient) {
    let (changes, changed) = mpsc::unbounded_channel();
    let (requests, requested) = mpsc::channel(1);
    (
        InventoryProvider { changes, requests: requested },
        InventoryClient { changes: changed, requests },
    )
}

impl InventoryProvider {
    /// The next request; waits for ever once nobody is left to ask.
    pub(crate) async fn next(&mut self) -> InventoryRequest {
        match self.requests.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    /// An object that configures the add-on layer is as it is, or gone.
    pub(crate) fn changed(&self, kind: OperatorKind, name: &str, object: Option<&Value>) {
        let change = match kind {
            OperatorKind::Operator => AddOnChange::Operator(
                name.to_owned(),
                object.map(|it| Box::new(ObservedOperator::read(it))),
            ),
            OperatorKind::Catalog => AddOnChange::Catalog(
                name.to_owned(),
                object.map(|it| it["status"]["digest"].as_str().unwrap_or_default().to_owned()),
            ),
            OperatorKind::Revision => return,
        };
        self.send(change);
    }

    /// All objects of a kind have been shown.
    pub(crate) fn listed(&self, kind: OperatorKind) {
        self.send(AddOnChange::Listed(kind));
    }

    fn send(&self, change: AddOnChange) {
        // It ends together with this one.
        let _ = self.changes.send(change);
    }
}

impl InventoryClient {
    /// All that plans are made from; `None` before that is known.
    pub(crate) async fn ask(&self) -> Option<CatalogInventory> {
        let (sender, answer) = oneshot::channel();
        self.requests.send(sender).await.ok()?;
        answer.await.ok().flatten()
    }
}
