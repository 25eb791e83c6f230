//! From a payload and what a cluster asks for to the plan: what the controller executes, and what
//! is printed, rehearsed and compared beforehand.

use std::collections::BTreeSet;

use plimsoll_api::ObjectKey;
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{Context, UnmanagedObject};

use crate::capabilities::{self, Capabilities, EnabledCapability};
use crate::plan::features::Features;
use crate::plan::mode::Mode;
use crate::plan::{Plan, plan};

/// What a cluster asks for, as far as the plan of a release depends on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// Cluster profile.
    pub profile: String,
    /// Features of the cluster.
    pub features: Features,
    /// Objects that are out of management now.
    pub overrides: Vec<UnmanagedObject>,
    /// What the ClusterVersion asks for.
    pub spec: ClusterVersionSpec,
    /// Capabilities that were enabled before: they stay.
    pub enabled: BTreeSet<String>,
    /// Capabilities that this cluster has whatever is asked for.
    pub always_enabled: Vec<String>,
}

impl Target {
    /// The capabilities in force with a payload.
    pub fn capabilities(&self, payload: &Payload) -> Capabilities {
        let gates = self.features.gates(payload, &self.profile);
        let before: Vec<String> = self.enabled.iter().cloned().collect();
        let always = &self.always_enabled;
        capabilities::effective(&self.spec, &before, always, &payload.capabilities, &gates)
    }

    /// What is asked for on the way to a payload where some objects have been `applied`, with the
    /// capabilities that this makes necessary; and all capabilities that become enabled, and why.
    pub fn towards(
        &self,
        next: &Payload,
        applied: &BTreeSet<ObjectKey>,
    ) -> (Self, Vec<EnabledCapability>) {
        let implied =
            capabilities::implied_within(applied, next, &self.context(next), &self.enabled);
        let mut target = self.clone();
        target.enabled.extend(implied.iter().map(|implied| implied.capability.clone()));
        let requested = target.capabilities(next).enabled;
        let requested = requested.difference(&target.enabled).map(|name| EnabledCapability {
            name: name.clone(),
            because: "the ClusterVersion asks for it, or for a set that holds it".to_owned(),
        });
        let implied = implied.iter().map(|implied| EnabledCapability {
            name: implied.capability.clone(),
            because: implied.to_string(),
        });
        let enabled = implied.chain(requested).collect();
        (target, enabled)
    }

    /// The plan that brings the cluster to a payload.
    pub fn plan(&self, payload: &Payload, mode: Mode) -> Plan {
        plan(&payload.manifests, &self.context(payload), payload.named(), mode)
    }

    /// What decides which manifests of a payload are included.
    pub fn context(&self, payload: &Payload) -> Context {
        let capabilities = self.capabilities(payload);
        context(payload, &self.profile, &self.features, &capabilities, &self.overrides)
    }
}

/// What decides which manifests of a payload are included in a cluster of a profile.
pub fn context(
    payload: &Payload,
    profile: &str,
    features: &Features,
    capabilities: &Capabilities,
    overrides: &[UnmanagedObject],
) -> Context {
    Context {
        capabilities: Some(capabilities.for_inclusion()),
        overrides: overrides.to_vec(),
        ..features.context(payload, profile)
    }
}
