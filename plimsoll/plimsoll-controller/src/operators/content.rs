//! From a bundle that was chosen to what a revision is made of.

use plimsoll_api::olm::{
    BundleProperty, BundleReference, CatalogSource, OPERATOR_LABEL, OperatorSpec,
};
use plimsoll_bundle::{Bundle, CertificateProvider, RenderOptions, load, render};
use plimsoll_content::catalog::Defect;
use plimsoll_plan::operators::reconciler::RevisionContent;
use plimsoll_resolve::Property;
use plimsoll_source::catalog::bundle_content;
use serde_json::{Value, json};

use crate::write::chain;

/// Defects that a message names.
const DEFECTS_NAMED: usize = 5;

/// Reads a bundle and renders it. Blocks.
///
/// # Errors
///
/// When it cannot be read or installed; the text says why.
pub(super) fn read(
    operator: &str,
    bundle: &BundleReference,
    source: &CatalogSource,
    spec: &OperatorSpec,
    properties: Vec<Property>,
) -> Result<RevisionContent, String> {
    let files = bundle_content(source, operator, &bundle.name).map_err(|error| chain(&error))?;
    let loaded = load(&files).map_err(|defects| named(&defects))?;
    let namespace = match spec.namespace.as_str() {
        "" => loaded.suggested_namespace().unwrap_or(&loaded.package),
        requested => requested,
    };
    let objects = objects(&loaded, operator, namespace).map_err(|defects| named(&defects))?;
    let property = |it: Property| BundleProperty { type_: it.kind, value: it.value };
    Ok(RevisionContent {
        bundle: bundle.clone(),
        properties: properties.into_iter().map(property).collect(),
        namespace: namespace.to_owned(),
        config: spec.config.clone(),
        objects,
    })
}

/// The first defects, as sentences.
fn named(defects: &[Defect]) -> String {
    let first: Vec<String> = defects.iter().take(DEFECTS_NAMED).map(Defect::to_string).collect();
    match defects.len().saturating_sub(DEFECTS_NAMED) {
        0 => first.join("; "),
        more => format!("{}; and {more} more", first.join("; ")),
    }
}

/// The objects of a bundle, as a revision has them.
fn objects(bundle: &Bundle, operator: &str, namespace: &str) -> Result<Vec<Value>, Vec<Defect>> {
    let options = RenderOptions {
        install_namespace: namespace.to_owned(),
        certificates: CertificateProvider::BuiltIn,
        ..RenderOptions::default()
    };
    let rendered = render(bundle, &options)?.objects;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
    });
    let mut objects: Vec<Value> = std::iter::once(namespace).chain(rendered).collect();
    for object in &mut objects {
        remove_nulls(object);
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        object["metadata"]["labels"][OPERATOR_LABEL] = operator.into();
    }
    Ok(objects)
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
