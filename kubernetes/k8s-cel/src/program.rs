//! A compiled expression.
//!
//! Upstream: github.com/google/cel-go/cel/program.go: Program
use std::sync::Arc;

use crate::ast::{Expr, ExprKind};
use crate::check::Checked;
use crate::cost::{CostEstimate, SizeEstimator};
use crate::plan::Plan;
use crate::types::Type;
use crate::{Bindings, Budget, EvaluationError, Value, cost, evaluate};

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Program {
    source: String,
    checked: Arc<Checked>,
    plan: Arc<Plan>,
}

impl Program {
    pub(crate) fn new(source: &str, checked: Checked, plan: Plan) -> Self {
        Self { source: source.to_owned(), checked: Arc::new(checked), plan: Arc::new(plan) }
    }

    /// The text that was compiled.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The type of the value.
    pub fn result_type(&self) -> &Type {
        self.checked.type_of(&self.checked.root)
    }

    /// Whether the expression reads a variable of the environment.
    pub fn reads(&self, variable: &str) -> bool {
        reads(&self.checked.root, variable)
    }

    /// The value for these bindings. The cost is taken off the budget, whether there is a value or
    /// not.
    ///
    /// # Errors
    /// When the expression fails, costs more than [`crate::EXPRESSION_COST_LIMIT`], or more than what is
    /// left of the budget.
    pub fn evaluate(
        &self,
        bindings: &Bindings,
        budget: &mut Budget,
    ) -> Result<Value, EvaluationError> {
        let (outcome, cost) = evaluate::run(&self.plan, bindings);
        let affordable = budget.spend(cost);
        let outcome = outcome?;
        if affordable { Ok(outcome) } else { Err(EvaluationError::OutOfBudget) }
    }

    /// What evaluating may cost, if sizes are what `sizes` says.
    pub fn estimate_cost(&self, sizes: &dyn SizeEstimator) -> CostEstimate {
        cost::estimate(&self.checked, sizes)
    }
}

/// Whether an identifier in the tree names the variable; names of comprehensions hide it.
fn reads(expr: &Expr, variable: &str) -> bool {
    match &expr.kind {
        ExprKind::Ident(name) => name.strip_prefix('.').unwrap_or(name) == variable,
        ExprKind::Comprehension(comprehension) => {
            let hides = |name: &str| name == variable;
            let hidden = hides(&comprehension.variable)
                || comprehension.second.as_deref().is_some_and(hides)
                || hides(&comprehension.accumulator);
            reads(&comprehension.range, variable)
                || reads(&comprehension.start, variable)
                || (!hidden
                    && [&comprehension.condition, &comprehension.step, &comprehension.result]
                        .iter()
                        .any(|part| reads(part, variable)))
        }
        _ => expr.children().iter().any(|child| reads(child, variable)),
    }
}
