//! Catalogs without errors: files `*.fbc.json`, and directories `NAME.d` with the same content as
//! `NAME.fbc.json` for some of its packages.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_content::catalog::CatalogIndex;
use plimsoll_content::diagnostic::Severity;
use plimsoll_source::catalog::load;

use super::{committed, full_data};

fn catalogs(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of catalogs");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("its entries can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "json"));
    paths.sort();
    assert!(!paths.is_empty(), "no catalogs in {}", directory.display());
    paths
}

fn index(path: &Path) -> CatalogIndex {
    let loaded = load(path, &mut |_| {}).expect("a catalog");
    let errors: Vec<String> = loaded
        .defects
        .iter()
        .filter(|defect| defect.severity == Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    loaded.open()
}

#[test]
fn every_package_of_a_catalog_can_be_read() {
    check_packages(&committed("catalogs"));
}

#[test]
fn every_package_of_full_catalogs_can_be_read() {
    let Some([directory]) = full_data(["PLIMSOLL_CATALOGS"]) else { return };
    check_packages(&directory);
}

#[test]
fn yaml_files_and_one_json_file_make_the_same_packages() {
    check_forms(&committed("catalogs"));
}

#[test]
fn yaml_files_and_one_json_file_make_the_same_packages_of_full_catalogs() {
    let Some([directory]) = full_data(["PLIMSOLL_CATALOGS"]) else { return };
    check_forms(&directory);
}

fn check_packages(directory: &Path) {
    for path in catalogs(directory) {
        let index = index(&path);
        let mut bundles = 0;
        for name in index.package_names() {
            let block = index.package(name).expect("it is whole").expect("it is there");
            let package = block.read().expect("it can be read");
            bundles += package.bundles.len() as u64;
            assert!(package.default_bundle().is_some(), "{}: {name}", path.display());
        }
        assert_eq!(bundles, index.counts().bundles, "{}", path.display());
    }
}

fn check_forms(directory: &Path) {
    for path in catalogs(directory) {
        let directory = path.to_string_lossy().replace(".fbc.json", ".d");
        let directory = Path::new(&directory);
        if !directory.is_dir() {
            continue;
        }
        // The directory may hold some of the packages only.
        let (one, other) = (index(&path), index(directory));
        assert!(other.counts().packages > 0, "{}", directory.display());
        for name in other.package_names() {
            // Descriptions may be cut shorter in one of them.
            let read = |index: &CatalogIndex| {
                let block = index.package(name).expect("it is whole").expect("it is there");
                let package = block.read().expect("it can be read");
                let bundle = |it| (it, package.provided(it), package.required(it));
                let mut text = format!("{:?}", package.channels);
                for (bundle, provided, required) in package.bundles.iter().map(bundle) {
                    let (provided, required): (Vec<_>, Vec<_>) =
                        (provided.collect(), required.collect());
                    let (name, version) = (&bundle.name, &bundle.version);
                    text.push_str(&format!("\n{name} {version} {provided:?} {required:?}"));
                }
                text
            };
            assert_eq!(read(&one), read(&other), "{name}");
        }
    }
}
