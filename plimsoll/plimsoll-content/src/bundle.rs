//! ParsedBundle directories (registry+v1), package manifests, and trees of them, as documents of a
//! file-based catalog (RES-4).
//!
//! A bundle directory holds `manifests/` (one ClusterServiceVersion, its definitions, other
//! objects) and `metadata/` (annotations, dependencies, properties; told apart by what is in them,
//! not by their names). A package directory of the older layout holds a package manifest and a
//! directory for each version. Whatever the form of a dependency, it becomes the same property.

mod channels;
mod check;
mod documents;
mod files;
mod find;
mod metadata;
mod package_manifest;
mod properties;
mod read;
mod suites;
mod tree;

use serde_json::Value;

use crate::catalog::{CatalogLoader, DefectCode};
use crate::diagnostic::Diagnostic;

pub use check::KINDS;
pub use find::{carried_files, find};
pub use metadata::{BundleMetadata, read as read_metadata};
pub use read::{BundleManifest, documents};
pub use suites::{BundleSuite, check_suites};
pub use tree::is_bundles;

/// A file of a tree of bundles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFile {
    /// Relative to the tree, with slashes.
    pub path: String,
    /// What it contains.
    pub bytes: Vec<u8>,
}

/// A document that was made of a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleDocument {
    /// The file that it was mainly made of.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The document: `olm.package`, `olm.channel`, `olm.bundle` or `olm.deprecations`.
    pub value: Value,
}

/// A tree of bundles as a file-based catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertedBundles {
    /// Packages with their channels and bundles, by name.
    pub documents: Vec<BundleDocument>,
    /// What is wrong with the files. What the catalog made of them says comes on top: see
    /// [`ConvertedBundles::all_defects`].
    pub defects: Vec<Diagnostic>,
}

impl ConvertedBundles {
    /// Puts the documents and the defects into a catalog.
    pub fn load_into(&self, loader: &mut CatalogLoader) {
        loader.report(self.defects.iter().cloned());
        for document in &self.documents {
            let mut value = document.value.clone();
            leave_out_objects(&mut value);
            loader.read_document(&document.file, document.line, &value.to_string());
        }
    }

    /// Everything that is wrong with the files, and with the catalog that was made of them.
    pub fn all_defects(&self) -> Vec<Diagnostic> {
        let mut loader = CatalogLoader::new();
        self.load_into(&mut loader);
        loader.finish().defects
    }
}

/// The defect of a file that cannot be read.
pub fn unreadable(file: &str, message: &str) -> Diagnostic {
    DefectCode::Syntax.diagnostic(file, message)
}

/// What is kept of the manifests of bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleObjects {
    /// Everything, as `olm.bundle.object`, and all that a ClusterServiceVersion says of itself.
    Kept,
    /// What an index is made of.
    LeftOut,
}

/// Turns the files of a tree into documents as [`convert`] does, reading those of one bundle at a
/// time: `read` gives the content of the numbered file, or says why it cannot be read.
pub fn convert_tree(
    names: &[&str],
    objects: BundleObjects,
    read: &mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
) -> ConvertedBundles {
    tree::convert(names, objects, read)
}

/// Turns the files of a bundle directory, of a package directory, or of a directory of packages
/// into documents of a file-based catalog.
///
/// A defective bundle is left out and named among the defects; it does not hide the others.
pub fn convert(files: &[BundleFile]) -> ConvertedBundles {
    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    tree::convert(&names, BundleObjects::Kept, &mut |number| Ok(files[number].bytes.clone()))
}

/// Fields of `olm.csv.metadata` that an index is made of.
const INDEXED_FIELDS: &[&str] = &[
    "annotations",
    "displayName",
    "installModes",
    "labels",
    "minKubeVersion",
    "nativeAPIs",
    "provider",
];
/// And annotations among them.
const INDEXED_ANNOTATIONS: &[&str] = &["description", "capability.openshift.io/name"];

/// Objects are of no use to an index; that there are some is.
fn leave_out_objects(value: &mut Value) {
    let properties = value.get_mut("properties").and_then(Value::as_array_mut);
    for property in properties.into_iter().flatten() {
        if property["type"] == "olm.bundle.object" {
            property["value"]["data"] = Value::String(String::new());
        } else if property["type"] == "olm.csv.metadata"
            && let Some(metadata) = property["value"].as_object_mut()
        {
            metadata.retain(|name, _| INDEXED_FIELDS.contains(&name.as_str()));
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.retain(|name, _| INDEXED_ANNOTATIONS.contains(&name.as_str()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
