//! Deletions.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_api::olm::{CrdDeletion, RemainingObjects};
use serde_json::json;

use super::{AUTOREMOVE, ActionFailure, ActionPlan, Planner, named, no_operator};
use crate::actions::attributes::EffectiveAction;
use crate::deletion_plan::{DeletionPlan, DeletionRequest, depend, orphans};
use crate::inventory::OperatorInventory;
use crate::planned_change::removal;

/// The parameter that keeps definitions.
const KEEP_CRDS: &str = "parameters.keepCRDs";

impl Planner<'_> {
    pub(super) fn delete(
        &self,
        workloads: &BTreeMap<String, Vec<RemainingObjects>>,
    ) -> Result<ActionPlan, ActionFailure> {
        let plan = deletion(self.action, self.inventory, workloads)?;
        if self.ensures_constraints()
            && let Some(broken) = plan.broken.first()
        {
            let dependants = plan.dependants_of(&broken.operator);
            let dependants: Vec<String> = dependants.into_iter().map(str::to_owned).collect();
            let depend = depend(&dependants);
            let message = format!("{} is not deleted: {depend} on it", broken.operator);
            let failure = ActionFailure::new(Reason::DependedUpon, message);
            return Err(failure.on(broken.operator.as_str()));
        }
        let keeps_definitions = self.action.is_set(KEEP_CRDS);
        let changes = plan.delete.iter().map(|it| {
            let there = self.inventory.observed.get(&it.name);
            let mut change = removal(it, there);
            let is_kept = there.is_none_or(|it| it.spec.deletion.crds == CrdDeletion::Orphan);
            if keeps_definitions && !is_kept {
                change.spec_fields = Some(json!({ "deletion": { "crds": CrdDeletion::Orphan } }));
            }
            change
        });
        let explanation = plan.text().lines().map(str::to_owned).collect();
        let broken = plan.broken.iter();
        let broken = broken.map(|it| format!("{} depends on {}", it.dependant, it.operator));
        Ok(ActionPlan {
            changes: changes.collect(),
            explanation,
            unsatisfied: broken.collect(),
            orphans: plan.orphans.clone(),
            result: String::new(),
        })
    }
}

/// Plans a deletion, or the deletion of all dependencies that nothing depends on.
///
/// # Errors
///
/// When an Operator that is named does not exist.
pub(super) fn deletion(
    action: &EffectiveAction,
    inventory: &OperatorInventory,
    workloads: &BTreeMap<String, Vec<RemainingObjects>>,
) -> Result<DeletionPlan, ActionFailure> {
    let is_autoremove = action.class == AUTOREMOVE;
    let names: BTreeSet<String> = match is_autoremove {
        true => orphans(&inventory.observed).names,
        false => named(action).into_iter().map(|it| it.name).collect(),
    };
    if let Some(name) = names.iter().find(|it| !inventory.observed.contains_key(*it)) {
        return Err(no_operator(name, inventory));
    }
    Ok(DeletionPlan::new(&DeletionRequest {
        operators: &inventory.observed,
        workloads,
        conversions: &BTreeMap::new(),
        of_release: &inventory.of_release,
        names: &names,
        cascade: is_autoremove || action.is_set("parameters.cascade"),
        keep_crds: action.is_set(KEEP_CRDS),
    }))
}
