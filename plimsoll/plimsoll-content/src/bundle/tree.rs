//! Which files of a tree belong to which bundle, and which bundles to which package.

use std::collections::{BTreeMap, BTreeSet};

use super::channels::{self, UpdateGraphMode};
use super::documents::csv;
use super::files::TreeFiles;
use super::metadata;
use super::package_manifest::{self, PackageManifest};
use super::properties::{self, ParsedBundle};
use super::read::{BundleManifest, documents, is_document};
use super::{BundleDocument, BundleObjects, ConvertedBundles, check, leave_out_objects};
use crate::catalog::DefectCode;
use crate::diagnostic::{Diagnostic, Severity};

/// Whether files of such names are bundles, and not a file-based catalog.
pub fn is_bundles<'n>(names: impl IntoIterator<Item = &'n str>) -> bool {
    let mut parts: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for name in names {
        if package_manifest::is_package_manifest(name) {
            return true;
        }
        if let Some((directory, part)) = bundle_part(name) {
            let (manifests, metadata) = parts.entry(directory).or_default();
            match part {
                BundlePart::Manifest(_) => *manifests = true,
                BundlePart::Metadata(_) => *metadata = true,
            }
        }
    }
    parts.values().any(|(manifests, metadata)| *manifests && *metadata)
}

/// A file of a bundle, by its name in `manifests/` or `metadata/`.
pub(super) enum BundlePart<'n> {
    Manifest(&'n str),
    Metadata(&'n str),
}

/// The bundle directory that a file lies in, empty or with a slash at its end, and its part there.
pub(super) fn bundle_part(name: &str) -> Option<(&str, BundlePart<'_>)> {
    let mut found = None;
    for (part, is_manifest) in [("manifests/", true), ("metadata/", false)] {
        let at = if name.starts_with(part) {
            Some(0)
        } else {
            name.find(&format!("/{part}")).map(|at| at + 1)
        };
        if let Some(at) = at
            && found.as_ref().is_none_or(|(known, _)| at < *known)
        {
            let rest = &name[at + part.len()..];
            let part =
                if is_manifest { BundlePart::Manifest(rest) } else { BundlePart::Metadata(rest) };
            found = Some((at, part));
        }
    }
    found.map(|(at, part)| (&name[..at], part))
}

/// The files of a bundle directory, by their numbers.
#[derive(Default)]
pub(super) struct BundleFiles {
    pub(super) manifests: Vec<usize>,
    pub(super) metadata: Vec<usize>,
}

/// What is known of a package.
#[derive(Default)]
struct Members {
    bundles: Vec<ParsedBundle>,
    mode: UpdateGraphMode,
    /// There is one bundle, and it is all that was read.
    is_alone: bool,
}

pub(super) fn convert(
    names: &[&str],
    objects: BundleObjects,
    read: &mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
) -> ConvertedBundles {
    let mut tree = TreeFiles::new(names, read);
    let mut package_manifests = Vec::new();
    let (mut others, mut modes, mut deprecations) = (Vec::new(), Vec::new(), Vec::new());
    let mut converted = ConvertedBundles::default();
    let defects = &mut converted.defects;
    for (file, name) in names.iter().enumerate() {
        if bundle_part(name).is_some() {
            continue;
        }
        if package_manifest::is_package_manifest(name) {
            package_manifests.push(file);
        } else if name.ends_with("ci.yaml") {
            modes.push(file);
        } else if is_deprecations(name) {
            deprecations.push(file);
        } else {
            others.push(file);
        }
    }
    let modes = tree.load(&modes, defects);
    let package_manifests = tree.load(&package_manifests, defects);
    let directories = bundle_directories(names, defects);
    let mut packages: BTreeMap<String, Members> = BTreeMap::new();
    for (directory, files) in directories {
        if let Some(mut bundle) = bundle(directory, &files, &mut tree, defects) {
            let mode = channels::mode(directory, &modes, defects);
            if objects == BundleObjects::LeftOut {
                leave_out_objects(&mut bundle.document);
            }
            let members = packages.entry(bundle.package.clone()).or_default();
            members.mode = mode;
            members.is_alone = directory.is_empty();
            members.bundles.push(bundle);
        }
    }
    for (name, members) in packages {
        let Members { bundles, mode, is_alone } = members;
        let documents = channels::documents(&name, bundles, mode, is_alone, defects);
        converted.documents.extend(documents);
    }
    for file in &package_manifests {
        let Some(manifest) = PackageManifest::read(file, defects) else { continue };
        let mut documents = package_manifest::documents(&manifest, &others, &mut tree, defects);
        if objects == BundleObjects::LeftOut {
            documents.iter_mut().for_each(|document| leave_out_objects(&mut document.value));
        }
        converted.documents.extend(documents);
    }
    for file in tree.load(&deprecations, defects) {
        let mut found = Vec::new();
        for document in documents(&file, &mut found) {
            if document.text("/schema") == "olm.deprecations" {
                let (file, line) = (file.path.clone(), document.line(""));
                converted.documents.push(BundleDocument { file, line, value: document.value });
            } else {
                let text = "not a document of schema olm.deprecations: it is ignored";
                found.push(document.defect("", DefectCode::BundleAdvice, text));
            }
        }
        defects.extend(found);
    }
    converted.defects.sort();
    converted.defects.dedup();
    converted
}

/// Whether a file beside bundle directories says what is deprecated: a bundle directory has no
/// place for that.
pub(super) fn is_deprecations(name: &str) -> bool {
    let file = name.rsplit_once('/').map_or(name, |(_, file)| file);
    file == "deprecations.yaml" || file == "deprecations.json"
}

/// Bundle directories inside of others are not bundles of their own: mostly they are what the outer
/// one was made of.
fn leave_out_nested(
    directories: &mut BTreeMap<&str, BundleFiles>,
    names: &[&str],
    defects: &mut Vec<Diagnostic>,
) {
    let is_whole = |files: &BundleFiles| !files.manifests.is_empty() && !files.metadata.is_empty();
    let whole = directories.iter().filter(|(_, files)| is_whole(files));
    let whole: BTreeSet<&str> = whole.map(|(directory, _)| *directory).collect();
    directories.retain(|directory, files| {
        let inside =
            |outer: &&&str| directory.len() > outer.len() && directory.starts_with(**outer);
        let Some(outer) = whole.iter().find(inside) else { return true };
        let all = files.manifests.iter().chain(&files.metadata);
        if let Some(first) = all.map(|file| names[*file]).min() {
            let outer = if outer.is_empty() { "." } else { outer.trim_end_matches('/') };
            let text = format!("a bundle inside the bundle `{outer}` is ignored");
            defects.push(DefectCode::BundleAdvice.diagnostic(first, text));
        }
        false
    });
}

/// The bundle directories among files of such names.
pub(super) fn bundle_directories<'n>(
    names: &[&'n str],
    defects: &mut Vec<Diagnostic>,
) -> BTreeMap<&'n str, BundleFiles> {
    let mut directories: BTreeMap<&str, BundleFiles> = BTreeMap::new();
    for (file, name) in names.iter().enumerate() {
        let Some((directory, part)) = bundle_part(name) else { continue };
        let (BundlePart::Manifest(name) | BundlePart::Metadata(name)) = part;
        let bundle = directories.entry(directory).or_default();
        match part {
            _ if name.starts_with('.') => {}
            _ if name.contains('/') => {
                let text = "a directory inside a bundle's directories is ignored";
                defects.push(DefectCode::BundleAdvice.diagnostic(names[file], text));
            }
            BundlePart::Manifest(_) => bundle.manifests.push(file),
            BundlePart::Metadata(_) => bundle.metadata.push(file),
        }
    }
    leave_out_nested(&mut directories, names, defects);
    directories
}

