//! The content of a copy of a cluster, as far as a rehearsal of Operators compares it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_apiserver::ApiServer;
use plimsoll_api::olm::{CatalogStatus, OPERATOR_LABEL, OperatorStatus};
use plimsoll_api::{CATALOG, ConditionStatus, OPERATOR};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::rehearsal::copy;
use crate::rehearsal::error::RehearsalError;

/// What became of the objects of Operators, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObjectCounts {
    /// Objects that were created.
    pub created: usize,
    /// Objects that were changed, or deleted and created again.
    pub changed: usize,
    /// Objects that were deleted.
    pub deleted: usize,
}

/// A catalog that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadCatalog {
    /// Name of the Catalog.
    pub name: String,
    /// Why not.
    pub message: String,
}

/// The content of a copy of a cluster.
#[derive(Debug, Default)]
pub(super) struct ClusterContent {
    /// The Operators, by name.
    pub(super) operators: BTreeMap<String, Value>,
    /// The Catalogs, by name.
    catalogs: BTreeMap<String, Value>,
    /// The objects of Operators, without what servers and operators report in them.
    owned: BTreeMap<String, Value>,
    /// The objects of the kinds that Operators define.
    pub(super) operands: BTreeSet<String>,
    /// All objects that are not of Operators, operands included.
    others: BTreeSet<String>,
}

impl ClusterContent {
    pub(super) fn of_server(server: &ApiServer) -> Result<Self, RehearsalError> {
        let mut bytes = Vec::new();
        server.snapshot(&mut bytes).map_err(|source| RehearsalError::Copy { source })?;
        Ok(Self::of(copy::objects(&bytes)))
    }

    /// Sorts objects, each with the name of its resource.
    pub(super) fn of(objects: impl Iterator<Item = (String, Value)>) -> Self {
        let [operators, catalogs] =
            [OPERATOR, CATALOG].map(|it| format!("{}.{}", it.plural, it.group));
        let mut content = Self::default();
        let (mut others, mut defined) = (Vec::new(), BTreeSet::new());
        for (resource, object) in objects {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let is_owned = object["metadata"]["labels"][OPERATOR_LABEL].is_string();
            if resource == operators {
                content.operators.insert(name, object);
            } else if resource == catalogs {
                content.catalogs.insert(name, object);
            } else if is_owned {
                if resource == "customresourcedefinitions.apiextensions.k8s.io" {
                    defined.insert(name);
                }
                content.owned.insert(reference(&resource, &object), essence(object));
            } else {
                others.push((reference(&resource, &object), resource));
            }
        }
        let operands = others.iter().filter(|(_, resource)| defined.contains(resource));
        content.operands = operands.map(|(reference, _)| reference.clone()).collect();
        content.others = others.into_iter().map(|(reference, _)| reference).collect();
        content
    }

    /// Returns the status of an Operator; empty if there is none.
    pub(super) fn status(&self, name: &str) -> OperatorStatus {
        let status = self.operators.get(name).map(|it| OperatorStatus::deserialize(&it["status"]));
        status.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns what became of the objects of Operators.
    pub(super) fn counts(&self, after: &Self) -> ObjectCounts {
        let is_changed = |(name, object): &(&String, &Value)| {
            after.owned.get(*name).is_some_and(|it| it != *object)
        };
        ObjectCounts {
            created: after.owned.keys().filter(|it| !self.owned.contains_key(*it)).count(),
            changed: self.owned.iter().filter(is_changed).count(),
            deleted: self.owned.keys().filter(|it| !after.owned.contains_key(*it)).count(),
        }
    }

    /// Returns the operands that are gone afterwards. Those of a definition that is kept without its Operator stay.
    pub(super) fn deleted_operands(&self, after: &Self) -> Vec<String> {
        self.operands.difference(&after.others).cloned().collect()
    }

    /// Returns the Catalogs that Operators cannot be resolved from.
    pub(super) fn unread_catalogs(&self) -> Vec<UnreadCatalog> {
        let unread = self.catalogs.iter().filter_map(|(name, object)| {
            let status = CatalogStatus::deserialize(&object["status"]).ok()?;
            let serving = status.conditions.into_iter().find(|it| it.type_ == "Serving")?;
            let is_unread = serving.status != ConditionStatus::True;
            is_unread.then(|| UnreadCatalog { name: name.clone(), message: serving.message })
        });
        unread.collect()
    }
}

/// Returns an object as kubectl takes it, by the name of its resource.
fn reference(resource: &str, object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => format!("{resource}/{}", text("name")),
        namespace => format!("{resource}/{} -n {namespace}", text("name")),
    }
}

/// Returns an object without its status and what the server writes into it.
fn essence(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    object
}

#[cfg(test)]
mod tests;
