//! What is asked about: the release, the cluster, or both.

use std::collections::BTreeSet;

use anyhow::Context as _;
use clap::Args;
use kube::Client;
use plimsoll_api::progress::{CapabilitiesProgress, ImpliedCapability};
use plimsoll_content::Payload;
use plimsoll_content::capability::{CapabilityRegistry, CapabilitySet, meant};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_plan::capabilities::effective;

use super::cluster::ClusterArguments;
use super::registry::RegistryArguments;
use super::store;
use plimsoll_simulation::cluster_state::ClusterState;

/// What is asked about: a release, a cluster, or a cluster and the release that it is at.
#[derive(Debug, Args)]
pub(crate) struct About {
    /// The release: the directory of its payload, or a reference to its image. With it, a cluster
    /// is asked only if --kubeconfig or --context names one
    #[arg(long, value_name = "DIR|REFERENCE", value_parser = store::parse)]
    pub(crate) release: Option<store::Location>,
    /// How registries are reached
    #[command(flatten)]
    pub(crate) registry: RegistryArguments,
    /// Without a cluster: the capability set that counts as enabled
    #[arg(
        long,
        value_name = "SET",
        default_value = "None",
        requires = "release",
        conflicts_with_all = ["kubeconfig", "context"]
    )]
    pub(crate) baseline: String,
    /// Which cluster
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub(crate) profile: String,
    /// Feature set of the cluster
    #[arg(long, default_value = DEFAULT_FEATURE_SET)]
    pub(crate) feature_set: String,
}

/// The capability set that an option names.
///
/// # Errors
///
/// When there is none of the name; the message says which may be meant.
pub(crate) fn set_named<'a>(
    registry: &'a CapabilityRegistry,
    option: &str,
    name: &str,
) -> anyhow::Result<&'a CapabilitySet> {
    registry.set(name).with_context(|| {
        let sets = registry.sets().iter().map(|set| set.name.as_str());
        let hint = hint(registry.similar_set(name), sets);
        format!("{option}: there is no capability set {name:?}{hint}")
    })
}

/// Checks the names of capabilities that an option lists.
///
/// # Errors
///
/// When there is no capability of a name; the message says which may be meant.
pub(crate) fn check_names(
    registry: &CapabilityRegistry,
    option: &str,
    names: &[String],
) -> anyhow::Result<()> {
    let unknown = names.iter().find(|name| registry.capability(name).is_none());
    let Some(name) = unknown else { return Ok(()) };
    let known = registry.capabilities().map(|capability| capability.name.as_str());
    let hint = hint(registry.similar(name), known);
    anyhow::bail!("{option}: there is no capability {name:?}{hint}")
}

/// What to use instead of a name that does not exist: the one that may be meant, or any.
fn hint<'a>(similar: Option<&str>, known: impl Iterator<Item = &'a str>) -> String {
    match similar {
        Some(_) => meant(similar),
        None => format!("; there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// A release, a cluster, or a cluster and the release that it is at.
pub(crate) struct Subject {
    pub(crate) registry: CapabilityRegistry,
    pub(crate) gates: BTreeSet<String>,
    /// The capabilities that are enabled.
    pub(crate) enabled: BTreeSet<String>,
    pub(crate) payload: Option<Payload>,
    pub(crate) cluster: Option<Cluster>,
    pub(crate) profile: String,
    pub(crate) feature_set: String,
}

/// What a cluster says about its capabilities.
pub(crate) struct Cluster {
    pub(crate) version: String,
    pub(crate) known: BTreeSet<String>,
    /// Enabled although the spec does not ask for them.
    pub(crate) implicit: BTreeSet<String>,
    progress: CapabilitiesProgress,
}

impl Cluster {
    /// What made a capability necessary, if an update did.
    pub(crate) fn implied(&self, name: &str) -> Option<&ImpliedCapability> {
        self.progress.implied.iter().rev().find(|implied| implied.capability == name)
    }
}

impl Subject {
    pub(crate) async fn of(about: &About) -> anyhow::Result<Self> {
        let About { release, registry: access, baseline, cluster, profile, feature_set } = about;
        let load = |it: &store::Location| it.load(access, profile, Some(feature_set));
        let payload = release.as_ref().map(load).transpose()?;
        let registry = payload
            .as_ref()
            .map_or_else(CapabilityRegistry::built_in, |it| it.capabilities.clone());
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
            subject.ask(&cluster.client("capability").await?).await?;
        } else {
            let set = set_named(&subject.registry, "--baseline", baseline)?;
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
        let ClusterState { spec, status, progress, .. } = ClusterState::read(client).await?;
        let mut enabled: BTreeSet<String> =
            status.capabilities.enabled_capabilities.into_iter().collect();
        enabled.extend(progress.capabilities.withheld.iter().cloned());
        let requested = effective(&spec, &[], &[], &self.registry, &self.gates);
        let implicit = enabled.difference(&requested.enabled);
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
    pub(crate) fn names(&self) -> BTreeSet<&str> {
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
