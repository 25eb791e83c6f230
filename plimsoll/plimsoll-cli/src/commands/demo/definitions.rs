//! What all parts of the demo request objects with.

use kube::api::DynamicObject;
use plimsoll_api::ApiKind;

/// The kind of definitions.
pub(super) const DEFINITION: ApiKind = ApiKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
/// Field manager of what the demo requests.
pub(super) const MANAGER: &str = "plimsoll-demo";

/// Returns whether the kind of a definition is served.
pub(super) fn is_established(definition: Option<&DynamicObject>) -> bool {
    let conditions = definition.and_then(|it| it.data["status"]["conditions"].as_array());
    conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
}
