//! Upstream's errors and our defects: their classes, and the names in them.

use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use serde_json::Value;

/// What an error of upstream says, and what we call that.
const CLASSES: &[(&str, DefectCode)] = &[
    ("invalid target namespaces", DefectCode::TargetNamespaces),
    ("contains duplicate custom resource definition", DefectCode::BundleDefinition),
    ("references owned custom resource definition", DefectCode::OwnedApi),
    ("strategy deployment name", DefectCode::BundleDeployment),
    ("conversion webhooks [", DefectCode::BundleWebhook),
    ("package name is empty", DefectCode::BundleAnnotation),
    ("contains forbidden rule", DefectCode::BundleWebhook),
    ("has invalid name", DefectCode::BundleWebhook),
    (".spec.preserveUnknownFields", DefectCode::BundleDefinition),
];

pub(super) fn listed(defects: &[Diagnostic]) -> String {
    let lines: Vec<String> = defects.iter().map(ToString::to_string).collect();
    lines.join("\n  ")
}

/// An error of upstream that no defect stands for, or a defect of another class.
pub(super) fn mismatch(defects: &[Diagnostic], errors: &Value, stage: &Value) -> Option<String> {
    let errors = super::texts(errors);
    let mut expected = Vec::new();
    for error in &errors {
        let codes: Vec<DefectCode> = if stage == "load" {
            vec![DefectCode::BundleFile, DefectCode::Property]
        } else {
            let class = CLASSES.iter().find(|(text, _)| error.contains(text));
            vec![class.map(|(_, code)| *code)?]
        };
        let names = names(error);
        let stands_for = |defect: &&Diagnostic| {
            let text = defect.to_string();
            codes.iter().any(|code| defect.code == *code)
                && names.iter().all(|name| text.contains(name.as_str()))
        };
        if !defects.iter().any(|defect| stands_for(&defect)) {
            return Some(format!("upstream {error:?} names {names:?}:\n  {}", listed(defects)));
        }
        expected.extend(codes);
    }
    let other = defects.iter().find(|defect| !expected.iter().any(|code| defect.code == *code));
    other.map(|other| format!("another class than upstream's {errors:?}: {other}"))
}

/// The names in quotes and brackets at the beginning of an error, before it explains itself.
fn names(error: &str) -> Vec<String> {
    let beginning = match error.split_once("error parsing objects in ") {
        // Decoders' texts are their own business: the file counts.
        Some((_, rest)) => rest.split(": ").next(),
        None if error.starts_with("failed to unmarshal") => None,
        None => error.split(": a lowercase").next(),
    };
    let beginning = beginning.unwrap_or_default();
    let mut names = Vec::new();
    for quote in ['\'', '"'] {
        let parts: Vec<&str> = beginning.split(quote).collect();
        names.extend(parts.iter().skip(1).step_by(2).map(|name| (*name).to_owned()));
    }
    for part in beginning.split('[').skip(1) {
        let inside = part.split(']').next().unwrap_or_default();
        names.extend(inside.split([' ', ',']).map(str::to_owned));
    }
    names.retain(|name| !name.is_empty() && !name.contains(['[', ']']));
    names
}

/// A field that upstream names, and our text does not. The last part of a path is enough.
pub(super) fn unnamed_fields<'e>(ours: &'e str, error: &'e str) -> impl Iterator<Item = &'e str> {
    let named = error.split("field \"").skip(1).filter_map(|part| part.split('"').next());
    named.filter(|field| !ours.contains(field))
}
