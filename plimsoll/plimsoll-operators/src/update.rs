//! Updates of a whole loadout: the Operators that are updated, what is updated or installed with them, and
//! what is unchanged (OPR-17).
//!
//! The resolver proposes versions for all Operators at once. For an installed Operator, it may choose any
//! version that the channel leads to, in any number of steps. The proposal is then converged with the decisions
//! of the controller ([`converge`]); only what these result in is a plan.
//!
//! An Operator is updated if it is requested, or if an updated one requires another version of it. A range
//! that a user wrote is kept; that of a dependency is replaced if the new version is outside of it, or if an
//! updated Operator does not accept all of it.

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;

use plimsoll_api::Reason;
use plimsoll_api::olm::OperatorSpec;
use plimsoll_resolve::{
    CatalogPart, Explanation, FollowedChannel, PackageRequest, Problem, Resolution,
    ResolutionOverrides, Solution, solve,
};
use semver::Version;

pub use self::plan::{OperatorUpdate, OperatorVersion, UpdatePlan, VersionRequirement};
use super::change_set::{self, ChangeSet};
use super::loadout::{ConvergedOperators, PlanningProgress, converge, converge_shown};
use super::planner::{
    self, CHANNEL, ChosenBundle, ChosenBundles, Destinations, Outcome, ProblemRequest, is_in_range,
    is_pinned, may_move,
};
use super::selection::candidates;
use super::{OperatorAction, OperatorBlock, OperatorInputs, RequestedOperator, version_text};

/// The beginning of the ids of change sets that updates make.
const CHANGE_SET_PREFIX: &str = "update-";

/// Returns whether a change set, as the annotation has it, is one that an update made. The update removes the
/// annotation when it ends, unless it is killed before.
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
    /// Operators to update to the newest version that they can reach, though pinned; if there are any names or
    /// ranges, nothing else is requested.
    pub names: BTreeSet<String>,
    /// Whether all changed Operators form one change set; otherwise only if they cannot be updated one by
    /// one.
    pub together: bool,
}

impl UpdateRequest {
    /// Returns whether nothing is requested: no range, no name and no newest version, no Operator follows a
    /// range, and no earlier update left a change set behind.
    pub fn is_idle(&self, operators: &BTreeMap<String, RequestedOperator>) -> bool {
        let mut sets = operators.values().filter_map(|it| it.change_set.as_deref());
        let is_left_behind = self.together && sets.any(is_set_of_update);
        !self.latest && !self.is_selective() && all_pinned(operators) && !is_left_behind
    }

