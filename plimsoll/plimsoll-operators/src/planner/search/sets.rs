//! Change sets of a plan: what is connected and cannot be changed one by one.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::planner::related;

/// Changed Operators that are connected, some of which cannot be changed alone.
pub(super) struct Inseparable {
    /// Their names.
    pub(super) members: BTreeSet<String>,
    /// What prevents the first one that cannot be changed alone; `None` if all can.
    pub(super) missed: Option<Missed>,
}

impl Search<'_> {
    /// Returns the groups of connected Operators some of which cannot be changed alone, so that what waits holds up
    /// nothing else; all that are written are one if a requirement does not name what satisfies it.
    pub(super) fn inseparable(
        &self,
        proposed: &ChosenBundles<'_>,
        written: &BTreeSet<String>,
        operators: &BTreeMap<String, RequestedOperator>,
        converged: &ConvergedOperators,
    ) -> Vec<Inseparable> {
        let missed = self.all_missed(proposed, written, operators, converged);
        let inputs = OperatorInputs { operators, ..self.inputs };
        let all = || vec![written.iter().map(String::as_str).collect()];
        let groups = related::groups(inputs, self.present, self.catalogs).unwrap_or_else(all);
        let inseparable = groups.into_iter().filter_map(|names| {
            let mut refused = missed.iter().filter(|it| matches!(it, Missed::Refused(_)));
            let first = refused.find(|it| names.contains(it.name()))?;
            let members = written.iter().filter(|it| names.contains(it.as_str()));
            Some(Inseparable { members: members.cloned().collect(), missed: Some(first.clone()) })
        });
        inseparable.collect()
    }
}
