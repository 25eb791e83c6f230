//! Search for a plan: versions are proposed, and converged with the decisions of the controller; what these
//! would not result in is refused, and the search goes on without it.
//!
//! The resolver proposes versions for all Operators at once. For an existing Operator, it may choose any version
//! that the channel leads to, in any number of steps. Each round of the search refuses or settles something that
//! no round before it has, so that it ends.

mod broken;
mod changed;
mod concerned;
mod failure;
mod further;
mod groups;
mod missed;
mod pins;
mod problem;
mod sets;
mod ways;
mod wished;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_api::olm::OperatorSpec;
use plimsoll_resolve::{CatalogPart, Explanation, ResolutionOverrides, Solution};
use semver::Version;

use self::pins::Pins;
use self::sets::Inseparable;
use self::ways::BundleWay;
use super::repair::{RepairedSolution, Unmet, may_satisfy, unmet, unsatisfied};
use super::{ChosenBundle, ChosenBundles, Destinations, Outcome, is_in_range, is_pinned, may_move};
use crate::change_set::ChangeSet;
use crate::loadout::{ConvergedOperators, PlanningProgress, converge_shown};
use crate::{OperatorBlock, OperatorInputs, RequestedOperator, version_text};

/// What a plan is to change.
#[derive(Debug, Default)]
pub(crate) struct ChangeRequest {
    /// The packages that are named, each with what is wanted of it.
    pub(crate) wanted: BTreeMap<String, Wanted>,
    /// Whether the named packages are installed, rather than existing Operators updated.
    pub(crate) is_install: bool,
    /// Whether pinned Operators are requested, too.
    pub(crate) latest: bool,
    /// Whether new Operators that are not named are pinned.
    pub(crate) pins: bool,
    /// Whether all changed Operators form one change set.
    pub(crate) together: bool,
    /// The change sets of earlier plans that ended before they could be removed.
    pub(crate) completed: BTreeSet<ChangeSet>,
    /// The decisions that the resolver has to respect.
    pub(crate) overrides: ResolutionOverrides,
    /// Whether the named packages are installed without their dependencies.
    pub(crate) no_dependencies: bool,
    /// Whether only the plan matters, and no explanation if there is none.
    pub(crate) is_unexplained: bool,
}

impl ChangeRequest {
    /// Returns the wanted ranges, by name.
    fn ranges(&self) -> BTreeMap<String, String> {
        let wanted = self.wanted.iter();
        wanted.filter_map(|(name, it)| Some((name.clone(), it.range.clone()?))).collect()
    }
}

/// What is wanted of a package.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// The range; `None` for that of an existing Operator, and any version of a new one.
    pub(crate) range: Option<String>,
    /// Whether the range is written in place of a pin, too.
    pub(crate) follows: bool,
    /// The channel; `None` for that of the Operator, or the default one.
    pub(crate) channel: Option<String>,
    /// The name of the catalog; `None` for that of the Operator, or any.
    pub(crate) repository: Option<String>,
    /// The namespace; `None` for that of the Operator, or the one that its bundle suggests.
    pub(crate) namespace: Option<String>,
}

/// A plan that converges to what was proposed.
pub(crate) struct Proposal {
    /// The Operators as the plan requests them.
    pub(crate) operators: BTreeMap<String, RequestedOperator>,
    /// The Operators after the plan is carried out.
    pub(crate) converged: BTreeMap<String, RequestedOperator>,
    /// The names of those that are created or changed.
    pub(crate) written: BTreeSet<String>,
    pub(crate) solution: Solution,
    /// The annotations of the change sets; none if all are changed one by one.
    pub(crate) change_sets: BTreeSet<String>,
    /// The reasons that requested Operators do not have their highest version.
    pub(crate) held_back: BTreeMap<String, String>,
    /// A line for each Operator whose requirements cannot be satisfied.
    pub(crate) unsatisfied: Vec<String>,
    /// What is written otherwise than it was requested, a line each.
    pub(crate) notes: Vec<String>,
}

