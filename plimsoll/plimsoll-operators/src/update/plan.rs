//! The plan of an update: the effects on each Operator.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::printable::on_one_line;
use plimsoll_resolve::{Bundle, CatalogPart};
use serde::Serialize;

use crate::comparison::{OperatorVersion, VersionRequirement, displaced, newly_required};
use crate::install::{meanings, spelled};
use crate::manifest::{ChangeSetEdit, OperatorManifest};
use crate::planner::{ChangeRequest, ChosenBundles, Outcome, Proposal, is_pinned};
use crate::{OperatorInputs, RequestedOperator};

/// The effects of an update on all Operators of a loadout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdatePlan {
    /// All Operators, by name.
    pub operators: Vec<OperatorUpdate>,
    /// The annotation of the change set of those that only move together, or of all that are changed if that is
    /// requested; absent if all are updated one by one, or in several change sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_set: Option<String>,
    /// The Operators whose requirements cannot be satisfied, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsatisfied: Vec<String>,
    /// What is written in other fields than the version, and why, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The effects of an update on an Operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorUpdate {
    /// The name of the Operator.
    pub name: String,
    /// The versions before; absent if it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<OperatorVersion>,
    /// The versions afterwards.
    pub after: OperatorVersion,
    /// Whether it is a dependency of other Operators.
    pub dependency: bool,
    /// Whether it was installed as a dependency and no Operator depends on it afterwards.
    pub orphaned: bool,
    /// The requirements of other Operators that its version before does not satisfy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<VersionRequirement>,
    /// The requirements of its version before that are not satisfied beside what is requested, for which it moves;
    /// empty if it is requested itself, or if others require its new version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub displaced_by: Vec<String>,
    /// The reason that it is not updated to a higher version, as a sentence without a full stop; absent if it
    /// has the highest one, or if none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
    /// The name of the catalog that is written; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Whether the annotation of an earlier change set is removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leaves_change_set: bool,
    /// The change of the annotation of its change set.
    #[serde(skip)]
    pub change_set: ChangeSetEdit,
}

impl OperatorUpdate {
    /// Returns whether its object is created or changed.
    pub fn is_written(&self) -> bool {
        self.is_new() || self.is_changed() || self.change_set != ChangeSetEdit::Keep
    }

    /// Returns whether it is created.
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// Returns whether its requested version changes.
    pub fn is_changed(&self) -> bool {
        self.before.as_ref().is_some_and(|it| it.requested != self.after.requested)
            || self.repository.is_some()
    }

    /// Returns whether its installed version changes.
    pub fn is_moved(&self) -> bool {
        self.before.as_ref().is_some_and(|it| it.installed != self.after.installed)
    }

    /// Returns whether a version that was requested by name before is still to be installed.
    pub fn is_awaited(&self) -> bool {
        self.is_moved() && !self.is_written() && is_pinned(&self.after.requested)
    }

    fn row(&self) -> String {
        let after = self.after.text(&self.name);
        match &self.before {
            None => format!("new operator -> {after}"),
            Some(before) if self.orphaned => {
                format!("{} -> {after} (orphaned)", before.text(&self.name))
            }
            Some(before) if self.is_changed() || self.is_moved() => {
                format!("{} -> {after}", before.text(&self.name))
            }
            Some(_) => after,
        }
    }
}

impl UpdatePlan {
    /// Returns the plan that a proposal for a request makes beside the Operators of `inputs`.
    pub(super) fn new(
        inputs: OperatorInputs<'_>,
        catalogs: &[CatalogPart],
        request: &ChangeRequest,
        proposal: Proposal,
    ) -> Self {
        let Proposal { operators, converged, .. } = &proposal;
        let mut held_back = proposal.held_back.clone();
        let unchanged = ChosenBundles::new();
        let before = Outcome::new(inputs, catalogs, &unchanged);
        let after = OperatorInputs { operators: converged, ..inputs };
        let after = Outcome::new(after, catalogs, &unchanged);
        let mut required = newly_required(&before, &after);
        let mut displaced = displaced(&before, &after, &request.wanted, &required);
        let used = after.needed();
        let were_used = before.used_by(before.bundles.keys().copied());
        let version = |operator: &RequestedOperator, at: Option<&&Bundle>| OperatorVersion {
            requested: operator.spec.version.clone(),
            installed: at.map(|it| it.version.clone()),
        };
        let declared = operators.iter().filter(|(_, it)| !it.is_undeclared);
        let updates = declared.map(|(name, operator)| {
            let was = inputs.operators.get(name);
            let name = name.as_str();
            let is_chosen = !operator.is_dependency && request.wanted.contains_key(name);
            let repository = &operator.spec.repository;
            let change_set = proposal.change_set_edit(name, was);
            OperatorUpdate {
                name: name.to_owned(),
                before: was.map(|it| version(it, before.bundles.get(name))),
                after: version(operator, after.bundles.get(name)),
                dependency: operator.is_dependency,
                orphaned: !is_chosen
                    && operator.may_be_orphaned(were_used.contains(name))
                    && after.bundles.contains_key(name)
                    && !used.contains(name),
                required_by: required.remove(name).unwrap_or_default(),
                displaced_by: displaced.remove(name).unwrap_or_default(),
                held_back: held_back.remove(name),
                repository: Some(repository.clone()).filter(|it| {
                    !it.is_empty() && was.is_none_or(|was| was.spec.repository != *it)
                }),
                leaves_change_set: change_set == ChangeSetEdit::Remove,
                change_set,
            }
        });
        let operators = updates.collect();
        Self {
            operators,
            change_set: proposal.change_set().cloned(),
            unsatisfied: proposal.unsatisfied,
            notes: proposal.notes,
        }
    }

