//! Which release is requested, whether it may be applied, and which ones are available.
//!
//! [`Acceptance`] takes a requested release through its steps; this machine feeds it: from the
//! ClusterVersion's spec, the releases of the payload store, the acknowledgements of an
//! administrator, and the state of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::config::{ClusterVersionStatus, Release, Update, UpdateHistory};
use plimsoll_api::progress::Deletion;
use plimsoll_api::{CLUSTER_VERSION_NAME, Condition, ObjectKey, Reason};
use plimsoll_content::Payload;
use plimsoll_content::payload::ReleaseHeader;

use super::Uptime;
use super::desired::{AcceptedRelease, DesiredState};
use super::execution::PlanExecution;
use super::refusal::{nothing_included, of_other_product};
use crate::plan::mode::Mode;
use crate::plan::{Action, plan};
use crate::removal::removed_kinds;
use crate::spec::validate;
use crate::status::Updates;
use crate::update::acceptance::LoadStatus;
use crate::update::acceptance::{
    self, Acceptance, AcceptanceCommand, PayloadIdentity, RequestedRelease, Verification,
};
use crate::update::acknowledge::{self, Acknowledgements};
use crate::update::available::available;
use crate::update::operators::OperatorsOnPlatform;
use crate::update::preconditions::{self, BrokenOperator, Facts, Objecting, UpdateWindow};
use crate::update::upgradeable::{self, UpgradeableCondition};
use crate::windows::MaintenanceWindows;

/// How often preconditions that do not hold are checked again.
pub const RECONSIDER_INTERVAL: Duration = Duration::from_secs(1);

/// What the release loader found.
#[derive(Debug, Clone)]
pub enum LoadEvent {
    /// The releases of the payload store, or why it cannot be read.
    Listed(Result<Vec<ReleaseHeader>, String>),
    /// A release was retrieved, or why it could not be; with the ticket of the command.
    Retrieved(u64, Result<Verification, String>),
    /// A release was loaded, or why it could not be; with the ticket of the command.
    Loaded(u64, Result<Arc<Payload>, String>),
}

/// What the release loader is to do, or what it has brought about.
#[derive(Debug, Clone)]
pub enum LoadCommand {
    /// Nothing.
    Nothing,
    /// Cancel what is under way.
    Cancel,
    /// Cancel what is under way and retrieve a release.
    Retrieve {
        /// The ticket that the result carries.
        ticket: u64,
        /// Pull specification of the release.
        image: String,
    },
    /// Load what was retrieved.
    Load {
        /// The ticket that the result carries.
        ticket: u64,
        /// Pull specification of the release.
        image: String,
    },
    /// Apply a release.
    Apply(AcceptedRelease),
}

impl LoadCommand {
    fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// The state of the controller that requests are judged by.
#[derive(Debug, Clone, Copy)]
pub struct UpdateContext<'a> {
    /// What the cluster is brought to.
    pub desired: &'a DesiredState,
    /// The plan under way.
    pub execution: &'a PlanExecution,
    /// The ClusterVersion's status as last computed.
    pub status: &'a ClusterVersionStatus,
    /// The time.
    pub now: Timestamp,
    /// The time since the process started.
    pub uptime: Uptime,
}

/// Requests for releases.
#[derive(Debug, Clone)]
pub struct UpdateRequests {
    acceptance: Acceptance,
    /// The releases of the payload store, or why it cannot be read; `None` without a store.
    heads: Option<Result<Vec<ReleaseHeader>, String>>,
    /// The architecture of payloads that declare none, as Go names it.
    default_architecture: String,
    /// The payload of the release that is being accepted; `None` before it is loaded.
    payload: Option<Arc<Payload>>,
    updates: Updates,
    /// The version that an update under way comes from; `None` without one.
    left: Option<String>,
    acknowledgements: Acknowledgements,
    operators: OperatorsOnPlatform,
    windows: Arc<MaintenanceWindows>,
    /// When the MaintenanceWindow opens that held up an update when it was last looked at; `None` if none did, or
    /// if it never opens.
    opens_at: Option<Timestamp>,
    /// The spec or what it is judged by changed since it was last looked at.
    is_changed: bool,
    reconsider_at: Uptime,
}