/// The reason that there is no plan.
pub(crate) enum ProposalError {
    /// The controller would not install what is wanted of an Operator.
    Blocked { name: String, block: OperatorBlock },
    /// No versions of all Operators satisfy all requirements.
    Unsatisfiable(Explanation),
    /// The resolver reached its limit of work before it had an answer.
    LimitExceeded,
}

/// Searches for the plan of a request, and reports the progress.
///
/// What is not installed yet counts in `inputs` as it will be. `present` are the Operators as they are: a plan
/// also leads to what it shows from these.
pub(crate) fn propose(
    inputs: OperatorInputs<'_>,
    present: &BTreeMap<String, RequestedOperator>,
    catalogs: &[CatalogPart],
    request: &ChangeRequest,
    progress: &dyn Fn(PlanningProgress),
) -> Result<Proposal, ProposalError> {
    propose_from(inputs, present, catalogs, request, progress, Start::default())
}

/// What is known, or decided, before a search.
#[derive(Debug, Clone, Default)]
struct Start {
    /// The dependencies that no Operator depends on, as a plan before this one has it.
    orphans: BTreeSet<String>,
    /// Whether no group of Operators is searched alone.
    is_undivided: bool,
}

/// Searches for the plan of a request, from what is known before.
fn propose_from(
    inputs: OperatorInputs<'_>,
    present: &BTreeMap<String, RequestedOperator>,
    catalogs: &[CatalogPart],
    request: &ChangeRequest,
    progress: &dyn Fn(PlanningProgress),
    start: Start,
) -> Result<Proposal, ProposalError> {
    let Start { orphans, is_undivided } = start;
    let wished = wished::wished(inputs.operators, present, request);
    let wished_inputs = OperatorInputs { operators: &wished, ..inputs };
    let named: BTreeSet<&str> = request.wanted.keys().map(String::as_str).collect();
    let concerns = |name: &str, bundle: &_| {
        !request.no_dependencies
            && (named.is_empty() || named.contains(name) || may_satisfy(catalogs, &named, bundle))
    };
    let mut search = Search {
        before: inputs,
        present,
        inputs: wished_inputs,
        catalogs,
        request,
        progress,
        unmet: unmet(wished_inputs, catalogs, &concerns),
        concerned: None,
        orphans,
        refused: BTreeMap::new(),
        ways: BTreeMap::new(),
        steered: Vec::new(),
        accepted: None,
        tried: BTreeSet::new(),
        narrowed: BTreeSet::new(),
        pinned: BTreeSet::new(),
        pins: Pins::default(),
        sources: BTreeMap::new(),
        grouped_from: if is_undivided { usize::MAX } else { 0 },
    };
    search.concerned = search.concerned();
    loop {
        match search.attempt() {
            Attempt::Plan(proposal) => return Ok(search.furthest(*proposal, is_undivided)),
            Attempt::Missed { ref missed, .. } if search.refuse_in_groups(missed) => {}
            other => search.learn(other)?,
        }
    }
}

/// The result of one proposal.
enum Attempt {
    /// The proposal is feasible.
    Plan(Box<Proposal>),
    /// There is no proposal.
    Failed(ProposalError),
    /// The proposal updates a dependency that no Operator depends on.
    Orphan(String),
    /// The proposal moves these pinned Operators, which nothing that moves requires.
    Pins(BTreeSet<String>),
    /// A change set is held up only because higher versions are in the ranges of these members.
    TooWide(Vec<String>),
    /// The controller would do something else, and some Operators cannot be repaired. `ways` is what steps to the
    /// proposed bundles require.
    Missed { missed: Missed, ways: Vec<BundleWay>, unrepaired: BTreeSet<String> },
}

/// A difference between a proposal and what the controller would do.
#[derive(Clone)]
enum Missed {
    /// It would not install a bundle.
    Refused(RefusedBundle),
    /// It would take a bundle from another catalog, or from none of several; this is the proposed one.
    Source { name: String, catalog: String },
    /// It would install a higher version than the proposed one.
    Higher { name: String, version: Version },
}

/// A bundle that the resolver proposes and the controller would not install.
#[derive(Clone)]
struct RefusedBundle {
    /// The name of the Operator.
    name: String,
    /// The name of the bundle.
    bundle: String,
    version: Version,
    block: OperatorBlock,
}

