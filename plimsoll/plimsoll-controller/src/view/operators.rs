//! Metrics of the add-on layer.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::OperatorStatus;
use serde::Deserialize as _;
use serde_json::Value;

/// The Operators of a cluster, as a controller that leads sees them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperatorsView {
    /// Whether this process is the leader; what is reported of Operators is of the leader alone.
    pub is_leader: bool,
    /// Kinds that the leader has to list before it can work, or again after their watch was lost, by
    /// their names in the plural.
    pub unlisted: BTreeSet<&'static str>,
    /// By name.
    pub operators: BTreeMap<String, OperatorView>,
    /// Steps of Operators executed while this process was the leader, by action and result.
    pub executions: BTreeMap<(&'static str, &'static str), u64>,
    /// Objects of Operators that were repaired while this process was the leader.
    pub drift_repairs: u64,
    /// Number of Actions by state.
    pub actions: BTreeMap<&'static str, usize>,
    /// Number of Actions that failed while this process was the leader, by class and reason.
    pub actions_failed: BTreeMap<(String, String), u64>,
}

/// An Operator, as its status reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperatorView {
    /// Its version; empty before the first installation.
    pub version: String,
    /// Its conditions.
    pub conditions: Vec<MetaCondition>,
    /// Objects that do not go, while it is being deleted.
    pub stuck: usize,
}

impl OperatorsView {
    /// An Operator changed; `None` when it is gone. Returns whether anything that is reported did.
    pub(crate) fn observed(&mut self, name: &str, object: Option<&Value>) -> bool {
        match object {
            Some(object) => {
                let view = OperatorView::of(object);
                let before = self.operators.insert(name.to_owned(), view);
                before.as_ref() != self.operators.get(name)
            }
            None => self.operators.remove(name).is_some(),
        }
    }
}

impl OperatorView {
    fn of(object: &Value) -> Self {
        let status = OperatorStatus::deserialize(&object["status"]).unwrap_or_default();
        Self {
            version: status.bundle.map(|it| it.version).unwrap_or_default(),
            conditions: status.conditions,
            stuck: status.deletion.map_or(0, |it| it.stuck.len()),
        }
    }
}
