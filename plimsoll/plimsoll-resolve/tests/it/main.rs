//! The resolver as its users see it: problems in, solutions and explanations out.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, also where they are not test functions"
)]

mod answers;
mod catalog;
mod hostile;
mod laws;
mod rules;

use plimsoll_resolve::{Expressions, Property};

/// Holds for no bundle: the catalogs of these tests have no expressions.
struct NoExpressions;

impl Expressions for NoExpressions {
    fn evaluate(
        &self,
        _: &str,
        candidates: &[&[Property]],
        _: &mut u64,
    ) -> Result<Vec<bool>, String> {
        Ok(vec![false; candidates.len()])
    }
}
