//! The content of a revision, made from the bundle that was chosen.

use plimsoll_api::olm::{BundleProperty, BundleReference, CatalogSource, OperatorSpec};
use plimsoll_bundle::{InstallRequest, load, revision_objects};
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_operators::ready_when::annotate;
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
pub(crate) fn read(
    operator: &str,
    bundle: &BundleReference,
    source: &CatalogSource,
    roots: &CatalogRoots,
    spec: &OperatorSpec,
    properties: Vec<Property>,
) -> Result<RevisionContent, String> {
    let source = roots.resolve(source).map_err(|error| chain(&error))?;
    render(operator, bundle, &source, spec, properties)
}

/// Reads a bundle of a catalog, wherever that is, and renders its objects. Blocks the thread.
///
/// # Errors
///
/// When the bundle cannot be read or installed; the text says why.
pub fn render(
    operator: &str,
    bundle: &BundleReference,
    source: &CatalogSource,
    spec: &OperatorSpec,
    properties: Vec<Property>,
) -> Result<RevisionContent, String> {
    let content = bundle_content(source, operator, &bundle.name).map_err(|error| chain(&error))?;
    let loaded = load(&content.files).map_err(|defects| named(&defects))?;
    let request = InstallRequest {
        operator,
        namespace: &spec.namespace,
        config: spec.config.as_ref(),
        certificates: spec.certificates,
    };
    let mut installed = revision_objects(&loaded, &request).map_err(|defects| named(&defects))?;
    annotate(&mut installed.objects, &spec.ready_when)?;
    let property = |it: Property| BundleProperty { type_: it.kind, value: it.value };
    Ok(RevisionContent {
        bundle: BundleReference { digest: content.digest, ..bundle.clone() },
        properties: properties.into_iter().map(property).collect(),
        namespace: installed.namespace,
        config: spec.config.clone(),
        certificates: spec.certificates,
        ready_when: spec.ready_when.clone(),
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

#[cfg(test)]
mod tests {
    //! The content of revisions of the example bundles.

    use plimsoll_api::olm::ReadinessRule;

    use super::*;

    #[test]
    fn a_revision_names_the_digest_of_what_it_was_made_of() {
        let root = std::path::absolute("../../examples/bundles").expect("a working directory");
        let path = root.to_string_lossy().into_owned();
        let source = CatalogSource { path, ..CatalogSource::default() };
        let roots = CatalogRoots::new([root]);
        let digest = |version: &str| {
            let name = format!("lantern.v{version}");
            // A digest of an earlier revision counts for nothing.
            let bundle =
                BundleReference { name, digest: "old".to_owned(), ..BundleReference::default() };
            let spec = OperatorSpec::default();
            let content = read("lantern", &bundle, &source, &roots, &spec, Vec::new());
            content.expect("it can be rendered").bundle.digest
        };
        assert!(digest("2.2.0").starts_with("sha256:"), "{}", digest("2.2.0"));
        assert_eq!(digest("2.2.0"), digest("2.2.0"));
    }

    #[test]
    fn objects_have_the_rules_of_their_operator() {
        let root = std::path::absolute("../../examples/bundles").expect("a working directory");
        let path = root.to_string_lossy().into_owned();
        let source = CatalogSource { path, ..CatalogSource::default() };
        let rendered = |kind: &str, rule: &str| {
            let name = "lantern.v2.2.0".to_owned();
            let bundle = BundleReference { name, ..BundleReference::default() };
            let (group, kind, rule) = ("apps".to_owned(), kind.to_owned(), rule.to_owned());
            let rule = ReadinessRule { group, kind, rule, ..ReadinessRule::default() };
            let spec = OperatorSpec { ready_when: vec![rule], ..OperatorSpec::default() };
            render("lantern", &bundle, &source, &spec, Vec::new())
        };
        let rule = "self.status.readyReplicas > 1";
        let content = rendered("Deployment", rule).expect("it can be rendered");
        let is_gated = |it: &&serde_json::Value| {
            it["metadata"]["annotations"]["plimsoll.io/ready-when"] == rule
        };
        let gated = content.objects.iter().filter(is_gated);
        let kinds: Vec<_> = gated.map(|it| it["kind"].as_str()).collect();
        assert_eq!(kinds, [Some("Deployment")]);
        assert_eq!(content.ready_when.len(), 1);
        let refused = |kind: &str, rule: &str| rendered(kind, rule).expect_err("it is refused");
        assert!(refused("Deployment", "1 + 1").starts_with("spec.readyWhen[0].rule: "));
        assert!(refused("StatefulSet", rule).starts_with("spec.readyWhen[0] selects no object"));
    }
}
