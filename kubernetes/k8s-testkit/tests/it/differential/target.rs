//! What a sequence of requests is sent to: a kind, its paths and its shape.
use serde_json::Value;

use super::shape::Shape;

/// A kind.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
    /// The versions that it is written in.
    pub(super) versions: Vec<Version>,
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
    /// The definition, of a custom kind.
    pub(super) definition: Option<Value>,
}

/// A version of a kind.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) api_version: String,
    pub(super) shape: Shape,
}

impl Version {
    pub(super) fn new(group: &str, name: &str, shape: Shape) -> Self {
        let api_version =
            if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
        Self { name: name.to_owned(), api_version, shape }
    }
}

impl Target {
    /// Where the objects of a version are.
    pub(super) fn collection(&self, version: usize) -> String {
        let api_version = &self.versions[version].api_version;
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let namespace = if self.namespaced { "namespaces/default/" } else { "" };
        format!("/{root}/{api_version}/{namespace}{}", self.plural)
    }
}
