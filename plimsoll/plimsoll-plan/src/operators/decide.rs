//! The decision for each Operator.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::{InstallConstraints, UpgradeConstraints};
use plimsoll_api::{GroupKind, Reason};
use plimsoll_resolve::Bundle;
use plimsoll_resolve::offer::Offer;
use plimsoll_resolve::requirement::unfit_for;

use super::change_set::{self, ChangeSet};
use super::installed::{InstalledBundles, all_unmet, kinds};
use super::selection::{Candidates, candidates, named, reference};
use super::{
    InstalledOperator, OperatorAction, OperatorBlock, OperatorDecision, OperatorInputs,
    RequestedOperator, SelectedBundle,
};

/// Decides what becomes of these Operators. Change sets are decided when one of their members is asked
/// for; its other members have to be among `names`, and their packages among the catalogs, for a whole
/// set to move.
pub fn decide(
    inputs: OperatorInputs<'_>,
    names: &BTreeSet<String>,
) -> BTreeMap<String, OperatorDecision> {
    let installed = InstalledBundles::new(inputs);
    let mut decisions = BTreeMap::new();
    let mut sets: BTreeMap<ChangeSet, BTreeMap<&str, Choice<'_>>> = BTreeMap::new();
    for name in names {
        let Some(operator) = inputs.operators.get(name) else { continue };
        let chosen = choose(inputs, name, operator);
        match change_set::of(operator) {
            Some(Ok(set)) => {
                sets.entry(set).or_default().insert(name, chosen);
            }
            None | Some(Err(_)) => {
                let decision = alone(inputs, &installed, name, operator, chosen);
                decisions.insert(name.clone(), decision);
            }
        }
    }
    for (set, chosen) in sets {
        decide_set(inputs, &installed, &set, &chosen, &mut decisions);
    }
    refuse_second_owners(inputs, &mut decisions);
    decisions
}

/// What an Operator leaves to decide.
enum Choice<'a> {
    /// Nothing: this is done in any case.
    Fixed(OperatorAction),
    /// The bundles that it may move to.
    Among(Candidates<'a>),
}

