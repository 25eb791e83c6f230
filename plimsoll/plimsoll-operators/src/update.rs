//! Updates of a whole loadout: the Operators that are updated, what is updated or installed with them, and
//! what is unchanged (OPR-17).
//!
//! An Operator is updated if it is requested, or if an updated one requires another version of it. A range
//! that a user wrote is kept; that of a dependency is replaced if the new version is outside of it, or if an
//! updated Operator does not accept all of it. What an Operator requires and is missing is installed.

mod pinned;
mod plan;
mod staying;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::{CatalogPart, Explanation};

pub use self::plan::{OperatorUpdate, UpdatePlan};
use super::change_set::{self, ChangeSet};
pub use super::comparison::{OperatorVersion, VersionRequirement};
use super::loadout::{PlanningProgress, converge};
use super::planner::{
    CHANGE_SET_PREFIX, ChangeRequest, ProposalError, Wanted, for_commands, has_unmet, held, hold,
    is_in_range, is_pinned, propose, without_installed,
};
use super::selection::{candidates, not_offered};
use super::{OperatorBlock, OperatorInputs, RequestedOperator, joined, version_text};

/// Returns whether a change set, as the annotation has it, is one that the plan of an update or of an installation
/// made. The command removes the annotation when it ends, unless it is killed before.
pub fn is_set_of_update(change_set: &str) -> bool {
    change_set.starts_with(CHANGE_SET_PREFIX)
}

/// A request to update Operators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateRequest {
    /// Whether pinned Operators are updated to the newest version, too.
    pub latest: bool,
    /// The requested versions of single Operators, as ranges by name; if there are any, nothing else is
    /// requested.
    pub ranges: BTreeMap<String, String>,
    /// Those of `ranges` that follow their range from then on though they are pinned; the others are pinned again.
    pub follow: BTreeSet<String>,
    /// The Operators that are to have their newest versions, by name; if there are any, nothing else but
    /// `ranges` is requested.
    pub names: BTreeSet<String>,
    /// Whether all changed Operators form one change set; otherwise only if they cannot be updated one by
    /// one.
    pub together: bool,
    /// The Operators whose bundle is installed only according to a lock of files: what is written of them also leads
    /// to the plan where nothing is installed.
    pub locked: BTreeSet<String>,
    /// What is said of packages that no catalog has, by name, with the names that may be meant; of others it is only
    /// said that no catalog has them.
    pub unknown: BTreeMap<String, String>,
}

impl UpdateRequest {
    /// Returns the Operators that are named, with or without a range.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let others = self.names.iter().filter(|it| !self.ranges.contains_key(*it));
        self.ranges.keys().chain(others).map(String::as_str)
    }

    /// Returns whether nothing is requested: no range and no newest version, no Operator follows a range, none
    /// lacks what it requires, and no earlier update left a change set behind.
    pub fn is_idle(&self, inputs: OperatorInputs<'_>, catalogs: &[CatalogPart]) -> bool {
        let operators = inputs.operators;
        let mut sets = operators.values().filter_map(|it| it.change_set.as_deref());
        let is_left_behind = self.together && sets.any(is_set_of_update);
        let is_named = !self.ranges.is_empty() || !self.names.is_empty();
        if self.latest || is_named || !all_pinned(operators) || is_left_behind {
            return false;
        }
        let present = with_expected(inputs, catalogs);
        !has_unmet(OperatorInputs { operators: &present, ..inputs }, catalogs)
    }
}

/// The reason that there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateError {
    /// An Operator was named that does not exist.
    UnknownOperator {
        /// The name of the Operator.
        name: String,
    },
    /// No catalog has the package of an Operator that was named, or has it in its channel and the requested range.
    NotOffered {
        /// The name of the Operator.
        name: String,
        /// The reason.
        block: OperatorBlock,
    },
    /// The request for an Operator cannot be satisfied.
    Blocked {
        /// The name of the Operator.
        name: String,
        /// The blocker.
        block: OperatorBlock,
    },
    /// No versions of all Operators satisfy all requirements.
    Unsatisfiable(Explanation),
    /// The resolver reached its limit of work before it had an answer.
    LimitExceeded,
}

/// Plans an update. `inputs.operators` are the Operators with their installed bundles.
///
/// # Errors
///
/// When the request cannot be satisfied.
pub fn plan_update(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &UpdateRequest,
) -> Result<UpdatePlan, UpdateError> {
    plan_update_shown(inputs, catalogs, request, &|_| {})
}

/// Plans an update, and reports the progress.
///
/// # Errors
///
/// When the request cannot be satisfied.
pub fn plan_update_shown(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &UpdateRequest,
    progress: &dyn Fn(PlanningProgress),
) -> Result<UpdatePlan, UpdateError> {
    check(inputs, catalogs, request)?;
    let present = without_installed(inputs.operators, &request.locked);
    let expected = with_expected(inputs, catalogs);
    let inputs = OperatorInputs { operators: &expected, ..inputs };
    let wanted = request.named().map(|name| {
        let range = request.ranges.get(name).cloned();
        let follows = request.follow.contains(name);
        (name.to_owned(), Wanted { range, follows, ..Wanted::default() })
    });
    // Files do not say what became of the cluster.
    let is_over = request.together.then(|| completed_sets(inputs.operators));
    let change = ChangeRequest {
        wanted: wanted.collect(),
        latest: request.latest,
        pins: all_pinned(inputs.operators),
        together: request.together,
        completed: is_over.unwrap_or_default(),
        ..ChangeRequest::default()
    };
    let mut proposal = propose(inputs, &present, catalogs, &change, progress)
        .map_err(|error| refusal(error, inputs.operators))?;
    let staying = staying::reasons(inputs, &present, catalogs, request, &proposal);
    proposal.held_back.extend(staying);
    let notes = pinned::notes(inputs.operators, request, &proposal);
    proposal.notes.extend(notes);
    Ok(UpdatePlan::new(inputs, catalogs, &change, proposal))
}

