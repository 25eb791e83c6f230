//! What evaluating an expression may cost, known from its text and the sizes of its inputs.

/// A range of costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

/// A range of sizes, in what `size()` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeEstimate {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

/// Knows how large the inputs of an expression can be.
pub trait SizeEstimator {
    /// The size of what lies at a path: a variable's name, then field names, `@items`, `@keys`
    /// and `@values`. An empty path is something that no variable leads to.
    fn size(&self, path: &[String], of: &crate::Type) -> Option<SizeEstimate>;
}

/// Knows nothing of any size.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn size(&self, _path: &[String], _of: &crate::Type) -> Option<SizeEstimate> {
        None
    }
}
