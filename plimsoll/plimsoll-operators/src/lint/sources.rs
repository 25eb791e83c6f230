//! Channels and catalogs that do not exist, although what is installed is in the requested range.

use super::LintInputs;
use crate::OperatorBlock;
use crate::loadout::ConvergedOperators;
use crate::selection::unknown_source;

/// Returns the reason that no catalog has what an Operator requests; `None` if one has, or if that is not known.
pub(super) fn unknown(
    inputs: LintInputs<'_>,
    converged: &ConvergedOperators,
    name: &str,
) -> Option<OperatorBlock> {
    let operator = converged.operators.get(name)?;
    unknown_source(inputs.deciding(&converged.operators), inputs.catalogs, name, operator)
}
