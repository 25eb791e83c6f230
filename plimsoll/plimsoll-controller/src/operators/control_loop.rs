//! The control loop of Operators. It turns watches, timers and responses into events, hands these
//! to the [`OperatorReconciler`], and carries out the effects that it returns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::GroupKind;
use plimsoll_content::expressions::Cel;
use plimsoll_operators::reconciler::{
    Moment, OperatorEffect, OperatorEvent, OperatorKind, OperatorReconciler,
};
use plimsoll_operators::revision_key::RevisionKey;
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use plimsoll_plan::reconciler::discovery::GroupVersion;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::catalogs::{self, CatalogReading, ReadCatalog, RefreshedCatalog, RestoredCatalog};

use super::{OperatorController, facts, watches};
use crate::actions::inventory::{CatalogInventory, InventoryProvider, InventoryRequest};
use crate::bootstrap::retry_until_ok;
use crate::certificates::Certificates;
use crate::clock::{SharedClock, Stopwatch};
use crate::error::Error;
use crate::events::Recorder;
use crate::host::{Host, HostEvent};
use crate::resources::Resources;
use crate::view::OperatorsView;
use crate::write::Writer;

/// The number of bundles that are read at the same time.
const BUNDLES_READ_MAX: usize = 4;

/// The result of refreshing a catalog, with the name of the catalog.
pub(super) struct CatalogAnswer {
    pub(super) name: String,
    pub(super) ticket: u64,
    /// What the process before read, if it was asked for and is still there.
    pub(super) restored: Option<RestoredCatalog>,
    pub(super) refreshed: Result<RefreshedCatalog, String>,
}

/// The result of a search for the kinds of the objects of an Operator, with the name of the Operator.
pub(super) struct KindsAnswer {
    pub(super) operator: String,
    pub(super) found: Result<Resources, String>,
}

impl HostEvent for OperatorEvent {
    fn discovered(version: GroupVersion, kinds: Vec<(GroupVersionKind, Scope)>) -> Self {
        Self::Discovered(version, kinds)
    }
}

/// A running controller of Operators.
pub(super) struct ControlLoop {
    pub(super) clock: SharedClock,
    stopwatch: Stopwatch,
    pub(super) recorder: Recorder,
    pub(super) reading: CatalogReading,
    pub(super) reconciler: OperatorReconciler,
    pub(super) host: Host<OperatorEvent>,
    pub(super) catalogs: BTreeMap<String, ReadCatalog>,
    /// The catalogs that are being refreshed.
    pub(super) refreshes: JoinSet<CatalogAnswer>,
    /// The searches for the kinds of objects of Operators.
    pub(super) searches: JoinSet<KindsAnswer>,
    /// The watches of objects of Operators, each with the token that widens it to whole objects.
    pub(super) watches: BTreeMap<GroupKind, CancellationToken>,
    /// The watches of operands, by the name of their definition.
    pub(super) operands: BTreeMap<String, AbortHandle>,
    pub(super) certificates: Certificates,
    /// The state that metrics report.
    view: watch::Sender<OperatorsView>,
    /// The channel to the controller of Actions; `None` if Actions are not executed.
    actions: Option<InventoryProvider>,
    /// The requests of the service that answers queries; `None` if there is none.
    pub(super) queries: Option<mpsc::Receiver<InventoryRequest>>,
    /// The permits for reading bundles, one for each that may be read at the same time.
    pub(super) reads: Arc<Semaphore>,
}

