//! What plans of changes are made from.

use std::collections::BTreeMap;

use plimsoll_resolve::{ClusterFacts, Expressions};

use super::observed::ObservedOperator;
use super::{OperatorInputs, RequestedOperator};

/// What plans are made from.
#[derive(Debug, Clone, Default)]
pub struct AddOnInventory {
    /// All Operators, with what is installed of them.
    pub operators: BTreeMap<String, RequestedOperator>,
    /// All Operators as the API server has them.
    pub observed: BTreeMap<String, ObservedOperator>,
    /// The catalogs that are not served, with the reason.
    pub unavailable: BTreeMap<String, String>,
    /// What is known of the cluster.
    pub facts: ClusterFacts,
}

impl AddOnInventory {
    /// What decisions on Operators are made from.
    pub fn inputs<'a>(&'a self, expressions: &'a dyn Expressions) -> OperatorInputs<'a> {
        OperatorInputs {
            operators: &self.operators,
            unavailable: &self.unavailable,
            facts: &self.facts,
            expressions,
        }
    }
}
