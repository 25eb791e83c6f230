//! Decisions on Operators.

mod sets;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;
use plimsoll_api::olm::{BundleReference, InstallConstraints, UpgradeConstraints};
use plimsoll_api::{GroupKind, Reason};
use plimsoll_resolve::offer::{ChannelIndex, Offer};
use plimsoll_resolve::requirement::unfit_for;
use plimsoll_resolve::{Bundle, CatalogPart};

use self::sets::decide_set;
use self::ways::WaySearch;
pub(super) use self::ways::{KnownWays, moved};
use super::change_set::{self, ChangeSet};
use super::installed::{InstalledBundles, OperatorIndex, all_unmet, kinds};
use super::selection::{Candidates, candidates_indexed, named, reference};
use super::{
    BundleFindings, CandidateRequirements, InstalledOperator, OperatorAction, OperatorBlock,
    OperatorDecision, OperatorInputs, RequestedOperator, SelectedBundle,
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

/// The catalogs that Operators are decided with.
#[derive(Debug, Default)]
pub(super) struct OfferedCatalogs {
    /// The catalogs, with those packages that are concerned.
    pub(super) parts: Vec<CatalogPart>,
    /// The index of their channels.
    pub(super) index: ChannelIndex,
}

impl From<Vec<CatalogPart>> for OfferedCatalogs {
    fn from(parts: Vec<CatalogPart>) -> Self {
        Self { parts, index: ChannelIndex::default() }
    }
}

/// Decides with an existing index of all Operators.
pub(super) fn decide_indexed(
    inputs: OperatorInputs<'_>,
    index: &OperatorIndex,
    names: &BTreeSet<String>,
    offered: &dyn Fn(&BTreeSet<String>) -> Vec<CatalogPart>,
) -> BTreeMap<String, OperatorDecision> {
    let offered = |names: &BTreeSet<String>| Rc::new(OfferedCatalogs::from(offered(names)));
    decide_kept(inputs, index, names, &offered, &KnownWays::default())
}

/// Decides with what is kept from one decision to the next. What is reported of a move on a known way is left out:
/// whoever keeps ways takes moves as carried out, and decides again afterwards.
pub(super) fn decide_kept(
    inputs: OperatorInputs<'_>,
    index: &OperatorIndex,
    names: &BTreeSet<String>,
    offered: &dyn Fn(&BTreeSet<String>) -> Rc<OfferedCatalogs>,
    known: &KnownWays,
) -> BTreeMap<String, OperatorDecision> {
    let installed = InstalledBundles::new(inputs, index);
    let mut decisions = BTreeMap::new();
    let mut sets: BTreeMap<ChangeSet, BTreeSet<String>> = BTreeMap::new();
    let decide_alone = |name: &String, operator: &RequestedOperator| {
        let catalogs = offered(&BTreeSet::from([name.clone()]));
        let chosen = choose(&installed, &catalogs, name, operator);
        let search = WaySearch::new(&installed, &catalogs, known, name, operator);
        alone(&catalogs, &installed, name, operator, chosen, search)
    };
    let mut unreported = BTreeSet::new();
    for name in names {
        let Some(operator) = inputs.operators.get(name) else { continue };
        match change_set::of(operator) {
            Some(Ok(set)) => {
                sets.entry(set).or_default().insert(name.clone());
            }
            None | Some(Err(_)) => {
                let decision = match known.next(name) {
                    Some((selected, judged)) => {
                        unreported.insert(name);
                        OperatorDecision::unreported(selected, judged)
                    }
                    None => decide_alone(name, operator),
                };
                decisions.insert(name.clone(), decision);
            }
        }
    }
    for (set, members) in sets {
        let catalogs = offered(&members);
        decide_set(&catalogs, &installed, known, &set, &members, &mut decisions);
    }
    for (name, block) in second_owners(inputs, &decisions) {
        let Some((name, operator)) = inputs.operators.get_key_value(&name) else { continue };
        let Some(decision) = decisions.get_mut(name) else { continue };
        known.forget(name);
        if unreported.contains(name) {
            *decision = decide_alone(name, operator);
            known.forget(name);
        }
        decision.block(block);
    }
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
    installed: &InstalledBundles<'_>,
    catalogs: &'a OfferedCatalogs,
    name: &str,
    operator: &RequestedOperator,
) -> Choice<'a> {
    if operator.is_deleting {
        return Choice::Fixed(OperatorAction::Delete);
    }
    if operator.spec.paused {
        return Choice::Fixed(OperatorAction::Paused);
    }
    if let (Some(revision), Some(current)) = (operator.spec.revision, &operator.installed) {
        return Choice::Fixed(match current.revision == revision {
            true => OperatorAction::Keep,
            false => way_back(installed, name, revision),
        });
    }
    if let Some(block) = change_set::invalid(operator) {
        return Choice::Fixed(OperatorAction::Blocked(block));
    }
    let OfferedCatalogs { parts, index } = catalogs;
    match candidates_indexed(installed.inputs(), parts, index, name, operator) {
        Ok(candidates) => Choice::Among(candidates),
        Err(block) => Choice::Fixed(OperatorAction::Blocked(block)),
    }
}

