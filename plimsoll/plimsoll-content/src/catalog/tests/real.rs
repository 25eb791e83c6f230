//! Real catalogs, if `PLIMSOLL_CATALOGS` names a directory of them: files `*.json`, and
//! directories `NAME.d` that say the same as `NAME.fbc.json` of some of its packages.
//!
//! The tests read files, which the crate itself never does.

#![expect(
    clippy::disallowed_methods,
    reason = "what is tested lies in files that only the environment can name"
)]

use std::path::{Path, PathBuf};

use crate::catalog::{Index, Loader};
use crate::finding::Severity;

fn catalogs() -> Vec<PathBuf> {
    let Some(directory) = std::env::var_os("PLIMSOLL_CATALOGS") else { return Vec::new() };
    let entries = std::fs::read_dir(directory).expect("PLIMSOLL_CATALOGS is a directory");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("its entries can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "json"));
    paths.sort();
    paths
}

fn read(loader: &mut Loader, path: &Path) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("a directory of a catalog");
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.expect("its entries can be read").path()).collect();
        paths.sort();
        paths.iter().for_each(|path| read(loader, path));
    } else {
        let bytes = std::fs::read(path).expect("a file of a catalog");
        loader.read_file(&path.to_string_lossy(), &bytes);
    }
}

fn index(path: &Path) -> Index {
    let mut loader = Loader::new();
    read(&mut loader, path);
    let loaded = loader.finish();
    let errors: Vec<String> = loaded
        .defects
        .iter()
        .filter(|defect| defect.severity() == Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    loaded.open()
}

#[test]
fn oracle_real_catalogs_have_no_errors_and_every_package_can_be_asked_for() {
    for path in catalogs() {
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

#[test]
fn oracle_yaml_files_and_one_json_file_make_the_same_packages() {
    for path in catalogs() {
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
            let read = |index: &Index| {
                let block = index.package(name).expect("it is whole").expect("it is there");
                let package = block.read().expect("it can be read");
                let bundle = |it| (it, package.provided(it), package.required(it));
                let mut told = format!("{:?}", package.channels);
                for (bundle, provided, required) in package.bundles.iter().map(bundle) {
                    let (provided, required): (Vec<_>, Vec<_>) =
                        (provided.collect(), required.collect());
                    let (name, version) = (&bundle.name, &bundle.version);
                    told.push_str(&format!("\n{name} {version} {provided:?} {required:?}"));
                }
                told
            };
            assert_eq!(read(&one), read(&other), "{name}");
        }
    }
}