/// Checks whether the Operators that a request names exist, and whether the request for each can be satisfied at
/// all.
fn check(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &UpdateRequest,
) -> Result<(), UpdateError> {
    for name in request.named() {
        let Some(operator) = inputs.operators.get(name) else {
            return Err(UpdateError::UnknownOperator { name: name.to_owned() });
        };
        let has_requested = operator.installed.as_ref().is_some_and(|it| {
            request.ranges.get(name).is_none_or(|range| is_in_range(range, &it.bundle.version))
        });
        if !has_requested
            && hold(name, operator).is_none()
            && let Some(block) = unoffered(inputs, catalogs, request, name)
        {
            return Err(UpdateError::NotOffered { name: name.to_owned(), block });
        }
    }
    for (name, range) in &request.ranges {
        let mut wanted = inputs.operators[name].clone();
        wanted.spec.version.clone_from(range);
        candidates(inputs, catalogs, name, &wanted).map_err(|block| {
            let name = name.clone();
            match block.is_not_offered() {
                true => UpdateError::NotOffered { name, block },
                false => UpdateError::Blocked { name, block },
            }
        })?;
        let asked = Wanted { range: Some(range.clone()), ..Wanted::default() };
        if let Some(block) = held(name, &inputs.operators[name], &asked) {
            return Err(UpdateError::Blocked { name: name.clone(), block });
        }
    }
    Ok(())
}

/// Returns a line about each Operator that is kept at a revision, where no plan changes it.
pub fn kept_at_revisions(operators: &BTreeMap<String, RequestedOperator>) -> Vec<String> {
    let kept = operators.iter().filter(|(_, it)| it.spec.revision.is_some() && !it.is_undeclared);
    kept.filter_map(|(name, it)| Some(hold(name, it)?.message)).collect()
}

/// Returns the reason that no catalog offers the package of an Operator in its channel, and what stays installed of it;
/// `None` if one does.
fn unoffered(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &UpdateRequest,
    name: &str,
) -> Option<OperatorBlock> {
    let operator = inputs.operators.get(name)?;
    let block = not_offered(inputs, catalogs, name, operator)?;
    let mut message = block.explained(name, &request.unknown).to_owned();
    if let Some(installed) = &operator.installed {
        let version = version_text(&installed.bundle.version.to_string());
        message = joined(&[message, format!("{version} stays installed")]);
    }
    Some(OperatorBlock { message, ..block })
}

/// Returns the error of an update that cannot be proposed beside some Operators.
fn refusal(error: ProposalError, operators: &BTreeMap<String, RequestedOperator>) -> UpdateError {
    match error {
        ProposalError::Blocked { name, block } => UpdateError::Blocked { name, block },
        ProposalError::Unsatisfiable(explanation) => {
            UpdateError::Unsatisfiable(for_commands(explanation, false, operators))
        }
        ProposalError::LimitExceeded => UpdateError::LimitExceeded,
    }
}

/// Returns the Operators with their installed bundles, or with those that will be installed if there are none
/// yet.
fn with_expected(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
) -> BTreeMap<String, RequestedOperator> {
    let mut operators = inputs.operators.clone();
    if operators.values().any(|it| it.installed.is_none()) {
        let converged = converge(inputs, catalogs);
        for (name, operator) in &mut operators {
            if operator.installed.is_none()
                && let Some(expected) = converged.operators.get(name)
            {
                operator.clone_from(expected);
            }
        }
    }
    operators
}

/// Returns the change sets of earlier updates whose members all have what they request.
fn completed_sets(operators: &BTreeMap<String, RequestedOperator>) -> BTreeSet<ChangeSet> {
    let mut completed: BTreeMap<ChangeSet, bool> = BTreeMap::new();
    for operator in operators.values() {
        let Some(Ok(set)) = change_set::of(operator) else { continue };
        let has_requested = operator
            .installed
            .as_ref()
            .is_some_and(|it| is_in_range(&operator.spec.version, &it.bundle.version));
        let is_ours = is_set_of_update(&set.id);
        *completed.entry(set).or_insert(is_ours) &= has_requested && !operator.is_deleting;
    }
    completed.into_iter().filter(|(_, is_completed)| *is_completed).map(|(set, _)| set).collect()
}

fn all_pinned(operators: &BTreeMap<String, RequestedOperator>) -> bool {
    let mut declared = operators.values().filter(|it| !it.is_undeclared);
    declared.all(|it| is_pinned(&it.spec.version))
}

#[cfg(test)]
mod tests;
