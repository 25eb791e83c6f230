//! The channel from the controller of Operators to the controller of Actions. It carries changes of
//! Operators and Catalogs as they are observed, and on request the inventory that plans are made
//! from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::olm::action::PlannedChange;
use plimsoll_api::olm::{BundleReference, CatalogSource};
use plimsoll_content::catalog::{CatalogIndex, IndexedCatalog, PackageBlock};
use plimsoll_content::expressions::Cel;
use plimsoll_operators::inventory::OperatorInventory;
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_operators::reconciler::OperatorKind;
use plimsoll_resolve::{CatalogPart, PackageRequest, Query, collect_problem};
use plimsoll_source::catalog::{Bytes, CatalogRoots};
use semver::Version;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// The maximum number of bundles that are read for one change.
const BUNDLES_MAX: usize = 32;

/// A change of an Operator or a Catalog.
#[derive(Debug)]
pub(crate) enum AddOnChange {
    /// The current state of an Operator; `None` if it was deleted.
    Operator(String, Option<Box<ObservedOperator>>),
    /// The digest of a catalog, empty if it has not been read yet; `None` if the Catalog was
    /// deleted.
    Catalog(String, Option<String>),
    /// All objects of a kind have been listed.
    Listed(OperatorKind),
}

/// The inventory that plans are made from.
pub(crate) struct CatalogInventory {
    /// The Operators and the facts of the cluster. The controller of Actions fills in the Operators
    /// as it has observed them.
    pub(crate) inventory: OperatorInventory,
    /// The names and weights of the catalogs that are served.
    pub(crate) served: Vec<(String, i64)>,
    /// The indexes of the catalogs, by name.
    pub(crate) indexes: BTreeMap<String, Arc<CatalogIndex<Bytes>>>,
    /// The digests of the catalogs, by name.
    pub(crate) digests: BTreeMap<String, String>,
    /// The sources of the catalogs, by name; empty if the content of bundles is not needed.
    pub(crate) sources: BTreeMap<String, CatalogSource>,
    /// The directories that the sources must be in.
    pub(crate) roots: CatalogRoots,
}

impl CatalogInventory {
    /// Returns the parts of the catalogs that can be reached from some packages. Blocks the thread.
    pub(crate) fn parts(&self, packages: Vec<String>) -> Vec<CatalogPart> {
        self.read_parts(packages).0
    }

    /// Returns the same, and what is wrong with an index if a package cannot be read: then that is as if it were not
    /// there.
    pub(crate) fn read_parts(&self, packages: Vec<String>) -> (Vec<CatalogPart>, Option<String>) {
        let indexed = |(name, weight): &(String, i64)| {
            Some((name.clone(), *weight, IndexedCatalog::new(self.indexes.get(name)?)))
        };
        let indexed: Vec<_> = self.served.iter().filter_map(indexed).collect();
        let sources = indexed.iter().map(|(name, weight, catalog)| {
            plimsoll_resolve::CatalogSource { name, namespace: "", weight: *weight, catalog }
        });
        let sources: Vec<_> = sources.collect();
        let request = |package| PackageRequest { package, ..PackageRequest::default() };
        let query =
            Query { requests: packages.into_iter().map(request).collect(), ..Query::default() };
        let parts = collect_problem(&sources, query, &Cel).catalogs;
        let failure = indexed.iter().find_map(|(_, _, catalog)| catalog.failure());
        (parts, failure.map(ToString::to_string))
    }

    /// Returns the bundle that a change installs, and all that may be installed on the way there from another one: those
    /// of versions between them, of any channel and catalog.
    ///
    /// # Errors
    ///
    /// When there are too many to read, or a catalog cannot be read.
    pub(crate) fn on_the_way(
        &self,
        change: &PlannedChange,
        from: Option<&BundleReference>,
    ) -> Result<Vec<BundleReference>, String> {
        let reference = |catalog: &str, name: &str, version: &str| BundleReference {
            name: name.to_owned(),
            catalog: catalog.to_owned(),
            version: version.to_owned(),
            ..BundleReference::default()
        };
        let mut found = vec![reference(&change.catalog, &change.bundle, &change.version)];
        let Some(from) = from else { return Ok(found) };
        let between = Version::parse(&from.version).ok().zip(Version::parse(&change.version).ok());
        let (first, last) = between.ok_or("a version cannot be read")?;
        for (catalog, _) in &self.served {
            let Some(index) = self.indexes.get(catalog) else { continue };
            let block = index.package(&change.operator).map_err(|error| error.to_string())?;
            let package = block.as_ref().map(PackageBlock::read).transpose();
            let Some(package) = package.map_err(|error| error.to_string())? else { continue };
            for bundle in &package.bundles {
                let version = bundle.version.to_string();
                let is_between = Version::parse(&version).is_ok_and(|it| {
                    it.cmp_precedence(&first).is_ge() && it.cmp_precedence(&last).is_le()
                });
                let is_other = *bundle.name != *from.name
                    && (*bundle.name != *change.bundle || *catalog != change.catalog);
                if is_between && is_other {
                    found.push(reference(catalog, &bundle.name, &version));
                }
            }
        }
        if found.len() > BUNDLES_MAX {
            return Err(format!("{} versions may be installed on the way", found.len() - 1));
        }
        Ok(found)
    }

