//! The controller of Operators. It reads catalogs and carries out what
//! [`plimsoll_operators::reconciler`] decides; it decides nothing itself.
//!
//! It runs beside the controller of releases, or alone: each has its own Lease, and they share
//! nothing but the cluster.

mod catalogs;
mod control_loop;
mod effects;
mod facts;
mod inspect;
mod preview;
pub mod query;
pub(crate) mod revisions;
mod unserved;
mod watches;

pub use self::facts::read as read_facts;
pub use self::inspect::INVALIDATED;
pub use self::preview::{PreviewedRevision, RevisionPreview, preview};
pub use self::revisions::key_secret as revision_key_secret;

use std::sync::Arc;

use kube::Client;
use plimsoll_api::{CATALOG, OPERATOR, OPERATOR_REVISION, crd, policies};
use plimsoll_source::catalog::{Cache, CatalogRoots};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::control_loop::ControlLoop;
use self::query::LeaderRequests;
use crate::actions::{ActionController, ActionSettings, inventory};
use crate::bootstrap::{self, retry_until_ok};
use crate::clock::SharedClock;
use crate::error::Error;
use crate::events::Recorder;
use crate::host::DRAIN_TIME_MAX;
use crate::lease::{self, Leadership, OPERATORS_LEASE_NAME};
use crate::reinstall::{self, Installed};
use crate::resources::{self, api_resource};
use crate::view::OperatorsView;
use crate::webhook::WebhookSettings;
use crate::write::{Writer, chain};

/// The settings of the controller of Operators.
#[derive(Debug, Clone)]
pub struct OperatorSettings {
    /// The leader election: under a Lease, or none if there is no other controller.
    pub leadership: Leadership,
    /// The directories that the sources of Catalogs must be in.
    pub roots: CatalogRoots,
    /// The cache for the indexes of catalogs; `None` to keep them in memory.
    pub cache: Option<Cache>,
    /// The settings of the controller of Actions; `None` if Actions are not executed.
    pub actions: Option<ActionSettings>,
    /// Where queries are answered, and how clients get there; `None` if they are not.
    pub queries: Option<WebhookSettings>,
}

/// The controller that installs, updates and deletes Operators.
pub struct OperatorController {
    /// The client of the cluster.
    pub client: Client,
    /// The clock that gives the time of day.
    pub clock: SharedClock,
    /// The settings of the controller.
    pub settings: OperatorSettings,
    /// The state that metrics report.
    pub view: watch::Sender<OperatorsView>,
}

impl OperatorController {
    /// Runs the controller until it is stopped.
    ///
    /// # Errors
    ///
    /// When the API server rejects a request that is required at the start, or when the Lease is
    /// lost.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let Self { client, clock, settings, view } = self;
        let leadership = settings.leadership.clone();
        let queries = settings.queries.clone();
        let leader = LeaderRequests::new(None);
        let work = |client: Client, leading: CancellationToken| {
            Self { client, clock: Arc::clone(&clock), settings, view: view.clone() }
                .lead(leading, leader.clone())
        };
        let name = OPERATORS_LEASE_NAME;
        let served = client.clone();
        let led = lease::leading(client, Arc::clone(&clock), name, &leadership, &stop, work);
        match queries {
            None => led.await,
            Some(queries) => {
                let answered = query::serve(&served, &clock, &queries, &leader, &stop);
                tokio::try_join!(led, answered).map(|_| ())
            }
        }
    }

    /// Runs the controller as the leader.
    async fn lead(self, stop: CancellationToken, leader: LeaderRequests) -> Result<(), Error> {
        let instance = match &self.settings.leadership {
            Leadership::Lease(identity) => identity,
            Leadership::Alone => "plimsoll",
        };
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let (recorder, event_writer) = Recorder::start(client, clock, instance, stop.clone());
        let ended = loop {
            // Also cancelled if the storage of the API server was restored to an earlier state.
            let round = stop.child_token();
            let ended = self.work(&recorder, &leader, &round).await;
            self.view.send_replace(OperatorsView::default());
            leader.send_replace(None);
            if stop.is_cancelled() || !round.is_cancelled() {
                break ended;
            }
            tracing::warn!(
                "the storage of the API server went back to an earlier state: beginning again with \
                 what is there"
            );
        };
        // Events emitted last are written before the process ends.
        let _ = tokio::time::timeout(DRAIN_TIME_MAX, event_writer).await;
        ended
    }

    /// Runs the controller until it is stopped, starting from the present state of the cluster.
    async fn work(
        &self,
        recorder: &Recorder,
        leader: &LeaderRequests,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let unlisted = watches::CONFIGURATION.map(|it| it.plural);
        self.view.send_modify(|view| view.unlisted = unlisted.into());
        let writer = Writer::new(self.client.clone());
        let definitions = crd::operator_manifests();
        let kinds = [OPERATOR, OPERATOR_REVISION, CATALOG];
        let install =
            || bootstrap::install_definitions(&self.client, &writer, &definitions, &kinds, stop);
        retry_until_ok(stop, install).await?;
        install_policies(&writer).await;
        let make_key = || revisions::key(&self.client, &writer);
        let key = retry_until_ok(stop, make_key).await?;
        let reinstall = || async {
            bootstrap::apply_definitions(&self.client, &writer, &definitions).await?;
            let released = revisions::release_with_definition(&self.client, &writer).await;
            released.map_err(|source| Error::ReleaseRevisions { source })?;
            install_policies(&writer).await;
            Ok(())
        };
        let (provider, inventory) = match &self.settings.actions {
            Some(_) => Some(inventory::channel()).unzip(),
            None => (None, None),
        };
        let mut control_loop =
            ControlLoop::start(self, recorder.clone(), provider, key, stop).await?;
        control_loop.queries = self.settings.queries.as_ref().map(|_| query::requests(leader));
        self.view.send_modify(|view| view.is_leader = true);
        let actions = async {
            let (Some(settings), Some(inventory)) = (self.settings.actions.clone(), inventory)
            else {
                return Ok(());
            };
            let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
            let (recorder, view) = (recorder.clone(), self.view.clone());
            ActionController { client, clock, recorder, settings, inventory, view }.run(stop).await
        };
        let operators = async move {
            // The loop is dropped when it ends. Otherwise a request for an inventory would wait
            // forever.
            control_loop.run(stop).await;
            Ok(())
        };
        let kept = async {
            reinstall::keep(&self.client, installed(&definitions), reinstall, stop).await;
            Ok(())
        };
        tokio::try_join!(operators, actions, kept).map(|_| ())
    }
}

/// Returns the objects that the controller of Operators installs: definitions and admission
/// policies.
fn installed(definitions: &[Value]) -> Vec<Installed> {
    let mut installed = Installed::policies(&policies::operator_policies());
    installed.push(Installed::new(resources::definitions(), definitions));
    installed
}

/// Applies the admission policies. They are optional: without them, the controller itself refuses
/// changes of protected objects, but later.
async fn install_policies(writer: &Writer) {
    for object in &policies::operator_policies() {
        let Some((kind, name)) = policies::kind_and_name(object) else { continue };
        if let Err(error) = writer.apply_own(&api_resource(kind), name, object).await {
            let error = chain(&error);
            tracing::warn!(error, kind = kind.kind, name, "an admission policy cannot be applied");
        }
    }
}