/// What there is to choose from for an Operator, or what is done in any case.
fn choose<'a>(inputs: OperatorInputs<'a>, name: &str, operator: &RequestedOperator) -> Choice<'a> {
    if operator.is_deleting {
        return Choice::Fixed(OperatorAction::Delete);
    }
    if operator.spec.paused {
        return Choice::Fixed(OperatorAction::Paused);
    }
    if let (Some(revision), Some(installed)) = (operator.spec.revision, &operator.installed) {
        return Choice::Fixed(match installed.revision == revision {
            true => OperatorAction::Keep,
            false => OperatorAction::Return { revision },
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
    match candidates(inputs, name, operator) {
        Ok(candidates) => Choice::Among(candidates),
        Err(block) => Choice::Fixed(OperatorAction::Blocked(block)),
    }
}

/// The decision for an Operator that moves alone.
fn alone<'a>(
    inputs: OperatorInputs<'a>,
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    chosen: Choice<'a>,
) -> OperatorDecision {
    let (action, held_back, bundle) = match chosen {
        Choice::Fixed(action) => (action, None, None),
        Choice::Among(chosen) => single_move(inputs, installed, name, operator, &chosen),
    };
    report(inputs, installed, name, operator, (action, held_back), bundle)
}

/// The most preferred bundle that nothing is in the way of, and why one that is preferred to it waits.
fn single_move<'a>(
    inputs: OperatorInputs<'a>,
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    chosen: &Candidates<'a>,
) -> (OperatorAction, Option<OperatorBlock>, Option<&'a Bundle>) {
    let mut first_block: Option<OperatorBlock> = None;
    for offer in &chosen.offers {
        let after = installed.with(name, offer.bundle);
        match judge(inputs, (installed, &after), name, operator, offer, &BTreeSet::from([name])) {
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

/// Whether an Operator may move to a bundle: `now` is installed, `after` would be.
fn judge<'a>(
    inputs: OperatorInputs<'a>,
    (now, after): (&InstalledBundles<'a>, &InstalledBundles<'a>),
    name: &str,
    operator: &RequestedOperator,
    offer: &Offer<'a>,
    moving: &BTreeSet<&str>,
) -> Result<SelectedBundle, OperatorBlock> {
    let provides = kinds(offer.bundle);
    if let Some((kind, owner)) = owner_of(inputs, name, &provides) {
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
            risks.extend(objection(installed, name, offer));
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

/// A ClusterOperator that is not upgradeable holds up other minor and major versions.
fn objection(installed: &InstalledOperator, name: &str, offer: &Offer<'_>) -> Option<String> {
    let (from, to) = (&installed.bundle.version, &offer.bundle.version);
    let is_patch = (from.major, from.minor) == (to.major, to.minor);
    let objection = installed.objection.as_ref().filter(|_| !is_patch)?;
    Some(format!("{name} reports that it is not upgradeable: {objection}"))
}

/// The first kind of these that another Operator owns, and that Operator.
fn owner_of<'a>(
    inputs: OperatorInputs<'a>,
    name: &str,
    provides: &BTreeSet<GroupKind>,
) -> Option<(GroupKind, &'a str)> {
    inputs.operators.iter().filter(|(other, _)| other.as_str() != name).find_map(|(other, it)| {
        let kind = provides.iter().find(|kind| it.owned.contains(*kind))?;
        Some((kind.clone(), other.as_str()))
    })
}

/// Decides a change set: all of its members move to what they prefer, or none does.
fn decide_set<'a>(
    inputs: OperatorInputs<'a>,
    installed: &InstalledBundles<'a>,
    set: &ChangeSet,
    chosen: &BTreeMap<&'a str, Choice<'a>>,
    decisions: &mut BTreeMap<String, OperatorDecision>,
) {
    let members = change_set::members(inputs, set);
    let block = if members.len() < set.members {
        let message = format!(
            "change set {} has {} of its {} Operators: {}",
            set.id,
            members.len(),
            set.members,
            members.join(", ")
        );
        Some(OperatorBlock::new(Reason::ChangeSetIncomplete, message))
    } else {
        None
    };
    let mut after = installed.clone();
    let mut moving = BTreeSet::new();
    for (name, chosen) in chosen {
        if let Choice::Among(chosen) = chosen
            && let Some(offer) = chosen.offers.first()
        {
            after = after.with(name, offer.bundle);
            moving.insert(*name);
        }
    }
    let mut actions = BTreeMap::new();
    let mut refused: Vec<String> = Vec::new();
    for (name, chosen) in chosen {
        let operator = &inputs.operators[*name];
        let (action, bundle) = match chosen {
            Choice::Fixed(action) => {
                if let OperatorAction::Blocked(block) = action {
                    refused.push(format!("{name}: {}", block.message));
                }
                (action.clone(), None)
            }
            Choice::Among(chosen) => match chosen.offers.first() {
                None => (OperatorAction::Keep, None),
                Some(offer) => {
                    match judge(inputs, (installed, &after), name, operator, offer, &moving) {
                        Err(block) => {
                            refused.push(format!("{name}: {}", block.message));
                            (OperatorAction::Blocked(block), None)
                        }
                        Ok(selected) if operator.installed.is_some() => {
                            (OperatorAction::Upgrade(selected), Some(offer.bundle))
                        }
                        Ok(selected) => (OperatorAction::Install(selected), Some(offer.bundle)),
                    }
                }
            },
        };
        actions.insert(*name, (action, bundle));
    }
    for (name, (action, bundle)) in actions {
        let is_move = matches!(action, OperatorAction::Install(_) | OperatorAction::Upgrade(_));
        let waits = matches!(&action, OperatorAction::Blocked(block)
            if matches!(block.reason, Reason::UpgradeBlocked | Reason::ConstraintsUnmet));
        let (action, bundle) = match &block {
            // What the missing members may change is not known.
            Some(block) if is_move || waits => (OperatorAction::Blocked(block.clone()), None),
            None if is_move && !refused.is_empty() => {
                let message = format!("change set {} waits: {}", set.id, refused.join("; "));
                let block = OperatorBlock::new(Reason::ChangeSetBlocked, message);
                (OperatorAction::Blocked(block), None)
            }
            Some(_) | None => (action, bundle),
        };
        let operator = &inputs.operators[name];
        let decision = report(inputs, installed, name, operator, (action, None), bundle);
        decisions.insert(name.to_owned(), decision);
    }
}

/// Of Operators that are about to install the same kind, the one that was created first does.
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

/// A decision with what is to be reported beside it; `bundle` is the one that is about to be installed.
fn report<'a>(
    inputs: OperatorInputs<'a>,
    installed: &InstalledBundles<'a>,
    name: &'a str,
    operator: &'a RequestedOperator,
    (action, held_back): (OperatorAction, Option<OperatorBlock>),
    bundle: Option<&'a Bundle>,
) -> OperatorDecision {
    let current = operator.installed.as_ref().map(|it| &it.bundle);
    let subject = bundle.or(current);
    let requirements = subject.map(|it| installed.check(name, it)).unwrap_or_default();
    let unfit = subject.and_then(|it| unfit_for(name, it, inputs.facts));
    let deprecation = subject.and_then(|it| deprecation(inputs, name, it));
    let dependants = installed.dependants(name);
    let is_orphaned =
        operator.is_dependency && operator.installed.is_some() && dependants.is_empty();
    OperatorDecision {
        action,
        held_back,
        requirements,
        unfit,
        deprecation,
        dependants,
        is_orphaned,
    }
}

/// What the catalogs say is deprecated of a bundle.
fn deprecation(inputs: OperatorInputs<'_>, name: &str, bundle: &Bundle) -> Option<String> {
    let packages = inputs.catalogs.iter().flat_map(|catalog| &catalog.packages);
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
