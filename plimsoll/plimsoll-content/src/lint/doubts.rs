//! What API servers accept, and what cannot work all the same: templates that nothing renders,
//! images that are none, namespaces that nothing creates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::FindingCollector;
use super::refused::HIDDEN;
use crate::Manifest;
use crate::annotations::DELETE;
use crate::authoring::CONTAINERS;
use crate::built_in::NAMESPACES;
use crate::capability::{meant, most_similar};
use crate::definition::Scope;
use crate::diagnostic::FindingCode;
use crate::image_reference::is_image_reference;
use crate::kinds::Kinds;

/// What Helm's templates refer to. Other programs have templates in braces, too, which stand in
/// manifests for good.
const HELM_VALUES: [&str; 4] = [".Values.", ".Release.", ".Chart.", ".Capabilities."];
/// How calls of Helm's templates begin.
const HELM_CALLS: [&str; 3] = ["include ", "template ", "tpl "];

/// A text in a document.
struct Text<'a> {
    path: String,
    text: &'a str,
}

/// Reports the doubtful texts of an object.
pub(super) fn check(manifest: &Manifest, object: &Value, report: &mut FindingCollector<'_>) {
    if manifest.is_annotated_true(DELETE) {
        return;
    }
    let mut texts = Vec::new();
    collect("", object, &mut texts);
    for Text { path, text } in texts {
        if let Some(template) = template(text) {
            let template = shown(manifest, template);
            let message = format!("{path}: the template {template} is left as it is");
            let help = "write its value, or make the component a Helm chart, which is rendered";
            let code = FindingCode::TemplateLeft;
            report.add_located(manifest, &path, code, message, Some(help.to_owned()));
        } else if is_image(&path) && !text.is_empty() && !is_image_reference(text) {
            let text = shown(manifest, format!("{text:?}"));
            let message = format!("{path}: {text} is not a reference to an image");
            let help = "write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST";
            let code = FindingCode::ImageReference;
            report.add_located(manifest, &path, code, message, Some(help.to_owned()));
        }
    }
}

/// Returns a text of a manifest as a message shows it.
fn shown(manifest: &Manifest, text: String) -> String {
    if manifest.is_sensitive() { HIDDEN.to_owned() } else { text }
}

fn collect<'a>(path: &str, value: &'a Value, texts: &mut Vec<Text<'a>>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                collect(&format!("{path}{dot}{name}"), value, texts);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect(&format!("{path}[{index}]"), value, texts);
            }
        }
        Value::String(text) => texts.push(Text { path: path.to_owned(), text }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first template of Helm in a text, with its braces.
fn template(text: &str) -> Option<String> {
    let inner = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0));
    let is_helm = |inner: &&str| {
        let call = inner.trim_start_matches('-').trim_start();
        HELM_VALUES.iter().any(|it| inner.contains(it))
            || HELM_CALLS.iter().any(|it| call.starts_with(it))
    };
    inner.filter(is_helm).map(|inner| format!("{{{{{inner}}}}}")).next()
}

/// Whether a path is that of the image of a container.
fn is_image(path: &str) -> bool {
    let list = path.strip_suffix("].image").and_then(|path| path.rsplit_once('['));
    let name = list.map(|(list, _)| list.rsplit('.').next().unwrap_or_default());
    name.is_some_and(|name| CONTAINERS.contains(&name))
}

/// Reports objects in namespaces that no cluster has and no manifest creates.
pub(super) fn namespaces(manifests: &[Manifest], kinds: &Kinds, report: &mut FindingCollector<'_>) {
    let is_namespace = |it: &&Manifest| it.key.group.is_empty() && it.key.kind == "Namespace";
    let known: BTreeSet<&str> = manifests
        .iter()
        .filter(is_namespace)
        .map(|it| it.key.name.as_str())
        .chain(NAMESPACES)
        .collect();
    let applied = |it: &&Manifest| it.may_be_included() && !it.is_annotated_true(DELETE);
    for manifest in manifests.iter().filter(applied) {
        let namespace = manifest.key.namespace.as_str();
        let is_namespaced = kinds.scope(&manifest.key.group_kind()) == Some(Scope::Namespaced);
        if is_namespaced && !namespace.is_empty() && !known.contains(namespace) {
            let similar = meant(most_similar(namespace, known.iter().copied()));
            let message = format!(
                "no manifest creates the namespace {namespace:?}: the object waits until it is there{similar}"
            );
            let help = "add a manifest of the namespace, unless it is created by something else";
            let code = FindingCode::UnknownNamespace;
            let field = "metadata.namespace";
            report.add_located(manifest, field, code, message, Some(help.to_owned()));
        }
    }
}
