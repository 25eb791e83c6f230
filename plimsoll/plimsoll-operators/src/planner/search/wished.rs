//! Existing Operators as they are wanted, apart from their versions.

use std::collections::BTreeMap;

use plimsoll_api::olm::BundleReference;

use super::{ChangeRequest, Wanted};
use crate::RequestedOperator;
use crate::planner::may_move;

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
        let is_elsewhere =
            operator.installed.as_ref().is_some_and(|it| !wanted.has_source(&it.reference));
        // What was expected of another channel or catalog is not installed.
        if before != source(operator)
            && is_elsewhere
            && present.get(name).is_some_and(|it| it.installed.is_none())
        {
            operator.installed = None;
            operator.owned.clear();
        }
    }
    wished
}

impl Wanted {
    /// Declares an Operator, and sets what is wanted beside the version in it, unless no plan may change that.
    pub(crate) fn set(&self, operator: &mut RequestedOperator) {
        operator.is_undeclared = false;
        if !may_move(operator) {
            return;
        }
        let set = |field: &mut String, wanted: &Option<String>| {
            if let Some(wanted) = wanted {
                field.clone_from(wanted);
            }
        };
        set(&mut operator.spec.channel, &self.channel);
        set(&mut operator.spec.repository, &self.repository);
        set(&mut operator.spec.namespace, &self.namespace);
    }

    /// Returns whether a bundle is from the channel and the catalog that are wanted, if any are.
    pub(super) fn has_source(&self, bundle: &BundleReference) -> bool {
        let is_it =
            |wanted: &Option<String>, from: &str| wanted.as_ref().is_none_or(|it| it == from);
        is_it(&self.channel, &bundle.channel) && is_it(&self.repository, &bundle.catalog)
    }
}
