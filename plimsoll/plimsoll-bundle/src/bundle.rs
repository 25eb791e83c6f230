//! A bundle as a value.

use plimsoll_api::ObjectKey;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use serde_json::Value;

use crate::csv::ClusterServiceVersion;

/// What the files of a bundle directory say.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The package that it is a version of; empty if the metadata does not say.
    pub package: String,
    /// What it installs.
    pub content: BundleContent,
    /// Further properties, as a file-based catalog has them: those of the ClusterServiceVersion,
    /// then dependencies, then those of the metadata.
    pub properties: Vec<Value>,
}

impl Bundle {
    /// The namespace that it suggests to be installed into, by name or by a template; absent if it
    /// does not.
    pub fn suggested_namespace(&self) -> Option<String> {
        let BundleContent::Registry(content) = &self.content else { return None };
        content.csv.suggested_namespace()
    }
}

/// What a bundle installs, by its media type.
#[derive(Debug, Clone)]
pub enum BundleContent {
    /// `registry+v1`: a ClusterServiceVersion says how.
    Registry(Box<RegistryContent>),
    /// `plain+v0`: objects that are applied as they are.
    Plain(Vec<BundleObject>),
}

/// The content of a registry+v1 bundle.
#[derive(Debug, Clone)]
pub struct RegistryContent {
    /// How the operator is deployed.
    pub csv: ClusterServiceVersion,
    /// The CustomResourceDefinitions, in the form that Go gives them.
    pub definitions: Vec<BundleObject>,
    /// Everything else, as it was written.
    pub others: Vec<BundleObject>,
}

/// An object of a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleObject {
    /// The file that it stands in, relative to the bundle.
    pub file: String,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The object.
    pub value: Value,
}

impl BundleObject {
    /// Its kind.
    pub fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    /// Its name; empty if it has none.
    pub fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn defect(&self, code: DefectCode, message: impl Into<String>) -> Diagnostic {
        code.diagnostic(&self.file, message).at_line(self.line)
    }
}

/// What identifies an object of a bundle.
pub fn object_key(object: &Value) -> ObjectKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    ObjectKey {
        group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: text(&object["kind"]),
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]),
    }
}

/// Sorts defects, and says whose they are.
pub(crate) fn finished(mut defects: Vec<Diagnostic>, package: &str) -> Vec<Diagnostic> {
    for defect in &mut defects {
        package.clone_into(&mut defect.package);
        defect.shorten();
    }
    defects.sort();
    defects.dedup();
    defects
}
