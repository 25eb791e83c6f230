//! Decisions on Operators.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::{InstallConstraints, UpgradeConstraints};
use plimsoll_api::{GroupKind, Reason};
use plimsoll_resolve::offer::Offer;
use plimsoll_resolve::requirement::{Provider, unfit_for};
use plimsoll_resolve::{Bundle, CatalogPart};

use super::change_set::{self, ChangeSet};
use super::installed::{InstalledBundles, OperatorIndex, all_unmet, kinds};
use super::selection::{Candidates, candidates, named, reference};
use super::{
    CandidateRequirements, InstalledOperator, OperatorAction, OperatorBlock, OperatorDecision,
    OperatorInputs, RequestedOperator, SelectedBundle, version_text,
};

/// Decides on these Operators. A change set is decided if `names` has one of its members; a complete one is
/// only updated if `names` has all of them. `offered` returns the served catalogs, each with those of the
/// given packages that it has: the versions of all Operators at once would take much memory.
pub fn decide(
    inputs: OperatorInputs<'_>,
    names: &BTreeSet<String>,
    offered: &dyn Fn(&BTreeSet<String>) -> Vec<CatalogPart>,
) -> BTreeMap<String, OperatorDecision> {
    decide_indexed(inputs, &OperatorIndex::of(inputs.operators), names, offered)
}

/// Decides with an existing index of all Operators.
pub(super) fn decide_indexed(
    inputs: OperatorInputs<'_>,
    index: &OperatorIndex,
    names: &BTreeSet<String>,
    offered: &dyn Fn(&BTreeSet<String>) -> Vec<CatalogPart>,
) -> BTreeMap<String, OperatorDecision> {
    let installed = InstalledBundles::new(inputs, index);
    let mut decisions = BTreeMap::new();
    let mut sets: BTreeMap<ChangeSet, BTreeSet<String>> = BTreeMap::new();
    for name in names {
        let Some(operator) = inputs.operators.get(name) else { continue };
        match change_set::of(operator) {
            Some(Ok(set)) => {
                sets.entry(set).or_default().insert(name.clone());
            }
            None | Some(Err(_)) => {
                let catalogs = offered(&BTreeSet::from([name.clone()]));
                let chosen = choose(inputs, &catalogs, name, operator);
                let decision = alone(&catalogs, &installed, name, operator, chosen);
                decisions.insert(name.clone(), decision);
            }
        }
    }
    for (set, members) in sets {
        let catalogs = offered(&members);
        decide_set(&catalogs, &installed, &set, &members, &mut decisions);
    }
    refuse_second_owners(inputs, &mut decisions);
    decisions
}

/// The choice that an Operator has.
enum Choice<'a> {
    /// None: the action does not depend on the bundles that are offered.
    Fixed(OperatorAction),
    /// The bundles that it may be installed from or updated to.
    Among(Candidates<'a>),
}

/// Returns the bundles that an Operator may move to, or the action that does not depend on them.
fn choose<'a>(
    inputs: OperatorInputs<'_>,
    catalogs: &'a [CatalogPart],
    name: &str,
    operator: &RequestedOperator,
) -> Choice<'a> {
    if operator.is_deleting {
        return Choice::Fixed(OperatorAction::Delete);
    }
    if operator.spec.paused {
        return Choice::Fixed(OperatorAction::Paused);
    }
    if let (Some(revision), Some(installed)) = (operator.spec.revision, &operator.installed) {
        return Choice::Fixed(match installed.revision == revision {
            true => OperatorAction::Keep,
            false => OperatorAction::RollBack { revision },
        });
    }
    if let Some(Err(error)) = change_set::of(operator) {
        let message = format!(
            "the annotation {} is {:?}; it must be ID/MEMBERS, such as upgrade-42/2",
            plimsoll_api::olm::CHANGE_SET_ANNOTATION,
            error.text
        );
        let block = OperatorBlock::new(Reason::InvalidChangeSet, message);
        return Choice::Fixed(OperatorAction::Blocked(block));
    }
    match candidates(inputs, catalogs, name, operator) {
        Ok(candidates) => Choice::Among(candidates),
        Err(block) => Choice::Fixed(OperatorAction::Blocked(block)),
    }
}

