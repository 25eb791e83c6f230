//! The state of a cluster without catalogs: what is installed.

use anyhow::Context as _;
use kube::Client;
use plimsoll_operators::snapshot::LoadoutSnapshot;

use super::{LoadoutState, StateSource};
use crate::commands::operator::catalogs::OpenedCatalogs;
use crate::commands::operator::state::{AddOnState, revisions};
use crate::progress::ProgressLine;

impl LoadoutState {
    /// Reads the state of a cluster for a change of one Operator that needs no catalog.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be read, it has no such Operator, or one that has a part in the change cannot be read.
    pub(in super::super) async fn read_installed(
        client: &Client,
        name: &str,
    ) -> Result<Self, anyhow::Error> {
        let state = AddOnState::read(client).await?;
        state.operator(name)?;
        let progress = ProgressLine::begin("reading the version and nodes of the cluster");
        let facts = plimsoll_controller::operators::read_facts(client).await;
        drop(progress);
        let facts = facts.context("failed to read the version and nodes of the cluster")?;
        let revisions = revisions(client).await?;
        let AddOnState { operators: in_cluster, unreadable, .. } = state;
        let state = Self {
            source: StateSource::Cluster,
            catalogs: OpenedCatalogs::default(),
            facts,
            in_cluster,
            unreadable,
            revisions,
            snapshot: LoadoutSnapshot::default(),
        };
        state.require_readable(std::iter::once(name.to_owned()))?;
        Ok(state)
    }
}
