//! Decisions on change sets.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_resolve::offer::Offer;
use plimsoll_resolve::requirement::Provider;

use super::ways::{KnownWays, leads_back, moved};
use super::{Choice, Decided, OfferedCatalogs, choose, judge_offer, report};
use crate::change_set::{self, ChangeSet};
use crate::installed::InstalledBundles;
use crate::selection::{Candidates, candidates_indexed, named, reference};
use crate::{
    CandidateRequirements, OperatorAction, OperatorBlock, OperatorDecision, OperatorInputs,
    RequestedOperator, SelectedBundle, version_text,
};

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
    catalogs: &'a OfferedCatalogs,
    name: &str,
    operator: &RequestedOperator,
    next: &Offer<'a>,
) -> Result<Route<'a>, OperatorBlock> {
    let OfferedCatalogs { parts, index } = catalogs;
    let mut operator = operator.clone();
    let mut passed = BTreeSet::new();
    let mut destination = next.clone();
    while destination.is_step && passed.insert(destination.bundle.name.as_str()) {
        operator = moved(&operator, &destination);
        let Candidates { offers, .. } = candidates_indexed(inputs, parts, index, name, &operator)?;
        let Some(first) = offers.into_iter().next() else { break };
        destination = first;
    }
    match destination.is_step {
        false => Ok(Route { next: next.clone(), destination }),
        true => Err(leads_back(name, &destination)),
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
    // It is the same for all of them.
    let known = OnceCell::new();
    let broken = || known.get_or_init(|| installed.broken_by(&after, &moving)).clone();
    let (mut selected, mut refused) = (BTreeMap::new(), BTreeMap::new());
    for (name, offer) in moves {
        let operator = &installed.inputs().operators[*name];
        match judge_offer(installed, &after, name, operator, offer, &broken) {
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

/// The members of a change set that have a route, and the actions of the others.
struct MemberRoutes<'a> {
    routes: BTreeMap<&'a str, Route<'a>>,
    others: BTreeMap<&'a str, OperatorAction>,
}

/// Follows the steps of each member of a change set.
fn member_routes<'a>(
    installed: &InstalledBundles<'_>,
    catalogs: &'a OfferedCatalogs,
    names: &'a BTreeSet<String>,
) -> MemberRoutes<'a> {
    let inputs = installed.inputs();
    let mut members = MemberRoutes { routes: BTreeMap::new(), others: BTreeMap::new() };
    for name in names {
        let operator = &inputs.operators[name];
        let found = match choose(installed, catalogs, name, operator) {
            Choice::Fixed(action) => Err(action),
            Choice::Among(chosen) => match chosen.offers.first() {
                Some(next) => {
                    route(inputs, catalogs, name, operator, next).map_err(OperatorAction::Blocked)
                }
                None => Err(OperatorAction::Keep),
            },
        };
        match found {
            Ok(route) => drop(members.routes.insert(name, route)),
            Err(action) => drop(members.others.insert(name, action)),
        }
    }
    members
}

/// Decides on a change set: all of its members move to the version that they prefer, or none does. A member
/// that needs several steps takes the first ones before the other members move, or with them.
pub(super) fn decide_set<'a>(
    catalogs: &'a OfferedCatalogs,
    installed: &InstalledBundles<'a>,
    known: &KnownWays,
    set: &ChangeSet,
    names: &'a BTreeSet<String>,
    decisions: &mut BTreeMap<String, OperatorDecision>,
) {
    let inputs = installed.inputs();
    let MemberRoutes { routes, others: mut actions } = member_routes(installed, catalogs, names);
    let next = match change_set::incomplete(inputs.operators, set) {
        // The requirements of the missing members are not known.
        Some(block) => {
            routes.keys().map(|name| (*name, OperatorAction::Blocked(block.clone()))).collect()
        }
        None => {
            let refused = actions.iter().filter_map(|(name, action)| match action {
                OperatorAction::Blocked(block) => Some((*name, block.clone())),
                _ => None,
            });
            next_moves(installed, known, set, &routes, refused.collect())
        }
    };
    actions.extend(next);
    let is_moving = actions
        .values()
        .any(|it| matches!(it, OperatorAction::Install(_) | OperatorAction::Upgrade(_)));
    for (name, action) in actions {
        let operator = &inputs.operators[name];
        let mut judged = CandidateRequirements::default();
        let route = routes.get(name);
        for offer in route.into_iter().flat_map(|route| [&route.next, &route.destination]) {
            judged.add(offer.bundle);
        }
        let is_move = matches!(action, OperatorAction::Install(_) | OperatorAction::Upgrade(_));
        let bundle = route.filter(|_| is_move).map(|route| route.next.bundle);
        // Before the first one moves, it is to be known that none of the others is refused.
        let is_next = is_moving && matches!(action, OperatorAction::Blocked(_));
        let ahead = route.filter(|_| is_next).map(|route| reference(&route.next));
        let waiting = route.map(|route| route.next.bundle);
        let decided = Decided { action, held_back: None, bundle, judged, ahead, waiting };
        let decision = report(catalogs, installed, name, operator, decided);
        decisions.insert(name.to_owned(), decision);
    }
}

/// Decides on the members of a complete change set that have a route; `refused` has the blocks of other
/// members.
fn next_moves<'a>(
    installed: &InstalledBundles<'a>,
    known: &KnownWays,
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
            format!("{} comes before {to}", named(name, offer.bundle))
        });
        let waiting = ways.collect::<Vec<_>>().join("; ");
        let first = judge_together(installed, &steps);
        let together = || {
            let moves = judge_together(installed, &moves(&|it| Some(it.next.clone())));
            moves.inspect(|_| known.join())
        };
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
                        leading[name].iter().map(|it| named(it, routes[it].next.bundle)).collect();
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

#[cfg(test)]
mod tests;
