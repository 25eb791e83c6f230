//! How long things may take before they are called slow or failed: three things that people must be
//! able to tell apart.

use std::collections::BTreeMap;

use jiff::SignedDuration;

/// The ClusterOperator that takes its time: it drains and restarts one node after the other.
pub const SLOW_NODES_OPERATOR: &str = "machine-config";

/// How long things may take; a setting of the controller, with the defaults of CV-14.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long an ordinary wait is ordinary: longer ones are called slow.
    pub slow_after: SignedDuration,
    /// The same for ClusterOperators that take longer than others.
    pub slow_after_for: BTreeMap<String, SignedDuration>,
    /// How long a degraded operator is given to recover before the update counts as failing.
    pub degraded_tolerated: SignedDuration,
}

impl Default for Limits {
    fn default() -> Self {
        let nodes = (SLOW_NODES_OPERATOR.to_owned(), SignedDuration::from_mins(90));
        Self {
            slow_after: SignedDuration::from_mins(30),
            slow_after_for: [nodes].into(),
            degraded_tolerated: SignedDuration::from_mins(40),
        }
    }
}

impl Limits {
    /// How long a wait for these operators, or for none, is ordinary.
    pub(super) fn slow_after(&self, operators: &[String]) -> SignedDuration {
        let own = operators.iter().filter_map(|name| self.slow_after_for.get(name)).max();
        own.copied().unwrap_or(self.slow_after)
    }
}
