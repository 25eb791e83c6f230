//! The content of a revision, made from the bundle that was chosen.

use plimsoll_api::olm::{BundleProperty, BundleReference, CatalogSource, OperatorSpec};
use plimsoll_bundle::{InstallRequest, load, revision_objects};
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_operators::reconciler::RevisionContent;
use plimsoll_resolve::Property;
use plimsoll_source::catalog::{CatalogRoots, bundle_content};

use crate::write::chain;

/// The number of defects that a message names.
const DEFECTS_NAMED: usize = 5;

/// Reads a bundle below `roots` and renders its objects. Blocks the thread.
///
/// # Errors
///
/// When the bundle cannot be read or installed; the text says why.
pub(super) fn read(
    operator: &str,
    bundle: &BundleReference,
    source: &CatalogSource,
    roots: &CatalogRoots,
    spec: &OperatorSpec,
    properties: Vec<Property>,
) -> Result<RevisionContent, String> {
    let source = roots.resolve(source).map_err(|error| chain(&error))?;
    let files = bundle_content(&source, operator, &bundle.name).map_err(|error| chain(&error))?;
    let loaded = load(&files).map_err(|defects| named(&defects))?;
    let request = InstallRequest {
        operator,
        namespace: &spec.namespace,
        config: spec.config.as_ref(),
        certificates: spec.certificates,
    };
    let installed = revision_objects(&loaded, &request).map_err(|defects| named(&defects))?;
    let property = |it: Property| BundleProperty { type_: it.kind, value: it.value };
    Ok(RevisionContent {
        bundle: bundle.clone(),
        properties: properties.into_iter().map(property).collect(),
        namespace: installed.namespace,
        config: spec.config.clone(),
        certificates: spec.certificates,
        objects: installed.objects,
    })
}

/// Returns the first defects as sentences.
fn named(defects: &[Diagnostic]) -> String {
    let first: Vec<String> =
        defects.iter().take(DEFECTS_NAMED).map(Diagnostic::to_string).collect();
    match defects.len().saturating_sub(DEFECTS_NAMED) {
        0 => first.join("; "),
        more => format!("{}; and {more} more", first.join("; ")),
    }
}