/// Decides on an Operator that is not in a change set.
fn alone<'a>(
    catalogs: &'a [CatalogPart],
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    chosen: Choice<'a>,
) -> OperatorDecision {
    let mut judged = CandidateRequirements::default();
    let (action, held_back, bundle) = match chosen {
        Choice::Fixed(action) => (action, None, None),
        Choice::Among(chosen) => single_move(installed, name, operator, &chosen, &mut judged),
    };
    let decided = Decided { action, held_back, bundle, judged };
    report(catalogs, installed, name, operator, decided)
}

/// Returns the most preferred bundle that is not blocked, and the block of one that is preferred to it.
fn single_move<'a>(
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    chosen: &Candidates<'a>,
    judged: &mut CandidateRequirements,
) -> (OperatorAction, Option<OperatorBlock>, Option<&'a Bundle>) {
    let mut first_block: Option<OperatorBlock> = None;
    for offer in &chosen.offers {
        judged.add(offer.bundle);
        let after = installed.with(name, offer.bundle);
        match judge(installed, &after, name, operator, offer, &BTreeSet::from([name])) {
            Ok(selected) => {
                let action = match operator.installed {
                    None => OperatorAction::Install(selected),
                    Some(_) => OperatorAction::Upgrade(selected),
                };
                return (action, first_block, Some(offer.bundle));
            }
            Err(block) => {
                first_block.get_or_insert(block);
            }
        }
    }
    let passed_over = chosen.passed_over.first();
    let passed_over =
        passed_over.map(|why| OperatorBlock::new(Reason::ClusterIncompatible, why.clone()));
    match first_block {
        Some(block) => (OperatorAction::Blocked(block), None, None),
        None => (OperatorAction::Keep, passed_over, None),
    }
}

/// Checks whether an Operator may move to a bundle. `now` is installed, `after` would be.
fn judge<'a>(
    now: &InstalledBundles<'a>,
    after: &InstalledBundles<'a>,
    name: &str,
    operator: &RequestedOperator,
    offer: &Offer<'a>,
    moving: &BTreeSet<&str>,
) -> Result<SelectedBundle, OperatorBlock> {
    let provides = kinds(offer.bundle);
    if let Some((owner, kind)) = now.owner_of(name, &provides) {
        let message = format!(
            "{} provides {kind}, which belongs to Operator {owner}: delete one of the two",
            named(name, offer)
        );
        return Err(OperatorBlock::new(Reason::Conflict, message));
    }
    let unmet = all_unmet(name, &after.check(name, offer.bundle));
    let mut accepted_risks = Vec::new();
    match &operator.installed {
        None => {
            if operator.spec.constraint_policy.install == InstallConstraints::Enforce
                && !unmet.is_empty()
            {
                let message = format!("{} waits: {}", named(name, offer), unmet.join("; "));
                return Err(OperatorBlock::new(Reason::ConstraintsUnmet, message));
            }
            accepted_risks.extend(unmet);
        }
        Some(installed) => {
            let mut risks = unmet;
            risks.extend(now.broken_by(after, moving));
            risks.extend(upgrade_block(installed, name, offer));
            if operator.spec.constraint_policy.upgrade == UpgradeConstraints::Enforce
                && !risks.is_empty()
            {
                let message = format!("{} waits: {}", named(name, offer), risks.join("; "));
                return Err(OperatorBlock::new(Reason::UpgradeBlocked, message));
            }
            accepted_risks.extend(risks);
        }
    }
    Ok(SelectedBundle { reference: reference(offer), provides, accepted_risks })
}

/// Returns the block of another minor or major version: a ClusterOperator that is not upgradeable, or objects
/// that an update has not deleted yet.
fn upgrade_block(installed: &InstalledOperator, name: &str, offer: &Offer<'_>) -> Option<String> {
    let (from, to) = (&installed.bundle.version, &offer.bundle.version);
    let is_patch = (from.major, from.minor) == (to.major, to.minor);
    let block = installed.upgrade_block.as_ref().filter(|_| !is_patch)?;
    Some(format!("{name} is not upgradeable: {block}"))
}

/// The bundles that a member of a change set moves to.
struct Route<'a> {
    /// The bundle that it moves to first.
    next: Offer<'a>,
    /// The bundle that it reaches in the end; the same as `next` if one step leads there.
    destination: Offer<'a>,
}

