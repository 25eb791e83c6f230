//! Preconditions of plans, which must hold before anything is changed.

use jiff::Timestamp;
use k8s_cel::{Bindings, Budget, EXPRESSION_COST_LIMIT, Environment, Type, Value};
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ActionPreconditions, PlanExpression};

use super::plan::{ActionPlan, workloads_of};
use super::schedule::is_open;
use super::{ActionFailure, enumerated};

/// Returns a failure for each precondition that a plan violates.
pub fn violations(
    plan: &ActionPlan,
    preconditions: &ActionPreconditions,
    now: Timestamp,
) -> Vec<ActionFailure> {
    let mut found = Vec::new();
    let failed = |text: String| ActionFailure::new(Reason::PreconditionFailed, text);
    if preconditions.consistent && !plan.unsatisfied.is_empty() {
        found.push(failed(format!("consistent: {}", plan.unsatisfied.join("; "))));
    }
    if preconditions.no_workload_removal {
        let workloads = workloads_of(&plan.changes);
        if !workloads.is_empty() {
            let message = format!("noWorkloadRemoval: {} would go", enumerated(&workloads));
            found.push(ActionFailure::new(Reason::WorkloadsRunning, message));
        }
    }
    if preconditions.no_orphans && !plan.orphans.is_empty() {
        let orphans = enumerated(&plan.orphans);
        found.push(failed(format!("noOrphans: nothing would depend on {orphans} any more")));
    }
    if let Some(window) = &preconditions.within_maintenance_window {
        match is_open(window, now) {
            Ok(Ok(())) => {}
            Ok(Err(opens)) => {
                let opens = opens.map(|it| format!(", it opens {it}")).unwrap_or_default();
                found.push(failed(format!("withinMaintenanceWindow: it is not open{opens}")));
            }
            Err(why) => found.push(failed(format!("withinMaintenanceWindow: {why}"))),
        }
    }
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
