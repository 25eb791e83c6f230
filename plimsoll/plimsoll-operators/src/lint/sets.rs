//! Operators that can only be updated together, and change sets with more members than they say.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;

use super::LintInputs;
use crate::loadout::{ConvergedOperators, converge};
use crate::{OperatorAction, RequestedOperator, change_set};

/// Returns the Operators that block each other, each with the annotation of the change set that updates all
/// of them; none that can be updated alone, or not even together.
pub(super) fn deadlocks(
    inputs: LintInputs<'_>,
    converged: &ConvergedOperators,
) -> BTreeMap<String, String> {
    let is_waiting = |name: &str| {
        let decision = converged.decisions.get(name)?;
        let block = match &decision.action {
            OperatorAction::Blocked(block) => Some(block),
            _ => decision.held_back.as_ref(),
        }?;
        let operator = converged.operators.get(name)?;
        (block.reason == Reason::UpgradeBlocked && operator.change_set.is_none())
            .then_some(block.message.as_str())
    };
    let waiting: BTreeMap<&str, &str> =
        converged.operators.keys().filter_map(|it| Some((it.as_str(), is_waiting(it)?))).collect();
    let mut together = BTreeMap::new();
    let mut left: BTreeSet<&str> = waiting.keys().copied().collect();
    while let Some(first) = left.pop_first() {
        // Operators are linked by their current requirements.
        let mut members = BTreeSet::from([first]);
        let mut queue = vec![first];
        while let Some(name) = queue.pop() {
            for other in left.clone() {
                if is_linked(converged, name, other) || is_linked(converged, other, name) {
                    left.remove(other);
                    members.insert(other);
                    queue.push(other);
                }
            }
        }
        if members.len() < 2 {
            continue;
        }
        let id: Vec<&str> = members.iter().copied().collect();
        let set = format!("{}/{}", id.join("-"), members.len());
        let mut operators = converged.operators.clone();
        for name in &members {
            if let Some(operator) = operators.get_mut(*name) {
                operator.change_set = Some(set.clone());
            }
        }
        let after = converge(inputs.deciding(&operators), inputs.catalogs);
        let has_moved = |name: &str| {
            let bundle = |of: &BTreeMap<String, RequestedOperator>| {
                Some(of.get(name)?.installed.as_ref()?.reference.clone())
            };
            let decision = after.decisions.get(name);
            decision.is_some_and(|it| it.action == OperatorAction::Keep)
                && bundle(&after.operators) != bundle(&operators)
        };
        if members.iter().all(|it| has_moved(it)) {
            together.extend(members.iter().map(|it| ((*it).to_owned(), set.clone())));
        }
    }
    together
}

/// Returns what is wrong with the change set of an Operator that has more members than the annotation says, as a
/// sentence without a full stop, and what to do; `None` if it has not more.
pub(super) fn surplus(converged: &ConvergedOperators, name: &str) -> Option<(String, String)> {
    let operators = &converged.operators;
    let set = change_set::of(operators.get(name)?)?.ok()?;
    let members = change_set::members(operators, &set);
    if members.len() <= set.members {
        return None;
    }
    let message = format!(
        "change set {} has {} Operators instead of {}: {}; it does not wait for all of them",
        set.id,
        members.len(),
        set.members,
        members.join(", ")
    );
    let help = format!(
        "set the number of members of each to {}, or give those of another change set another id",
        members.len()
    );
    Some((message, help))
}

/// Returns whether the installed Operator `name` depends on `on`.
fn is_linked(converged: &ConvergedOperators, on: &str, name: &str) -> bool {
    let decision = converged.decisions.get(on);
    decision.is_some_and(|it| it.dependants.iter().any(|it| it.operator == name))
}
