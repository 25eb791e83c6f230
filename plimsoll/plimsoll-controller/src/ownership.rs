//! Ownership of objects: the Operator that this program applied an object for.
//!
//! The label that names an Operator finds candidates and proves nothing, since another client may add it to
//! any object. It counts if this program applied it itself, which the managed fields of the object show.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::RELEASE_PROGRESS;
use plimsoll_api::olm::OPERATOR_LABEL;

use crate::observe::applied_fields;
use crate::resources::api_resource;
use crate::write::chain;

/// Returns the Operator that the label of an object names, whoever added it; empty if the object has no
/// such label.
pub(crate) fn labelled_operator(metadata: &ObjectMeta) -> String {
    let labels = metadata.labels.as_ref();
    labels.and_then(|it| it.get(OPERATOR_LABEL)).cloned().unwrap_or_default()
}

/// Returns the Operator that this program applied an object for; empty if it applied it for none.
pub(crate) fn operator_of(metadata: &ObjectMeta) -> String {
    let is_label_ours = applied_fields(metadata).is_some_and(|(_, fields)| {
        let labels = &fields["f:metadata"]["f:labels"];
        labels.get(format!("f:{OPERATOR_LABEL}")).is_some()
    });
    if is_label_ours { labelled_operator(metadata) } else { String::new() }
}

/// Returns the objects that the release contains and that its plan is held up at, as ReleaseProgress names
/// them.
///
/// # Errors
///
/// When the server does not answer or rejects the request.
pub(crate) async fn held_up(client: &Client) -> Result<BTreeSet<String>, String> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(RELEASE_PROGRESS));
    let listed = match api.list(&ListParams::default()).await {
        // Not every cluster has a release.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(BTreeSet::new()),
        listed => listed
            .map_err(|error| format!("failed to list ReleaseProgresses: {}", chain(&error)))?,
    };
    let steps = listed.items.iter().flat_map(|it| it.data["status"]["steps"].as_array());
    let objects = steps.flatten().filter_map(|it| it["object"].as_str());
    Ok(objects.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    //! Tests of what proves an Operator's ownership.

    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_counts_if_it_was_applied_with_the_object() {
        let check = |manager: &str, operation: &str, is_label_owned: bool, expected: &str| {
            let labels = match is_label_owned {
                true => json!({ "f:olm.io/operator": {} }),
                false => json!({ "f:app": {} }),
            };
            let metadata: ObjectMeta = serde_json::from_value(json!({
                "labels": { "olm.io/operator": "lantern", "app": "foo" },
                "managedFields": [
                    {
                        "manager": "kubectl-label", "operation": "Update", "fieldsType": "FieldsV1",
                        "fieldsV1": { "f:metadata": { "f:labels": { "f:olm.io/operator": {} } } },
                    },
                    {
                        "manager": manager, "operation": operation, "fieldsType": "FieldsV1",
                        "fieldsV1": { "f:metadata": { "f:labels": labels } },
                    },
                ],
            }))
            .expect("it is metadata");
            assert_eq!(labelled_operator(&metadata), "lantern");
            let described = format!("{manager} {operation}, label: {is_label_owned}");
            assert_eq!(operator_of(&metadata), expected, "{described}");
        };
        check("plimsoll", "Apply", true, "lantern");
        // The object is the release's; another client added the label.
        check("plimsoll", "Apply", false, "");
        check("plimsoll", "Update", true, "");
        check("kubectl", "Apply", true, "");
        assert_eq!(operator_of(&ObjectMeta::default()), "");
    }
}
