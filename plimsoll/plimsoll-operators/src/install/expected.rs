//! Operators as an installation finds them: as they will be once what is requested already is installed.

use std::collections::BTreeMap;
use std::mem;

use plimsoll_resolve::CatalogPart;

use super::InstallRequest;
use crate::loadout::converge;
use crate::planner::takes_back;
use crate::{OperatorInputs, RequestedOperator};

/// Returns the Operators as they will be without a request. Those of which it takes back a version that waits
/// count as they are.
pub(crate) fn expected(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &InstallRequest,
) -> BTreeMap<String, RequestedOperator> {
    let mut operators = inputs.operators.clone();
    let mut taken_back: BTreeMap<&str, String> = BTreeMap::new();
    for name in request.names() {
        let (Some(operator), Some(range)) = (operators.get_mut(name), request.range_of(name))
        else {
            continue;
        };
        if takes_back(range, operator)
            && let Some(installed) = &operator.installed
        {
            let version = installed.bundle.version.to_string();
            taken_back.insert(name, mem::replace(&mut operator.spec.version, version));
        }
    }
    let inputs = OperatorInputs { operators: &operators, ..inputs };
    let mut expected = converge(inputs, catalogs).operators;
    for (name, version) in taken_back {
        if let Some(operator) = expected.get_mut(name) {
            operator.spec.version = version;
        }
    }
    expected
}