impl UpdateRequests {
    /// Starts with the release that is applied. `heads` are the releases of the payload store;
    /// `None` without one. `operators` are those that are installed.
    pub fn new(
        desired: &DesiredState,
        heads: Option<Vec<ReleaseHeader>>,
        operators: OperatorsOnPlatform,
        default_architecture: &str,
        uptime: Uptime,
    ) -> Self {
        let architecture = architecture(desired.payload(), default_architecture);
        let mut requests = Self {
            acceptance: Acceptance::new(desired.release(), &architecture),
            heads: heads.map(Ok),
            default_architecture: default_architecture.to_owned(),
            payload: None,
            updates: Updates::default(),
            left: None,
            acknowledgements: Acknowledgements::default(),
            operators,
            windows: Arc::default(),
            opens_at: None,
            is_changed: true,
            reconsider_at: uptime,
        };
        requests.refresh(desired);
        requests
    }

    /// How far the requested release has been accepted.
    pub fn load(&self) -> &LoadStatus {
        self.acceptance.status()
    }

    /// The available updates, and what holds up an update.
    pub fn updates(&self) -> &Updates {
        &self.updates
    }

    /// When to call [`Self::consider`] for a rejected release; `None` if there is none to retry.
    pub fn retry_at(&self) -> Option<Uptime> {
        self.acceptance.wake_at()
    }

    /// When to call [`Self::consider`] for preconditions that do not hold; `None` if that is not
    /// what holds up an update.
    pub fn reconsider_at(&self) -> Option<Uptime> {
        self.acceptance.is_held_up().then_some(self.reconsider_at)
    }

    /// When to call [`Self::consider`] since the MaintenanceWindow opens; `None` if that is not what holds up an
    /// update.
    pub fn opens_at(&self) -> Option<Timestamp> {
        self.opens_at.filter(|_| self.acceptance.is_held_up())
    }

    /// What requests are judged by changed: they are looked at again.
    pub fn touch(&mut self) {
        self.is_changed = true;
    }

    /// Computes the available updates anew; true when they changed.
    pub fn refresh(&mut self, desired: &DesiredState) -> bool {
        let mut updates = Updates {
            acknowledgement: acknowledge::missing(
                &self.acknowledgements,
                &desired.release().version,
            ),
            incompatible: self.operators.broken_by_next_minor(&desired.release().version),
            ..Updates::default()
        };
        match &self.heads {
            None => {}
            Some(Ok(heads)) => {
                let channel = &desired.spec().channel;
                let (available, retrieved) =
                    available(desired.release(), self.left.as_deref(), channel, heads);
                updates.available = Some(available).filter(|_| retrieved.is_ok());
                updates.retrieved = retrieved;
            }
            Some(Err(error)) => {
                let message = format!("Unable to retrieve available updates: {error}");
                updates.retrieved = Err((Reason::RemoteFailed, message));
                // The updates known so far are still there, as far as anybody knows.
                updates.available = self.updates.available.take();
            }
        }
        self.is_changed = true;
        let is_changed = updates != self.updates;
        self.updates = updates;
        is_changed
    }

    /// The history of the cluster is this one; true when the available updates changed.
    pub fn history_changed(&mut self, history: &[UpdateHistory], desired: &DesiredState) -> bool {
        let left = preconditions::under_way(history);
        if left == self.left.as_deref() {
            return false;
        }
        self.left = left.map(str::to_owned);
        self.refresh(desired)
    }

