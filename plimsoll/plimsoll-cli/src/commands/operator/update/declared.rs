//! The Operators that an update of a directory may be about.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use plimsoll_operators::RequestedOperator;

use super::NamedOperators;

impl NamedOperators {
    /// Fails unless there are Operators to update, and none of those that are named is one that the cluster has
    /// and `directory` does not declare.
    ///
    /// # Errors
    ///
    /// When there are none, or one is.
    pub(super) fn require_declared(
        &self,
        directory: Option<&Path>,
        operators: &BTreeMap<String, RequestedOperator>,
    ) -> Result<(), anyhow::Error> {
        let is_empty = operators.values().all(|it| it.is_undeclared);
        let Some(directory) = directory else {
            if is_empty {
                bail!("the cluster has no Operators: `operator install` installs some");
            }
            return Ok(());
        };
        if is_empty {
            bail!("`{}` has no Operators", directory.display());
        }
        for name in self.names.iter().chain(self.ranges.keys()) {
            if operators.get(name).is_some_and(|it| it.is_undeclared) {
                bail!(
                    "`{}` does not declare Operator `{name}` of the cluster: `operator resolve {name}` writes \
                     a file of it",
                    directory.display()
                );
            }
        }
        Ok(())
    }
}
