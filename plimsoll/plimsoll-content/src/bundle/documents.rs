//! What the conversions of both layouts share: the documents they make and the defects they report.

use serde_json::json;

use super::BundleDocument;
use super::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// The one ClusterServiceVersion among the manifests of a bundle.
pub(super) fn csv<'m, 'f>(
    directory: &str,
    manifests: &'m [BundleManifest<'f>],
    defects: &mut Vec<Diagnostic>,
) -> Option<&'m BundleManifest<'f>> {
    let mut all = manifests.iter().filter(|it| it.kind() == "ClusterServiceVersion");
    let Some(csv) = all.next() else {
        let file = format!("{directory}manifests");
        defects.push(DefectCode::BundleFile.diagnostic(file, "no ClusterServiceVersion"));
        return None;
    };
    for other in all {
        let text = "a second ClusterServiceVersion: a bundle has exactly one";
        defects.push(other.defect("", DefectCode::BundleFile, text));
    }
    if csv.name().is_empty() {
        let text = "the ClusterServiceVersion has no name";
        defects.push(csv.defect("metadata", DefectCode::BundleFile, text));
        return None;
    }
    Some(csv)
}

/// The document of a package.
pub(super) fn package_document(
    name: &str,
    default_channel: &str,
    file: &str,
    line: usize,
) -> BundleDocument {
    let value = json!({
        "schema": "olm.package",
        "name": name,
        "defaultChannel": default_channel,
    });
    BundleDocument { file: file.to_owned(), line, value }
}
