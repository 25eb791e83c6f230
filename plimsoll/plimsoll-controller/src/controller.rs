//! The controller: how it is set up, how it becomes the leader, and how it runs until it is
//! stopped.

mod apply_update;
mod control_loop;
mod definitions;
mod features;
mod observed;
mod operators_watch;
mod startup;
mod update_request;
mod windows_watch;

use std::sync::Arc;

use kube::Client;
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_content::payload::Payload;
use plimsoll_plan::reconciler::desired::CapabilityRules;
use plimsoll_plan::reconciler::events;
use plimsoll_plan::status::Limits;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::control_loop::{ControlLoop, LoopExit};
pub use self::features::cluster_features;
pub use self::operators_watch::operators_on_platform;
pub use self::windows_watch::maintenance_windows;
use crate::bootstrap::{self, retry_until_ok};
use crate::clock::SharedClock;
use crate::error::Error;
use crate::events::Recorder;
use crate::host::DRAIN_TIME_MAX;
use crate::lease::{self, LEASE_NAME, Leadership};
use crate::release_loader::SharedStore;
use crate::view::View;
use crate::webhook::capabilities::CapabilityReviewer;
use crate::webhook::{self, WebhookSettings};
use crate::write::Writer;

/// How a controller is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cluster profile that manifests must include.
    pub profile: String,
    /// Feature set of the cluster; `None` follows the cluster's FeatureGate, which need not exist.
    pub feature_set: Option<String>,
    /// The spec to create a ClusterVersion with when there is none; `None` waits for one.
    pub create: Option<ClusterVersionSpec>,
    /// Whether a release is begun that the controller would refuse.
    pub force_release: bool,
    /// Who may write.
    pub leadership: Leadership,
    /// Capabilities that this cluster has whatever its spec says.
    pub always_enabled: Vec<String>,
    /// Where to serve admission reviews of `spec.capabilities`; `None` for no webhook.
    pub capability_webhook: Option<WebhookSettings>,
    /// How long things may take before they are reported as slow or failed.
    pub limits: Limits,
}

/// Reconciles a cluster to a release.
pub struct Controller {
    /// The client of the cluster.
    pub client: Client,
    /// The time of day.
    pub clock: SharedClock,
    /// How it is set up.
    pub settings: Settings,
    /// The release for a cluster that has none; a new value starts an update.
    pub release: watch::Receiver<Arc<Payload>>,
    /// Where requested releases come from; `None` if none can be requested. A cluster that has a
    /// release continues with that one.
    pub store: Option<SharedStore>,
    /// Where the state of the controller is published.
    pub view: watch::Sender<View>,
}

impl Controller {
    /// Runs until it is stopped.
    ///
    /// # Errors
    ///
    /// When the API server rejects what has to be read or created at the start, the webhook cannot
    /// listen, or the lease is lost.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let leadership = self.settings.leadership.clone();
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let work = |client: Client, leading: CancellationToken| async move {
            self.client = client;
            self.lead(&leading).await
        };
        lease::leading(client, clock, LEASE_NAME, &leadership, &stop, work).await
    }

    /// Runs as the leader.
    async fn lead(mut self, stop: &CancellationToken) -> Result<(), Error> {
        let writer = Writer::new(self.client.clone());
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let instance = match &self.settings.leadership {
            Leadership::Lease(identity) => identity,
            Leadership::Alone => "plimsoll",
        };
        let (recorder, event_writer) = Recorder::start(client, clock, instance, stop.clone());
        let ended = self.reconcile(&writer, recorder, stop).await;
        // Events emitted last are written before the process ends.
        let _ = tokio::time::timeout(DRAIN_TIME_MAX, event_writer).await;
        ended
    }

    /// Reconciles the cluster, starting again whenever what was read at the start has changed.
    async fn reconcile(
        &mut self,
        writer: &Writer,
        recorder: Recorder,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let rules = watch::Sender::default();
        let mut is_webhook_started = false;
        loop {
            // Each time: a server that was restored from a backup may have lost them.
            let client = &self.client;
            let install = || bootstrap::install_crds(client, writer, stop);
            let newer = retry_until_ok(stop, install).await?;
            let (sender, mut configuration) = mpsc::channel(1);
            let mut watches = JoinSet::new();
            watches.spawn(definitions::keep(
                client.clone(),
                writer.clone(),
                rules.subscribe(),
                stop.clone(),
            ));
            let state = self
                .read_initial_state(writer, &recorder, &rules, stop, &mut watches, sender)
                .await?;
            let mut control_loop = ControlLoop::start(self, state, stop).await?;
            if !std::mem::replace(&mut is_webhook_started, true) {
                if let Leadership::Lease(identity) = &self.settings.leadership {
                    control_loop.emit(events::leader_elected(identity));
                }
                control_loop.emit_all(newer.iter().map(|name| events::definition_newer(name)));
                self.start_webhook(&rules, writer, stop).await?;
                let (client, writer) = (self.client.clone(), writer.clone());
                tokio::spawn(bootstrap::keep_names(
                    client,
                    writer,
                    rules.subscribe(),
                    stop.clone(),
                ));
            }
            match control_loop.run(self, &mut configuration, stop).await {
                LoopExit::Stopped => return Ok(()),
                LoopExit::Outdated => tracing::info!(
                    "the status changed after it was read; starting again with the current one"
                ),
                LoopExit::RolledBack => tracing::warn!(
                    "the API server was restored from a backup; starting again with what is there"
                ),
                LoopExit::Deleted => {
                    tracing::warn!(
                        "the ClusterVersion \"version\" was deleted: nothing is reconciled until \
                         there is one again, which continues where this one was"
                    );
                    self.view.send_modify(|view| view.is_status_unwritable = true);
                }
            }
        }
    }

    /// Serves admission reviews of `spec.capabilities` if it is set up to, and removes the webhook
    /// of an earlier process if not.
    async fn start_webhook(
        &self,
        rules: &watch::Sender<CapabilityRules>,
        writer: &Writer,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let client = &self.client;
        let Some(settings) = &self.settings.capability_webhook else {
            return retry_until_ok(stop, || webhook::remove::<CapabilityReviewer>(client, writer))
                .await;
        };
        let clock = Arc::clone(&self.clock);
        let reviewer = CapabilityReviewer(rules.subscribe());
        webhook::start(client, writer, settings, clock, reviewer, stop).await
    }
}
