//! What evaluation may cost, in the units of cel-go and of Kubernetes' estimators.
//!
//! Upstream: k8s.io/apiserver/pkg/apis/cel/config.go: PerCallLimit
//! Upstream: k8s.io/apiserver/pkg/apis/cel/config.go: RuntimeCELCostBudget
//! Upstream: k8s.io/apiserver/pkg/apis/cel/config.go: RuntimeCELCostBudgetMatchConditions

/// Most that evaluating one expression may cost.
pub const EXPRESSION_COST_LIMIT: u64 = 1_000_000;
/// Most that all expressions of one request may cost.
pub const REQUEST_COST_LIMIT: u64 = 10_000_000;
/// Most that the match conditions of one webhook or policy may cost.
pub const MATCH_CONDITIONS_COST_LIMIT: u64 = 2_500_000;

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

    /// The cost units that are left.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The cost units that were spent, beyond the limit too.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Takes a cost off. Returns false, and leaves nothing, if less than the cost is left.
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
