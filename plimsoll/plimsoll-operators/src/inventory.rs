//! The inventory that changes are planned from.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::{ClusterFacts, Expressions};

use super::observed::ObservedOperator;
use super::{OperatorInputs, RequestedOperator};

/// The Operators, the catalogs that are unavailable, and the facts about the cluster.
#[derive(Debug, Clone, Default)]
pub struct OperatorInventory {
    /// All Operators, with the installed bundle of each.
    pub operators: BTreeMap<String, RequestedOperator>,
    /// The same Operators as the API server has them.
    pub observed: BTreeMap<String, ObservedOperator>,
    /// The objects that the release contains, as texts; empty unless Operators are to be deleted.
    pub of_release: BTreeSet<String>,
    /// The catalogs that are not served, with the reason.
    pub unavailable: BTreeMap<String, String>,
    /// The names of the packages of all catalogs, which a message about another one hints at; empty unless
    /// Actions are planned.
    pub offered: BTreeSet<String>,
    /// The facts about the cluster.
    pub facts: ClusterFacts,
}

impl OperatorInventory {
    /// Returns the inputs of decisions on Operators.
    pub fn inputs<'a>(&'a self, expressions: &'a dyn Expressions) -> OperatorInputs<'a> {
        OperatorInputs {
            operators: &self.operators,
            unavailable: &self.unavailable,
            facts: &self.facts,
            expressions,
        }
    }
}
