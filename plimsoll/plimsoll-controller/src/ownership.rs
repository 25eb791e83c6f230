//! Ownership of objects: the Operator that this program applied an object for.
//!
//! The label that names an Operator finds candidates and proves nothing, since another client may add it to
//! any object. It counts if this program applied it itself, which the managed fields of the object show.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::progress::InventoryPart;
use plimsoll_api::{OPERATOR, ObjectKey, RELEASE_PROGRESS, Reason};
use plimsoll_plan::apply::fingerprint::FIELD_MANAGER;
use plimsoll_plan::plan::{Action, Step};
use plimsoll_plan::progress::{Transience, TryError};
use serde::Deserialize as _;
use serde_json::Value;

use crate::resources::api_resource;

/// The number of Operators in one answer: their statuses list all of their objects.
const PAGE_SIZE: u32 = 100;

/// The fields of an object that we applied, with the entry that lists them; `None` if we applied none.
pub(crate) fn applied_fields(metadata: &ObjectMeta) -> Option<(&ManagedFieldsEntry, &Value)> {
    let ours = |entry: &&ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    };
    let entry = metadata.managed_fields.as_ref()?.iter().find(ours)?;
    Some((entry, &entry.fields_v1.as_ref()?.0))
}

/// Returns whether this program gave an object an annotation, by an apply or when it created the object.
pub(crate) fn is_annotation_ours(metadata: &ObjectMeta, annotation: &str) -> bool {
    let name = format!("f:{annotation}");
    let entries = metadata.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER));
    ours.any(|entry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|it| it.0["f:metadata"]["f:annotations"].get(name.as_str()).is_some())
    })
}

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

/// Returns the Operator whose object a step of a release would write or delete; `None` if there is none.
/// `metadata` is that of the object.
///
/// # Errors
///
/// When the server does not answer or rejects a request.
pub(crate) async fn holder(
    client: &Client,
    step: &Step,
    metadata: &ObjectMeta,
) -> Result<Option<String>, kube::Error> {
    let operators: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(OPERATOR));
    let operator = operator_of(metadata);
    // What an Operator left when it was deleted belongs to none.
    if !operator.is_empty() && is_there(&operators, &operator).await? {
        return Ok(Some(operator));
    }
    match step.action {
        Action::Delete => recorded_by(&operators, &step.manifest.key).await,
        Action::Apply | Action::CreateOnly | Action::Gate | Action::Migrate | Action::Refuse(_) => {
            Ok(None)
        }
    }
}

async fn is_there(operators: &Api<DynamicObject>, name: &str) -> Result<bool, kube::Error> {
    match operators.get_metadata_opt(name).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// Returns the Operator whose installed revision contains an object; `None` if there is none. The label may
/// be missing: another client can remove it.
async fn recorded_by(
    operators: &Api<DynamicObject>,
    key: &ObjectKey,
) -> Result<Option<String>, kube::Error> {
    let mut parameters = ListParams::default().limit(PAGE_SIZE);
    loop {
        let page = match operators.list(&parameters).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            page => page?,
        };
        let is_it = |it: &Value| ObjectKey::deserialize(it).is_ok_and(|it| it == *key);
        let has = |it: &&DynamicObject| {
            let inventory = it.data["status"]["inventory"].as_array();
            inventory.is_some_and(|objects| objects.iter().any(is_it))
        };
        if let Some(operator) = page.items.iter().find(has) {
            return Ok(Some(operator.name_any()));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(None),
        }
    }
}

/// Returns why a step of a release does not write or delete the object of an Operator.
pub(crate) fn refusal(step: &Step, operator: &str) -> TryError {
    let advice = match step.action {
        Action::Delete => "it is deleted with the Operator",
        Action::Apply | Action::CreateOnly | Action::Gate | Action::Migrate | Action::Refuse(_) => {
            "delete the Operator, which leaves the object to the release, or go to a release without \
             the object"
        }
    };
    TryError {
        reason: Reason::UpdatePayloadResourceConflict,
        cause: format!("the object belongs to Operator {operator}: {advice}"),
        transience: Transience::Lasting,
        retry_after: None,
    }
}

/// Returns the objects that the release contains which the cluster is at or goes to, as ReleaseProgress
/// records them before any of them is applied.
///
/// # Errors
///
/// When the server does not answer or rejects the request.
pub async fn objects_of_release(client: &Client) -> Result<BTreeSet<String>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(RELEASE_PROGRESS));
    let listed = match api.list(&ListParams::default()).await {
        // Not every cluster has a release.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(BTreeSet::new()),
        listed => listed?,
    };
    Ok(listed.items.iter().flat_map(|it| contained(&it.data["status"])).collect())
}

/// Returns the objects that the status of a ReleaseProgress records, as texts.
fn contained(status: &Value) -> BTreeSet<String> {
    if let Some(parts) = status["inventory"].as_array() {
        let parts = parts.iter().filter_map(|it| InventoryPart::deserialize(it).ok());
        return parts
            .flat_map(|it| Vec::from_iter(it.objects()))
            .map(|it| it.to_string())
            .collect();
    }
    // An earlier version of the program recorded only what the plan waits for.
    let steps = status["steps"].as_array().into_iter().flatten();
    steps.filter_map(|it| it["object"].as_str()).map(str::to_owned).collect()
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

    #[test]
    fn the_objects_of_a_release_are_those_of_its_inventory() {
        let steps = json!([{ "object": "configmap \"x/deleted\"" }]);
        let inventory = json!([
            { "kind": "ConfigMap", "namespace": "x", "names": ["a", "b"] },
            { "group": "apps", "kind": "Deployment", "namespace": "x", "names": ["a"] },
            { "kind": "Namespace", "names": ["x"] },
        ]);
        let check = |status: Value, expected: &[&str]| {
            let found: Vec<String> = contained(&status).into_iter().collect();
            assert_eq!(found, expected, "{status}");
        };
        let all = [
            r#"configmap "x/a""#,
            r#"configmap "x/b""#,
            r#"deployment.apps "x/a""#,
            r#"namespace "x""#,
        ];
        check(json!({ "inventory": inventory, "steps": steps }), &all);
        check(json!({ "inventory": [], "steps": steps }), &[]);
        check(json!({ "steps": steps }), &[r#"configmap "x/deleted""#]);
        check(Value::Null, &[]);
    }
}
