//! Each test checks the small data set in `tests/golden`, which was written for it, and in a second
//! test the full data that an environment variable names.

mod catalogs;
mod fresh_installs;
mod inclusion;
mod lint;
mod ranges;
mod scenarios;

use std::fs;
use std::path::{Path, PathBuf};

use k8s_testkit::prerequisites::required;
use serde::de::DeserializeOwned;

/// A file or directory of the committed data.
fn committed(name: &str) -> PathBuf {
    std::path::absolute("tests/golden").expect("a working directory").join(name)
}

/// The full data of a test, by the variables that name its files. None, and the test on the list
/// of those that were skipped, when a variable is not set.
fn full_data<const N: usize>(variables: [&str; N]) -> Option<[PathBuf; N]> {
    let mut paths = [const { PathBuf::new() }; N];
    for (path, variable) in paths.iter_mut().zip(variables) {
        *path = required(variable)?.into();
    }
    Some(paths)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> T {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
