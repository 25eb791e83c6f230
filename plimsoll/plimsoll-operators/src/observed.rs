//! Operators as the API server has them.

use plimsoll_api::config::UpdateState;
use plimsoll_api::olm::{
    CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, OperatorSpec,
    OperatorStatus, action,
};
use plimsoll_api::read_usable;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads an object as a whole.
///
/// # Errors
///
/// The first field that cannot be read, and what is wrong with it.
pub fn read_object<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(object).map_err(|error| {
        let path = error.path().to_string();
        let cause = error.into_inner();
        if path == "." { cause.to_string() } else { format!("{path}: {cause}") }
    })
}

/// An Operator with its status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedOperator {
    /// The uid of the object; empty if it has none.
    pub uid: String,
    /// The generation of its spec.
    pub generation: i64,
    /// Whether it was installed as a dependency of another Operator.
    pub is_dependency: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// The annotation [`CHANGE_SET_ANNOTATION`]; `None` without one.
    pub change_set: Option<String>,
    /// The uid of the Action that created it; `None` if no Action did.
    pub created_by: Option<String>,
    /// The namespace of that Action; `None` if no Action did.
    pub created_in: Option<String>,
    /// The annotation [`action::TRIGGERED_BY_ANNOTATION`]; `None` without one.
    pub triggered_by: Option<String>,
    /// The annotation [`action::TRIGGERED_GENERATION_ANNOTATION`]; `None` without one.
    pub triggered_generation: Option<String>,
    /// The requested spec.
    pub spec: OperatorSpec,
    /// The reported status.
    pub status: OperatorStatus,
}

impl ObservedOperator {
    /// Reads an object. Fields that cannot be read count as absent.
    pub fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let annotation = |name: &str| text(&metadata["annotations"][name]);
        Self {
            uid: text(&metadata["uid"]).unwrap_or_default(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            is_dependency: metadata["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_DEPENDENCY,
            is_deleting: metadata["deletionTimestamp"].is_string(),
            change_set: annotation(CHANGE_SET_ANNOTATION),
            created_by: annotation(action::CREATED_BY_ANNOTATION),
            created_in: annotation(action::CREATED_IN_ANNOTATION),
            triggered_by: annotation(action::TRIGGERED_BY_ANNOTATION),
            triggered_generation: annotation(action::TRIGGERED_GENERATION_ANNOTATION),
            spec: read_usable(&object["spec"]),
            status: read_usable(&object["status"]),
        }
    }

    /// Returns the number of the revision that was completed last; `None` if none was.
    pub fn installed_revision(&self) -> Option<u32> {
        let mut history = self.status.history.iter();
        history.find(|it| it.state == UpdateState::Completed).map(|it| it.revision)
    }

    /// Returns the installed version; empty if none is installed.
    pub fn version(&self) -> &str {
        action::installed_version(&self.status)
    }
}
