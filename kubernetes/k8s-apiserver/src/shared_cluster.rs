//! The cluster behind its lock: reads, writes, and the webhook calls in between.
//!
//! There is one lock. A request takes it once for each run, and never holds it while it waits. A
//! write includes the reactions of the controllers. A write that panics may be half done: it
//! poisons the cluster, and every later request gets an error that says so.
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use jiff::Timestamp;

use crate::clock::Clock;
use crate::controllers::Controllers;
use crate::semantics::cluster::{Cluster, admission};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ApiResource;
use crate::semantics::webhook::replay::{self, WebhookReplay};
use crate::status::{ApiError, Result};
use crate::webhooks::{self, Webhooks};

/// A cluster with its controllers, its clock and its webhook client.
pub(crate) struct SharedCluster {
    clock: Arc<dyn Clock>,
    webhooks: Webhooks,
    state: RwLock<State>,
}

/// The state that a write may change.
struct State {
    cluster: Cluster,
    controllers: Controllers,
}

impl SharedCluster {
    /// Puts a cluster behind a lock.
    pub(crate) fn new(
        cluster: Cluster,
        controllers: Controllers,
        clock: Arc<dyn Clock>,
        webhooks: Webhooks,
    ) -> Self {
        Self { clock, webhooks, state: RwLock::new(State { cluster, controllers }) }
    }

    /// The clock of the cluster.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reads the cluster.
    ///
    /// # Errors
    /// Those of `look`, and when the cluster is poisoned.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Cluster) -> Result<T>) -> Result<T> {
        let state = self.state.read().map_err(|_| ApiError::poisoned())?;
        look(&state.cluster)
    }

    /// Changes the cluster, and runs the controllers.
    ///
    /// The guard of the lock poisons the cluster if it is dropped while a panic unwinds.
    ///
    /// # Errors
    /// Those of `change`, and when the cluster is poisoned.
    pub(crate) fn write<T>(
        &self,
        now: &str,
        change: impl FnOnce(&mut Cluster) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock()?;
        let State { cluster, controllers } = &mut *state;
        let result = change(cluster);
        controllers.settle(cluster, now);
        result
    }

    /// Runs the write of a request to a resource.
    ///
    /// The request found the resource before the cluster was locked: if another one has replaced or
    /// withdrawn it since, the request starts over. Otherwise an object would be stored that no
    /// definition knows. A write that may call webhooks draws from ids of its own, the same in each
    /// of its runs.
    ///
    /// # Errors
    /// Those of `change`, when the request starts over, and when the cluster is poisoned.
    pub(crate) fn write_for<T>(
        &self,
        context: &mut RequestContext,
        resource: &Arc<ApiResource>,
        change: impl FnOnce(&mut Cluster, &mut RequestContext) -> Result<T>,
    ) -> Result<T> {
        let now = context.now.clone();
        self.write(&now, |cluster| {
            if !cluster.registry.is_served(resource) {
                context.replay.start_over();
                return Err(replay::suspended());
            }
            if !admission::is_configured(cluster) {
                return change(cluster, context);
            }
            let own = context.replay.request_ids(&mut cluster.ids);
            let common = std::mem::replace(&mut cluster.ids, own);
            let changed = change(cluster, context);
            cluster.ids = common;
            changed
        })
    }

    /// Makes the pending webhook calls of a request, without holding the lock.
    ///
    /// # Errors
    /// When the cluster is poisoned.
    pub(crate) async fn call_webhooks(&self, replay: &mut WebhookReplay) -> Result<()> {
        let pending = replay.take_pending(&mut self.lock()?.cluster.ids);
        for (key, answer) in webhooks::call_all(&self.webhooks, pending).await {
            replay.record(key, answer);
        }
        Ok(())
    }

    /// Compacts the event logs up to and including a revision.
    pub(crate) fn compact(&self, revision: u64) {
        // The history of a poisoned cluster cannot be read.
        if let Ok(mut state) = self.lock() {
            state.cluster.store.compact(revision);
        }
    }

    /// The revision of the last write, also of a poisoned cluster.
    pub(crate) fn revision(&self) -> u64 {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.cluster.store.revision()
    }

    /// Whether a write panicked.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.state.is_poisoned()
    }

    fn lock(&self) -> Result<RwLockWriteGuard<'_, State>> {
        self.state.write().map_err(|_| ApiError::poisoned())
    }
}
