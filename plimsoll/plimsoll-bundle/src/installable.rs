//! What keeps a bundle from being installed, whatever namespaces it is installed for.

use plimsoll_content::bundle::BundleFile;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;

use crate::load::load;
use crate::render::{RenderOptions, render};

/// Names of namespaces that an operator may watch besides its own.
const WATCHED: [&str; 3] = ["watched", "watched-too", "watched-besides"];

/// Returns everything that keeps the files of a bundle from being rendered, for namespaces that its
/// install modes allow.
pub fn rendering_defects(files: &[BundleFile]) -> Vec<Diagnostic> {
    let bundle = match load(files) {
        Ok(bundle) => bundle,
        Err(defects) => return defects,
    };
    let own = bundle.suggested_namespace().unwrap_or_else(|| bundle.package.clone());
    let mut others = WATCHED.iter().filter(|it| **it != own).map(|it| (*it).to_owned());
    let other: Vec<String> = others.by_ref().take(1).collect();
    let several: Vec<String> = other.iter().cloned().chain(others.take(1)).collect();
    let mut refused = None;
    for target_namespaces in [Vec::new(), vec![own.clone()], other, several] {
        let options = RenderOptions {
            install_namespace: own.clone(),
            target_namespaces,
            ..RenderOptions::default()
        };
        let Err(defects) = render(&bundle, &options) else { return Vec::new() };
        if defects.iter().any(|it| it.code != DefectCode::TargetNamespaces) {
            return defects;
        }
        refused.get_or_insert(defects);
    }
    refused.unwrap_or_default()
}
