//! The objects that bundles are installed as when nothing is configured.

use std::path::Path;

use anyhow::{Context as _, ensure};
use plimsoll_api::olm::{CatalogSource, CatalogSourceType};
use plimsoll_bundle::{Bundle, CertificateProvider, InstallRequest, load, revision_objects};
use plimsoll_content::bundle::BundleFile;
use plimsoll_source::catalog::{bundle_content, open_source};
use serde_json::Value;

use super::render::{CANNOT_BE_RENDERED, read_bundle, refusal};
use crate::arguments::name::hint;

/// The objects of the bundle in a directory.
///
/// # Errors
///
/// When the directory cannot be read, or the bundle cannot be rendered; the text lists why not.
pub(crate) fn of_directory(path: &Path) -> Result<Vec<Value>, anyhow::Error> {
    objects(&read_bundle(path)?, path)
}

/// The objects of each bundle of a package of a catalog.
///
/// # Errors
///
/// When the catalog cannot be read or has no such package, or one of its bundles cannot be rendered.
pub(crate) fn of_package(catalog: &Path, package: &str) -> Result<Vec<Vec<Value>>, anyhow::Error> {
    let context = || format!("failed to read catalog `{}`", catalog.display());
    let source = CatalogSource {
        type_: CatalogSourceType::Directory,
        path: catalog.to_string_lossy().into_owned(),
        reference: String::new(),
    };
    let index = open_source(&source, None).with_context(context)?.index;
    let block = index.package(package).with_context(context)?;
    let Some(block) = block else {
        let names: Vec<&str> = index.package_names().collect();
        let hint = hint(package, names.into_iter());
        anyhow::bail!("catalog `{}` has no package `{package}`{hint}", catalog.display());
    };
    let indexed = block.read().with_context(context)?;
    let names: Vec<&str> = indexed.bundles.iter().map(|it| &*it.name).collect();
    ensure!(!names.is_empty(), "package `{package}` of `{}` has no bundles", catalog.display());
    let rendered = |name: &str| {
        let content = bundle_content(&source, package, name)?;
        of_files(&content.files, Path::new(name))
    };
    names.into_iter().map(rendered).collect()
}

fn of_files(files: &[BundleFile], path: &Path) -> Result<Vec<Value>, anyhow::Error> {
    let bundle = load(files).map_err(|defects| refusal(path, CANNOT_BE_RENDERED, &defects))?;
    objects(&bundle, path)
}

fn objects(bundle: &Bundle, path: &Path) -> Result<Vec<Value>, anyhow::Error> {
    let request = InstallRequest {
        operator: &bundle.package,
        namespace: "",
        config: None,
        certificates: CertificateProvider::BuiltIn,
    };
    let rendered = revision_objects(bundle, &request);
    Ok(rendered.map_err(|defects| refusal(path, CANNOT_BE_RENDERED, &defects))?.objects)
}
