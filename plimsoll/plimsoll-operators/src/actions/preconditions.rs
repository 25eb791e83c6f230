//! Preconditions of plans, which must hold before anything is changed.

use jiff::Timestamp;
use k8s_cel::{Bindings, Budget, EXPRESSION_COST_LIMIT, Environment, Type, Value};
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ActionPreconditions, ChangeOperation, PlanExpression, PlannedChange,
};

use super::plan::{ActionPlan, workloads_of};
use super::{ActionFailure, enumerated};
use plimsoll_plan::windows::MaintenanceWindows;

/// The names of the preconditions, as specs have them.
const CONSISTENT: &str = "consistent";
const NO_WORKLOAD_REMOVAL: &str = "noWorkloadRemoval";
const NO_ORPHANS: &str = "noOrphans";
const NO_DEFINITION_REMOVAL: &str = "noDefinitionRemoval";
const NO_NEW_CLUSTER_PERMISSIONS: &str = "noNewClusterPermissions";
const WINDOW: &str = "withinMaintenanceWindow";
const EXPRESSIONS: &str = "expressions";

/// Returns a failure for each precondition that a plan violates which begins now, in a cluster with these
/// MaintenanceWindows.
pub fn violations(
    plan: &ActionPlan,
    preconditions: &ActionPreconditions,
    windows: &MaintenanceWindows,
    now: Timestamp,
) -> Vec<ActionFailure> {
    let mut found = Vec::new();
    if preconditions.consistent
        && let Some(first) = plan.unsatisfied.first()
    {
        let violation = violated(CONSISTENT, &plan.unsatisfied.join("; "));
        // Such a sentence begins with the Operator that has the requirement.
        found.push(violation.on(first.split(' ').next().unwrap_or_default()));
    }
    if preconditions.no_workload_removal {
        let workloads = workloads_of(&plan.changes);
        let is_removed = |it: &&PlannedChange| {
            it.operation == ChangeOperation::Delete && !it.workloads.is_empty()
        };
        if let Some(first) = plan.changes.iter().find(is_removed) {
            let text = format!("{} would go", enumerated(&workloads));
            let violation = violated(NO_WORKLOAD_REMOVAL, &text).on(first.subject());
            found.push(ActionFailure { reason: Reason::WorkloadsRunning, ..violation });
        }
    }
    if preconditions.no_orphans
        && let Some(first) = plan.orphans.first()
    {
        let text = format!("nothing would depend on {} any more", enumerated(&plan.orphans));
        found.push(violated(NO_ORPHANS, &text).on(first));
    }
    if preconditions.no_definition_removal {
        found.extend(of_changes(plan, NO_DEFINITION_REMOVAL, |change| {
            let text =
                || format!("{} of {} would go", enumerated(&change.definitions), change.operator);
            (!change.definitions.is_empty()).then(text)
        }));
    }
    if preconditions.no_new_cluster_permissions {
        found.extend(of_changes(plan, NO_NEW_CLUSTER_PERMISSIONS, |change| {
            let text = || {
                let permissions = change.new_cluster_permissions.join("; ");
                format!(
                    "{} v{} would get in all namespaces: {permissions}",
                    change.operator, change.version
                )
            };
            (!change.new_cluster_permissions.is_empty()).then(text)
        }));
    }
    if let Some(window) = &preconditions.within_maintenance_window
        && let Err(why) = windows.check(window, now)
    {
        found.push(violated(WINDOW, &why));
    }
    let failed = |message: String| ActionFailure {
        precondition: Some(EXPRESSIONS),
        ..ActionFailure::new(Reason::PreconditionFailed, message)
    };
    for expression in &preconditions.expressions {
        let said = || match expression.message.as_str() {
            "" => format!("`{}` does not hold", expression.expression),
            message => message.to_owned(),
        };
        match holds(expression, plan) {
            Ok(true) => {}
            Ok(false) => found.push(failed(said())),
            Err(why) => found.push(failed(format!("`{}`: {why}", expression.expression))),
        }
    }
    found
}

/// Returns the failure of a precondition that some changes of a plan violate, on the first of them.
fn of_changes(
    plan: &ActionPlan,
    precondition: &'static str,
    violation: impl Fn(&PlannedChange) -> Option<String>,
) -> Option<ActionFailure> {
    let mut violating = plan.changes.iter().filter_map(|it| Some((it, violation(it)?)));
    let (first, text) = violating.next()?;
    let texts: Vec<String> = [text].into_iter().chain(violating.map(|(_, text)| text)).collect();
    Some(violated(precondition, &texts.join("; ")).on(first.subject()))
}

/// Creates the failure of a precondition.
fn violated(precondition: &'static str, text: &str) -> ActionFailure {
    let message = format!("{precondition}: {text}");
    ActionFailure {
        precondition: Some(precondition),
        ..ActionFailure::new(Reason::PreconditionFailed, message)
    }
}

fn holds(expression: &PlanExpression, plan: &ActionPlan) -> Result<bool, String> {
    let environment = Environment::for_stored_expressions().with_variable("plan", Type::Dyn);
    let program =
        environment.compile(&expression.expression).map_err(|errors| errors.to_string())?;
    let bindings = Bindings::new().with("plan", Value::from_json(&plan.value()));
    match program.evaluate(&bindings, &mut Budget::new(EXPRESSION_COST_LIMIT)) {
        Ok(Value::Bool(holds)) => Ok(holds),
        Ok(_) => Err("its value is not true or false".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
