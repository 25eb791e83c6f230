//! What the cluster is to be brought to: the release, and all that decides which of its manifests
//! are applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::config::{ClusterVersionSpec, Release};
use plimsoll_api::crd::CapabilityNames;
use plimsoll_api::progress::{ClusterVersionRecord, ImpliedCapability};
use plimsoll_api::{CLUSTER_VERSION, ObjectKey, whole_seconds};
use plimsoll_content::Payload;
use plimsoll_content::capability::CapabilityRegistry;
use plimsoll_content::inclusion::{Context, UnmanagedObject};

use crate::capabilities::{self, Capabilities, Implied, implied_by_update};
use crate::plan::features::Features;
use crate::plan::mode::Mode;
use crate::plan::{Plan, plan};
use crate::spec::overrides::{OVERRIDE_TERMS, Overrides};
use crate::update::target;

/// What the plan follows from, besides the payload's content: when this changes, another plan is
/// due.
#[derive(Debug, Clone, PartialEq)]
struct PlanInputs {
    image: String,
    /// The overrides in force.
    overrides: Vec<UnmanagedObject>,
    enabled: BTreeSet<String>,
}

/// What changes of `spec.capabilities` are judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapabilityRules {
    /// The capabilities and sets of the release.
    pub registry: CapabilityRegistry,
    /// The feature gates that are enabled.
    pub gates: BTreeSet<String>,
    /// The capabilities that are enabled: they cannot be disabled.
    pub enabled: BTreeSet<String>,
    /// The names that a ClusterVersion may request: those of the release, and those that it requests
    /// already. `None` if the release has a definition of ClusterVersion itself.
    pub names: Option<CapabilityNames>,
}

/// A release that may take the place of the one that is applied.
#[derive(Debug, Clone)]
pub struct AcceptedRelease {
    /// Its payload.
    pub payload: Arc<Payload>,
    /// Whether its signature was verified.
    pub verified: bool,
    /// The risks that were accepted with it; empty if there were none.
    pub accepted_risks: String,
}

/// What a [`DesiredState`] starts from.
#[derive(Debug, Clone)]
pub struct DesiredInputs<'a> {
    /// The cluster profile.
    pub profile: &'a str,
    /// Capabilities that this cluster has whatever its spec says.
    pub always_enabled: &'a [String],
    /// The payload of the release that is applied.
    pub payload: Arc<Payload>,
    /// The spec of the ClusterVersion.
    pub spec: ClusterVersionSpec,
    /// The annotation with the terms of overrides; `None` without one.
    pub override_terms: Option<&'a str>,
    /// The features of the cluster.
    pub features: Features,
    /// The capabilities that an earlier process left enabled.
    pub enabled_before: &'a BTreeSet<String>,
    /// The capabilities that updates enabled before, and why.
    pub implied: Vec<ImpliedCapability>,
    /// The time.
    pub now: Timestamp,
}

/// What the cluster is to be brought to.
#[derive(Debug, Clone)]
pub struct DesiredState {
    profile: String,
    always_enabled: Vec<String>,
    payload: Arc<Payload>,
    release: Release,
    verified: bool,
    accepted_risks: String,
    spec: ClusterVersionSpec,
    features: Features,
    capabilities: Capabilities,
    implied: Vec<ImpliedCapability>,
    overrides: Overrides,
    /// The name of the MaintenanceWindow that updates begin in; empty for any time.
    maintenance_window: String,
    inputs: PlanInputs,
}

impl DesiredState {
    /// Starts with what was read.
    pub fn new(inputs: DesiredInputs<'_>) -> Self {
        let DesiredInputs { profile, always_enabled, payload, spec, features, .. } = inputs;
        let mut desired = Self {
            profile: profile.to_owned(),
            always_enabled: always_enabled.to_vec(),
            release: payload.named(),
            payload,
            verified: false,
            accepted_risks: String::new(),
            overrides: Overrides::parse(&spec.overrides, inputs.override_terms),
            maintenance_window: String::new(),
            spec,
            features,
            capabilities: Capabilities::default(),
            implied: inputs.implied,
            inputs: PlanInputs {
                image: String::new(),
                overrides: Vec::new(),
                enabled: BTreeSet::new(),
            },
        };
        let before: Vec<String> = inputs.enabled_before.iter().cloned().collect();
        desired.decide_capabilities(&before);
        desired.refresh(inputs.now);
        desired
    }

