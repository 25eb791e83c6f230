//! What evaluating an expression may cost, known from its text and the sizes of its inputs.
//!
//! A CRD's rules are accepted or rejected by this number, so it is cel-go's to the unit, where
//! Kubernetes' estimator adds to it.
//!
//! Upstream: github.com/google/cel-go/checker/cost.go: Cost
mod estimator;
mod range;

use crate::Type;
use crate::check::Checked;

pub use range::{CostEstimate, SizeEstimate};

/// Knows the sizes that the inputs of an expression can have.
pub trait SizeEstimator {
    /// The size of what lies at a path: a variable's name, then field names, `@items`, `@keys`
    /// and `@values`. An empty path is something that no variable leads to.
    fn size(&self, path: &[String], of: &Type) -> Option<SizeEstimate>;
}

/// An estimator that knows no sizes.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn size(&self, _path: &[String], _of: &Type) -> Option<SizeEstimate> {
        None
    }
}

/// Estimates the cost of a checked expression.
pub(crate) fn estimate(checked: &Checked, sizes: &dyn SizeEstimator) -> CostEstimate {
    estimator::CostEstimator::new(checked, sizes).cost(&checked.root)
}
