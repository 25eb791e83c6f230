//! Operators and OperatorRevisions as watches show them.

use std::collections::BTreeSet;

use plimsoll_api::olm::{
    CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, OPERATOR_LABEL,
    OperatorRevisionSpec, OperatorSpec, OperatorStatus,
};
use plimsoll_api::read_usable;
use serde_json::Value;

use super::events::Moment;
use super::parse::{self, InvalidSpec};
use super::revision::WrittenRevision;
use super::track::OperatorObject;
use crate::RequestedOperator;

/// An Operator as a watch showed it.
pub(super) struct ShownOperator {
    pub(super) object: OperatorObject,
    /// The request, without what is installed.
    pub(super) request: RequestedOperator,
    pub(super) status: OperatorStatus,
}

/// An OperatorRevision as a watch showed it.
#[derive(Debug, Clone)]
pub(super) struct ShownRevision {
    /// The name of its Operator; that in the label if the spec cannot be read.
    pub(super) operator: String,
    /// The uid of the Operator that controls it; empty without one.
    pub(super) owner: String,
    pub(super) spec: Result<OperatorRevisionSpec, InvalidSpec>,
}

impl ShownRevision {
    pub(super) fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let spec = parse::revision(object);
        let label = || metadata["labels"][OPERATOR_LABEL].as_str().unwrap_or_default().to_owned();
        let operator = spec.as_ref().map_or_else(|_| label(), |it| it.operator.clone());
        Self { operator, owner: controller(metadata).to_owned(), spec }
    }

    /// Returns its number as it is known from then on, by its name if the spec cannot be read; `None` if
    /// that has none.
    pub(super) fn written(&self, name: &str) -> Option<WrittenRevision> {
        let number = match &self.spec {
            Ok(spec) => spec.revision,
            Err(_) => name.strip_prefix(&self.operator)?.split('-').nth(1)?.parse().ok()?,
        };
        Some(WrittenRevision { operator: self.operator.clone(), number })
    }
}

/// Returns the uid of the controlling owner of an object; empty without one.
fn controller(metadata: &Value) -> &str {
    let owners = metadata["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let controller = owners.iter().find(|it| it["controller"] == true);
    controller.and_then(|it| it["uid"].as_str()).unwrap_or_default()
}

/// Returns the uid of an object.
pub(super) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Reads an Operator. If its spec cannot be read, that of `known` stays in force; without one, it is paused.
pub(super) fn shown_operator(
    object: &Value,
    known: Option<&OperatorObject>,
    moment: Moment,
) -> ShownOperator {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let time = |field: &str| metadata[field].as_str().and_then(|it| it.parse().ok());
    let finalizers = metadata["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut shown = OperatorObject {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        finalizers: finalizers.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect(),
        deleted: time("deletionTimestamp"),
        spec: OperatorSpec::default(),
        deadline: None,
        invalid: None,
        is_spec_known: true,
    };
    match (parse::operator(object), known) {
        (Ok((spec, deadline)), _) => (shown.spec, shown.deadline) = (spec, deadline),
        (Err(invalid), Some(known)) => {
            (shown.spec, shown.deadline) = (known.spec.clone(), known.deadline);
            (shown.invalid, shown.is_spec_known) = (Some(invalid), known.is_spec_known);
        }
        (Err(invalid), None) => {
            shown.spec.paused = true;
            (shown.invalid, shown.is_spec_known) = (Some(invalid), false);
        }
    }
    let change_set = metadata["annotations"][CHANGE_SET_ANNOTATION].as_str();
    let request = RequestedOperator {
        spec: shown.spec.clone(),
        created: time("creationTimestamp").unwrap_or(moment.time),
        is_dependency: metadata["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_DEPENDENCY,
        change_set: change_set.map(str::to_owned),
        is_deleting: shown.deleted.is_some(),
        installed: None,
        returns_to: None,
        owned: BTreeSet::new(),
    };
    ShownOperator { object: shown, request, status: read_usable(&object["status"]) }
}
