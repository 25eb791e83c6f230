//! Inventory: the objects that a release contains, whose owner it is.

use std::collections::BTreeSet;

use plimsoll_api::ObjectKey;
use plimsoll_api::progress::InventoryPart;
use plimsoll_content::inclusion::ExclusionReason;

use super::{Action, Plan};

impl Plan {
    /// Returns the objects that the release contains, by kind and namespace. What it deletes is none of
    /// them; what the administrator made unmanaged is.
    pub fn inventory(&self) -> Vec<InventoryPart> {
        let steps = self.of_release().iter().filter(|step| match step.action {
            Action::Apply | Action::CreateOnly | Action::Gate | Action::Refuse(_) => true,
            Action::Delete | Action::Migrate => false,
        });
        let excluded = self.excluded.iter();
        let unmanaged = excluded.filter(|it| it.reason == ExclusionReason::Overridden);
        let keys = steps.map(|step| &step.manifest.key).chain(unmanaged.map(|it| &it.key));
        let objects: BTreeSet<&ObjectKey> = keys.collect();
        InventoryPart::of(&objects)
    }
}

#[cfg(test)]
mod tests {
    //! Tests of what counts as an object of a release.

    use plimsoll_api::config::Release;
    use plimsoll_content::Manifest;
    use plimsoll_content::inclusion::{Context, UnmanagedObject};
    use serde_json::json;

    use crate::plan::mode::Mode;
    use crate::plan::plan;

    /// Returns a ConfigMap with an annotation besides the one that includes it.
    fn manifest(name: &str, annotation: &str) -> Manifest {
        let annotations =
            json!({ "include.release.openshift.io/here": "true", annotation: "true" });
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "x", "annotations": annotations },
        });
        Manifest::read(format!("0000_10_a_{name}.yaml").into(), 0, &object).expect("a manifest")
    }

    #[test]
    fn the_objects_of_a_release_are_those_that_it_does_not_delete() {
        let manifests = [
            manifest("applied", "example.com/nothing"),
            manifest("created", "release.openshift.io/create-only"),
            manifest("deleted", "release.openshift.io/delete"),
            manifest("unmanaged", "example.com/nothing"),
            manifest("excluded", "exclude.release.openshift.io/this"),
        ];
        let context = Context {
            exclude_identifier: Some("this".to_owned()),
            overrides: vec![UnmanagedObject {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
                namespace: "x".to_owned(),
                name: "unmanaged".to_owned(),
            }],
            ..Context::new("here", "")
        };
        let planned = plan(&manifests, &context, Release::default(), Mode::Updating);
        // Orphans that are pruned are no objects of the release.
        let planned = planned.then_deleting([manifest("orphan", "example.com/nothing")]);
        let parts = planned.inventory();
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].kind.as_str(), parts[0].namespace.as_str()), ("ConfigMap", "x"));
        assert_eq!(parts[0].names, ["applied", "created", "unmanaged"]);
    }
}
