//! Channels and catalogs that do not exist, although what is installed is in the requested range.

use plimsoll_api::Reason;

use super::LintInputs;
use crate::OperatorBlock;
use crate::loadout::ConvergedOperators;
use crate::selection::not_offered;

/// Returns the reason that no catalog has what an Operator requests; `None` if one has, or if that is not known. A
/// package that is gone counts only if the Operator names the catalog that lacks it.
pub(super) fn unknown(
    inputs: LintInputs<'_>,
    converged: &ConvergedOperators,
    name: &str,
) -> Option<OperatorBlock> {
    let operator = converged.operators.get(name)?;
    let deciding = inputs.deciding(&converged.operators);
    let block = not_offered(deciding, inputs.catalogs, name, operator)?;
    let is_of_spec = match block.reason {
        Reason::CatalogUnavailable => false,
        Reason::PackageNotFound => !operator.spec.repository.is_empty(),
        _ => true,
    };
    is_of_spec.then_some(block)
}