    /// The cluster profile.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The payload that is applied.
    pub fn payload(&self) -> &Arc<Payload> {
        &self.payload
    }

    /// The release that is applied, as the status names it.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Whether the signature of the release was verified.
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    /// The risks that were accepted with the release; empty if there were none.
    pub fn accepted_risks(&self) -> &str {
        &self.accepted_risks
    }

    /// The spec of the ClusterVersion.
    pub fn spec(&self) -> &ClusterVersionSpec {
        &self.spec
    }

    /// The features of the cluster.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The capabilities in force.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The capabilities that updates enabled, and why.
    pub fn implied(&self) -> &[ImpliedCapability] {
        &self.implied
    }

    /// The objects that are out of management.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// What changes of `spec.capabilities` are judged by.
    pub fn capability_rules(&self) -> CapabilityRules {
        CapabilityRules {
            registry: self.payload.capabilities.clone(),
            gates: self.features.gates(&self.payload, &self.profile),
            enabled: self.capabilities.enabled.clone(),
            names: self.requestable(),
        }
    }

    /// The names that a ClusterVersion may request; `None` if the release has a definition of
    /// ClusterVersion itself.
    fn requestable(&self) -> Option<CapabilityNames> {
        let definition = format!("{}.{}", CLUSTER_VERSION.plural, CLUSTER_VERSION.group);
        let defines =
            |key: &ObjectKey| key.kind == "CustomResourceDefinition" && key.name == definition;
        if self.payload.manifests.iter().any(|manifest| defines(&manifest.key)) {
            return None;
        }
        let registry = &self.payload.capabilities;
        let gates = self.features.gates(&self.payload, &self.profile);
        let mut names = CapabilityNames {
            sets: registry.sets().iter().map(|set| set.name.clone()).collect(),
            capabilities: registry
                .capabilities()
                .filter(|capability| capability.is_allowed(&gates))
                .map(|capability| capability.name.clone())
                .collect(),
        };
        if let Some(requested) = &self.spec().capabilities {
            let set = &requested.baseline_capability_set;
            if !set.is_empty() && !names.sets.contains(set) {
                names.sets.push(set.clone());
            }
            names.capabilities.extend(requested.additional_enabled_capabilities.iter().cloned());
        }
        Some(names)
    }

    /// What decides which manifests of a payload are included, with the overrides of the plan.
    pub fn context(&self, payload: &Payload) -> Context {
        let overrides = &self.inputs.overrides;
        target::context(payload, &self.profile, &self.features, &self.capabilities, overrides)
    }

    /// The ClusterVersion changed. `named` are the capabilities that its status names as enabled.
    /// Returns the capabilities that become enabled because the spec asks for them.
    pub fn cluster_version_changed(
        &mut self,
        spec: ClusterVersionSpec,
        override_terms: Option<&str>,
        named: &[String],
    ) -> Vec<String> {
        self.overrides = Overrides::parse(&spec.overrides, override_terms);
        self.spec = spec;
        let kept: Vec<String> = named.iter().chain(&self.capabilities.enabled).cloned().collect();
        let before = self.decide_capabilities(&kept);
        let is_implicit = |name: &&String| {
            before.implicit.contains(*name) || self.capabilities.implicit.contains(*name)
        };
        let new = self.capabilities.enabled.difference(&before.enabled);
        new.filter(|name| !is_implicit(name)).cloned().collect()
    }

    /// The annotation with the MaintenanceWindow that updates begin in is this now; `None` without one.
    pub fn maintenance_window_changed(&mut self, annotation: Option<String>) {
        self.maintenance_window = annotation.unwrap_or_default();
    }

    /// The name of the MaintenanceWindow that updates begin in; empty for any time.
    pub fn maintenance_window(&self) -> &str {
        &self.maintenance_window
    }

