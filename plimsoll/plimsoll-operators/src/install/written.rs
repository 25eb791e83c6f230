//! What an installation writes of each Operator.

use std::collections::BTreeMap;

use plimsoll_api::olm::{INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, OperatorSpec};

use super::{InstallPlan, InstallRequest, PlannedOperator, Planner};
use crate::manifest::OperatorManifest;
use crate::planner::{ChosenBundle, Outcome, Proposal, hold};
use crate::selection::unknown_source;
use crate::{OperatorInputs, RequestedOperator, joined, version_text};

impl PlannedOperator {
    /// Returns the Operator as it is written for a request.
    pub fn manifest(&self, request: &InstallRequest) -> OperatorManifest {
        let is_requested = request.names().any(|it| it == self.name);
        let collision_protection = request.collision_protection.clone();
        OperatorManifest {
            name: self.name.clone(),
            version: self.range.clone(),
            is_dependency: self.is_dependency,
            becomes_requested: self.becomes_requested,
            channel: self.channel.clone(),
            repository: self.repository.clone(),
            namespace: self.namespace.clone(),
            collision_protection: collision_protection.filter(|_| is_requested),
            change_set: self.change_set.clone(),
            declared: request.declared.get(&self.name).cloned().unwrap_or_default(),
        }
    }
}

impl InstallPlan {
    /// Adds a note about each Operator that exists as a dependency, and that is asked for now.
    pub(super) fn note_requested(&mut self) {
        let requested = self.operators.iter().filter(|it| it.becomes_requested);
        let notes = requested
            .map(|it| format!("{} is kept for itself: it was installed as a dependency", it.name));
        self.notes.extend(notes);
    }

    /// Says of the requested packages whose Operators are kept at a revision that they are.
    pub(super) fn note_kept(&mut self, operators: &BTreeMap<String, RequestedOperator>) {
        let kept = self.packages.iter().filter_map(|name| {
            let operator = operators.get(name).filter(|it| it.spec.revision.is_some())?;
            Some(hold(name, operator)?.message)
        });
        self.notes.extend(kept);
    }
}

impl Planner<'_> {
    /// Returns a line for each requested Operator that stays as it is since the channel or the catalog of its spec does
    /// not exist.
    pub(super) fn unoffered(&self, inputs: OperatorInputs<'_>) -> Vec<String> {
        let asked = self.request;
        let of_spec = asked
            .names()
            .filter(|it| asked.channel_of(it).is_none() && asked.repository_of(it).is_none());
        let lines = of_spec.filter_map(|name| {
            let operator = inputs.operators.get(name)?;
            let installed = operator.installed.as_ref()?;
            let block = unknown_source(inputs, self.catalogs, name, operator)?;
            let version = version_text(&installed.bundle.version.to_string());
            Some(joined(&[block.message, format!("{version} stays installed")]))
        });
        lines.collect()
    }

    /// Returns whether the label of an Operator that may exist says from now on that a person asked for it: it exists
    /// as a dependency, and is named, or declared by a file that does not say the same of it.
    pub(super) fn becomes_requested(&self, name: &str, there: Option<&RequestedOperator>) -> bool {
        let declared = self.request.declared.get(name);
        let is_declared = declared.is_some_and(|it| {
            it["metadata"]["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_DEPENDENCY
        });
        self.change.wanted.contains_key(name)
            && there.is_some_and(|it| it.is_dependency)
            && !is_declared
    }

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
            becomes_requested: self.becomes_requested(name, before),
            catalog: catalog.unwrap_or_default().to_owned(),
            channel: field(|it| &it.channel),
            repository: field(|it| &it.repository),
            namespace: field(|it| &it.namespace),
            change_set: proposal.change_set_edit(name, before),
        })
    }
}