/// Returns the action that leads an Operator to a kept revision, which is judged as an update is. Whether the
/// revision is kept is not known here.
fn way_back(installed: &InstalledBundles<'_>, name: &str, revision: u32) -> OperatorAction {
    let known = installed.inputs().operators.get_key_value(name);
    let returning = known.and_then(|(name, it)| Some((name.as_str(), it, it.returns_to.as_ref()?)));
    let Some((name, operator, bundle)) = returning else {
        return OperatorAction::RollBack { revision, accepted_risks: Vec::new() };
    };
    let after = installed.with(name, bundle);
    let broken = || installed.broken_by(&after, &BTreeSet::from([name]));
    match judge(installed, &after, name, operator, bundle, &broken) {
        Ok(accepted_risks) => OperatorAction::RollBack { revision, accepted_risks },
        Err(block) => OperatorAction::Blocked(block),
    }
}

/// Decides on an Operator that is not in a change set.
fn alone<'a>(
    catalogs: &'a OfferedCatalogs,
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    chosen: Choice<'a>,
    search: WaySearch<'_, 'a>,
) -> OperatorDecision {
    let mut judged = CandidateRequirements::default();
    let waiting = match &chosen {
        Choice::Among(chosen) => chosen.offers.first().map(|it| it.bundle),
        Choice::Fixed(_) => None,
    };
    let (action, held_back, bundle) = match chosen {
        Choice::Fixed(action) => (action, None, None),
        Choice::Among(chosen) => single_move(search, operator, &chosen, &mut judged),
    };
    let decided = Decided { action, held_back, bundle, judged, ahead: None, waiting };
    report(catalogs, installed, name, operator, decided)
}