    /// The ConfigMap of an administrator's gates or acknowledgements has this data; `None` when
    /// there is none. True when the available updates changed.
    pub fn config_map_changed(
        &mut self,
        name: &str,
        data: Option<BTreeMap<String, String>>,
        desired: &DesiredState,
        uptime: Uptime,
    ) -> bool {
        if name == acknowledge::GATES.name {
            self.acknowledgements.gates = data;
        } else {
            self.acknowledgements.acks = data;
        }
        self.reconsider_at = uptime;
        self.refresh(desired)
    }

    /// Installed Operators require something else of the platform. True when the available updates
    /// changed.
    pub fn operators_changed(
        &mut self,
        operators: OperatorsOnPlatform,
        desired: &DesiredState,
        uptime: Uptime,
    ) -> bool {
        self.operators = operators;
        self.reconsider_at = uptime;
        self.refresh(desired)
    }

    /// The MaintenanceWindows of the cluster are these.
    pub fn windows_changed(&mut self, windows: Arc<MaintenanceWindows>, uptime: Uptime) {
        self.windows = windows;
        self.reconsider_at = uptime;
    }

    /// Looks at the request if it or what it is judged by changed, and at a rejected release if it
    /// is time.
    pub fn consider(&mut self, context: &UpdateContext<'_>) -> LoadCommand {
        // A first installation is completed before another release is begun (CV-9.3).
        if context.execution.progress().mode() == Mode::Initializing {
            return LoadCommand::Nothing;
        }
        let uptime = context.uptime;
        let is_retry_due = self.retry_at().is_some_and(|at| at <= uptime);
        let is_reconsidered = self.reconsider_at().is_some_and(|at| at <= uptime)
            || self.opens_at().is_some_and(|at| at <= context.now);
        if std::mem::take(&mut self.is_changed) {
            let order = self.acceptance.ask(self.requested(context));
            let command = self.command(order, uptime);
            if !command.is_nothing() {
                return command;
            }
        }
        if !is_retry_due && !is_reconsidered {
            return LoadCommand::Nothing;
        }
        self.reconsider_at = uptime + RECONSIDER_INTERVAL;
        self.opens_at = self.opening(context);
        let facts = PreconditionFacts::new(self, context, self.payload.as_deref());
        let order = facts.with(|facts| self.acceptance.reconsider(facts));
        let command = self.command(order, uptime);
        if !command.is_nothing() {
            return command;
        }
        let order = self.acceptance.retry(uptime);
        self.command(order, uptime)
    }

    /// The release loader found something; true besides when the available updates changed.
    pub fn handle(&mut self, event: LoadEvent, context: &UpdateContext<'_>) -> (LoadCommand, bool) {
        let uptime = context.uptime;
        let order = match event {
            LoadEvent::Listed(heads) => {
                self.heads = Some(heads);
                return (LoadCommand::Nothing, self.refresh(context.desired));
            }
            LoadEvent::Retrieved(ticket, result) => {
                self.acceptance.retrieved(ticket, result, uptime)
            }
            LoadEvent::Loaded(ticket, result) => {
                let result = result.and_then(|payload| is_for_cluster(payload, context.desired));
                let payload = result.as_ref().ok().cloned();
                let facts = PreconditionFacts::new(self, context, payload.as_deref());
                let identity = result.map(|payload| PayloadIdentity {
                    version: payload.release.version.clone(),
                    architecture: architecture(&payload, &self.default_architecture),
                });
                self.payload = payload.or(self.payload.take());
                self.opens_at = self.opening(context);
                facts.with(|facts| self.acceptance.loaded(ticket, identity, facts, uptime))
            }
        };
        (self.command(order, uptime), false)
    }

    /// Returns when the MaintenanceWindow of the cluster opens; `None` if it is open, or never opens.
    fn opening(&self, context: &UpdateContext<'_>) -> Option<Timestamp> {
        let name = context.desired.maintenance_window();
        self.windows.opens_at(name, context.now)
    }

