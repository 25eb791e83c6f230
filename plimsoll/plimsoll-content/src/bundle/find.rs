//! The files of one bundle, by its package and its name.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::BundleFile;
use super::files::TreeFiles;
use super::package_manifest::{self, PackageManifest};
use super::read::is_document;
use super::tree::{self, BundlePart};
use crate::catalog::CatalogBundle;
use crate::yaml;

/// The files of a bundle of a tree, by their paths in the bundle; absent if the tree has no such
/// bundle. Only the files of the package's bundles are read: `read` gives the content of the
/// numbered one, or says why it cannot be read.
///
/// # Errors
/// What `read` answers for a file that may belong to the bundle, with its path.
pub fn find(
    names: &[&str],
    package: &str,
    bundle: &str,
    read: &mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
) -> Result<Option<Vec<BundleFile>>, String> {
    let mut failure = None;
    let mut read = |number: usize| {
        let result = read(number);
        if let Err(error) = &result {
            failure.get_or_insert_with(|| format!("{}: {error}", names[number]));
        }
        result
    };
    let mut tree = TreeFiles::new(names, &mut read);
    let found = in_directories(names, package, bundle, &mut tree);
    let found = found.or_else(|| in_package_manifests(names, package, bundle, &mut tree));
    match failure {
        Some(failure) => Err(failure),
        None => Ok(found),
    }
}

/// In the directories with `manifests` and `metadata`.
fn in_directories(
    names: &[&str],
    package: &str,
    bundle: &str,
    tree: &mut TreeFiles<'_>,
) -> Option<Vec<BundleFile>> {
    for (directory, files) in tree::bundle_directories(names, &mut Vec::new()) {
        // Metadata is small, and says to which package the bundle belongs.
        let metadata = tree.load(&files.metadata, &mut Vec::new());
        if !metadata.iter().any(|file| contains(&file.bytes, package)) {
            continue;
        }
        let parsed = tree::bundle(directory, &files, tree, &mut Vec::new());
        if parsed.is_none_or(|it| it.package != package || it.name != bundle) {
            continue;
        }
        let own: Vec<usize> = (0..names.len())
            .filter(|number| {
                tree::bundle_part(names[*number]).is_some_and(|(of, part)| {
                    let (BundlePart::Manifest(name) | BundlePart::Metadata(name)) = part;
                    of == directory && !name.starts_with('.')
                })
            })
            .collect();
        let mut files = tree.load(&own, &mut Vec::new());
        for file in &mut files {
            file.path.drain(..directory.len());
        }
        return Some(files);
    }
    None
}

/// In the directories of the older layout, which have no metadata of their own.
fn in_package_manifests(
    names: &[&str],
    package: &str,
    bundle: &str,
    tree: &mut TreeFiles<'_>,
) -> Option<Vec<BundleFile>> {
    let numbers = |is_meant: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..names.len()).filter(|number| is_meant(names[*number])).collect()
    };
    let others = numbers(&|name| {
        tree::bundle_part(name).is_none()
            && !package_manifest::is_package_manifest(name)
            && !tree::is_deprecations(name)
    });
    let manifests = numbers(&|name| {
        tree::bundle_part(name).is_none() && package_manifest::is_package_manifest(name)
    });
    let manifests = tree.load(&manifests, &mut Vec::new());
    for file in manifests.iter().filter(|file| contains(&file.bytes, package)) {
        let Some(manifest) = PackageManifest::read(file, &mut Vec::new()) else { continue };
        if manifest.name() != package {
            continue;
        }
        let bundles = package_manifest::bundles(&manifest, &others, tree, &mut Vec::new());
        let Some(parsed) = bundles.get(bundle) else { continue };
        let directory = parsed.file.rsplit_once('/').map_or("", |(directory, _)| directory);
        let own = numbers(&|name| {
            let (of, file) = name.rsplit_once('/').unwrap_or(("", name));
            of == directory && is_document(name) && file != "ci.yaml"
        });
        let own: Vec<usize> = own.into_iter().filter(|number| others.contains(number)).collect();
        let mut files = tree.load(&own, &mut Vec::new());
        for file in &mut files {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            file.path = format!("manifests/{name}");
        }
        files.push(annotations(package));
        return Some(files);
    }
    None
}

fn contains(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

/// The files of a bundle that a file-based catalog carries, as its directory would have them.
pub fn carried_files(package: &str, bundle: &CatalogBundle) -> Vec<BundleFile> {
    let mut annotated = String::new();
    let mut files: Vec<BundleFile> = Vec::with_capacity(bundle.objects.len() + 2);
    for (number, bytes) in bundle.objects.iter().enumerate() {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let value: Value = yaml::read(text).unwrap_or_default();
        let kind = value["kind"].as_str().unwrap_or_default().to_lowercase();
        let is_word = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if kind == "clusterserviceversion" {
            let annotation = &value["metadata"]["annotations"]["olm.properties"];
            annotation.as_str().unwrap_or_default().clone_into(&mut annotated);
        }
        let kind = if is_word { kind.as_str() } else { "object" };
        let path = format!("manifests/{:04}-{kind}.yaml", number + 1);
        files.push(BundleFile { path, bytes: bytes.clone() });
    }
    files.push(annotations(package));
    // What the ClusterServiceVersion says of itself would otherwise be there twice.
    let own: Vec<Value> = serde_json::from_str(&annotated).unwrap_or_default();
    let properties: Vec<Value> = bundle
        .properties
        .iter()
        .filter_map(|(kind, value)| {
            let value: Value = serde_json::from_str(value).ok()?;
            Some(json!({ "type": kind, "value": value }))
        })
        .filter(|property| !own.contains(property))
        .collect();
    if !properties.is_empty() {
        let text = json!({ "properties": properties }).to_string();
        files.push(BundleFile { path: "metadata/properties.yaml".into(), bytes: text.into() });
    }
    files
}

/// The annotations of a bundle of which no more is known than its package.
fn annotations(package: &str) -> BundleFile {
    const PREFIX: &str = "operators.operatorframework.io.bundle.";
    let given = [
        ("manifests.v1", "manifests/"),
        ("mediatype.v1", "registry+v1"),
        ("metadata.v1", "metadata/"),
        ("package.v1", package),
    ];
    let annotations: BTreeMap<String, &str> =
        given.iter().map(|(name, value)| (format!("{PREFIX}{name}"), *value)).collect();
    let text = json!({ "annotations": annotations }).to_string();
    BundleFile { path: "metadata/annotations.yaml".into(), bytes: text.into() }
}
