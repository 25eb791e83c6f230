//! Updates of a whole loadout: the Operators that are updated, what is updated or installed with them, and
//! what is unchanged (OPR-17).
//!
//! The resolver proposes versions for all Operators at once. For an installed Operator, it may choose any
//! version that the channel leads to, in any number of steps. The proposal is then settled with the decisions
//! of the controller ([`settle`]); only what these result in is a plan.
//!
//! An Operator is updated if it is requested, or if an updated one requires another version of it. A range
//! that a user wrote is kept; that of a dependency is replaced if the new version is outside of it.

mod destinations;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::OperatorSpec;
use plimsoll_resolve::requirement::{InstalledPackages, Provider};
use plimsoll_resolve::{
    Bundle, CatalogPart, Constraint, Explanation, FORMAT, FollowedChannel, InstalledBundle,
    PackageRequest, Problem, Query, Resolution, Solution, solve,
};
use semver::Version;

use self::destinations::Destinations;
pub use self::plan::{OperatorUpdate, OperatorVersion, UpdatePlan, VersionRequirement};
use super::change_set::{self, ChangeSet};
use super::lint::dependency_range;
use super::loadout::{SettledOperators, settle};
use super::planner::{is_in_range, is_pinned, may_move};
use super::selection::candidates;
use super::{OperatorAction, OperatorBlock, OperatorInputs, RequestedOperator, version_text};

/// A request to update Operators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateRequest {
    /// Whether pinned Operators are updated to the newest version, too.
    pub latest: bool,
    /// The requested versions of single Operators, as ranges by name; if there are any, nothing else is
    /// requested.
    pub ranges: BTreeMap<String, String>,
    /// Whether all changed Operators form one change set; otherwise only if they cannot be updated one by
    /// one.
    pub together: bool,
}

impl UpdateRequest {
    /// Returns whether nothing is requested: no range and no newest version, and no Operator follows a range.
    pub fn is_idle(&self, operators: &BTreeMap<String, RequestedOperator>) -> bool {
        !self.latest && self.ranges.is_empty() && all_pinned(operators)
    }
}

/// The reason that there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateError {
    /// A range was requested for an Operator that does not exist.
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
    let inputs = OperatorInputs { operators: &present, ..inputs };
    let mut planner =
        Planner { inputs, catalogs, request, orphans: BTreeSet::new(), refused: BTreeMap::new() };
    loop {
        match planner.attempt()? {
            Attempt::Plan(plan) => return Ok(plan),
            Attempt::Orphan(name) => {
                planner.orphans.insert(name);
            }
            Attempt::Refused(refused) => {
                planner.refused.entry(refused.name.clone()).or_default().push(refused);
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
        let settled = settle(inputs, catalogs);
        for (name, operator) in &mut operators {
            if operator.installed.is_none()
                && let Some(expected) = settled.operators.get(name)
            {
                operator.clone_from(expected);
            }
        }
    }
    operators
}

/// The bundles that the resolver would install, by package.
type Proposal<'a> = BTreeMap<String, &'a Bundle>;

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
    /// The dependencies that no Operator depends on afterwards; they are reported, and unchanged.
    orphans: BTreeSet<String>,
    /// The bundles that would not be installed, by Operator.
    refused: BTreeMap<String, Vec<RefusedBundle>>,
}

