//! Existing Operators as they are wanted, apart from their versions.

use std::collections::BTreeMap;

use super::{ChangeRequest, Wanted};
use crate::RequestedOperator;

/// Returns the Operators with the wanted channels, catalogs and namespaces.
pub(super) fn wished(
    operators: &BTreeMap<String, RequestedOperator>,
    present: &BTreeMap<String, RequestedOperator>,
    request: &ChangeRequest,
) -> BTreeMap<String, RequestedOperator> {
    let mut wished = operators.clone();
    for (name, wanted) in &request.wanted {
        let Some(operator) = wished.get_mut(name) else { continue };
        let source = |it: &RequestedOperator| (it.spec.channel.clone(), it.spec.repository.clone());
        let before = source(operator);
        wanted.set(operator);
        // What was expected of another channel or catalog is not installed.
        if before != source(operator) && present.get(name).is_some_and(|it| it.installed.is_none())
        {
            operator.installed = None;
            operator.owned.clear();
        }
    }
    wished
}

impl Wanted {
    /// Sets what is wanted beside the version in an existing Operator.
    pub(crate) fn set(&self, operator: &mut RequestedOperator) {
        operator.is_undeclared = false;
        let RequestedOperator { spec, installed, .. } = operator;
        let there = installed.as_ref().map(|it| &it.reference);
        // A channel or catalog that the installed bundle is from need not be written.
        let set = |field: &mut String, there: Option<&String>, wanted: &Option<String>| {
            if let Some(wanted) = wanted
                && (!field.is_empty() || there != Some(wanted))
            {
                field.clone_from(wanted);
            }
        };
        set(&mut spec.channel, there.map(|it| &it.channel), &self.channel);
        set(&mut spec.repository, there.map(|it| &it.catalog), &self.repository);
        set(&mut spec.namespace, None, &self.namespace);
    }
}
