//! Operators as an installation finds them: as they will be once what is requested already is installed.

use std::collections::BTreeMap;

use plimsoll_resolve::CatalogPart;

use super::InstallRequest;
use crate::loadout::converge;
use crate::planner::is_in_range;
use crate::{OperatorInputs, RequestedOperator};

/// Returns the Operators as they will be without a request. Those that the request keeps from leaving its range count
/// as they are.
pub(crate) fn expected(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &InstallRequest,
) -> BTreeMap<String, RequestedOperator> {
    let mut expected = converge(inputs, catalogs).operators;
    let mut operators = inputs.operators.clone();
    let mut taken_back: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, present) in inputs.operators {
        let Some(range) = request.range_of(name) else { continue };
        let coming = expected.get(name).and_then(|it| it.installed.as_ref());
        let (Some(there), Some(coming)) = (&present.installed, coming) else { continue };
        let version = &there.bundle.version;
        if is_in_range(range, version)
            && !is_in_range(range, &coming.bundle.version)
            && let Some(operator) = operators.get_mut(name)
        {
            operator.spec.version = version.to_string();
            taken_back.insert(name, &present.spec.version);
        }
    }
    if taken_back.is_empty() {
        return expected;
    }
    expected = converge(OperatorInputs { operators: &operators, ..inputs }, catalogs).operators;
    for (name, version) in taken_back {
        if let Some(operator) = expected.get_mut(name) {
            version.clone_into(&mut operator.spec.version);
        }
    }
    expected
}