/// The changes of a proposal, carried out.
struct CarriedOut {
    /// The annotations of the change sets; none if all are carried out one by one.
    change_sets: BTreeSet<String>,
    converged: ConvergedOperators,
    /// The first difference from what was proposed; `None` if there is none.
    missed: Option<Missed>,
    /// What steps to the proposed bundles require that would not be installed.
    ways: Vec<BundleWay>,
    /// The members of the change set that hold it up only because higher versions are in their ranges.
    too_wide: Vec<String>,
}

struct Search<'a> {
    /// The Operators before the plan.
    before: OperatorInputs<'a>,
    /// The Operators with what is really installed of them.
    present: &'a BTreeMap<String, RequestedOperator>,
    /// The Operators with the wanted channels, catalogs and namespaces.
    inputs: OperatorInputs<'a>,
    catalogs: &'a [CatalogPart],
    request: &'a ChangeRequest,
    progress: &'a dyn Fn(PlanningProgress),
    unmet: Unmet,
    /// The packages that may be changed; `None` for all.
    concerned: Option<BTreeSet<&'a str>>,
    /// The dependencies that no Operator depends on afterwards; they are reported, and unchanged.
    orphans: BTreeSet<String>,
    /// The bundles that would not be installed, by Operator.
    refused: BTreeMap<String, Vec<RefusedBundle>>,
    /// What steps on the way to bundles require, by Operator.
    ways: BTreeMap<String, Vec<BundleWay>>,
    /// The versions that the controller leads to, which are proposed in turn, the last one first given up.
    steered: Vec<(String, Version)>,
    /// The Operators that cannot be repaired, whatever version is steered to; `None` before that is known.
    accepted: Option<BTreeSet<String>>,
    /// The names of those that were steered at any time.
    tried: BTreeSet<String>,
    /// The names of those whose range is written with less in it than is wanted.
    narrowed: BTreeSet<String>,
    /// The names of those that are pinned although a range is wanted.
    pinned: BTreeSet<String>,
    /// The pinned Operators that nothing but their dependencies would move.
    pins: Pins,
    /// The catalogs that have to be written, by Operator.
    sources: BTreeMap<String, String>,
    /// The number of refused bundles, and of requirements of steps, from which on groups of Operators are searched
    /// alone.
    grouped_from: usize,
}

impl<'a> Search<'a> {
    /// Changes the search so that the next attempt is another one.
    fn learn(&mut self, attempt: Attempt) -> Result<(), ProposalError> {
        match attempt {
            Attempt::Plan(_) => {}
            Attempt::Failed(error) => match self.steered.pop() {
                Some((name, _)) => drop(self.narrowed.insert(name)),
                None if self.release_pins() => {}
                None => return Err(error),
            },
            Attempt::Orphan(name) => drop(self.orphans.insert(name)),
            Attempt::Pins(names) => self.pins.keep(names),
            Attempt::TooWide(names) => {
                for name in names {
                    self.narrow(&name);
                }
            }
            // Other versions of the other Operators may let a step pass.
            Attempt::Missed { ref ways, .. } if self.learn_ways(ways) => {}
            Attempt::Missed { missed, unrepaired, .. } => match missed {
                Missed::Source { name, catalog } => drop(self.sources.insert(name, catalog)),
                Missed::Higher { name, version } => {
                    self.accepted.get_or_insert(unrepaired);
                    self.avoid(name, version)?;
                }
                Missed::Refused(refused) => {
                    let known = self.refused.entry(refused.name.clone()).or_default();
                    if known.iter().any(|it| it.bundle == refused.bundle) {
                        let RefusedBundle { name, block, .. } = refused;
                        return Err(ProposalError::Blocked { name, block });
                    }
                    known.push(refused);
                }
            },
        }
        Ok(())
    }