/// Returns the most preferred bundle that is not blocked, and the block of one that is preferred to it.
fn single_move<'a>(
    mut search: WaySearch<'_, 'a>,
    operator: &RequestedOperator,
    chosen: &Candidates<'a>,
    judged: &mut CandidateRequirements,
) -> (OperatorAction, Option<OperatorBlock>, Option<&'a Bundle>) {
    let mut first_block: Option<OperatorBlock> = None;
    for offer in &chosen.offers {
        match search.judge(offer, judged) {
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

/// Checks whether an Operator may move to a bundle that is offered. `now` is installed, `after` would be; `broken`
/// returns what would not be satisfied any more.
fn judge_offer<'a>(
    now: &InstalledBundles<'a>,
    after: &InstalledBundles<'a>,
    name: &str,
    operator: &RequestedOperator,
    offer: &Offer<'a>,
    broken: &dyn Fn() -> Vec<String>,
) -> Result<SelectedBundle, OperatorBlock> {
    let accepted_risks = judge(now, after, name, operator, offer.bundle, broken)?;
    let provides = kinds(offer.bundle);
    Ok(SelectedBundle { reference: reference(offer), provides, accepted_risks })
}

/// Checks whether an Operator may move to a bundle. `now` is installed, `after` would be; `broken` returns what
/// would not be satisfied any more. Returns the unmet constraints that the policy overrides, as sentences.
fn judge<'a>(
    now: &InstalledBundles<'a>,
    after: &InstalledBundles<'a>,
    name: &str,
    operator: &RequestedOperator,
    bundle: &Bundle,
    broken: &dyn Fn() -> Vec<String>,
) -> Result<Vec<String>, OperatorBlock> {
    let provides = kinds(bundle);
    if let Some((owner, kind)) = now.owner_of(name, &provides) {
        let message = format!(
            "{} provides {kind}, which belongs to Operator {owner}: delete one of the two",
            named(name, bundle)
        );
        return Err(OperatorBlock::new(Reason::Conflict, message));
    }
    let unmet = all_unmet(name, &after.check(name, bundle));
    let mut accepted_risks = Vec::new();
    match &operator.installed {
        None => {
            if operator.spec.constraint_policy.install == InstallConstraints::Enforce
                && !unmet.is_empty()
            {
                let message = format!("{} waits: {}", named(name, bundle), unmet.join("; "));
                return Err(OperatorBlock::new(Reason::ConstraintsUnmet, message));
            }
            accepted_risks.extend(unmet);
        }
        Some(installed) => {
            let mut risks = unmet;
            risks.extend(broken());
            risks.extend(upgrade_block(installed, name, bundle));
            if operator.spec.constraint_policy.upgrade == UpgradeConstraints::Enforce
                && !risks.is_empty()
            {
                let message = format!("{} waits: {}", named(name, bundle), risks.join("; "));
                return Err(OperatorBlock::new(Reason::UpgradeBlocked, message));
            }
            accepted_risks.extend(risks);
        }
    }
    Ok(accepted_risks)
}

/// Returns the block of another minor or major version: a ClusterOperator that is not upgradeable, or objects
/// that an update has not deleted yet.
fn upgrade_block(installed: &InstalledOperator, name: &str, bundle: &Bundle) -> Option<String> {
    let (from, to) = (&installed.bundle.version, &bundle.version);
    let is_patch = (from.major, from.minor) == (to.major, to.minor);
    let block = installed.upgrade_block.as_ref().filter(|_| !is_patch)?;
    Some(format!("{name} is not upgradeable: {block}"))
}

/// Returns the blocks of all but one of the Operators that are about to install the same kind: the first by creation
/// time.
fn second_owners(
    inputs: OperatorInputs<'_>,
    decisions: &BTreeMap<String, OperatorDecision>,
) -> Vec<(String, OperatorBlock)> {
    let moving = decisions.iter().filter_map(|(name, decision)| match &decision.action {
        OperatorAction::Install(selected) | OperatorAction::Upgrade(selected) => {
            Some((inputs.operators[name].created, name.as_str(), &selected.provides))
        }
        _ => None,
    });
    let mut moving: Vec<(Timestamp, &str, &BTreeSet<GroupKind>)> = moving.collect();
    moving.sort_by_key(|(created, name, _)| (*created, *name));
    let mut owners: BTreeMap<&GroupKind, &str> = BTreeMap::new();
    let mut blocks = Vec::new();
    for (_, name, provides) in moving {
        let taken = provides.iter().find_map(|kind| owners.get_key_value(kind));
        if let Some((kind, first)) = taken {
            let message = format!(
                "Operator {first}, which was created before, is about to install {kind}: delete one \
                 of the two"
            );
            blocks.push((name.to_owned(), OperatorBlock::new(Reason::Conflict, message)));
        } else {
            owners.extend(provides.iter().map(|kind| (kind, name)));
        }
    }
    blocks
}

/// The parts of a decision that were decided.
struct Decided<'a> {
    action: OperatorAction,
    held_back: Option<OperatorBlock>,
    /// The bundle that is about to be installed; `None` if there is none.
    bundle: Option<&'a Bundle>,
    judged: CandidateRequirements,
    /// The bundle that is prepared ahead; `None` if there is none.
    ahead: Option<BundleReference>,
    /// The bundle that is preferred, whether or not it is blocked; `None` if there is none.
    waiting: Option<&'a Bundle>,
}

/// Completes a decision with what is reported.
fn report<'a>(
    catalogs: &'a OfferedCatalogs,
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    decided: Decided<'a>,
) -> OperatorDecision {
    let Decided { action, held_back, bundle, mut judged, ahead, waiting } = decided;
    operator.returns_to.iter().for_each(|it| judged.add(it));
    let findings = |of: &Bundle| BundleFindings {
        requirements: installed.check(name, of),
        incompatibility: unfit_for(name, of, installed.inputs().facts),
        deprecation: deprecation(&catalogs.parts, name, of),
    };
    let current = operator.installed.as_ref().map(|it| &it.bundle);
    let kept = bundle.and(current).map(|it| Box::new(findings(it)));
    let BundleFindings { requirements, incompatibility, deprecation } =
        bundle.or(current).map(findings).unwrap_or_default();
    let is_waiting = operator.installed.is_none() && matches!(action, OperatorAction::Blocked(_));
    let waiting = waiting.filter(|_| is_waiting);
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
        installed: kept,
        ahead,
        awaited: waiting.map(|it| installed.check(name, it)).unwrap_or_default(),
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

#[cfg(test)]
mod tests;
