//! What an installation writes of each Operator.

use plimsoll_api::olm::OperatorSpec;

use super::{InstallRequest, PlannedOperator, Planner};
use crate::manifest::OperatorManifest;
use crate::planner::{ChosenBundle, Outcome, Proposal};

impl PlannedOperator {
    /// Returns the Operator as it is written for a request.
    pub fn manifest(&self, request: &InstallRequest) -> OperatorManifest {
        let is_requested = request.names().any(|it| it == self.name);
        let collision_protection = request.collision_protection.clone();
        OperatorManifest {
            name: self.name.clone(),
            version: self.range.clone(),
            is_dependency: self.is_dependency,
            channel: self.channel.clone(),
            repository: self.repository.clone(),
            namespace: self.namespace.clone(),
            collision_protection: collision_protection.filter(|_| is_requested),
            change_set: self.change_set.clone(),
            declared: request.declared.get(&self.name).cloned().unwrap_or_default(),
        }
    }
}

impl Planner<'_> {
    /// Returns an Operator to create, or to change; [`Self::compare`] completes it.
    pub(super) fn operator(
        &self,
        proposal: &Proposal,
        after: &Outcome<'_>,
        chosen: Option<&ChosenBundle<'_>>,
        name: &str,
    ) -> Option<PlannedOperator> {
        let operator = proposal.operators.get(name)?;
        let before = after.inputs.operators.get(name);
        let installed = before.and_then(|it| it.installed.as_ref());
        let catalog = chosen.map(|it| it.catalog);
        let catalog = catalog.or_else(|| Some(installed?.reference.catalog.as_str()));
        let field = |of: fn(&OperatorSpec) -> &String| {
            let value = of(&operator.spec);
            let is_new = before.is_none_or(|it| it.is_undeclared || of(&it.spec) != value);
            (is_new && !value.is_empty()).then(|| value.clone())
        };
        Some(PlannedOperator {
            name: name.to_owned(),
            version: after.bundles.get(name)?.version.clone(),
            range: operator.spec.version.clone(),
            before: None,
            is_dependency: !self.change.wanted.contains_key(name),
            displaced_by: Vec::new(),
            catalog: catalog.unwrap_or_default().to_owned(),
            channel: field(|it| &it.channel),
            repository: field(|it| &it.repository),
            namespace: field(|it| &it.namespace),
            change_set: proposal.change_set_edit(name, before),
        })
    }
}
