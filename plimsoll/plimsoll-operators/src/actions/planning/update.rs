//! Updates.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_api::olm::action::PlannedChange;

use super::{ActionFailure, ActionPlan, Planner, named, no_operator};
use crate::RequestedPackage;
use crate::manifest::ChangeSetEdit;
use crate::observed::ObservedOperator;
use crate::planned_change::{awaited, change};
use crate::query::unknown_package;
use crate::update::{
    OperatorUpdate, UpdateError, UpdatePlan, UpdateRequest, is_set_of_update, plan_update,
};

impl Planner<'_> {
    /// Returns the request: for the Operators that are named, or for all.
    fn update_request(&self) -> UpdateRequest {
        let (mut ranges, mut names) = (BTreeMap::new(), BTreeSet::new());
        for it in named(self.action) {
            match it.range {
                Some(range) => {
                    ranges.insert(it.name, range);
                }
                None => {
                    names.insert(it.name);
                }
            }
        }
        // As by hand, those of the option for single ranges are pinned again.
        let pinned = self.action.texts("parameters.ranges").into_iter();
        let pinned = pinned.filter_map(|it| it.parse::<RequestedPackage>().ok());
        let pinned: BTreeSet<String> = pinned.map(|it| it.name).collect();
        let follow: BTreeSet<String> = match self.action.is_set("parameters.follow") {
            true => ranges.keys().filter(|it| !pinned.contains(*it)).cloned().collect(),
            false => BTreeSet::new(),
        };
        let offered = || self.inventory.offered.iter().map(String::as_str);
        let operators = self.inventory.operators.keys();
        let unknown = operators.filter(|it| self.unknown(std::iter::once(it.as_str())).is_some());
        UpdateRequest {
            latest: self.action.is_set("parameters.latest"),
            ranges,
            follow,
            names,
            together: self.action.is_set("parameters.together"),
            locked: BTreeSet::new(),
            unknown: unknown.map(|it| (it.clone(), unknown_package(it, offered()))).collect(),
        }
    }

    pub(super) fn update(&self) -> Result<ActionPlan, ActionFailure> {
        let request = self.update_request();
        let inputs = self.inventory.inputs(self.expressions);
        let plan =
            plan_update(inputs, self.catalogs, &request).map_err(|it| self.update_failure(it))?;
        let mut explanation = Vec::new();
        for it in &plan.operators {
            if let Some(why) = &it.held_back {
                explanation.push(format!("{} stays: {why}", it.name));
            }
        }
        explanation.extend(plan.notes.iter().cloned());
        let changes = self.update_changes(&plan);
        let after = self.after(&changes);
        self.finished(changes, explanation, &after)
    }

    /// Returns the changes of an update: those of the Operators that are written, dependencies first, and those of
    /// the others whose version changes.
    fn update_changes(&self, plan: &UpdatePlan) -> Vec<PlannedChange> {
        let version = |it: &OperatorUpdate| {
            it.after.installed.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        let observed = |name: &str| self.inventory.observed.get(name);
        let written = plan.written().into_iter().zip(plan.manifests());
        let written = written.map(|(it, manifest)| {
            let repository = it.repository.clone().filter(|_| !it.is_new()).unwrap_or_default();
            let change = change(&manifest, observed(&it.name), version(it));
            let is_kept = it.is_moved() && it.change_set == ChangeSetEdit::Keep;
            let kept = observed(&it.name).filter(|_| is_kept).map(set_of_update);
            let change_set = kept.unwrap_or_else(|| change.change_set.clone());
            PlannedChange { repository, change_set, ..change }
        });
        let moved = plan.operators.iter().filter(|it| it.is_moved() && !it.is_written());
        let moved = moved.filter_map(|it| {
            let there = observed(&it.name)?;
            Some(PlannedChange {
                requested_before: there.spec.version.clone(),
                version_before: there.version().to_owned(),
                change_set: set_of_update(there),
                ..awaited(&it.name, there, version(it), it.dependency)
            })
        });
        written.chain(moved).collect()
    }

    /// Returns the failure of an update that is not possible.
    fn update_failure(&self, error: UpdateError) -> ActionFailure {
        match error {
            UpdateError::UnknownOperator { name } => no_operator(&name, self.inventory),
            UpdateError::NotOffered { name, block } => {
                ActionFailure::new(block.reason, block.message).on(name)
            }
            UpdateError::Blocked { name, block } => {
                ActionFailure::new(block.reason, format!("{name}: {}", block.message)).on(name)
            }
            UpdateError::Unsatisfiable(explanation) => ActionFailure::new(
                Reason::ConstraintsUnmet,
                explanation.text().trim_end().to_owned(),
            ),
            UpdateError::LimitExceeded => ActionFailure::new(
                Reason::ConstraintsUnmet,
                "the dependencies are too complex to be resolved within the limit of work",
            ),
        }
    }
}

/// Returns the change set that an earlier update has put an Operator in, and in which it moves; empty for none. Its
/// members leave it once it has moved.
fn set_of_update(there: &ObservedOperator) -> String {
    there.change_set.clone().filter(|it| is_set_of_update(it)).unwrap_or_default()
}