/// Reads a bundle directory; `None` when there is no bundle in it that could be used.
pub(super) fn bundle(
    directory: &str,
    files: &BundleFiles,
    tree: &mut TreeFiles<'_>,
    defects: &mut Vec<Diagnostic>,
) -> Option<ParsedBundle> {
    let mut found = Vec::new();
    let likely = |numbers: &[usize], tree: &TreeFiles<'_>| -> Vec<usize> {
        numbers.iter().copied().filter(|number| is_document(tree.name(*number))).collect()
    };
    let manifest_files = tree.load(&likely(&files.manifests, tree), &mut found);
    let manifests: Vec<BundleManifest<'_>> =
        manifest_files.iter().flat_map(|file| documents(file, &mut found)).collect();
    let metadata_files = tree.load(&likely(&files.metadata, tree), &mut found);
    let metadata_documents: Vec<BundleManifest<'_>> =
        metadata_files.iter().flat_map(|file| documents(file, &mut found)).collect();
    let metadata = metadata::read(directory, &metadata_documents, &mut found);
    let bundle = csv(directory, &manifests, &mut found).zip(metadata).map(|(csv, metadata)| {
        let bundle = properties::bundle(csv, &manifests, metadata, &mut found);
        (csv, bundle)
    });
    // A bundle whose dependencies are not all known must not be installed without them.
    let is_usable = !found.iter().any(|defect| {
        defect.severity == Severity::Error && defect.code != DefectCode::BundleAnnotation
    });
    if let Some((csv, _)) = &bundle {
        check::check(csv, &manifests, &mut found);
    }
    let bundle = bundle.map(|(_, bundle)| bundle);
    let package = bundle.as_ref().map(|bundle| bundle.package.clone()).unwrap_or_default();
    for mut defect in found {
        defect.package = package.clone();
        defects.push(defect);
    }
    bundle.filter(|_| is_usable)
}