impl ControlLoop {
    /// Discovers the kinds that are served, and starts the watches of Operators, OperatorRevisions,
    /// Catalogs and the facts of the cluster. The watches cancel `stop` if the storage of the API
    /// server was restored to an earlier state.
    pub(super) async fn start(
        controller: &OperatorController,
        recorder: Recorder,
        actions: Option<InventoryProvider>,
        key: RevisionKey,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let client = controller.client.clone();
        let discover = || async {
            Resources::discover(&client).await.map_err(|source| Error::Discover { source })
        };
        let resources = retry_until_ok(stop, discover).await?;
        let clock = Arc::clone(&controller.clock);
        let writer = Writer::new(client.clone()).replacing_workloads();
        let certificates = Certificates::new(client.clone(), writer.clone(), Arc::clone(&clock));
        let reconciler = OperatorReconciler::new(resources.scopes(), key);
        let mut host = Host::new(client.clone(), writer, resources, stop.clone());
        for kind in watches::CONFIGURATION {
            let (relay, view) = (host.relay(), controller.view.clone());
            host.watch(watches::configuration(client.clone(), kind, relay, view));
        }
        let sender = host.relay().sender;
        host.watch(facts::watch(client, sender));
        host.watch(certificates.clone().keep());
        Ok(Self {
            stopwatch: Stopwatch::start(clock.now()),
            certificates,
            clock,
            recorder,
            reading: CatalogReading {
                roots: controller.settings.roots.clone(),
                cache: controller.settings.cache.clone(),
            },
            reconciler,
            host,
            catalogs: BTreeMap::new(),
            refreshes: JoinSet::new(),
            searches: JoinSet::new(),
            watches: BTreeMap::new(),
            operands: BTreeMap::new(),
            view: controller.view.clone(),
            actions,
            queries: None,
            reads: Arc::new(Semaphore::new(BUNDLES_READ_MAX)),
        })
    }

    /// Runs the loop until it is stopped.
    pub(super) async fn run(&mut self, stop: &CancellationToken) {
        loop {
            let discover_at = self.reconciler.discover_at().map(|at| self.stopwatch.instant(at));
            let wake_at = self.reconciler.wake_at();
            let wake_at = wake_at.map(|at| self.stopwatch.instant(at));
            tokio::select! {
                // Branches are polled in order, so that simulations are repeatable.
                biased;
                () = stop.cancelled() => break,
                Some(Ok(answer)) = self.refreshes.join_next(), if !self.refreshes.is_empty() => {
                    self.catalog_refreshed(answer);
                }
                Some(Ok(answer)) = self.searches.join_next(), if !self.searches.is_empty() => {
                    self.kinds_found(answer);
                }
                event = self.host.next() => self.handle(event),
                request = next_request(&mut self.actions) => self.answer_inventory(request),
                () = sleep_until(discover_at.unwrap_or_else(Instant::now)),
                    if discover_at.is_some() => self.discover(),
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {
                    let effects = self.reconciler.handle_timeout(self.moment());
                    self.carry_out(effects);
                }
                // Last: however many queries there are, nothing waits for them.
                request = next_query(&mut self.queries) => self.answer_inventory(request),
            }
            // A burst of events needs only one decision.
            while let Some(event) = self.host.queued() {
                self.handle(event);
            }
            self.decide();
            self.publish_counters();
        }
        self.host.drain(|_| {}).await;
    }

    fn moment(&self) -> Moment {
        Moment {
            time: self.clock.now(),
            steady: self.stopwatch.steady_time(),
            uptime: self.stopwatch.uptime(),
        }
    }

    fn handle(&mut self, event: OperatorEvent) {
        if let OperatorEvent::Configuration { kind: OperatorKind::Operator, name, object } = &event
        {
            self.view.send_if_modified(|view| view.observed(name, object.as_deref()));
        }
        if let Some(actions) = &self.actions {
            match &event {
                OperatorEvent::Configuration { kind, name, object } => {
                    actions.changed(*kind, name, object.as_deref());
                }
                OperatorEvent::ConfigurationListed(kind) => actions.listed(*kind),
                _ => {}
            }
        }
        let effects = self.reconciler.handle(event, self.moment());
        self.carry_out(effects);
    }

    fn publish_counters(&self) {
        let executions = &self.reconciler.counters().executions;
        let drift_repairs = self.reconciler.drift_repairs();
        self.view.send_if_modified(|view| {
            let is_changed = view.executions != *executions || view.drift_repairs != drift_repairs;
            if is_changed {
                view.executions.clone_from(executions);
                view.drift_repairs = drift_repairs;
            }
            is_changed
        });
    }