    /// Proposes a higher version that the controller would install; or else, writes less than is wanted, so that
    /// it would not.
    fn avoid(&mut self, name: String, version: Version) -> Result<(), ProposalError> {
        let has_range = self.wanted_range(&name).is_some_and(|it| !is_pinned(it));
        if has_range && self.tried.insert(name.clone()) {
            self.steered.push((name, version));
            return Ok(());
        }
        self.steered.retain(|(it, _)| *it != name);
        if self.narrow(&name) {
            return Ok(());
        }
        let version = version_text(&version.to_string());
        let message = format!("{version} would be installed, which the plan does not have");
        let block = OperatorBlock::new(Reason::UpgradeBlocked, message);
        Err(ProposalError::Blocked { name, block })
    }

    /// Writes less of what is wanted of an Operator. Returns whether that is possible.
    fn narrow(&mut self, name: &str) -> bool {
        let has_range = self.wanted_range(name).is_some_and(|it| !is_pinned(it));
        let is_narrower = has_range && self.narrowed.insert(name.to_owned());
        is_narrower || self.pinned.insert(name.to_owned())
    }

    /// Proposes versions and converges them.
    fn attempt(&self) -> Attempt {
        let requested = self.requested();
        let destinations = self.destinations(&requested);
        // That what is steered to has no solution is not shown.
        let is_shown = !self.request.is_unexplained && self.steered.is_empty();
        let solved = self.solved(&destinations, &requested, is_shown);
        let RepairedSolution { solution, unrepaired } = match solved {
            Ok(solved) => solved,
            Err(conflict) => return Attempt::Failed(self.failure(conflict)),
        };
        let chosen = super::chosen(self.catalogs, &solution);
        let reached = self.reached_by_steps(&chosen);
        let proposed = ways::replaced(chosen, &reached);
        let after = Outcome::new(self.inputs, self.catalogs, &proposed);
        let after = after.without(&self.request.overrides.exclude);
        if let Some(name) = self.orphan(&requested, &after) {
            return Attempt::Orphan(name);
        }
        if let Some(names) = self.moved_pins(&requested, &proposed) {
            return Attempt::Pins(names);
        }
        let mut operators = self.changed(&proposed, &after, &requested);
        let written = self.written(&operators);
        let CarriedOut { change_sets, converged, missed, ways, too_wide } =
            self.carried_out(&proposed, &written, &mut operators);
        if !too_wide.is_empty() {
            return Attempt::TooWide(too_wide);
        }
        if let Some(missed) = missed {
            return Attempt::Missed { missed, ways, unrepaired };
        }
        let held_back = self.held_back(&solution, &destinations, &requested);
        Attempt::Plan(Box::new(Proposal {
            notes: self.notes(&operators, &after),
            unsatisfied: unsatisfied(&after, &unrepaired, &|it| self.pins.is_kept(it)),
            converged: converged.operators,
            operators,
            written,
            solution,
            change_sets,
            held_back,
        }))
    }

    /// Converges changed Operators: one by one, or as change sets those that cannot be changed so.
    fn carried_out(
        &self,
        proposed: &ChosenBundles<'_>,
        written: &BTreeSet<String>,
        operators: &mut BTreeMap<String, RequestedOperator>,
    ) -> CarriedOut {
        let alone = self.converged(operators);
        let mut missed = self.missed(proposed, written, operators, &alone);
        let groups = match (&missed, self.request.together) {
            (_, true) => vec![Inseparable { members: written.clone(), missed: missed.clone() }],
            (Some(Missed::Refused(_)), false) => {
                self.inseparable(proposed, written, operators, &alone)
            }
            (Some(Missed::Source { .. } | Missed::Higher { .. }) | None, false) => Vec::new(),
        };
        let sets = groups.iter().filter(|it| it.members.len() > 1);
        let change_sets: BTreeSet<String> =
            sets.map(|it| changed::join(&it.members, operators)).collect();
        let mut too_wide = Vec::new();
        let mut joined = None;
        if !change_sets.is_empty() {
            let converged = joined.insert(self.converged(operators));
            let together = self.missed(proposed, written, operators, converged);
            if together.is_some() {
                too_wide = self.too_wide(proposed, written, operators);
            }
            // The blocks of single updates are more specific than those of a change set.
            missed = together.map(|it| {
                let group = groups.into_iter().find(|group| group.members.contains(it.name()));
                group.and_then(|group| group.missed).unwrap_or(it)
            });
        }
        let converged = joined.as_ref().unwrap_or(&alone);
        let ways = self.missed_ways(missed.as_ref(), proposed, &alone, converged);
        let converged = joined.unwrap_or(alone);
        CarriedOut { change_sets, converged, missed, ways, too_wide }
    }

