//! The feature gates that a payload enables: its FeatureGate manifests say so for each profile and
//! feature set.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Payload;
use crate::Manifest;
use crate::inclusion::{
    Context, DEFAULT_FEATURE_SET, DEFAULT_PROFILE, FEATURE_SET, INCLUDE_PREFIX, is_for_any_profile,
};

impl Payload {
    /// What decides about inclusion in a cluster of a profile and feature set, as far as the
    /// payload tells: its feature gates, its major version and its kinds without namespaces.
    pub fn context(&self, profile: &str, feature_set: &str) -> Context {
        Context {
            feature_gates: Some(self.feature_gates(profile, feature_set)),
            major_version: self.major_version(),
            cluster_kinds: self.cluster_kinds(),
            ..Context::new(profile, feature_set)
        }
    }

    /// The feature gates that the payload's FeatureGate manifests enable for a profile and feature
    /// set. A profile that none of them names has the gates of the default profile.
    pub fn feature_gates(&self, profile: &str, feature_set: &str) -> BTreeSet<String> {
        let feature_set = if feature_set.is_empty() { DEFAULT_FEATURE_SET } else { feature_set };
        let for_profile = |profile: &str| -> Vec<&Manifest> {
            let include = format!("{INCLUDE_PREFIX}{profile}");
            let is_for = |manifest: &&Manifest| {
                let sets = manifest.annotations.get(FEATURE_SET);
                is_feature_gate(manifest)
                    && (manifest.annotations.contains_key(&include) || is_for_any_profile(manifest))
                    && sets.is_some_and(|sets| sets.split(',').any(|set| set == feature_set))
            };
            self.manifests.iter().filter(is_for).collect()
        };
        let mut manifests = for_profile(profile);
        if manifests.is_empty() {
            manifests = for_profile(DEFAULT_PROFILE);
        }
        manifests.into_iter().flat_map(|manifest| self.enabled_gates(&manifest.object())).collect()
    }

    fn enabled_gates(&self, feature_gate: &Value) -> BTreeSet<String> {
        let lists = feature_gate.pointer("/status/featureGates").and_then(Value::as_array);
        let is_of_release = |list: &&Value| {
            let version = list["version"].as_str().unwrap_or_default();
            version.is_empty() || version == self.release.version
        };
        let enabled = |list: &Value| list["enabled"].as_array().cloned().unwrap_or_default();
        let gates = lists.into_iter().flatten().filter(is_of_release).flat_map(enabled);
        gates.filter_map(|gate| gate["name"].as_str().map(str::to_owned)).collect()
    }
}

fn is_feature_gate(manifest: &Manifest) -> bool {
    manifest.key.group == "config.openshift.io" && manifest.key.kind == "FeatureGate"
}
