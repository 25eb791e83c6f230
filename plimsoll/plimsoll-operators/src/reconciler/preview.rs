//! Preview of a revision: what the controller would apply and delete, without the cluster.

use std::collections::BTreeMap;

use plimsoll_api::ObjectKey;
use plimsoll_api::olm::OperatorRevisionSpec;
use plimsoll_content::Manifest;
use plimsoll_plan::plan::Plan;
use plimsoll_resolve::ClusterFacts;

use super::deletion::has_users_data;
use super::revision::{RevisionContent, RevisionDraft, manifests};
use crate::rollout::rollout;

/// Returns the plan that rolls out a revision, and then deletes what only earlier ones have, except for
/// definitions and volumes. `recorded` are all parts of the kept revisions of the Operator, and `installed` is the number
/// of the installed one. Without `facts`, no object is left out for lack of a capability.
///
/// # Errors
///
/// When an object is invalid; the message says which and why.
pub fn preview_plan(
    content: RevisionContent,
    recorded: &[&OperatorRevisionSpec],
    installed: Option<u32>,
    facts: Option<&ClusterFacts>,
) -> Result<Plan, String> {
    let mut draft = RevisionDraft::read(content)?;
    let mut earlier: BTreeMap<ObjectKey, Manifest> = BTreeMap::new();
    let mut present: BTreeMap<ObjectKey, Manifest> = BTreeMap::new();
    for part in recorded {
        for manifest in manifests("", part.objects.iter().map(|it| &it.object))? {
            if installed == Some(part.revision) {
                present.insert(manifest.key.clone(), manifest.clone());
            }
            earlier.insert(manifest.key.clone(), manifest);
        }
    }
    draft.filter(facts, |key| present.contains_key(key));
    for object in &draft.objects {
        earlier.remove(&object.manifest.key);
    }
    earlier.retain(|key, _| !has_users_data(key));
    let objects = draft.objects.into_iter().map(|it| it.manifest);
    let plan = rollout(&draft.bundle, objects, present.values());
    Ok(plan.then_deleting(earlier.into_values()))
}

/// Returns the content of a kept revision of an Operator; `None` if a part of it is missing. `recorded` are
/// all parts of its kept revisions.
pub fn kept_content(recorded: &[&OperatorRevisionSpec], revision: u32) -> Option<RevisionContent> {
    let parts = recorded.iter().filter(|it| it.revision == revision);
    let parts: BTreeMap<u32, &OperatorRevisionSpec> =
        parts.map(|it| (it.part.number, *it)).collect();
    let (_, last) = parts.last_key_value()?;
    if !(1..=last.part.of).all(|number| parts.contains_key(&number)) {
        return None;
    }
    let objects = parts.values().flat_map(|it| &it.objects).map(|it| it.object.clone());
    Some(RevisionContent {
        bundle: last.bundle.clone(),
        properties: last.properties.clone(),
        namespace: last.namespace.clone(),
        config: last.config.clone(),
        certificates: last.certificates,
        ready_when: last.ready_when.clone(),
        objects: objects.collect(),
    })
}

#[cfg(test)]
mod tests {
    //! Revisions, and what is applied and deleted for them.

    use plimsoll_api::olm::{BundleReference, CertificateProvider, RevisionObject, RevisionPart};
    use plimsoll_plan::plan::Action;
    use serde_json::{Value, json};

    use super::*;

    fn config_map(name: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "foo" } })
    }

    fn definition(plural: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.example.com") },
        })
    }

    fn part(revision: u32, number: u32, of: u32, objects: Vec<Value>) -> OperatorRevisionSpec {
        let object = |object| RevisionObject { phase: String::new(), object };
        OperatorRevisionSpec {
            operator: "foo".to_owned(),
            revision,
            part: RevisionPart { number, of },
            objects: objects.into_iter().map(object).collect(),
            ..OperatorRevisionSpec::default()
        }
    }

    fn content(objects: Vec<Value>) -> RevisionContent {
        RevisionContent {
            bundle: BundleReference::default(),
            properties: Vec::new(),
            namespace: "foo".to_owned(),
            config: None,
            certificates: CertificateProvider::default(),
            ready_when: Vec::new(),
            objects,
        }
    }

    fn steps(plan: &Plan) -> Vec<String> {
        let verb = |action: &Action| if *action == Action::Delete { "delete" } else { "apply" };
        let step = |it: &plimsoll_plan::plan::Step| {
            format!("{} {}", verb(&it.action), it.manifest.key.name)
        };
        plan.steps.iter().map(step).collect()
    }

    #[test]
    fn what_only_earlier_revisions_have_is_deleted_except_for_definitions() {
        let earlier = part(1, 1, 1, vec![config_map("one"), config_map("older")]);
        let installed = part(2, 1, 1, vec![config_map("one"), config_map("two"), definition("as")]);
        let next = content(vec![config_map("one"), config_map("three")]);
        let plan = preview_plan(next, &[&earlier, &installed], Some(2), None).expect("it is valid");
        assert_eq!(steps(&plan), ["apply one", "apply three", "delete older", "delete two"]);
    }

    #[test]
    fn a_kept_revision_is_previewed_if_all_of_its_parts_are_there() {
        let (first, second) =
            (part(3, 1, 2, vec![config_map("one")]), part(3, 2, 2, vec![config_map("two")]));
        assert_eq!(kept_content(&[&second], 3), None);
        assert_eq!(kept_content(&[&first, &second], 4), None);
        let found = kept_content(&[&second, &first], 3).map(|it| it.objects);
        assert_eq!(found, Some(vec![config_map("one"), config_map("two")]));
    }
}