    /// Returns the Operators to repair. No repair is given up for a version that is steered to, and none of them
    /// is moved.
    fn unmet(&self) -> Unmet {
        let mut unmet = self.unmet.clone();
        if let Some(accepted) = self.accepted.as_ref().filter(|_| !self.steered.is_empty()) {
            unmet.ignored.extend(accepted.iter().cloned());
            unmet.repaired.retain(|it| !accepted.contains(it));
            unmet.is_strict = true;
        }
        unmet
    }

    /// Returns the wanted range of a package.
    fn wanted_range(&self, name: &str) -> Option<&'a str> {
        self.request.wanted.get(name)?.range.as_deref()
    }

    /// Returns the ranges that the resolver has to respect, by name.
    fn ranges(&self) -> BTreeMap<String, String> {
        let mut ranges = self.request.ranges();
        ranges.extend(self.steered.iter().map(|(name, it)| (name.clone(), it.to_string())));
        ranges
    }

    /// Returns the existing Operators to update if possible.
    fn requested(&self) -> BTreeSet<&'a str> {
        self.requested_of(self.inputs.operators, &self.orphans)
    }

    /// Returns those of some Operators to update if possible; not those that are orphans.
    fn requested_of<'o>(
        &self,
        operators: &'o BTreeMap<String, RequestedOperator>,
        orphans: &BTreeSet<String>,
    ) -> BTreeSet<&'o str> {
        let ChangeRequest { wanted, latest, is_install, .. } = self.request;
        let is_requested = |name: &str, it: &RequestedOperator| match wanted.get(name) {
            Some(wanted) if *is_install => self.is_lacking(name, it, wanted),
            Some(_) => true,
            None if *is_install => false,
            // Those that follow a range are always included.
            None => {
                let follows = !is_pinned(&it.spec.version) && !it.is_dependency;
                follows || (*latest && wanted.is_empty())
            }
        };
        let requested = operators.iter().filter(|(name, it)| {
            may_move(it) && is_requested(name, it) && !orphans.contains(*name)
        });
        requested.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns whether an Operator does not have what is wanted of it, or is steered to another version.
    fn is_lacking(&self, name: &str, operator: &RequestedOperator, wanted: &Wanted) -> bool {
        let Some(installed) = &operator.installed else { return true };
        let before = self.before.operators.get(name).map(|it| &it.spec);
        let spec = &operator.spec;
        let is_moved = !wanted.has_source(&installed.reference)
            && before.is_some_and(|it| {
                (&it.channel, &it.repository) != (&spec.channel, &spec.repository)
            });
        let range = wanted.range.as_deref().unwrap_or(&spec.version);
        let is_steered = self.steered.iter().any(|(it, _)| it == name);
        is_moved || is_steered || !is_in_range(range, &installed.bundle.version)
    }

    /// Returns a requested Operator that no Operator depends on afterwards, if it is a dependency, or if one
    /// depended on it before; one that is named, or that a user installed by name, is none.
    fn orphan(&self, requested: &BTreeSet<&str>, after: &Outcome<'_>) -> Option<String> {
        if self.request.is_install || requested.is_empty() {
            return None;
        }
        let used = after.needed();
        let before = Outcome::new(self.inputs, self.catalogs, &ChosenBundles::new());
        let were_used = before.used_by(before.bundles.keys().copied());
        let is_orphan = |name: &&&str| {
            let operator = &self.inputs.operators[**name];
            !self.request.wanted.contains_key(**name)
                && !used.contains(**name)
                && operator.may_be_orphaned(were_used.contains(**name))
        };
        requested.iter().find(is_orphan).map(|it| (*it).to_owned())
    }

    fn converged(&self, operators: &BTreeMap<String, RequestedOperator>) -> ConvergedOperators {
        let inputs = OperatorInputs { operators, ..self.inputs };
        converge_shown(inputs, self.catalogs, self.progress)
    }
}