    /// A release has taken the place of the one that was applied.
    pub fn release_changed(&mut self, desired: &DesiredState) {
        let architecture = architecture(desired.payload(), &self.default_architecture);
        self.acceptance.swapped(desired.release(), &architecture);
        self.payload = None;
    }

    fn command(&mut self, order: AcceptanceCommand, uptime: Uptime) -> LoadCommand {
        match order {
            AcceptanceCommand::Nothing => LoadCommand::Nothing,
            AcceptanceCommand::Cancel => {
                self.payload = None;
                LoadCommand::Cancel
            }
            AcceptanceCommand::Retrieve(ticket, requested) => {
                self.payload = None;
                if self.heads.is_some() {
                    return LoadCommand::Retrieve { ticket, image: requested.image };
                }
                let known = &self.acceptance.running().version;
                let failure = format!(
                    "the controller was started with release {known} and knows no other; start it \
                     with --payloads and a store that has the release asked for"
                );
                let order = self.acceptance.retrieved(ticket, Err(failure), uptime);
                self.command(order, uptime)
            }
            AcceptanceCommand::Load(ticket) => {
                LoadCommand::Load { ticket, image: self.acceptance.status().image.clone() }
            }
            AcceptanceCommand::Accept { verified, accepted_risks } => match self.payload.take() {
                Some(payload) => {
                    LoadCommand::Apply(AcceptedRelease { payload, verified, accepted_risks })
                }
                None => LoadCommand::Nothing,
            },
        }
    }

    /// The release that the spec requests, as far as the spec is valid.
    fn requested(&self, context: &UpdateContext<'_>) -> Option<RequestedRelease> {
        let desired = context.desired;
        let status = ClusterVersionStatus {
            available_updates: self.updates.available.clone(),
            desired: desired.release().clone(),
            history: context.status.history.clone(),
            ..ClusterVersionStatus::default()
        };
        let violations = validate::cluster_version(CLUSTER_VERSION_NAME, desired.spec(), &status);
        let spec = validate::without_invalid(desired.spec(), &violations);
        let available = status.available_updates.unwrap_or_default();
        let update = spec.desired_update.as_ref();
        let multi = update.and_then(|update| self.of_architecture(update, desired.release()));
        acceptance::resolve(update, &available, multi.as_ref())
    }

    /// The release of several architectures that a request means: of its version, or of the one
    /// that is applied.
    fn of_architecture(&self, update: &Update, current: &Release) -> Option<Release> {
        let version = Some(&update.version).filter(|version| !version.is_empty());
        let version = version.unwrap_or(&current.version);
        let heads = self.heads.as_ref()?.as_ref().ok()?;
        let head = heads.iter().find(|head| {
            head.release.version == *version && head.release.architecture == update.architecture
        })?;
        Some(head.named())
    }
}

/// A payload, if it has anything for a cluster.
fn is_for_cluster(payload: Arc<Payload>, desired: &DesiredState) -> Result<Arc<Payload>, String> {
    match nothing_included(&payload, &desired.context(&payload)) {
        Some(refusal) => Err(refusal.to_string()),
        None => Ok(payload),
    }
}

/// Why a payload is of another product than what is applied; `None` if it is not.
fn other_product(context: &UpdateContext<'_>, payload: &Payload) -> Option<String> {
    let UpdateContext { desired, execution, .. } = *context;
    let (world, applied) = (execution.progress().world(), execution.progress().plan());
    let steps = applied.steps.iter().filter(|step| step.action == Action::Apply);
    let ours: BTreeSet<&ObjectKey> = steps.map(|step| &step.manifest.key).collect();
    let ours = Vec::from_iter(ours);
    let release = Release { version: payload.release.version.clone(), ..Release::default() };
    let next = plan(&payload.manifests, &desired.context(payload), release, Mode::Updating);
    let (from, next) = (&applied.release.version, world.normalized(next));
    of_other_product(&ours, from, &next, &world.cluster_kinds()).map(|it| it.to_string())
}

