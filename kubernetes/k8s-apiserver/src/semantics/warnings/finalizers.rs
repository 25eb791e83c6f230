//! Warnings about finalizers of custom objects.
use k8s_schema::names;
use serde_json::Value;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Everything to warn of in the finalizers that `object` has and `live` had not.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: generateWarningsFromObj
pub(super) fn warnings(live: Option<&Value>, object: &Value) -> Vec<String> {
    let of = |object: &Value| -> Vec<String> {
        let list = object["metadata"]["finalizers"].as_array();
        list.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let before = live.map(of).unwrap_or_default();
    let mut added = of(object);
    added.retain(|finalizer| !before.contains(finalizer));
    added.sort();
    added.dedup();
    let mut warnings = Vec::new();
    for finalizer in added {
        let prefix = format!("metadata.finalizers: {finalizer:?}: ");
        warnings.extend(
            names::qualified(&finalizer).into_iter().map(|problem| format!("{prefix}{problem}")),
        );
        if finalizer.contains('/') || STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            continue;
        }
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        warnings.push(format!(
            "{prefix}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
    warnings
}