    /// Returns whether single Operators are requested.
    fn is_selective(&self) -> bool {
        !self.ranges.is_empty() || !self.names.is_empty()
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
    inputs: OperatorInputs<'_'>,
    catalogs: &[CatalogPart],
    request: &UpdateRequest,
    progress: &dyn Fn(PlanningProgress),
) -> Result<UpdatePlan, UpdateError> {
    if let Some(name) = request.names.iter().find(|it| !inputs.operators.contains_key(*it)) {
        return Err(UpdateError::UnknownOperator { name: name.clone() });
    }
    for (name, range) in &request.ranges {
        let Some(operator) = inputs.operators.get(name) else {
            return Err(UpdateError::UnknownOperator { name: name.clone() });
        };
        let mut wanted = operator.clone();
        wanted.spec.version.clone_from(range);
        candidates(inputs, catalogs, name, &wanted)
            .map_err(|block| UpdateError::Blocked { name: name.clone(), block })?;
    }
    let present = with_expected(inputs, catalogs);
    // Files do not say what became of the cluster.
    let is_over = request.together.then(|| completed_sets(inputs.operators));
    let mut planner = Planner {
        inputs: OperatorInputs { operators: &present, ..inputs },
        catalogs,
        request,
        progress,
        completed: is_over.unwrap_or_default(),
        orphans: BTreeSet::new(),
        refused: BTreeMap::new(),
    };
    loop {
        match planner.attempt()? {
            Attempt::Plan(plan) => return Ok(plan),
            Attempt::Orphan(name) => {
                planner.orphans.insert(name);
            }
            Attempt::Refused(refused) => {
                let known = planner.refused.entry(refused.name.clone()).or_default();
                if known.iter().any(|it| it.bundle == refused.bundle) {
                    let RefusedBundle { name, block, .. } = refused;
                    return Err(UpdateError::Blocked { name, block });
                }
                known.push(refused);
            }
        }
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

/// The result of one proposal.
enum Attempt {
    /// The proposal is feasible.
    Plan(UpdatePlan),
    /// The proposal updates a dependency that no Operator depends on.
    Orphan(String),
    /// The controller would not install a bundle of the proposal.
    Refused(RefusedBundle),
}

/// A bundle that the resolver proposes and the controller would not install.
struct RefusedBundle {
    /// The name of the Operator.
    name: String,
    /// The name of the bundle.
    bundle: String,
    version: Version,
    block: OperatorBlock,
}

struct Planner<'a> {
    inputs: OperatorInputs<'a>,
    catalogs: &'a [CatalogPart],
    request: &'a UpdateRequest,
    progress: &'a dyn Fn(PlanningProgress),
    /// The change sets of earlier updates that ended before they could remove them.
    completed: BTreeSet<ChangeSet>,
    /// The dependencies that no Operator depends on afterwards; they are reported, and unchanged.
    orphans: BTreeSet<String>,
    /// The bundles that would not be installed, by Operator.
    refused: BTreeMap<String, Vec<RefusedBundle>>,
}

impl Planner<'_> {
    /// Proposes versions and converges them.
    fn attempt(&self) -> Result<Attempt, UpdateError> {
        let requested: BTreeSet<&str> = self.requested();
        let is_refused = |name: &str, bundle: &str| {
            let refused = self.refused.get(name);
            refused.is_some_and(|it| it.iter().any(|it| it.bundle == bundle))
        };
        let ranges = &self.request.ranges;
        let destinations = Destinations::of(self.inputs, self.catalogs, ranges, &is_refused);
        let problem = self.problem(&destinations, &requested);
        let solution = match solve(&problem, self.inputs.expressions) {
            Resolution::Solved(solution) => solution,
            Resolution::Unsatisfiable(explanation) => {
                // The block of a requested bundle is the better explanation.
                let refused = ranges.keys().find_map(|name| self.refused.get(name)?.first());
                return Err(match refused {
                    Some(RefusedBundle { name, block, .. }) => {
                        UpdateError::Blocked { name: name.clone(), block: block.clone() }
                    }
                    None => UpdateError::Unsatisfiable(explanation),
                });
            }
            Resolution::LimitExceeded => return Err(UpdateError::LimitExceeded),
        };
        let proposed = planner::chosen(self.catalogs, &solution);
        let after = Outcome::new(self.inputs, self.catalogs, &proposed);
        let used = after.used_by(after.bundles.keys().copied());
        let is_orphan = |name: &&&str| {
            let operator = &self.inputs.operators[**name];
            let is_named = ranges.contains_key(**name) || self.request.names.contains(**name);
            operator.is_dependency && !used.contains(**name) && !is_named
        };
        if let Some(name) = requested.iter().find(is_orphan) {
            return Ok(Attempt::Orphan((*name).to_owned()));
        }
        let (mut operators, written) = self.changed(&proposed, &after);
        let mut change_set = None;
        let mut converged = self.converged(&operators);
        let mut missed = self.missed(&proposed, &converged);
        if written.len() > 1 && (self.request.together || missed.is_some()) {
            let id = change_set_id(&written, &operators);
            for name in &written {
                if let Some(operator) = operators.get_mut(name) {
                    operator.change_set = Some(id.clone());
                }
            }
            change_set = Some(id);
            converged = self.converged(&operators);
            // The blocks of single updates are more specific than those of the change set.
            missed = self.missed(&proposed, &converged).map(|it| missed.unwrap_or(it));
        }
        if let Some(refused) = missed {
            if !self.inputs.operators.contains_key(&refused.name) {
                let RefusedBundle { name, bundle: _, version: _, block } = refused;
                return Err(UpdateError::Blocked { name, block });
            }
            return Ok(Attempt::Refused(refused));
        }
        let mut reasons = self.held_back(&solution, &destinations, &requested);
        let mut plan =
            UpdatePlan::new(self.inputs, self.catalogs, &operators, &converged.operators);
        for it in &mut plan.operators {
            it.held_back = reasons.remove(&it.name);
        }
        plan.change_set = change_set;
        Ok(Attempt::Plan(plan))
    }

    /// Returns the Operators to update if possible. Those that follow a range are always included.
    fn requested(&self) -> BTreeSet<&str> {
        let UpdateRequest { latest, ranges, names, together: _ } = self.request;
        let is_latest = *latest && !self.request.is_selective();
        let is_requested = |name: &str, it: &RequestedOperator| {
            let is_pinned = is_pinned(&it.spec.version);
            let follows = !is_pinned && !it.is_dependency;
            ranges.contains_key(name) || names.contains(name) || follows || is_latest
        };
        let operators = self.inputs.operators.iter();
        let requested = operators.filter(|(name, it)| {
            may_move(it) && is_requested(name, it) && !self.orphans.contains(*name)
        });
        requested.map(|(name, _)| name.as_str()).collect()
    }

    fn problem(&self, destinations: &Destinations<'_>, requested: &BTreeSet<&str>) -> Problem {
        let request = |name: &&str| PackageRequest {
            package: (*name).to_owned(),
            version: destinations.range(name).map(str::to_owned),
            ..PackageRequest::default()
        };
        let follows = |name: &str, _: &RequestedOperator| {
            let channel = CHANNEL.to_owned();
            destinations.are_followed(name).then_some(FollowedChannel { channel, catalog: None })
        };
        // An Operator that cannot be installed does not block others.
        let is_hopeless =
            |name: &&&str| destinations.has_none(name) && !self.request.ranges.contains_key(**name);
        let request = ProblemRequest {
            catalogs: destinations.offered_by(self.catalogs),
            requests: requested.iter().filter(|it| !is_hopeless(it)).map(request).collect(),
            overrides: ResolutionOverrides::default(),
            follows: &follows,
            installs: &[],
        };
        planner::problem(self.inputs, request)
    }

    /// Returns the Operators with the new requests, and the names of those that are created or changed.
    fn changed(
        &self,
        proposed: &ChosenBundles<'_>,
        after: &Outcome<'_>,
    ) -> (BTreeMap<String, RequestedOperator>, BTreeSet<String>) {
        let mut versions: BTreeMap<&str, String> = BTreeMap::new();
        let operators = self.inputs.operators;
        let all_pinned = all_pinned(operators);
        for name in after.used_by(proposed.keys().copied()) {
            let revised = operators.get(name).and_then(|it| after.revised(name, it));
            versions.extend(revised.map(|it| (name, it)));
        }
        for name in proposed.keys() {
            versions.insert(name, after.version(name, operators.get(*name), all_pinned));
        }
        // A requested range is written even if the installed version is in it.
        for (name, range) in &self.request.ranges {
            if operators.get(name).is_some_and(|it| !is_pinned(&it.spec.version)) {
                versions.insert(name, range.clone());
            }
        }
        let mut operators = operators.clone();
        let mut written = BTreeSet::new();
        for (name, version) in versions {
            if operators.get(name).is_none_or(|it| it.spec.version != version) {
                let new = || RequestedOperator::new(OperatorSpec::default(), true);
                let operator = operators.entry(name.to_owned()).or_insert_with(new);
                operator.spec.version = version;
                written.insert(name.to_owned());
            }
        }
        // The change sets of changed Operators end: their remaining members would wait for those that left.
        let mut over: BTreeSet<ChangeSet> =
            written.iter().filter_map(|name| change_set::of(operators.get(name)?)?.ok()).collect();
        over.extend(self.completed.iter().cloned());
        for operator in operators.values_mut() {
            if change_set::of(operator).and_then(Result::ok).is_some_and(|it| over.contains(&it)) {
                operator.change_set = None;
            }
        }
        (operators, written)
    }

    fn converged(&self, operators: &BTreeMap<String, RequestedOperator>) -> ConvergedOperators {
        let inputs = OperatorInputs { operators, ..self.inputs };
        converge_shown(inputs, self.catalogs, self.progress)
    }

    /// Returns the first bundle that would not be installed.
    fn missed(
        &self,
        proposed: &ChosenBundles<'_>,
        converged: &ConvergedOperators,
    ) -> Option<RefusedBundle> {
        proposed.iter().find_map(|(name, ChosenBundle { bundle, .. })| {
            let there = converged.operators.get(*name)?.installed.as_ref();
            if there.is_some_and(|it| it.bundle.version >= bundle.version) {
                return None;
            }
            let decision = converged.decisions.get(*name)?;
            let block = match &decision.action {
                OperatorAction::Blocked(block) => Some(block.clone()),
                _ => decision.held_back.clone(),
            };
            let block = block.unwrap_or_else(|| {
                let version = version_text(&bundle.version.to_string());
                let message = format!("{name} {version} is not preferred to what is installed");
                OperatorBlock::new(Reason::UpgradeBlocked, message)
            });
            Some(RefusedBundle {
                name: (*name).to_owned(),
                bundle: bundle.name.clone(),
                version: bundle.version.clone(),
                block,
            })
        })
    }

    /// Returns the reasons that requested Operators do not have their highest version.
    fn held_back(
        &self,
        solution: &Solution,
        destinations: &Destinations<'_>,
        requested: &BTreeSet<&str>,
    ) -> BTreeMap<String, String> {
        let mut reasons: BTreeMap<String, String> = BTreeMap::new();
        for name in requested {
            if let Some(why) = destinations.beyond(name) {
                reasons.insert((*name).to_owned(), why.to_owned());
            }
        }
        let refused = solution.stays.iter().map(|it| (&it.bundle, &it.instead_of));
        let refused = refused.chain(solution.install.iter().map(|it| (&it.bundle, &it.instead_of)));
        for (bundle, refused) in refused {
            let Some(first) = refused.first() else { continue };
            let of = |name: &&&str| {
                let there = self.inputs.operators[**name].installed.as_ref();
                there.is_some_and(|it| it.bundle.name == *bundle) || destinations.has(name, bundle)
            };
            if let Some(name) = requested.iter().find(of) {
                let why: Vec<&str> = first.why.iter().map(|it| it.text.as_str()).collect();
                reasons.insert((*name).to_owned(), why.join("; "));
            }
        }
        for (name, refused) in &self.refused {
            if let Some(RefusedBundle { version, block, .. }) = refused.first() {
                let version = version_text(&version.to_string());
                let message = format!("{version} is not reached: {}", block.message);
                reasons.insert(name.clone(), message);
            }
        }
        reasons
    }
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
    operators.values().all(|it| is_pinned(&it.spec.version))
}

/// Returns the annotation of a change set, a hash of its changes, so that equal changes have equal
/// annotations.
fn change_set_id(
    written: &BTreeSet<String>,
    operators: &BTreeMap<String, RequestedOperator>,
) -> String {
    let mut hasher = fnv::FnvHasher::default();
    for name in written {
        hasher.write(name.as_bytes());
        hasher.write(&[0]);
        hasher.write(operators[name].spec.version.as_bytes());
        hasher.write(&[0]);
    }
    format!("{CHANGE_SET_PREFIX}{:016x}/{}", hasher.finish(), written.len())
}

#[cfg(test)]
mod tests;
