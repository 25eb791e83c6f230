//! Operators and OperatorRevisions as watches show them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plimsoll_api::olm::action::INSPECTED_ANNOTATION;
use plimsoll_api::olm::{
    CHANGE_SET_ANNOTATION, DELETION_FINALIZER, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL,
    INSTALLED_AS_USER, OPERATOR_LABEL, OperatorRevisionSpec, OperatorSpec, OperatorStatus,
};
use plimsoll_api::read_usable;
use serde_json::Value;

use super::events::Moment;
use super::messages::{NOT_SIGNED, SIGNED_EARLIER};
use super::parse;
use super::revision::WrittenRevision;
use super::track::OperatorObject;
use crate::RequestedOperator;
use crate::inspected::Inspection;
use crate::revision_key::{Provenance, RevisionKey};

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
    uid: String,
    /// The name of its Operator; that in the label if the spec cannot be read.
    pub(super) operator: String,
    /// The uid of the Operator that controls it; empty without one.
    pub(super) owner: String,
    /// The uid of the Operator that the controller made it for; `None` if the controller did not make it.
    pub(super) made_for: Option<String>,
    /// Whether it has our finalizer.
    is_held: bool,
    /// Whether it is being deleted.
    is_terminating: bool,
    /// The spec, or the reason that it is not used, as a clause.
    pub(super) spec: Result<OperatorRevisionSpec, String>,
}

impl ShownRevision {
    /// Reads an OperatorRevision. Without a key, none counts as made by the controller.
    pub(super) fn read(name: &str, object: &Value, key: Option<&RevisionKey>) -> Self {
        let metadata = &object["metadata"];
        let spec = parse::revision(object);
        let label = || metadata["labels"][OPERATOR_LABEL].as_str().unwrap_or_default().to_owned();
        let operator = spec.as_ref().map_or_else(|_| label(), |it| it.operator.clone());
        let provenance = key.map_or(Provenance::Unknown, |it| it.provenance(name, object));
        let (made_for, spec) = match provenance {
            Provenance::Of(uid) => (Some(uid), spec.map_err(|error| error.to_string())),
            Provenance::Earlier => (None, Err(SIGNED_EARLIER.to_owned())),
            Provenance::Unknown => (None, Err(NOT_SIGNED.to_owned())),
        };
        let finalizers = metadata["finalizers"].as_array();
        Self {
            uid: uid(object).to_owned(),
            operator,
            owner: controller(metadata).to_owned(),
            made_for,
            is_held: finalizers.into_iter().flatten().any(|it| *it == DELETION_FINALIZER),
            is_terminating: metadata["deletionTimestamp"].is_string(),
            spec,
        }
    }

    /// Returns what is known of it from then on. Its number is that in its name if the spec cannot be read.
    pub(super) fn written(&self, name: &str) -> WrittenRevision {
        let in_name = || -> Option<u32> {
            name.strip_prefix(&self.operator)?.split('-').nth(1)?.parse().ok()
        };
        let number = match &self.spec {
            Ok(spec) => Some(spec.revision),
            Err(_) => in_name().filter(|_| self.made_for.is_some()),
        };
        WrittenRevision {
            uid: self.uid.clone(),
            operator: self.operator.clone(),
            owner: self.owner.clone(),
            number,
            made_for: self.made_for.clone(),
            is_held: self.is_held,
            is_terminating: self.is_terminating,
        }
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

/// Finalizer that an API server adds to what is deleted with `--cascade=orphan`, and removes soon after.
const ORPHAN_FINALIZER: &str = "orphan";

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
    let deleted: Option<Timestamp> = time("deletionTimestamp");
    let has_orphan = deleted.is_some() && finalizers.iter().any(|it| *it == ORPHAN_FINALIZER);
    let mut shown = OperatorObject {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        finalizers: finalizers.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect(),
        deleted,
        is_orphaning: has_orphan || known.is_some_and(|it| it.is_orphaning),
        spec: OperatorSpec::default(),
        inspected: metadata["annotations"][INSPECTED_ANNOTATION].as_str().map(Inspection::read),
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
        is_of_user: metadata["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_USER,
        is_undeclared: false,
        change_set: change_set.map(str::to_owned),
        is_deleting: shown.deleted.is_some(),
        installed: None,
        returns_to: None,
        owned: BTreeSet::new(),
    };
    ShownOperator { object: shown, request, status: read_usable(&object["status"]) }
}
