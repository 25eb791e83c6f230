//! The features of a cluster: its feature set and its feature gates, as arguments fix them or as
//! the FeatureGate `cluster` of `config.openshift.io` tells them while the controller runs.
//!
//! The gates of a release are those that the FeatureGate's status lists for its version. While it
//! lists none, as before a new release's operator has looked at it, they are those that the
//! payload's own FeatureGate manifests have for the feature set, and for `CustomNoUpgrade` those of
//! the default set with what was switched by hand.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_content::Payload;
use plimsoll_content::inclusion::{Context, DEFAULT_FEATURE_SET};
use serde_json::Value;

/// Name of the one FeatureGate.
pub const FEATURE_GATE_NAME: &str = "cluster";
/// The feature set whose gates are switched one by one.
const CUSTOM: &str = "CustomNoUpgrade";

/// Which features a cluster has, as far as inclusion depends on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    /// Name of the feature set; never empty.
    pub set: String,
    /// The gates that are enabled, by version of the release.
    enabled: BTreeMap<String, BTreeSet<String>>,
    /// The gates that were switched on and off by hand.
    switched: [BTreeSet<String>; 2],
    /// Whether the set is fixed, whatever the FeatureGate says.
    is_fixed: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self::of_set(DEFAULT_FEATURE_SET)
    }
}

impl Features {
    /// Those of a feature set, as payloads have them.
    pub fn of_set(name: &str) -> Self {
        let name = if name.is_empty() { DEFAULT_FEATURE_SET } else { name };
        Self {
            set: name.to_owned(),
            enabled: BTreeMap::new(),
            switched: Default::default(),
            is_fixed: false,
        }
    }

    /// Those of a feature set that a controller is started with, whatever the FeatureGate says.
    pub fn fixed(name: &str) -> Self {
        Self { is_fixed: true, ..Self::of_set(name) }
    }

    /// The feature set, if a controller is started with it.
    pub fn fixed_set(&self) -> Option<&str> {
        self.is_fixed.then_some(self.set.as_str())
    }

    /// Those that a FeatureGate tells; what cannot be read is left out.
    pub fn of_cluster(feature_gate: &Value) -> Self {
        let spec = &feature_gate["spec"];
        let mut features = Self::of_set(spec["featureSet"].as_str().unwrap_or_default());
        let lists = feature_gate["status"]["featureGates"].as_array();
        for list in lists.into_iter().flatten() {
            let Some(version) = list["version"].as_str() else { continue };
            let gates = list["enabled"].as_array().into_iter().flatten();
            let names = gates.filter_map(|gate| gate["name"].as_str().map(str::to_owned));
            features.enabled.insert(version.to_owned(), names.collect());
        }
        if features.set == CUSTOM {
            features.switched = ["enabled", "disabled"].map(|field| {
                let names = spec["customNoUpgrade"][field].as_array().into_iter().flatten();
                names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
            });
        }
        features
    }

    /// The feature gates that are enabled with a payload.
    pub fn gates(&self, payload: &Payload, profile: &str) -> BTreeSet<String> {
        if let Some(enabled) = self.enabled.get(&payload.release.version) {
            return enabled.clone();
        }
        if self.set != CUSTOM {
            return payload.feature_gates(profile, &self.set);
        }
        let [on, off] = &self.switched;
        let mut gates = payload.feature_gates(profile, DEFAULT_FEATURE_SET);
        gates.extend(on.iter().cloned());
        gates.retain(|gate| !off.contains(gate));
        gates
    }

    /// What decides about inclusion with a payload.
    pub fn context(&self, payload: &Payload, profile: &str) -> Context {
        Context {
            feature_gates: Some(self.gates(payload, profile)),
            ..payload.context(profile, &self.set)
        }
    }

    /// What is other with a payload than it was, for people; `None` if nothing is.
    pub fn change(&self, before: &Self, payload: &Payload, profile: &str) -> Option<String> {
        let (was, is) = (before.gates(payload, profile), self.gates(payload, profile));
        if self.set == before.set && was == is {
            return None;
        }
        let mut parts = vec![if self.set == before.set {
            format!("The feature set is still {}", self.set)
        } else {
            format!("The feature set is {}, it was {}", self.set, before.set)
        }];
        for (what, gates) in [("enabled", is.difference(&was)), ("disabled", was.difference(&is))] {
            let names: Vec<&str> = gates.map(String::as_str).collect();
            if !names.is_empty() {
                parts.push(format!("feature gates now {what}: {}", names.join(", ")));
            }
        }
        Some(parts.join("; "))
    }
}

#[cfg(test)]
mod tests;