    /// The features of the cluster are these now. Returns what that changes for the release, for
    /// people; `None` if it changes nothing.
    pub fn features_changed(&mut self, features: Features) -> Option<String> {
        let change = features.change(&self.features, &self.payload, &self.profile);
        // The gates of later releases may have changed although those of this one did not.
        self.features = features;
        if change.is_some() {
            let kept: Vec<String> = self.capabilities.enabled.iter().cloned().collect();
            self.decide_capabilities(&kept);
        }
        change
    }

    /// Enables the capabilities that an update to `next` makes necessary (CV-23), and
    /// returns them.
    pub fn imply(&mut self, next: &Payload, now: Timestamp) -> Vec<Implied> {
        let enabled = &self.capabilities.enabled;
        let context = |payload: &Payload| self.context(payload);
        let found = implied_by_update(&self.payload, next, context, enabled);
        for implied in &found {
            self.implied.push(record(implied, now));
            self.capabilities.enabled.insert(implied.capability.clone());
            self.capabilities.implicit.insert(implied.capability.clone());
        }
        found
    }

    /// A release takes the place of the one that is applied.
    pub fn release_changed(&mut self, accepted: AcceptedRelease, now: Timestamp) {
        self.payload = accepted.payload;
        self.verified = accepted.verified;
        self.accepted_risks = accepted.accepted_risks;
        self.release = self.payload.named();
        let kept: Vec<String> = self.capabilities.enabled.iter().cloned().collect();
        self.decide_capabilities(&kept);
        self.refresh(now);
    }

    /// Takes up what changed since the last plan; true when another plan is due. An override that
    /// expires changes the plan by the passing of time.
    pub fn refresh(&mut self, now: Timestamp) -> bool {
        let inputs = PlanInputs {
            image: self.release.image.clone(),
            overrides: self.overrides.for_inclusion(now),
            enabled: self.capabilities.enabled.clone(),
        };
        let is_changed = inputs != self.inputs;
        self.inputs = inputs;
        is_changed
    }

    /// Whether the overrides in force are others than those of the plan.
    pub fn are_overrides_changed(&self, now: Timestamp) -> bool {
        self.overrides.for_inclusion(now) != self.inputs.overrides
    }

    /// The plan that brings the cluster there.
    pub fn plan(&self, mode: Mode) -> Plan {
        plan(&self.payload.manifests, &self.context(&self.payload), self.release.clone(), mode)
    }

    /// The plan of the same release with a spec and capabilities that an earlier process recorded.
    pub fn plan_as_recorded(
        &self,
        record: &ClusterVersionRecord,
        mode: Mode,
        now: Timestamp,
    ) -> Plan {
        let terms = record.annotations.iter().find(|it| it.name == OVERRIDE_TERMS);
        let terms = terms.map(|it| it.value.as_str());
        let mut before = Self {
            overrides: Overrides::parse(&record.spec.overrides, terms),
            spec: record.spec.clone(),
            ..self.clone()
        };
        before.decide_capabilities(&record.enabled_capabilities);
        before.refresh(now);
        before.plan(mode)
    }

    /// Decides which capabilities are in force, those of `before` included; returns those that were.
    fn decide_capabilities(&mut self, before: &[String]) -> Capabilities {
        let gates = self.features.gates(&self.payload, &self.profile);
        let (always, registry) = (&self.always_enabled, &self.payload.capabilities);
        let decided = capabilities::effective(&self.spec, before, always, registry, &gates);
        std::mem::replace(&mut self.capabilities, decided)
    }
}

/// What ReleaseProgress records of a capability that an update enabled.
pub fn record(implied: &Implied, now: Timestamp) -> ImpliedCapability {
    ImpliedCapability {
        capability: implied.capability.clone(),
        version: implied.version.clone(),
        file: implied.file.to_string(),
        document: implied.document,
        object: implied.object.to_string(),
        manifests: implied.manifests,
        since: whole_seconds(now),
    }
}

#[cfg(test)]
mod tests;
