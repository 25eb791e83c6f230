//! A compiled expression and what it is evaluated with.
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, ExprKind};
use crate::check::Checked;
use crate::cost::{CostEstimate, SizeEstimator};
use crate::plan::Plan;
use crate::types::Type;
use crate::{EvaluationError, Value, cost, evaluate};

/// Most that evaluating one expression may cost.
pub const EXPRESSION_COST_LIMIT: u64 = 1_000_000;
/// Most that all expressions of one request may cost.
pub const REQUEST_COST_LIMIT: u64 = 10_000_000;
/// Most that the match conditions of one webhook or policy may cost.
pub const MATCH_CONDITIONS_COST_LIMIT: u64 = 2_500_000;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Program {
    source: String,
    checked: Arc<Checked>,
    plan: Arc<Plan>,
}

/// The values of an environment's variables.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    values: BTreeMap<String, Value>,
}

impl Bindings {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with the value of one more variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Sets the value of a variable.
    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

/// What the expressions of a request may still cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    remaining: u64,
    spent: u64,
}

impl Budget {
    /// A budget of so many units.
    pub fn new(limit: u64) -> Self {
        Self { remaining: limit, spent: 0 }
    }

    /// What is left.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// What was spent.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Takes a cost off; false if the budget does not suffice, which leaves nothing of it.
    pub fn spend(&mut self, cost: u64) -> bool {
        self.spent = self.spent.saturating_add(cost);
        let enough = cost <= self.remaining;
        self.remaining = self.remaining.saturating_sub(cost);
        enough
    }
}

impl Default for Budget {
    /// What Kubernetes grants one request.
    fn default() -> Self {
        Self::new(REQUEST_COST_LIMIT)
    }
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
    /// When the expression fails, costs more than [`EXPRESSION_COST_LIMIT`], or more than what is
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
        ExprKind::Fold(fold) => {
            let hides = |name: &str| name == variable;
            let hidden = hides(&fold.variable)
                || fold.second.as_deref().is_some_and(hides)
                || hides(&fold.accumulator);
            reads(&fold.range, variable)
                || reads(&fold.start, variable)
                || (!hidden
                    && [&fold.condition, &fold.step, &fold.result]
                        .iter()
                        .any(|part| reads(part, variable)))
        }
        _ => expr.children().iter().any(|child| reads(child, variable)),
    }
}
