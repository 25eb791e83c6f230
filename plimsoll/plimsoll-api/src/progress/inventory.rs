//! Inventory: the objects of a release, grouped so that thousands of them fit into a status.

use std::collections::BTreeSet;

use super::InventoryPart;
use crate::ObjectKey;

impl InventoryPart {
    /// Groups objects by kind and namespace.
    pub fn of(objects: &BTreeSet<&ObjectKey>) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        for object in objects {
            let is_of = |it: &&mut Self| {
                it.group == object.group
                    && it.kind == object.kind
                    && it.namespace == object.namespace
            };
            match parts.last_mut().filter(is_of) {
                Some(part) => part.names.push(object.name.clone()),
                None => parts.push(Self {
                    group: object.group.clone(),
                    kind: object.kind.clone(),
                    namespace: object.namespace.clone(),
                    names: vec![object.name.clone()],
                }),
            }
        }
        parts
    }

    /// Returns the objects.
    pub fn objects(&self) -> impl Iterator<Item = ObjectKey> {
        self.names.iter().map(|name| ObjectKey {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: name.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    //! Tests that an inventory names what it was made of.

    use super::*;

    #[test]
    fn objects_are_grouped_by_kind_and_namespace() {
        let key = |kind: &str, namespace: &str, name: &str| {
            let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
            ObjectKey {
                group: group.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }
        };
        let objects = [
            key("ConfigMap", "pier", "lamps"),
            key("ConfigMap", "dock", "lamps"),
            key("ConfigMap", "pier", "buoys"),
            key("Deployment.apps", "pier", "crane"),
            key("Namespace", "", "pier"),
        ];
        let parts = InventoryPart::of(&objects.iter().collect());
        let texts = parts
            .iter()
            .map(|it| format!("{} {} {}: {}", it.group, it.kind, it.namespace, it.names.join(" ")));
        assert_eq!(
            texts.collect::<Vec<_>>(),
            [
                " ConfigMap dock: lamps",
                " ConfigMap pier: buoys lamps",
                " Namespace : pier",
                "apps Deployment pier: crane",
            ]
        );
        let named: BTreeSet<ObjectKey> = parts.iter().flat_map(InventoryPart::objects).collect();
        assert_eq!(named, BTreeSet::from(objects));
        assert!(InventoryPart::of(&BTreeSet::new()).is_empty());
    }
}
