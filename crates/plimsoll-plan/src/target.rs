//! From a payload and what a cluster asks for to the plan: what the controller executes, and what
//! is printed, rehearsed and compared beforehand.

use std::collections::BTreeSet;

use plimsoll_api::config::{ClusterVersionSpec, Release};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{Context, EnabledCapabilities, Override};

use crate::capabilities::{self, Capabilities};
use crate::mode::Mode;
use crate::plan::{Plan, plan};

/// What a cluster asks for, as far as the plan of a release depends on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// Cluster profile.
    pub profile: String,
    /// Feature set.
    pub feature_set: String,
    /// What the ClusterVersion asks for.
    pub spec: ClusterVersionSpec,
    /// Capabilities that were enabled before: they stay.
    pub enabled: BTreeSet<String>,
}

impl Target {
    /// The capabilities in force with a payload.
    pub fn capabilities(&self, payload: &Payload) -> Capabilities {
        let gates = payload.feature_gates(&self.profile, &self.feature_set);
        let before: Vec<String> = self.enabled.iter().cloned().collect();
        capabilities::effective_with_gates(&self.spec, &before, &[], &gates)
    }

    /// The plan that brings the cluster to a payload.
    pub fn plan(&self, payload: &Payload, mode: Mode) -> Plan {
        let capabilities = self.capabilities(payload);
        let overrides = self.spec.overrides.iter().filter(|entry| entry.unmanaged);
        let context = Context {
            capabilities: Some(EnabledCapabilities {
                known: capabilities.known,
                enabled: capabilities.enabled,
            }),
            overrides: overrides
                .map(|entry| Override {
                    group: entry.group.clone(),
                    kind: entry.kind.clone(),
                    namespace: entry.namespace.clone(),
                    name: entry.name.clone(),
                })
                .collect(),
            ..payload.context(&self.profile, &self.feature_set)
        };
        plan(&payload.manifests, &context, release(payload), mode, 0)
    }
}

/// A payload's release, as status names it.
pub fn release(payload: &Payload) -> Release {
    Release {
        version: payload.release.version.clone(),
        image: payload.image.clone(),
        url: payload.release.url.clone(),
        channels: payload.release.channels.clone(),
    }
}
