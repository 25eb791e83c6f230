//! The control loop of Operators. It turns watches, timers and responses into events, hands these
//! to the [`OperatorReconciler`], and carries out the effects that it returns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use plimsoll_api::{CATALOG, OPERATOR, OPERATOR_REVISION, ObjectKey};
use plimsoll_content::expressions::Cel;
use plimsoll_operators::deletion::LiveObject;
use plimsoll_operators::reconciler::{
    Moment, OperatorEffect, OperatorEvent, OperatorKind, OperatorReconciler, WrittenPart,
};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::{StepBlocker, StepOutcome};
use plimsoll_plan::reconciler::discovery::GroupVersion;
use plimsoll_source::catalog::Cache;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::catalogs::{self, ReadCatalog};
use super::certificates::{self, Certificates};
use super::inspect::Cluster;
use super::{OperatorController, content, facts, inspect, watches};
use crate::actions::inventory::{CatalogInventory, InventoryProvider, InventoryRequest};
use crate::bootstrap::retry_until_ok;
use crate::clock::{SharedClock, Stopwatch, run_beside};
use crate::error::Error;
use crate::events::Recorder;
use crate::relay::Relay;
use crate::resources::{Resources, Served, api_resource, defined_resource, definitions};
use crate::view::OperatorsView;
use crate::write::{Writer, chain};

/// The time that requests in flight may take to end when the controller is stopped.
pub(super) const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// The number of observations that can be queued.
const EVENTS_QUEUED: usize = 1024;
/// The number of bundles that are read at the same time.
const BUNDLES_READ_MAX: usize = 4;
/// The time that a discovery request may take.
const DISCOVERY_TIME_MAX: Duration = Duration::from_secs(10);

/// The result of a task.
enum Answer {
    /// An event for the reconciler.
    Event(OperatorEvent),
    /// The result of refreshing the catalog of this name.
    Catalog(String, Result<catalogs::RefreshedCatalog, String>),
    /// The kinds of a group version, as discovered.
    Discovered(GroupVersion, Resources),
}

/// A running controller of Operators.
pub(super) struct ControlLoop {
    client: Client,
    clock: SharedClock,
    stopwatch: Stopwatch,
    writer: Writer,
    recorder: Recorder,
    cache: Option<Cache>,
    reconciler: OperatorReconciler,
    resources: Resources,
    catalogs: BTreeMap<String, ReadCatalog>,
    tasks: JoinSet<Answer>,
    watches: JoinSet<()>,
    operands: BTreeMap<String, AbortHandle>,
    certificates: Certificates,
    relay: Relay<OperatorEvent>,
    events: mpsc::Receiver<OperatorEvent>,
    /// The state that metrics report.
    view: watch::Sender<OperatorsView>,
    /// The channel to the controller of Actions; `None` if Actions are not executed.
    actions: Option<InventoryProvider>,
    /// The permits for reading bundles, one for each that may be read at the same time.
    reads: Arc<Semaphore>,
}

