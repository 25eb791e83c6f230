//! The older layout of a package: a package manifest beside a directory for each version
//! (RES-4.6).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::channels::entry;
use super::documents::{csv, package_document};
use super::files::TreeFiles;
use super::metadata::BundleMetadata;
use super::properties::{self, ParsedBundle};
use super::read::{BundleManifest, documents as read_documents, is_document};
use super::{BundleDocument, BundleFile, check};
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// Whether a file is a package manifest, by its name.
pub(super) fn is_package_manifest(path: &str) -> bool {
    [".package.yaml", ".package.yml", ".package.json"].iter().any(|end| path.ends_with(end))
}

/// A package manifest.
#[derive(Debug)]
pub(super) struct PackageManifest<'f> {
    manifest: BundleManifest<'f>,
    name: String,
    /// Names of channels, and of the bundle at the head of each.
    channels: Vec<(String, String)>,
    default_channel: String,
}

impl<'f> PackageManifest<'f> {
    pub(super) fn read(file: &'f BundleFile, defects: &mut Vec<Diagnostic>) -> Option<Self> {
        let manifest = read_documents(file, defects).into_iter().next()?;
        let name = manifest.text("/packageName").to_owned();
        if name.is_empty() {
            let text = "the package manifest has no packageName";
            defects.push(manifest.defect("", DefectCode::NoName, text));
            return None;
        }
        let mut channels = Vec::new();
        for (index, channel) in manifest.list("/channels").iter().enumerate() {
            match (channel["name"].as_str(), channel["currentCSV"].as_str()) {
                (Some(name), Some(current)) => channels.push((name.to_owned(), current.to_owned())),
                _ => {
                    let text = "a channel needs a name and a currentCSV";
                    let field = format!("channels[{index}]");
                    defects.push(manifest.defect(&field, DefectCode::NoName, text));
                }
            }
        }
        let named = manifest.text("/defaultChannel");
        let default_channel = match channels.as_slice() {
            [(only, _)] if named.is_empty() => only.clone(),
            _ => named.to_owned(),
        };
        Some(Self { manifest, name, channels, default_channel })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> &str {
        self.manifest.file.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

/// The documents of a package; `others` are the files of the tree that no bundle directory has.
pub(super) fn documents(
    package: &PackageManifest<'_>,
    others: &[usize],
    tree: &mut TreeFiles<'_>,
    defects: &mut Vec<Diagnostic>,
) -> Vec<BundleDocument> {
    let mut found = Vec::new();
    let bundles = bundles(package, others, tree, &mut found);
    let path = &package.manifest.file.path;
    let mut documents = vec![package_document(&package.name, &package.default_channel, path, 1)];
    for (index, (channel, current)) in package.channels.iter().enumerate() {
        let field = format!("channels[{index}]");
        if !bundles.contains_key(current) {
            let text = format!("channel {channel}: there is no bundle {current}");
            found.push(package.manifest.defect(&field, DefectCode::NoBundle, text));
        }
        documents.push(BundleDocument {
            file: path.clone(),
            line: package.manifest.line(&field),
            value: json!({
                "schema": "olm.channel",
                "package": &package.name,
                "name": channel,
                "entries": entries(current, &bundles),
            }),
        });
    }
    documents.extend(bundles.into_values().map(|bundle| BundleDocument {
        file: bundle.file,
        line: bundle.line,
        value: bundle.document,
    }));
    for mut defect in found {
        defect.package = package.name.clone();
        defects.push(defect);
    }
    documents
}

/// The bundles of a package: each directory below it with a ClusterServiceVersion.
pub(super) fn bundles(
    package: &PackageManifest<'_>,
    others: &[usize],
    tree: &mut TreeFiles<'_>,
    defects: &mut Vec<Diagnostic>,
) -> BTreeMap<String, ParsedBundle> {
    let root = package.directory();
    let mut directories: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for file in others {
        let path = tree.name(*file);
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let below = root.is_empty()
            || directory == root
            || directory.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        if below && is_document(path) && name != "ci.yaml" {
            directories.entry(directory.to_owned()).or_default().push(*file);
        }
    }
    let mut bundles = BTreeMap::new();
    for (directory, files) in directories {
        let mut found = Vec::new();
        let files = tree.load(&files, defects);
        let manifests: Vec<BundleManifest<'_>> =
            files.iter().flat_map(|file| read_documents(file, &mut found)).collect();
        let versions = manifests.iter().filter(|it| it.kind() == "ClusterServiceVersion");
        if versions.count() == 0 {
            continue;
        }
        if let Some(csv) = csv(&directory, &manifests, &mut found) {
            let metadata =
                BundleMetadata { package: package.name.clone(), ..BundleMetadata::default() };
            let bundle = properties::bundle(csv, &manifests, metadata, &mut found);
            check::check(csv, &manifests, &mut found);
            if bundles.contains_key(&bundle.name) {
                let text = format!("there is more than one bundle {}", bundle.name);
                found.push(csv.defect("metadata.name", DefectCode::Duplicate, text));
            } else {
                bundles.insert(bundle.name.clone(), bundle);
            }
        }
        defects.append(&mut found);
    }
    bundles
}

/// The entries of a channel: its head, what that replaces and so on, and what these skip.
fn entries(current: &str, bundles: &BTreeMap<String, ParsedBundle>) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = vec![current];
    while let Some(name) = next.pop() {
        let Some(bundle) = bundles.get(name).filter(|_| seen.insert(name)) else { continue };
        entries.push(entry(bundle, bundle.replaces.as_deref(), bundle.skips.clone()));
        next.extend(bundle.skips.iter().map(String::as_str));
        next.extend(bundle.replaces.as_deref());
    }
    entries
}
