//! Operators that a search may change.

use std::collections::BTreeSet;

use super::Search;
use crate::planner::related::related;

impl<'a> Search<'a> {
    /// Returns the packages that may be changed: those that are connected with what is named, and with what an
    /// update moves besides; `None` for all. What is left out stays, and costs nothing.
    pub(super) fn concerned(&self) -> Option<BTreeSet<&'a str>> {
        let wanted = &self.request.wanted;
        if wanted.is_empty() {
            return None;
        }
        let named = wanted.keys().map(String::as_str);
        related(self.inputs, self.catalogs, named.chain(self.requested()))
    }
}