    /// Returns the Operators whose objects are created or changed, dependencies first.
    pub fn written(&self) -> Vec<&OperatorUpdate> {
        let written: Vec<&OperatorUpdate> =
            self.operators.iter().filter(|it| it.is_written()).collect();
        let places = written.iter().enumerate();
        let places: BTreeMap<&str, usize> = places.map(|(at, it)| (it.name.as_str(), at)).collect();
        // The Operators that wait for each one, and those that it waits for.
        let mut awaited = vec![BTreeSet::new(); written.len()];
        let mut waiting = vec![BTreeSet::new(); written.len()];
        for (at, it) in written.iter().enumerate() {
            let dependants = it.required_by.iter();
            let dependants = dependants.filter_map(|by| places.get(by.operator.as_str()).copied());
            for dependant in dependants.filter(|dependant| *dependant != at) {
                awaited[at].insert(dependant);
                waiting[dependant].insert(at);
            }
        }
        let mut left: BTreeSet<usize> = (0..written.len()).collect();
        let mut ready: BTreeSet<usize> =
            left.iter().copied().filter(|at| waiting[*at].is_empty()).collect();
        let mut ordered = Vec::new();
        // Of Operators that require each other, the first by name.
        while let Some(next) = ready.pop_first().or_else(|| left.first().copied()) {
            left.remove(&next);
            ordered.push(written[next]);
            for dependant in &awaited[next] {
                waiting[*dependant].remove(&next);
                if waiting[*dependant].is_empty() && left.contains(dependant) {
                    ready.insert(*dependant);
                }
            }
        }
        ordered
    }

    /// Returns the Operators as they are written, dependencies first.
    pub fn manifests(&self) -> Vec<OperatorManifest> {
        let manifest = |it: &OperatorUpdate| OperatorManifest {
            name: it.name.clone(),
            version: it.after.requested.clone(),
            is_dependency: it.dependency,
            repository: it.repository.clone(),
            change_set: it.change_set.clone(),
            ..OperatorManifest::default()
        };
        self.written().into_iter().map(manifest).collect()
    }

    /// Returns the plan as text for users: a line for each Operator, then the reasons, and the meaning of the
    /// requested ranges.
    pub fn text(&self, ranges: &BTreeMap<String, String>) -> String {
        let mut lines: Vec<String> = self.operators.iter().map(OperatorUpdate::row).collect();
        for it in self.operators.iter().filter(|it| it.is_moved() || it.is_written()) {
            lines.extend(it.required_by.iter().map(|by| {
                let requirement = spelled(&by.requirement);
                format!("* {} v{} depends on {requirement}", by.operator, by.version)
            }));
        }
        let displaced = self.operators.iter().filter_map(|it| {
            let requirements: Vec<String> = it.displaced_by.iter().map(|it| spelled(it)).collect();
            it.before.as_ref()?.displacement(&it.name, &requirements)
        });
        lines.extend(displaced.map(|it| format!("* {it}")));
        let held_back =
            self.operators.iter().filter_map(|it| Some((&it.name, it.held_back.as_ref()?)));
        lines.extend(held_back.map(|(name, why)| format!("* {name}: {why}")));
        let others = self.notes.iter().chain(&self.unsatisfied);
        lines.extend(others.map(|it| format!("* {it}")));
        let meanings = meanings(ranges.values().map(String::as_str));
        lines.extend(meanings.iter().map(|it| format!("* {it}")));
        lines.iter().map(|it| format!("{}\n", on_one_line(it))).collect()
    }

    /// Returns whether nothing is installed, updated or written.
    pub fn is_empty(&self) -> bool {
        self.operators.iter().all(|it| !it.is_written() && !it.is_moved())
    }
}
