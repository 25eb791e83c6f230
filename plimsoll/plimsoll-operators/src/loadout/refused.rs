//! Operators that come to no bundle.

use std::collections::BTreeMap;

use plimsoll_resolve::CatalogPart;

use super::ConvergedOperators;
use crate::selection::unknown_source;
use crate::{OperatorAction, OperatorBlock, OperatorInputs};

impl ConvergedOperators {
    /// Returns the Operators that come to no bundle, by name, each with the reason. Those that request none, since they
    /// are paused or being deleted, are not among them.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &OperatorBlock)> {
        self.decisions.iter().filter_map(move |(name, decision)| {
            let operator = self.operators.get(name)?;
            match &decision.action {
                OperatorAction::Blocked(block) if operator.installed.is_none() => {
                    Some((name.as_str(), block))
                }
                _ => None,
            }
        })
    }

    /// Returns the Operators that only keep what is installed, by name, each with the reason: the channel or the
    /// catalog that they request does not exist. `inputs` are those that the Operators were converged with.
    pub fn without_source(
        &self,
        inputs: OperatorInputs<'_>,
        catalogs: &[CatalogPart],
    ) -> BTreeMap<&str, OperatorBlock> {
        let installed = self.operators.iter().filter(|(_, it)| it.installed.is_some());
        let unknown = installed.filter_map(|(name, it)| {
            Some((name.as_str(), unknown_source(inputs, catalogs, name, it)?))
        });
        unknown.collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::loadout::converge;
    use crate::tests::{catalogs, inputs, operators};

    #[test]
    fn what_is_neither_installed_nor_comes_has_a_reason() {
        let of = catalogs(
            "one 0 foo/stable
               1.0.0
             one 0 bar/stable
               1.0.0
             two 0 foo/stable
               1.0.0",
        );
        let operators = operators(
            &of,
            "foo: version 1.0.0
             fo: version 1.0.0
             bar: version 9.9.9; at 1.0.0; from one/stable; channel nope
             baz: version 1.0.0; paused
             qux: version 1.0.0; deleting",
        );
        let inputs = inputs(&operators);
        let converged = converge(inputs, &of);
        let refused = converged.refused().map(|(name, block)| format!("{name} {}", block.reason));
        let refused: Vec<String> = refused.collect();
        assert_eq!(refused, ["fo PackageNotFound", "foo AmbiguousCatalog"]);
        let kept = converged.without_source(inputs, &of).into_iter();
        let kept: Vec<String> = kept.map(|(name, it)| format!("{name} {}", it.reason)).collect();
        assert_eq!(kept, ["bar ChannelNotFound"]);
    }
}
