//! What the status tells of updates that may come or are held up.

use plimsoll_api::config::Release;
use plimsoll_api::{Condition, ConditionStatus, Reason};

use super::Builder;
use crate::update::available::Retrieved;
use crate::update::preconditions::BrokenOperator;

/// Where updates lead, and what holds them up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updates {
    /// What the payload store offers; `None` if there is no store or it cannot be read.
    pub available: Option<Vec<Release>>,
    /// Whether that could be found out.
    pub retrieved: Retrieved,
    /// What an administrator has to acknowledge before a minor update.
    pub acknowledgement: Option<(Reason, String)>,
    /// The installed Operators that do not run on the next minor version.
    pub incompatible: Vec<BrokenOperator>,
    /// The run level that the update is paused before.
    pub paused_before: Option<u32>,
}

impl Default for Updates {
    /// No source of updates.
    fn default() -> Self {
        let message = "The update channel has not been configured.".to_owned();
        Self {
            available: None,
            retrieved: Err((Reason::NoChannel, message)),
            acknowledgement: None,
            incompatible: Vec::new(),
            paused_before: None,
        }
    }
}

pub(super) fn retrieved(build: &Builder, updates: &Updates) -> Condition {
    match &updates.retrieved {
        Ok(()) => build.plain("RetrievedUpdates", ConditionStatus::True, "", ""),
        Err((reason, message)) => {
            build.with("RetrievedUpdates", ConditionStatus::False, *reason, message)
        }
    }
}