impl Planner<'_> {
    /// Proposes versions and settles them.
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
        let proposed = self.proposed(&solution);
        let used = used(self.inputs, &proposed);
        let is_orphan = |name: &&&str| {
            let operator = &self.inputs.operators[**name];
            operator.is_dependency && !used.contains(**name) && !ranges.contains_key(**name)
        };
        if let Some(name) = requested.iter().find(is_orphan) {
            return Ok(Attempt::Orphan((*name).to_owned()));
        }
        let (mut operators, written) = self.changed(&proposed);
        let mut change_set = None;
        let mut settled = self.settled(&operators);
        let mut missed = self.missed(&proposed, &settled);
        if written.len() > 1 && (self.request.together || missed.is_some()) {
            let id = change_set_id(&written, &operators);
            for name in &written {
                if let Some(operator) = operators.get_mut(name) {
                    operator.change_set = Some(id.clone());
                }
            }
            change_set = Some(id);
            settled = self.settled(&operators);
            // The blocks of single updates are more specific than those of the change set.
            missed = self.missed(&proposed, &settled).map(|it| missed.unwrap_or(it));
        }
        if let Some(refused) = missed {
            if !self.inputs.operators.contains_key(&refused.name) {
                let RefusedBundle { name, bundle: _, version: _, block } = refused;
                return Err(UpdateError::Blocked { name, block });
            }
            return Ok(Attempt::Refused(refused));
        }
        let reasons = self.held_back(&solution, &destinations, &requested);
        Ok(Attempt::Plan(self.plan(&operators, &settled, change_set, &reasons)))
    }

    /// Returns the Operators to update if possible. Those that follow a range are always included.
    fn requested(&self) -> BTreeSet<&str> {
        let UpdateRequest { latest, ranges, together: _ } = self.request;
        let is_requested = |name: &str, it: &RequestedOperator| {
            let is_pinned = is_pinned(&it.spec.version);
            let follows = !is_pinned && !it.is_dependency;
            ranges.contains_key(name) || follows || (*latest && ranges.is_empty())
        };
        let operators = self.inputs.operators.iter();
        let requested = operators.filter(|(name, it)| {
            may_move(it) && is_requested(name, it) && !self.orphans.contains(*name)
        });
        requested.map(|(name, _)| name.as_str()).collect()
    }

    fn problem(&self, destinations: &Destinations<'_>, requested: &BTreeSet<&str>) -> Problem {
        let bundles = installed(self.inputs.operators);
        let packages = InstalledPackages::new(bundles.clone());
        let lacks = |name: &str, bundle: &Bundle| {
            let OperatorInputs { facts, expressions, .. } = self.inputs;
            packages.check(name, bundle, facts, expressions).iter().any(|it| it.provider.is_none())
        };
        let installed = bundles.iter().map(|(name, bundle)| InstalledBundle {
            namespace: String::new(),
            package: Some((*name).to_owned()),
            follows: destinations.are_followed(name).then(|| FollowedChannel {
                channel: destinations::CHANNEL.to_owned(),
                catalog: None,
            }),
            // Its current unmet requirements do not block other changes.
            ignore_dependencies: lacks(name, bundle),
            bundle: (*bundle).clone(),
        });
        let request = |name: &&str| PackageRequest {
            package: (*name).to_owned(),
            version: destinations.range(name).map(str::to_owned),
            ..PackageRequest::default()
        };
        let mut problem = Problem {
            format: FORMAT,
            query: Query {
                facts: self.inputs.facts.clone(),
                installed: installed.collect(),
                requests: requested.iter().map(request).collect(),
                ..Query::default()
            },
            catalogs: destinations.offered_by(self.catalogs),
        };
        problem.canonicalize();
        problem
    }

    /// Returns the bundles that a solution installs.
    fn proposed(&self, solution: &Solution) -> Proposal<'_> {
        let chosen = solution.install.iter().filter_map(|it| {
            let catalog = self.catalogs.iter().find(|part| part.name == it.catalog)?;
            Some((it.package.clone(), catalog.bundle(&it.package, &it.bundle)?))
        });
        chosen.collect()
    }

    /// Returns the Operators with the new requests, and the names of those that are created or changed.
    fn changed(
        &self,
        proposed: &Proposal<'_>,
    ) -> (BTreeMap<String, RequestedOperator>, BTreeSet<String>) {
        let mut operators = self.inputs.operators.clone();
        let mut written = BTreeSet::new();
        let all_pinned = all_pinned(&operators);
        for (name, bundle) in proposed {
            let chosen = &bundle.version;
            let range = |range: String| match all_pinned {
                true => chosen.to_string(),
                false => range,
            };
            let Some(operator) = operators.get_mut(name) else {
                let version = range(self.dependency_range(name, chosen, proposed));
                operators.insert(name.clone(), dependency(version));
                written.insert(name.clone());
                continue;
            };
            let requested = &operator.spec.version;
            let wanted = match self.request.ranges.get(name) {
                Some(_) if is_pinned(requested) => chosen.to_string(),
                Some(range) => range.clone(),
                None if is_pinned(requested) => chosen.to_string(),
                None if is_in_range(requested, chosen) => requested.clone(),
                None => self.dependency_range(name, chosen, proposed),
            };
            if wanted != *requested {
                operator.spec.version = wanted;
                written.insert(name.clone());
            }
        }
        // A requested range is written even if the installed version is in it.
        for (name, range) in &self.request.ranges {
            if let Some(operator) = operators.get_mut(name)
                && !is_pinned(&operator.spec.version)
                && operator.spec.version != *range
            {
                operator.spec.version.clone_from(range);
                written.insert(name.clone());
            }
        }
        // The change sets of changed Operators end: their remaining members would wait for those that left.
        let over: BTreeSet<ChangeSet> =
            written.iter().filter_map(|name| change_set::of(operators.get(name)?)?.ok()).collect();
        for operator in operators.values_mut() {
            if change_set::of(operator).and_then(Result::ok).is_some_and(|it| over.contains(&it)) {
                operator.change_set = None;
            }
        }
        (operators, written)
    }

    /// Returns the range of a dependency that all of its dependants accept.
    fn dependency_range(&self, name: &str, chosen: &Version, proposed: &Proposal<'_>) -> String {
        let bundles = after(self.inputs, proposed);
        let requirements = bundles.values().flat_map(|it| &it.requires);
        let ranges = requirements.filter_map(|it| match &it.constraint {
            Constraint::Package { name: package, range } if package == name => Some(range.as_str()),
            _ => None,
        });
        dependency_range(chosen, ranges, &[])
    }

    fn settled(&self, operators: &BTreeMap<String, RequestedOperator>) -> SettledOperators {
        settle(OperatorInputs { operators, ..self.inputs }, self.catalogs)
    }

    /// Returns the first bundle that would not be installed.
    fn missed(&self, proposed: &Proposal<'_>, settled: &SettledOperators) -> Option<RefusedBundle> {
        proposed.iter().find_map(|(name, bundle)| {
            let there = settled.operators.get(name)?.installed.as_ref();
            if there.is_some_and(|it| it.bundle.version >= bundle.version) {
                return None;
            }
            let decision = settled.decisions.get(name)?;
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
                name: name.clone(),
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

    fn plan(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
        settled: &SettledOperators,
        change_set: Option<String>,
        reasons: &BTreeMap<String, String>,
    ) -> UpdatePlan {
        let OperatorInputs { facts, expressions, .. } = self.inputs;
        let before = installed(self.inputs.operators);
        let bundles = installed(&settled.operators);
        let packages = InstalledPackages::new(bundles.clone());
        // The requirements that an Operator does not satisfy with its current version.
        let mut required: BTreeMap<&str, Vec<VersionRequirement>> = BTreeMap::new();
        let mut used = BTreeSet::new();
        let now = InstalledPackages::new(before.clone());
        for (name, bundle) in &bundles {
            let then = packages.check(name, bundle, facts, expressions);
            let now = now.check(name, bundle, facts, expressions);
            for (then, now) in then.into_iter().zip(now) {
                let Some(Provider::Installed(provider)) = then.provider else { continue };
                let Some((provider, _)) = bundles.get_key_value(provider.as_str()) else {
                    continue;
                };
                used.insert(*provider);
                if now.provider.is_none() {
                    required.entry(provider).or_default().push(VersionRequirement {
                        operator: (*name).to_owned(),
                        version: bundle.version.clone(),
                        requirement: then.text,
                    });
                }
            }
        }
        let version = |operator: &RequestedOperator, at: Option<&&Bundle>| OperatorVersion {
            requested: operator.spec.version.clone(),
            installed: at.map(|it| it.version.clone()),
        };
        let updates = operators.iter().map(|(name, operator)| {
            let was = self.inputs.operators.get(name);
            OperatorUpdate {
                name: name.clone(),
                before: was.map(|it| version(it, before.get(name.as_str()))),
                after: version(operator, bundles.get(name.as_str())),
                dependency: operator.is_dependency,
                orphaned: operator.is_dependency
                    && bundles.contains_key(name.as_str())
                    && !used.contains(name.as_str()),
                required_by: required.remove(name.as_str()).unwrap_or_default(),
                held_back: reasons.get(name).cloned(),
                leaves_change_set: operator.change_set.is_none()
                    && was.is_some_and(|it| it.change_set.is_some()),
            }
        });
        UpdatePlan { operators: updates.collect(), change_set }
    }
}

fn all_pinned(operators: &BTreeMap<String, RequestedOperator>) -> bool {
    operators.values().all(|it| is_pinned(&it.spec.version))
}

/// Returns an Operator that is created as a dependency.
fn dependency(version: String) -> RequestedOperator {
    RequestedOperator {
        spec: OperatorSpec { version, ..OperatorSpec::default() },
        created: Timestamp::UNIX_EPOCH,
        is_dependency: true,
        change_set: None,
        is_deleting: false,
        installed: None,
        owned: BTreeSet::new(),
    }
}

/// Returns the installed bundles, by package.
fn installed(operators: &BTreeMap<String, RequestedOperator>) -> BTreeMap<&str, &Bundle> {
    let operators = operators.iter();
    operators
        .filter_map(|(name, it)| Some((name.as_str(), &it.installed.as_ref()?.bundle)))
        .collect()
}

/// Returns the bundles after an update, by package.
fn after<'a>(
    inputs: OperatorInputs<'a>,
    proposed: &'a Proposal<'a>,
) -> BTreeMap<&'a str, &'a Bundle> {
    let mut bundles = installed(inputs.operators);
    bundles.extend(proposed.iter().map(|(name, bundle)| (name.as_str(), *bundle)));
    bundles
}

/// Returns the packages that other packages depend on.
fn used(inputs: OperatorInputs<'_>, proposed: &Proposal<'_>) -> BTreeSet<String> {
    let bundles = after(inputs, proposed);
    let packages = InstalledPackages::new(bundles.clone());
    let checked = bundles
        .iter()
        .flat_map(|(name, bundle)| packages.check(name, bundle, inputs.facts, inputs.expressions));
    let providers = checked.filter_map(|it| match it.provider {
        Some(Provider::Installed(package)) => Some(package.clone()),
        Some(Provider::Itself | Provider::Cluster) | None => None,
    });
    providers.collect()
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
    format!("update-{:016x}/{}", hasher.finish(), written.len())
}

#[cfg(test)]
mod tests;