/// Follows the steps that lead an Operator to a requested version.
///
/// # Errors
///
/// When the steps do not lead to one.
fn route<'a>(
    inputs: OperatorInputs<'_>,
    catalogs: &'a [CatalogPart],
    name: &str,
    operator: &RequestedOperator,
    next: &Offer<'a>,
) -> Result<Route<'a>, OperatorBlock> {
    let mut operator = operator.clone();
    let mut passed = BTreeSet::new();
    let mut destination = next.clone();
    while destination.is_step && passed.insert(destination.bundle.name.as_str()) {
        if let Some(installed) = &mut operator.installed {
            installed.reference = reference(&destination);
            installed.bundle = destination.bundle.clone();
        }
        let Candidates { offers, .. } = candidates(inputs, catalogs, name, &operator)?;
        let Some(first) = offers.into_iter().next() else { break };
        destination = first;
    }
    match destination.is_step {
        false => Ok(Route { next: next.clone(), destination }),
        true => {
            let message = format!("{} leads back to itself", named(name, &destination));
            Err(OperatorBlock::new(Reason::NoUpgradePath, message))
        }
    }
}

/// The bundles that members of a change set would have.
type Moves<'a> = BTreeMap<&'a str, Offer<'a>>;

/// Judges moves that are made together.
///
/// # Errors
///
/// The Operators whose moves are blocked, with the reasons.
fn judge_together<'a>(
    installed: &InstalledBundles<'a>,
    moves: &Moves<'a>,
) -> Result<BTreeMap<&'a str, SelectedBundle>, BTreeMap<&'a str, OperatorBlock>> {
    let after = installed.with_all(moves.iter().map(|(name, offer)| (*name, offer.bundle)));
    let moving: BTreeSet<&str> = moves.keys().copied().collect();
    let (mut selected, mut refused) = (BTreeMap::new(), BTreeMap::new());
    for (name, offer) in moves {
        let operator = &installed.inputs().operators[*name];
        match judge(installed, &after, name, operator, offer, &moving) {
            Ok(bundle) => {
                selected.insert(*name, bundle);
            }
            Err(block) => {
                refused.insert(*name, block);
            }
        }
    }
    if refused.is_empty() { Ok(selected) } else { Err(refused) }
}

/// Decides on a change set: all of its members move to the version that they prefer, or none does. A member
/// that needs several steps takes the first ones before the other members move, or with them.
fn decide_set<'a>(
    catalogs: &'a [CatalogPart],
    installed: &InstalledBundles<'a>,
    set: &ChangeSet,
    names: &'a BTreeSet<String>,
    decisions: &mut BTreeMap<String, OperatorDecision>,
) {
    let inputs = installed.inputs();
    let mut actions: BTreeMap<&str, OperatorAction> = BTreeMap::new();
    let mut routes: BTreeMap<&str, Route<'a>> = BTreeMap::new();
    for name in names {
        let operator = &inputs.operators[name];
        let chosen = choose(inputs, catalogs, name, operator);
        let next = match &chosen {
            Choice::Among(chosen) => chosen.offers.first(),
            Choice::Fixed(_) => None,
        };
        let route = next.map(|next| route(inputs, catalogs, name, operator, next));
        match (chosen, route) {
            (Choice::Fixed(action), _) => {
                actions.insert(name, action);
            }
            (Choice::Among(_), None) => {
                actions.insert(name, OperatorAction::Keep);
            }
            (Choice::Among(_), Some(Ok(route))) => {
                routes.insert(name, route);
            }
            (Choice::Among(_), Some(Err(block))) => {
                actions.insert(name, OperatorAction::Blocked(block));
            }
        }
    }
    let members = change_set::members(inputs, set);
    let next = match members.len() < set.members {
        true => {
            let message = format!(
                "change set {} has {} of its {} Operators: {}",
                set.id,
                members.len(),
                set.members,
                members.join(", ")
            );
            // The requirements of the missing members are not known.
            let block = OperatorBlock::new(Reason::ChangeSetIncomplete, message);
            routes.keys().map(|name| (*name, OperatorAction::Blocked(block.clone()))).collect()
        }
        false => {
            let refused = actions.iter().filter_map(|(name, action)| match action {
                OperatorAction::Blocked(block) => Some((*name, block.clone())),
                _ => None,
            });
            let refused: BTreeMap<_, _> = refused.collect();
            next_moves(installed, set, &routes, refused)
        }
    };
    actions.extend(next);
    for (name, action) in actions {
        let operator = &inputs.operators[name];
        let mut judged = CandidateRequirements::default();
        let route = routes.get(name);
        for offer in route.into_iter().flat_map(|route| [&route.next, &route.destination]) {
            judged.add(offer.bundle);
        }
        let is_move = matches!(action, OperatorAction::Install(_) | OperatorAction::Upgrade(_));
        let bundle = route.filter(|_| is_move).map(|route| route.next.bundle);
        let decided = Decided { action, held_back: None, bundle, judged };
        let decision = report(catalogs, installed, name, operator, decided);
        decisions.insert(name.to_owned(), decision);
    }
}

