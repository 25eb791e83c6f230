//! What is asked about: the release, the cluster, or both.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::bail;
use kube::Client;
use plimsoll_api::progress::{CapabilitiesProgress, ImpliedCapability};
use plimsoll_content::Payload;
use plimsoll_content::capability::{Registry, meant};
use plimsoll_plan::capabilities::effective;

use super::About;
use crate::commands::standing::Standing;
use crate::commands::store;

/// A release, a cluster, or a cluster and the release that it is at.
pub(super) struct Subject {
    pub(super) registry: Registry,
    pub(super) gates: BTreeSet<String>,
    /// The capabilities that are enabled.
    pub(super) enabled: BTreeSet<String>,
    pub(super) payload: Option<Payload>,
    pub(super) cluster: Option<Cluster>,
    pub(super) profile: String,
    pub(super) feature_set: String,
}

/// What a cluster says about its capabilities.
pub(super) struct Cluster {
    pub(super) version: String,
    pub(super) known: BTreeSet<String>,
    /// Enabled although the spec does not ask for them.
    pub(super) implicit: BTreeSet<String>,
    progress: CapabilitiesProgress,
}

impl Cluster {
    /// What made a capability necessary, if an update did.
    pub(super) fn implied(&self, name: &str) -> Option<&ImpliedCapability> {
        self.progress.implied.iter().rev().find(|implied| implied.capability == name)
    }
}

impl Subject {
    pub(super) async fn of(about: &About) -> anyhow::Result<Self> {
        let About { release, baseline, cluster, profile, feature_set } = about;
        let load = |directory: &PathBuf| store::directory(directory, "", profile);
        let payload = release.as_ref().map(load).transpose()?;
        let registry =
            payload.as_ref().map_or_else(Registry::built_in, |it| it.capabilities.clone());
        let gates = payload
            .as_ref()
            .map_or_else(BTreeSet::new, |payload| payload.feature_gates(profile, feature_set));
        let mut subject = Self {
            registry,
            gates,
            enabled: BTreeSet::new(),
            payload,
            cluster: None,
            profile: profile.clone(),
            feature_set: feature_set.clone(),
        };
        if subject.payload.is_none() || cluster.is_named() {
            subject.ask(&cluster.client().await?).await?;
        } else {
            let Some(set) = subject.registry.set(baseline) else {
                let similar = meant(subject.registry.similar_set(baseline));
                bail!("--baseline: there is no capability set {baseline:?}{similar}");
            };
            let there = set.capabilities.iter();
            subject.enabled = there
                .filter(|name| subject.registry.is_known(name, &subject.gates))
                .cloned()
                .collect();
        }
        Ok(subject)
    }

    /// Asks a cluster what it has.
    async fn ask(&mut self, client: &Client) -> anyhow::Result<()> {
        let Standing { spec, status, progress, .. } = Standing::read(client).await?;
        let mut enabled: BTreeSet<String> =
            status.capabilities.enabled_capabilities.into_iter().collect();
        enabled.extend(progress.capabilities.withheld.iter().cloned());
        let asked = effective(&spec, &[], &[], &self.registry, &self.gates);
        let implicit = enabled.difference(&asked.enabled);
        self.cluster = Some(Cluster {
            version: status.desired.version,
            known: status.capabilities.known_capabilities.into_iter().collect(),
            implicit: implicit.cloned().collect(),
            progress: progress.capabilities,
        });
        self.enabled = enabled;
        Ok(())
    }

    /// The names that there are: those of the cluster if there is one, else of the release.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        match &self.cluster {
            Some(cluster) if !cluster.known.is_empty() => {
                cluster.known.union(&self.enabled).map(String::as_str).collect()
            }
            _ => {
                let there = self.registry.capabilities().filter(|it| it.is_allowed(&self.gates));
                there.map(|it| it.name.as_str()).collect()
            }
        }
    }
}