    fn catalog_refreshed(&mut self, answer: CatalogAnswer) {
        let CatalogAnswer { name, ticket, restored, refreshed } = answer;
        if !self.reconciler.is_catalog_expected(&name, ticket) {
            return;
        }
        if let Some(RestoredCatalog { read, content }) = restored {
            self.catalogs.insert(name.clone(), read);
            self.reconciler.restore_catalog(&name, content);
        }
        let content = refreshed.map(|RefreshedCatalog { read, content }| {
            if let Some(read) = read {
                self.catalogs.insert(name.clone(), read);
            }
            content
        });
        self.handle(OperatorEvent::CatalogRead { name, ticket, content });
    }

    /// Handles the kinds of the objects of an Operator, some of which may not have been discovered before.
    fn kinds_found(&mut self, answer: KindsAnswer) {
        let KindsAnswer { operator, found } = answer;
        let kinds = found.map(|found| {
            let kinds: BTreeMap<GroupVersionKind, Scope> = found.scopes().collect();
            self.host.resources.extend(found);
            kinds
        });
        self.handle(OperatorEvent::KindsFound { operator, kinds });
    }

    /// Decides until no Operator is undecided, since a decision may affect other Operators.
    fn decide(&mut self) {
        loop {
            let names = self.reconciler.undecided();
            if names.is_empty() {
                return;
            }
            self.decide_about(&names);
        }
    }

    fn decide_about(&mut self, names: &BTreeSet<String>) {
        let served = self.reconciler.served_catalogs();
        let served: Vec<(String, i64)> = served.map(|(name, it)| (name.to_owned(), it)).collect();
        let with_properties = self.reconciler.sees_properties();
        let offered = |names: &BTreeSet<String>| {
            let served = served.iter().map(|(name, weight)| (name.as_str(), *weight));
            catalogs::parts(served, &self.catalogs, names, with_properties)
        };
        let moment = self.moment();
        let effects = self.reconciler.decide(names, &offered, &Cel, moment);
        self.carry_out(effects);
    }

    /// Answers a request for the inventory that plans of Actions and answers to queries are made from.
    fn answer_inventory(&self, request: InventoryRequest) {
        let inventory = self.reconciler.inventory().map(|inventory| CatalogInventory {
            inventory,
            served: self
                .reconciler
                .served_catalogs()
                .map(|(name, weight)| (name.to_owned(), weight))
                .collect(),
            indexes: self.catalogs.iter().map(|(name, it)| (name.clone(), it.index())).collect(),
            digests: self
                .catalogs
                .iter()
                .map(|(name, it)| (name.clone(), it.digest().to_owned()))
                .collect(),
            sources: self.reconciler.catalog_sources(),
            roots: self.reading.roots.clone(),
        });
        // The controller that sent the request may have ended.
        let _ = request.send(inventory);
    }

    fn discover(&mut self) {
        let moment = self.moment();
        while let Some(version) = self.reconciler.next_discovery(moment) {
            self.host.discover(version);
        }
    }

    fn carry_out(&mut self, effects: Vec<OperatorEffect>) {
        for effect in effects {
            self.carry_out_one(effect);
        }
    }
}

/// Returns the next request for the inventory. Waits forever if Actions are not executed.
async fn next_request(actions: &mut Option<InventoryProvider>) -> InventoryRequest {
    match actions {
        Some(actions) => actions.next().await,
        None => std::future::pending().await,
    }
}

/// Returns the next request of the service that answers queries. Waits forever if there is none.
async fn next_query(queries: &mut Option<mpsc::Receiver<InventoryRequest>>) -> InventoryRequest {
    if let Some(queries) = queries
        && let Some(request) = queries.recv().await
    {
        return request;
    }
    std::future::pending().await
}
