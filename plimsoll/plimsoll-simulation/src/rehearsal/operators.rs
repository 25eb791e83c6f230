//! Rehearsals of changes of Operators: the changes are requested on a copy of a cluster, and the controller of
//! Operators carries them out there, with catalogs that can be read from here.
//!
//! It ends when nothing has moved for a while: no Operator has changed its version or its conditions. What
//! became of each Operator is compared with what the copy began with.

mod cluster;
mod timeline;
mod trouble;

use std::collections::BTreeSet;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_apiserver::ApiServer;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use plimsoll_api::olm::CatalogSource;
use plimsoll_api::{CATALOG, OPERATOR, duration};
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{Leadership, OperatorsView};
use plimsoll_source::catalog::{Cache, CatalogRoots};
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::copy::ClusterSnapshot;
use super::error::{RehearsalError, finished};
use super::{CONTROLLER, OPERATORS, in_virtual_time, server, virtual_clock};
use crate::clock::VirtualClock;
use crate::cluster_state::api;
use crate::simulated_operators::{self, Faults, SimulationOptions};

use self::cluster::ClusterContent;
use self::timeline::OperatorsTimeline;
use self::trouble::troubles;

pub use self::cluster::{ObjectCounts, UnreadCatalog};
pub use self::timeline::OperatorTransition;
pub use self::trouble::{OperatorTrouble, TroubleKind};

/// The field manager of the changes.
const MANAGER: &str = "plimsoll-operator";
/// How long the controller may take until it leads.
const START_MAX: Duration = Duration::from_secs(10 * 60);
/// How often catalogs are looked at: they do not change in a rehearsal.
const POLL_INTERVAL: &str = "24h";
/// How long a rollout may make no progress before it counts as stuck, besides its own deadline: longer than the
/// one that Operators with automatic rollback have without naming it.
const STUCK_AFTER: Duration = Duration::from_secs(20 * 60);
/// The types of the conditions that are reported.
const CONDITIONS: [&str; 3] = ["Installed", "ConstraintsSatisfied", "Progressing"];

/// Changes of Operators to rehearse.
pub struct OperatorsRehearsal {
    /// The copy of the cluster before the changes; `None` for an empty one.
    pub cluster: Option<ClusterSnapshot>,
    /// The changes, in the order in which they are requested; those after a deletion once the Operator is gone.
    pub requests: Vec<OperatorRequest>,
    /// Catalogs that are read from other places than the copy names, or that it does not have.
    pub catalogs: Vec<RehearsedCatalog>,
    /// The cache for the indexes of catalogs; `None` to keep them in memory.
    pub cache: Option<Cache>,
    /// How long the workloads of an Operator take to become available.
    pub delay: Duration,
    /// Faults of the operators of bundles; none by default.
    pub faults: Faults,
}

/// A change of an Operator.
#[derive(Debug, Clone, PartialEq)]
pub enum OperatorRequest {
    /// The object is applied: created, or its fields are set.
    Apply(Value),
    /// The Operator is changed by a merge patch.
    Patch {
        /// Name of the Operator.
        name: String,
        /// The merge patch.
        patch: Value,
    },
    /// The Operator is deleted; it has this name.
    Delete(String),
}

/// A catalog, and where it is read from in a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearsedCatalog {
    /// Name of the Catalog.
    pub name: String,
    /// The weight of a Catalog that the copy does not have.
    pub weight: i64,
    /// Where its content is on this machine, with an absolute path.
    pub source: CatalogSource,
}

/// The result of a rehearsal of Operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorsResult {
    /// When anything moved last, in seconds of simulated time since the changes were requested.
    pub seconds: u64,
    /// The Operators before and after, by name.
    pub operators: Vec<RehearsedOperator>,
    /// What is wrong in the end, by name of the Operator.
    pub troubles: Vec<OperatorTrouble>,
    /// Names of the Operators that nothing depends on any more, though they were installed as dependencies.
    pub orphans: Vec<String>,
    /// What became of the objects of Operators.
    pub objects: ObjectCounts,
    /// Operands that were deleted with their Operator.
    pub deleted_operands: Vec<String>,
    /// The steps of the Operators, in order.
    pub transitions: Vec<OperatorTransition>,
    /// Catalogs that could not be read.
    pub unread_catalogs: Vec<UnreadCatalog>,
    /// Resources (`plural.group`) of the cluster that could not be copied.
    pub not_copied: Vec<String>,
    /// Resources (`plural.group`) of the cluster that could not be listed: the copy has none of their objects.
    pub unread_kinds: Vec<String>,
}

/// An Operator before and after the changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RehearsedOperator {
    /// Name of the Operator.
    pub name: String,
    /// The installed version before; absent if none was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The installed version after; absent if none is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether the Operator is gone in the end.
    pub is_deleted: bool,
    /// Installed, ConstraintsSatisfied and Progressing in the end.
    pub conditions: Vec<RehearsedCondition>,
}