/// The architecture of a payload, as Go names it; one that declares none is for `default`.
pub fn architecture(payload: &Payload, default: &str) -> String {
    match payload.release.architecture.as_str() {
        "" => default.to_owned(),
        declared => declared.to_owned(),
    }
}

/// The architecture of a machine as Go names it, by its name in Rust.
pub fn go_architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// What preconditions are judged by; owns what [`Facts`] borrow.
struct PreconditionFacts {
    current: Release,
    history: Vec<UpdateHistory>,
    objection: Option<UpgradeableCondition>,
    overrides_set: bool,
    repeated: Vec<Deletion>,
    broken: Result<Vec<BrokenOperator>, String>,
    other_product: Option<String>,
    available: Option<Vec<Release>>,
    retrieved: Option<Condition>,
    is_declared: bool,
    window: String,
    windows: Arc<MaintenanceWindows>,
    now: Timestamp,
}

impl PreconditionFacts {
    /// `next` is the payload of the requested release, as far as it is loaded.
    fn new(requests: &UpdateRequests, context: &UpdateContext<'_>, next: Option<&Payload>) -> Self {
        let UpdateContext { desired, execution, status, now, .. } = *context;
        let tracker = execution.removals().tracker();
        let repeated =
            next.map(|payload| tracker.repeated(&payload.manifests, &desired.context(payload)));
        let overrides = desired.overrides().reported(now);
        let deletions: Vec<ObjectKey> = tracker.unfinished().cloned().collect();
        let is_declared = next.is_some_and(|next| {
            let (from, to) = (&desired.payload().release, &next.release);
            preconditions::is_declared(to, desired.release(), &status.history)
                || from.next.contains(&to.version)
        });
        let objections = upgradeable::conditions(
            overrides.as_deref(),
            // What is declared may repair what the update under way broke.
            execution.progress().mode() != Mode::Reconciling && !is_declared,
            &execution.operators().objections(),
            requests.updates.acknowledgement.as_ref(),
            &deletions,
            &requests.updates.incompatible,
        );
        let removed = next.map(|payload| {
            let before = &desired.payload().manifests;
            removed_kinds(before, &payload.manifests, &desired.context(payload))
        });
        let held = next.map(|payload| {
            requests.operators.holding(&payload.manifests, &desired.context(payload))
        });
        let mut broken = requests.operators.broken_without(&removed.unwrap_or_default());
        if let Ok(broken) = &mut broken {
            broken.extend(held.unwrap_or_default());
        }
        let available = requests.updates.available.clone().unwrap_or_default();
        Self {
            current: desired.release().clone(),
            history: status.history.clone(),
            objection: objections.into_iter().next(),
            overrides_set: overrides.is_some(),
            repeated: repeated.unwrap_or_default(),
            broken,
            other_product: next.and_then(|payload| other_product(context, payload)),
            available: requests.heads.is_some().then_some(available),
            retrieved: status.conditions.iter().find(|it| it.type_ == "RetrievedUpdates").cloned(),
            is_declared,
            window: desired.maintenance_window().to_owned(),
            windows: Arc::clone(&requests.windows),
            now,
        }
    }

    fn with<T>(&self, use_facts: impl FnOnce(&Facts<'_>) -> T) -> T {
        let objecting = self
            .objection
            .as_ref()
            .map(|it| Objecting { reason: &it.reason, message: &it.message });
        use_facts(&Facts {
            current: &self.current,
            history: &self.history,
            objection: objecting.as_ref(),
            overrides_set: self.overrides_set,
            repeated: &self.repeated,
            broken: self.broken.as_deref().map_err(String::as_str),
            other_product: self.other_product.as_deref(),
            available: self.available.as_deref(),
            retrieved: self.retrieved.as_ref(),
            is_declared: self.is_declared,
            window: UpdateWindow::of(&self.window, &self.windows, self.now),
        })
    }
}

#[cfg(test)]
mod tests;