    /// Returns the versions that are later than the installed one, of each Operator that has one: those of the catalog and
    /// the channel that its spec names, or of all. Catalogs that cannot be read count as empty. Blocks the thread.
    pub(crate) fn updates(
        &self,
        operators: &BTreeMap<String, ObservedOperator>,
    ) -> BTreeMap<String, BTreeSet<Version>> {
        let later = |(name, operator): (&String, &ObservedOperator)| {
            let installed = Version::parse(operator.version()).ok()?;
            let (repository, channel) = (&operator.spec.repository, &operator.spec.channel);
            let mut versions = BTreeSet::new();
            for (catalog, _) in &self.served {
                if !repository.is_empty() && repository != catalog {
                    continue;
                }
                let block =
                    self.indexes.get(catalog).and_then(|it| it.package(name).ok().flatten());
                let package = block.as_ref().and_then(|it| it.read().ok());
                let Some(package) = package else { continue };
                let of_channel = package.channels.iter().find(|it| *it.name == **channel);
                for bundle in &package.bundles {
                    let is_there = channel.is_empty()
                        || of_channel
                            .is_some_and(|it| it.entries.iter().any(|it| it.name == bundle.name));
                    let version = Version::parse(&bundle.version.to_string()).ok();
                    versions.extend(
                        version.filter(|it| is_there && it.cmp_precedence(&installed).is_gt()),
                    );
                }
            }
            Some((name.clone(), versions))
        };
        operators.iter().filter_map(later).collect()
    }

    /// Returns the names of the packages of all catalogs that are served.
    pub(crate) fn package_names(&self) -> BTreeSet<String> {
        let indexes = self.served.iter().filter_map(|(name, _)| self.indexes.get(name));
        indexes.flat_map(|it| it.package_names()).map(str::to_owned).collect()
    }

    /// Returns the image of the bundle that a change installs, or the digest of its catalog if the
    /// catalog has the content of the bundle itself; empty if the catalog has no such bundle,
    /// `None` if the catalog has not been read.
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

/// A request for the inventory; the response is `None` if the inventory is not known yet.
pub(crate) type InventoryRequest = oneshot::Sender<Option<CatalogInventory>>;

/// The end of the channel that the controller of Operators has.
pub(crate) struct InventoryProvider {
    changes: mpsc::UnboundedSender<AddOnChange>,
    requests: mpsc::Receiver<InventoryRequest>,
}

/// The end of the channel that the controller of Actions has.
pub(crate) struct InventoryClient {
    pub(crate) changes: mpsc::UnboundedReceiver<AddOnChange>,
    requests: mpsc::Sender<InventoryRequest>,
}

/// Creates both ends of a channel.
pub(crate) fn channel() -> (InventoryProvider, InventoryClient) {
    let (changes, changed) = mpsc::unbounded_channel();
    let (requests, requested) = mpsc::channel(1);
    (
        InventoryProvider { changes, requests: requested },
        InventoryClient { changes: changed, requests },
    )
}

impl InventoryProvider {
    /// Returns the next request. Waits forever if the other end was dropped.
    pub(crate) async fn next(&mut self) -> InventoryRequest {
        match self.requests.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    /// Reports the current state of an Operator or a Catalog; `object` is `None` if it was deleted.
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

    /// Reports that all objects of a kind have been listed.
    pub(crate) fn listed(&self, kind: OperatorKind) {
        self.send(AddOnChange::Listed(kind));
    }

    fn send(&self, change: AddOnChange) {
        // The receiver ends together with the sender, so a failure does not matter.
        let _ = self.changes.send(change);
    }
}

impl InventoryClient {
    /// Requests the inventory; `None` if it is not known yet.
    pub(crate) async fn ask(&self) -> Option<CatalogInventory> {
        let (sender, answer) = oneshot::channel();
        self.requests.send(sender).await.ok()?;
        answer.await.ok().flatten()
    }
}