/// Decides on the members of a complete change set that have a route; `refused` has the blocks of other
/// members.
fn next_moves<'a>(
    installed: &InstalledBundles<'a>,
    set: &ChangeSet,
    routes: &BTreeMap<&'a str, Route<'a>>,
    refused: BTreeMap<&'a str, OperatorBlock>,
) -> BTreeMap<&'a str, OperatorAction> {
    let moves = |of: &dyn Fn(&Route<'a>) -> Option<Offer<'a>>| -> Moves<'a> {
        routes.iter().filter_map(|(name, route)| Some((*name, of(route)?))).collect()
    };
    let arrival = judge_together(installed, &moves(&|it| Some(it.destination.clone())));
    let mut refused = refused;
    if let Err(blocks) = &arrival {
        refused.extend(blocks.clone());
    }
    let steps = moves(&|it| it.next.is_step.then(|| it.next.clone()));
    let (departure, waiting) = if steps.is_empty() {
        (arrival, String::new())
    } else {
        let ways = steps.iter().map(|(name, offer)| {
            let to = version_text(&routes[name].destination.bundle.version.to_string());
            format!("{} comes before {to}", named(name, offer))
        });
        let waiting = ways.collect::<Vec<_>>().join("; ");
        let first = judge_together(installed, &steps);
        let together = || judge_together(installed, &moves(&|it| Some(it.next.clone())));
        // A step that does not fit the installed bundles may fit those that the others move to.
        (first.or_else(|blocks| together().map_err(|_| blocks)), waiting)
    };
    if refused.is_empty()
        && let Err(blocks) = &departure
    {
        refused.extend(blocks.clone());
    }
    let leading = match &departure {
        Ok(selected) => leading(installed, &moves(&|it| Some(it.next.clone())), selected),
        Err(_) => BTreeMap::new(),
    };
    let texts: Vec<String> =
        refused.iter().map(|(name, block)| format!("{name}: {}", block.message)).collect();
    let action = |name: &&'a str| {
        let waits = |why: &str| {
            let message = format!("change set {} waits: {why}", set.id);
            OperatorAction::Blocked(OperatorBlock::new(Reason::ChangeSetBlocked, message))
        };
        let action = match (refused.get(name), &departure) {
            (Some(block), _) => OperatorAction::Blocked(block.clone()),
            (None, Ok(selected)) if refused.is_empty() => match selected.get(name) {
                Some(_) if leading.contains_key(name) => {
                    let first: Vec<String> =
                        leading[name].iter().map(|it| named(it, &routes[it].next)).collect();
                    waits(&format!("{} comes first", first.join(", ")))
                }
                Some(bundle) if installed.inputs().operators[*name].installed.is_some() => {
                    OperatorAction::Upgrade(bundle.clone())
                }
                Some(bundle) => OperatorAction::Install(bundle.clone()),
                None => waits(&waiting),
            },
            (None, Ok(_) | Err(_)) => waits(&texts.join("; ")),
        };
        (*name, action)
    };
    routes.keys().map(action).collect()
}