impl ControlLoop {
    /// Discovers the kinds that are served, and starts the watches of Operators, OperatorRevisions,
    /// Catalogs and the facts of the cluster. The watches cancel `stop` if the storage of the API
    /// server was restored to an earlier state.
    pub(super) async fn start(
        controller: &OperatorController,
        recorder: Recorder,
        actions: Option<InventoryProvider>,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let client = controller.client.clone();
        let discover = || async {
            Resources::discover(&client).await.map_err(|source| Error::Discover { source })
        };
        let resources = retry_until_ok(stop, discover).await?;
        let (sender, events) = mpsc::channel(EVENTS_QUEUED);
        let relay = Relay { sender: sender.clone(), restored: stop.clone() };
        let mut watches = JoinSet::new();
        for (kind, resource) in [
            (OperatorKind::Operator, OPERATOR),
            (OperatorKind::Revision, OPERATOR_REVISION),
            (OperatorKind::Catalog, CATALOG),
        ] {
            watches.spawn(watches::configuration(client.clone(), kind, resource, relay.clone()));
        }
        watches.spawn(facts::watch(client.clone(), sender));
        let clock = Arc::clone(&controller.clock);
        let writer = Writer::new(client.clone()).replacing_workloads();
        let certificates = Certificates::new(client.clone(), writer.clone(), Arc::clone(&clock));
        watches.spawn(certificates.clone().keep());
        Ok(Self {
            stopwatch: Stopwatch::start(clock.now()),
            certificates,
            clock,
            writer,
            client,
            recorder,
            cache: controller.settings.cache.clone(),
            reconciler: OperatorReconciler::new(resources.scopes()),
            resources,
            catalogs: BTreeMap::new(),
            tasks: JoinSet::new(),
            watches,
            operands: BTreeMap::new(),
            relay,
            events,
            view: controller.view.clone(),
            actions,
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
                Some(Ok(answer)) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.answered(answer);
                }
                Some(event) = self.events.recv() => self.handle(event),
                request = next_request(&mut self.actions) => self.answer_inventory(request),
                () = sleep_until(discover_at.unwrap_or_else(Instant::now)),
                    if discover_at.is_some() => self.discover(),
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {
                    let effects = self.reconciler.woken(self.moment());
                    self.carry_out(effects);
                }
            }
            // A burst of events needs only one decision.
            while let Ok(event) = self.events.try_recv() {
                self.handle(event);
            }
            self.decide();
        }
        self.drain().await;
    }

    /// Waits for the requests in flight, so that none is cut off halfway.
    async fn drain(&mut self) {
        self.watches.abort_all();
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        // The next process observes the result of a request that does not end in time.
        let _ = timeout(DRAIN_TIME_MAX, drained).await;
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

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Event(event) => self.handle(event),
            Answer::Catalog(name, refreshed) => {
                let content = refreshed.map(|refreshed| {
                    if let Some(read) = refreshed.read {
                        self.catalogs.insert(name.clone(), read);
                    }
                    refreshed.content
                });
                self.handle(OperatorEvent::CatalogRead { name, content });
            }
            Answer::Discovered(version, found) => {
                let kinds = found.scopes().collect();
                self.resources.extend(found);
                self.handle(OperatorEvent::Discovered(version, kinds));
            }
        }
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
        let offered = |names: &BTreeSet<String>| {
            let served = served.iter().map(|(name, weight)| (name.as_str(), *weight));
            catalogs::parts(served, &self.catalogs, names)
        };
        let moment = self.moment();
        let effects = self.reconciler.decide(names, &offered, &Cel, moment);
        self.carry_out(effects);
    }

    /// Answers a request for the inventory that plans of Actions are made from.
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
        });
        // The controller that sent the request may have ended.
        let _ = request.send(inventory);
    }

    fn discover(&mut self) {
        let moment = self.moment();
        while let Some(version) = self.reconciler.next_discovery(moment) {
            let client = self.client.clone();
            self.tasks.spawn(async move {
                let found = Resources::discover_version(&client, &version.0, &version.1);
                // A request that fails is repeated, as is one that finds nothing.
                let found = timeout(DISCOVERY_TIME_MAX, found).await.ok().and_then(Result::ok);
                Answer::Discovered(version, found.unwrap_or_default())
            });
        }
    }

    fn carry_out(&mut self, effects: Vec<OperatorEffect>) {
        for effect in effects {
            self.carry_out_one(effect);
        }
    }

    fn carry_out_one(&mut self, effect: OperatorEffect) {
        match effect {
            OperatorEffect::ReadCatalog { name, source } => {
                let is_known = self.reconciler.is_catalog_known(&name);
                let before = self.catalogs.get(&name).filter(|_| is_known).cloned();
                let names: BTreeSet<String> = self.reconciler.operator_names().cloned().collect();
                let (cache, clock) = (self.cache.clone(), Arc::clone(&self.clock));
                self.tasks.spawn(async move {
                    let refreshed = run_beside(&*clock, move || {
                        catalogs::refresh(&source, before.as_ref(), &names, cache.as_ref())
                    });
                    let refreshed = refreshed.await.unwrap_or_else(|error| Err(error.to_string()));
                    Answer::Catalog(name, refreshed)
                });
            }
            OperatorEffect::ReadBundle { operator, ticket, bundle, source, spec } => {
                let read = self.catalogs.get(&bundle.catalog);
                let properties = catalogs::properties(read, &operator, &bundle.name);
                let properties = properties.unwrap_or_default();
                let (name, reads) = (operator.clone(), Arc::clone(&self.reads));
                let clock = Arc::clone(&self.clock);
                self.tasks.spawn(async move {
                    // The objects of many bundles at the same time would take much memory.
                    let _permit = reads.acquire().await;
                    let content = run_beside(&*clock, move || {
                        content::read(&name, &bundle, &source, &spec, properties).map(Box::new)
                    });
                    let content = content.await.unwrap_or_else(|error| Err(error.to_string()));
                    Answer::Event(OperatorEvent::BundleRead { operator, ticket, content })
                });
            }
            OperatorEffect::InspectObjects { operator, ticket, objects, definitions } => {
                let cluster = self.cluster();
                self.tasks.spawn(async move {
                    let findings = inspect::inspect_objects(cluster, objects, definitions).await;
                    Answer::Event(OperatorEvent::ObjectsInspected { operator, ticket, findings })
                });
            }
            OperatorEffect::WriteRevision { operator, ticket, revisions } => {
                let writer = self.writer.clone();
                self.tasks.spawn(async move {
                    let resource = api_resource(OPERATOR_REVISION);
                    let mut result = Ok(());
                    for (name, object) in revisions {
                        if let Err(error) = writer.create_revision(&resource, &object).await {
                            result = Err(format!(
                                "OperatorRevision {name} could not be written: {}",
                                chain(&error)
                            ));
                            break;
                        }
                    }
                    Answer::Event(OperatorEvent::RevisionWritten { operator, ticket, result })
                });
            }
            OperatorEffect::DeleteRevision(name) => {
                let writer = self.writer.clone();
                self.watches.spawn(async move {
                    let deleted = writer.delete_own(&api_resource(OPERATOR_REVISION), &name).await;
                    if let Err(error) = deleted {
                        tracing::debug!(%error, name, "could not delete an old revision");
                    }
                });
            }
            OperatorEffect::SetFinalizer { operator, before, is_added } => {
                let writer = self.writer.clone();
                self.tasks.spawn(async move {
                    let written = writer.set_operator_finalizer(&operator, &before, is_added).await;
                    answer_write(OperatorKind::Operator, operator, WrittenPart::Finalizer, &written)
                });
            }
            OperatorEffect::WriteStatus { kind, name, status, resource_version } => {
                let writer = self.writer.clone();
                self.tasks.spawn(async move {
                    let resource = api_resource(match kind {
                        OperatorKind::Catalog => CATALOG,
                        OperatorKind::Operator | OperatorKind::Revision => OPERATOR,
                    });
                    let written =
                        writer.write_status(&resource, &name, &status, &resource_version).await;
                    answer_write(kind, name, WrittenPart::Status, &written.map(|_| ()))
                });
            }
            OperatorEffect::Execute { operator, run, plan, step } => {
                let kind = plan.steps[step].kind();
                let served = self.resources.get(&kind).cloned();
                let (writer, certificates) = (self.writer.clone(), self.certificates.clone());
                self.tasks.spawn(async move {
                    let work = &plan.steps[step];
                    let outcome = match served {
                        Some(served) => match certificates.provide(&plan.steps, work).await {
                            Ok(bundle) => {
                                writer.execute_trusting(work, &served, bundle.as_deref()).await
                            }
                            Err(error) => certificates::outcome(work, &error),
                        },
                        None => StepOutcome::Blocked(StepBlocker::KindNotServed(kind)),
                    };
                    Answer::Event(OperatorEvent::Executed { operator, run, step, outcome })
                });
            }
            OperatorEffect::Watch(kind, scope) => {
                let Some(served) = self.resources.get(&kind) else { return };
                let (client, resource) = (self.client.clone(), served.resource.clone());
                self.watches.spawn(watches::objects(client, resource, scope, self.relay.clone()));
            }
            OperatorEffect::WatchOperands(definition) => self.watch_operands(definition),
            OperatorEffect::UnwatchOperands(definition) => {
                if let Some(watch) = self.operands.remove(&definition) {
                    watch.abort();
                }
            }
            OperatorEffect::Delete { operator, object } => self.request_deletion(operator, object),
            OperatorEffect::ReadNamespace { operator, namespace } => {
                let cluster = self.cluster();
                self.tasks.spawn(async move {
                    let objects = inspect::namespace_content(cluster, &namespace).await;
                    Answer::Event(OperatorEvent::NamespaceRead { operator, namespace, objects })
                });
            }
            OperatorEffect::Emit { operator, uid, draft } => {
                self.recorder.emit_about(OPERATOR, &operator, &uid, draft);
            }
        }
    }

    /// Watches the objects of the kind that a definition defines. A kind that is not served has no
    /// objects.
    fn watch_operands(&mut self, definition: String) {
        let is_it = |served: &Served| {
            let ApiResource { plural, group, .. } = &served.resource;
            format!("{plural}.{group}") == definition
        };
        let (client, relay) = (self.client.clone(), self.relay.clone());
        let known = self.resources.iter().map(|(_, served)| served).find(|it| is_it(it));
        let known = known.map(|it| it.resource.clone());
        let name = definition.clone();
        let watch = self.watches.spawn(async move {
            let resource = match known {
                Some(resource) => Some(resource),
                None => definition_resource(&client, &name).await,
            };
            match resource {
                Some(resource) => watches::operands(client, name, resource, relay).await,
                None => {
                    let change = plimsoll_operators::reconciler::WatchedChange::Listed;
                    let _ = relay.sender.send(OperatorEvent::OperandWatched(name, change)).await;
                }
            }
        });
        self.operands.insert(definition, watch);
    }

    fn request_deletion(&mut self, operator: String, object: LiveObject) {
        let LiveObject { key, uid, .. } = object;
        let Some(served) = self.served(&key) else {
            let result = Err(format!("{key}: its kind is not served"));
            let event = OperatorEvent::DeletionAnswered { operator, uid, result };
            self.tasks.spawn(async move { Answer::Event(event) });
            return;
        };
        let writer = self.writer.clone();
        self.tasks.spawn(async move {
            let deleted = writer.delete_object(&key, &served, &uid).await;
            let result = deleted.map_err(|error| format!("{key}: {}", chain(&error)));
            Answer::Event(OperatorEvent::DeletionAnswered { operator, uid, result })
        });
    }

    fn cluster(&self) -> Cluster {
        Cluster {
            client: self.client.clone(),
            clock: Arc::clone(&self.clock),
            resources: self.resources.clone(),
        }
    }

    /// Returns a served version of a kind; `None` if no version is served.
    fn served(&self, key: &ObjectKey) -> Option<Served> {
        let is_it = |kind: &GroupVersionKind| kind.group == key.group && kind.kind == key.kind;
        let mut found = self.resources.iter().filter(|(kind, _)| is_it(kind));
        found.next().map(|(_, served)| served.clone())
    }
}

/// Returns the next request for the inventory. Waits forever if Actions are not executed.
async fn next_request(actions: &mut Option<InventoryProvider>) -> InventoryRequest {
    match actions {
        Some(actions) => actions.next().await,
        None => std::future::pending().await,
    }
}

/// Returns the event for the result of writing an Operator or a Catalog.
fn answer_write(
    kind: OperatorKind,
    name: String,
    what: WrittenPart,
    written: &Result<(), kube::Error>,
) -> Answer {
    if let Err(error) = written {
        tracing::debug!(%error, name, ?what, "could not write; trying again");
    }
    let is_written = written.is_ok();
    Answer::Event(OperatorEvent::Written { kind, name, what, is_written })
}

/// Returns the resource of a definition, in the stored version if it is served; `None` if there is no
/// such definition or it serves no version.
async fn definition_resource(client: &Client, name: &str) -> Option<ApiResource> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    let definition = api.get_opt(name).await.ok().flatten()?;
    defined_resource(&definition.data, |it| it["storage"] != true)
}
