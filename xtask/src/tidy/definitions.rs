//! The CustomResourceDefinitions are those that the types make.

use anyhow::Result;

use super::{Finding, Tree};
use crate::codegen::crds;

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (name, text) in crds::generate(|path| Ok(tree.text(path).to_owned()))? {
        let path = format!("{}/{name}", crds::FOLDER);
        if tree.text(&path) != text {
            findings.push(Finding::new(path, "differs: run `cargo xtask codegen crds`"));
        }
    }
    Ok(findings)
}
