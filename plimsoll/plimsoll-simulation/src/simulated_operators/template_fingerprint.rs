//! Fingerprints of pod templates: they tell which release a live workload was applied from.
//!
//! A server adds fields and normalizes values, injectors append: so two pod templates are not
//! compared as they are. A fingerprint is what a release changes in practice: labels and
//! annotations of the template, and image, command, arguments and literal environment of each container.

use std::collections::BTreeMap;

use serde_json::Value;

/// The fields of a pod template that releases change, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TemplateFingerprint(BTreeMap<String, String>);

impl TemplateFingerprint {
    /// Reads the fingerprint of a workload.
    pub(super) fn of(workload: &Value) -> Self {
        let mut fingerprint = Self::default();
        let template = &workload["spec"]["template"];
        for field in ["labels", "annotations"] {
            fingerprint.insert_entries(field, &template["metadata"][field]);
        }
        for field in ["initContainers", "containers"] {
            for container in template["spec"][field].as_array().into_iter().flatten() {
                fingerprint.insert_container(field, container);
            }
        }
        fingerprint
    }

    /// Returns whether a live workload with the fingerprint `live` may have been applied from a manifest
    /// with this one: all that the manifest says is there.
    pub(super) fn matches(&self, live: &Self) -> bool {
        self.0.iter().all(|(place, value)| live.0.get(place) == Some(value))
    }

    fn insert_entries(&mut self, prefix: &str, entries: &Value) {
        for (key, value) in entries.as_object().into_iter().flatten() {
            if let Some(value) = value.as_str() {
                self.0.insert(format!("{prefix}/{key}"), value.to_owned());
            }
        }
    }

    fn insert_container(&mut self, field: &str, container: &Value) {
        let prefix = format!("{field}/{}", container["name"].as_str().unwrap_or_default());
        for part in ["image", "command", "args"] {
            if !container[part].is_null() {
                self.0.insert(format!("{prefix}/{part}"), container[part].to_string());
            }
        }
        for variable in container["env"].as_array().into_iter().flatten() {
            if let (Some(name), Some(value)) =
                (variable["name"].as_str(), variable["value"].as_str())
            {
                self.0.insert(format!("{prefix}/env/{name}"), value.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests;