/// A condition of an Operator in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RehearsedCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// From the list of reasons.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

impl RehearsedOperator {
    /// Returns whether its version changed, or it is deleted.
    pub fn is_changed(&self) -> bool {
        self.before != self.after || self.is_deleted
    }
}

impl OperatorsResult {
    /// Returns whether everything comes to its end: there is no trouble but what was there before, and what
    /// Operators accept.
    pub fn succeeds(&self) -> bool {
        self.troubles.iter().all(|it| it.is_earlier || it.is_accepted)
    }
}

impl OperatorsRehearsal {
    /// Runs the rehearsal on a runtime of its own; takes seconds. Not to be called from within a runtime.
    ///
    /// # Errors
    ///
    /// When the copy cannot be loaded, the API server refuses a change, or the controller does not work on the
    /// copy.
    pub fn run(self) -> Result<OperatorsResult, RehearsalError> {
        in_virtual_time(async { Ok(self.carry_out().await?.0) })
    }

    /// Returns the result, and the server with what the copy has become.
    async fn carry_out(self) -> Result<(OperatorsResult, ApiServer), RehearsalError> {
        let clock = virtual_clock(self.cluster.as_ref());
        let server = server(self.cluster.as_ref(), clock)?;
        let client = Client::new(server.clone(), "default");
        // The controller is not to read a catalog from another place first.
        self.set_catalogs(&client).await?;
        let before = ClusterContent::of_server(&server)?;
        let stop = CancellationToken::new();
        let options = SimulationOptions {
            delay: self.delay,
            faults: self.faults.clone(),
            clock: Arc::new(clock),
            ..SimulationOptions::default()
        };
        let mut operators =
            tokio::spawn(simulated_operators::run(client.clone(), options, stop.clone()));
        let (view, views) = watch::channel(OperatorsView::default());
        let mut running =
            tokio::spawn(self.controller(client.clone(), clock, view).run(stop.clone()));
        let timeline = tokio::select! {
            biased;
            timeline = self.play(&client, views, &before) => timeline?,
            ended = &mut running => {
                finished(CONTROLLER, ended)?;
                return Err(RehearsalError::Ended { part: CONTROLLER });
            }
            failed = &mut operators => {
                finished(OPERATORS, failed)?;
                return Err(RehearsalError::Ended { part: OPERATORS });
            }
        };
        stop.cancel();
        finished(CONTROLLER, running.await)?;
        let after = ClusterContent::of_server(&server)?;
        Ok((result(&before, &after, timeline, self.cluster), server))
    }

    fn controller(
        &self,
        client: Client,
        clock: VirtualClock,
        view: watch::Sender<OperatorsView>,
    ) -> OperatorController {
        OperatorController {
            client,
            clock: Arc::new(clock),
            settings: OperatorSettings {
                leadership: Leadership::Alone,
                // Who rehearses may read what this process may read.
                roots: CatalogRoots::new([PathBuf::from("/")]),
                cache: self.cache.clone(),
                actions: None,
                queries: None,
            },
            view,
        }
    }

    /// Requests the changes once the controller leads, and waits until nothing moves any more. What is requested
    /// after a deletion waits for it, and is not requested if the Operator stays.
    async fn play(
        &self,
        client: &Client,
        mut views: watch::Receiver<OperatorsView>,
        before: &ClusterContent,
    ) -> Result<OperatorsTimeline, RehearsalError> {
        let leads = async { views.wait_for(|it| it.is_leader).await.is_ok() };
        match tokio::time::timeout(START_MAX, leads).await {
            Ok(true) => {}
            // The controller has ended, and says why.
            Ok(false) => pending().await,
            Err(_) => return Err(RehearsalError::NotStarted),
        }
        self.set_catalogs(client).await?;
        let limit = STUCK_AFTER + self.longest_deadline(before);
        let mut timeline = OperatorsTimeline::of(before);
        let mut requests = self.requests.iter().peekable();
        while let Some(request) = requests.next() {
            request.send(client).await?;
            if let OperatorRequest::Delete(name) = request
                && requests.peek().is_some()
                && !timeline.follow(&mut views, limit, Some(name)).await
            {
                return Ok(timeline);
            }
        }
        timeline.follow(&mut views, limit, None).await;
        Ok(timeline)
    }