/// Returns for each move the other moves that come before it, if there are any: those of Operators that
/// satisfy a requirement that no installed bundle satisfies. Operators that require each other move at the
/// same time.
fn leading<'a>(
    installed: &InstalledBundles<'a>,
    moves: &Moves<'a>,
    selected: &BTreeMap<&'a str, SelectedBundle>,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let moves = || moves.iter().filter(|(name, _)| selected.contains_key(*name));
    let after = installed.with_all(moves().map(|(name, offer)| (*name, offer.bundle)));
    let providers = |name: &'a str, offer: &Offer<'a>| -> BTreeSet<&'a str> {
        let now = installed.check(name, offer.bundle);
        let then = after.check(name, offer.bundle);
        let awaited = now.into_iter().zip(then).filter(|(now, _)| now.provider.is_none());
        let awaited = awaited.filter_map(|(_, then)| match then.provider {
            Some(Provider::Installed(package)) => selected.get_key_value(package.as_str()),
            Some(Provider::Itself | Provider::Cluster) | None => None,
        });
        awaited.map(|(package, _)| *package).collect()
    };
    let awaited: BTreeMap<&str, BTreeSet<&str>> =
        moves().map(|(name, offer)| (*name, providers(name, offer))).collect();
    let reached = |from: &'a str| -> BTreeSet<&'a str> {
        let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(name) = left.pop() {
            left.extend(awaited[name].iter().filter(|it| reached.insert(**it)));
        }
        reached
    };
    let leading = awaited.iter().map(|(name, first)| {
        let first = first.iter().filter(|it| !reached(it).contains(name));
        (*name, first.copied().collect::<BTreeSet<_>>())
    });
    leading.filter(|(_, first)| !first.is_empty()).collect()
}

/// Blocks all but one of the Operators that are about to install the same kind: the first by creation time.
fn refuse_second_owners(
    inputs: OperatorInputs<'_>,
    decisions: &mut BTreeMap<String, OperatorDecision>,
) {
    let mut moving: Vec<(String, BTreeSet<GroupKind>)> = Vec::new();
    for (name, decision) in decisions.iter() {
        if let OperatorAction::Install(selected) | OperatorAction::Upgrade(selected) =
            &decision.action
        {
            moving.push((name.clone(), selected.provides.clone()));
        }
    }
    moving.sort_by_key(|(name, _)| (inputs.operators[name].created, name.clone()));
    let mut owners: BTreeMap<GroupKind, String> = BTreeMap::new();
    for (name, provides) in moving {
        let taken = provides.iter().find_map(|kind| owners.get_key_value(kind));
        if let Some((kind, first)) = taken {
            let message = format!(
                "Operator {first}, which was created before, is about to install {kind}: delete one \
                 of the two"
            );
            let block = OperatorBlock::new(Reason::Conflict, message);
            if let Some(decision) = decisions.get_mut(&name) {
                decision.action = OperatorAction::Blocked(block);
            }
        } else {
            owners.extend(provides.into_iter().map(|kind| (kind, name.clone())));
        }
    }
}

/// The parts of a decision that were decided.
struct Decided<'a> {
    action: OperatorAction,
    held_back: Option<OperatorBlock>,
    /// The bundle that is about to be installed; `None` if there is none.
    bundle: Option<&'a Bundle>,
    judged: CandidateRequirements,
}

/// Completes a decision with what is reported.
fn report<'a>(
    catalogs: &'a [CatalogPart],
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    decided: Decided<'a>,
) -> OperatorDecision {
    let Decided { action, held_back, bundle, judged } = decided;
    let current = operator.installed.as_ref().map(|it| &it.bundle);
    let subject = bundle.or(current);
    let requirements = subject.map(|it| installed.check(name, it)).unwrap_or_default();
    let incompatibility = subject.and_then(|it| unfit_for(name, it, installed.inputs().facts));
    let deprecation = subject.and_then(|it| deprecation(catalogs, name, it));
    let dependants = installed.dependants(name);
    let is_orphaned =
        operator.is_dependency && operator.installed.is_some() && dependants.is_empty();
    OperatorDecision {
        action,
        held_back,
        requirements,
        incompatibility,
        deprecation,
        dependants,
        is_orphaned,
        judged,
    }
}

/// Returns the deprecation of a bundle or its package in the catalogs, as a sentence.
fn deprecation(catalogs: &[CatalogPart], name: &str, bundle: &Bundle) -> Option<String> {
    let packages = catalogs.iter().flat_map(|catalog| &catalog.packages);
    let mut packages = packages.filter(|package| package.name == name);
    packages.find_map(|package| {
        let listed = package.bundles.iter().find(|it| it.name == bundle.name)?;
        let (what, message) = match (&listed.deprecation, &package.deprecation) {
            (Some(message), _) => (format!("{name} v{}", bundle.version), message),
            (None, Some(message)) => (format!("package {name}"), message),
            (None, None) => return None,
        };
        Some(format!("{what} is deprecated: {message}"))
    })
}