    /// Has the Catalogs of the copy be read once, and from where they are on this machine. Those that it does
    /// not have are created. Does nothing as long as the kind is not served.
    async fn set_catalogs(&self, client: &Client) -> Result<(), RehearsalError> {
        let failed =
            |source| RehearsalError::Request { what: "set the Catalogs of the copy", source };
        let catalogs = api(client, CATALOG);
        let listed = match catalogs.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            listed => listed.map_err(failed)?,
        };
        let there: BTreeSet<String> =
            listed.items.into_iter().filter_map(|it| it.metadata.name).collect();
        for name in &there {
            let mut patch = json!({ "spec": { "pollInterval": POLL_INTERVAL } });
            if let Some(elsewhere) = self.catalogs.iter().find(|it| it.name == *name) {
                patch["spec"]["source"] = elsewhere.fields();
            }
            let patch = Patch::Merge(&patch);
            catalogs.patch(name, &PatchParams::default(), &patch).await.map_err(failed)?;
        }
        for catalog in self.catalogs.iter().filter(|it| !there.contains(&it.name)) {
            let object = json!({
                "apiVersion": CATALOG.api_version(),
                "kind": CATALOG.kind,
                "metadata": { "name": catalog.name },
                "spec": {
                    "source": catalog.fields(),
                    "weight": catalog.weight,
                    "pollInterval": POLL_INTERVAL,
                },
            });
            let object = DynamicObject::deserialize(&object)
                .map_err(|source| failed(kube::Error::SerdeError(source)))?;
            catalogs.create(&PostParams::default(), &object).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the longest deadline of a rollout that an Operator has, before or after the changes.
    fn longest_deadline(&self, before: &ClusterContent) -> Duration {
        let requested = self.requests.iter().filter_map(|request| match request {
            OperatorRequest::Apply(object) => Some(object),
            OperatorRequest::Patch { patch, .. } => Some(patch),
            OperatorRequest::Delete(_) => None,
        });
        let deadline = |object: &Value| {
            let text = object["spec"]["progressDeadline"].as_str()?;
            duration::parse(text).ok()
        };
        let deadlines = before.operators.values().chain(requested).filter_map(deadline);
        deadlines.max().unwrap_or_default()
    }
}

impl RehearsedCatalog {
    /// Returns the source as fields that replace those of any other.
    fn fields(&self) -> Value {
        let CatalogSource { type_, path, reference } = &self.source;
        json!({ "type": type_, "path": path, "reference": reference })
    }
}

impl OperatorRequest {
    /// Returns the name of the Operator.
    fn name(&self) -> &str {
        match self {
            Self::Apply(object) => object["metadata"]["name"].as_str().unwrap_or_default(),
            Self::Patch { name, .. } | Self::Delete(name) => name,
        }
    }

    async fn send(&self, client: &Client) -> Result<(), RehearsalError> {
        let (operators, name) = (api(client, OPERATOR), self.name());
        let sent = match self {
            Self::Apply(object) => {
                let parameters = PatchParams::apply(MANAGER).force();
                operators.patch(name, &parameters, &Patch::Apply(object)).await.map(drop)
            }
            Self::Patch { patch, .. } => {
                let manager = Some(MANAGER.to_owned());
                let parameters = PatchParams { field_manager: manager, ..PatchParams::default() };
                operators.patch(name, &parameters, &Patch::Merge(patch)).await.map(drop)
            }
            Self::Delete(_) => operators.delete(name, &DeleteParams::default()).await.map(drop),
        };
        sent.map_err(|source| RehearsalError::Refused { name: name.to_owned(), source })
    }
}

/// Compares what a copy began with and what has become of it.
fn result(
    before: &ClusterContent,
    after: &ClusterContent,
    timeline: OperatorsTimeline,
    cluster: Option<ClusterSnapshot>,
) -> OperatorsResult {
    let missing = cluster.map(|it| (it.not_copied, it.unread_kinds));
    let (not_copied, unread_kinds) = missing.unwrap_or_default();
    let names: BTreeSet<&String> = before.operators.keys().chain(after.operators.keys()).collect();
    let operators = names.iter().map(|name| {
        let status = after.status(name);
        let conditions = status.conditions.into_iter();
        let conditions = conditions.filter(|it| CONDITIONS.contains(&it.type_.as_str()));
        RehearsedOperator {
            name: (*name).clone(),
            before: before.status(name).bundle.map(|it| it.version),
            after: status.bundle.map(|it| it.version),
            is_deleted: !after.operators.contains_key(*name),
            conditions: conditions
                .map(|it| RehearsedCondition {
                    type_: it.type_,
                    status: it.status.as_str(),
                    reason: it.reason,
                    message: it.message,
                })
                .collect(),
        }
    });
    let orphans =
        names.iter().filter(|it| after.status(it).orphaned && !before.status(it).orphaned);
    OperatorsResult {
        seconds: timeline.seconds,
        operators: operators.collect(),
        troubles: names.iter().flat_map(|name| troubles(name, before, after)).collect(),
        orphans: orphans.map(|it| (*it).clone()).collect(),
        objects: before.counts(after),
        deleted_operands: before.deleted_operands(after),
        transitions: timeline.transitions,
        unread_catalogs: after.unread_catalogs(),
        not_copied,
        unread_kinds,
    }
}

#[cfg(test)]
mod tests;
