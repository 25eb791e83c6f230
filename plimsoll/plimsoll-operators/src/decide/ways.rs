//! Ways of an Operator to a requested version that several updates lead to. The first one is made only if all
//! of them are possible now, so that an Operator does not stay half way.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_resolve::offer::Offer;

use super::{OfferedCatalogs, judge_offer};
use crate::installed::InstalledBundles;
use crate::selection::{candidates_indexed, named, reference};
use crate::{CandidateRequirements, OperatorBlock, RequestedOperator, SelectedBundle};

/// The ways that Operators were found to have, by name: while nothing changes that a way depends on, its next
/// step needs no further decision. Whoever keeps them forgets those that may have changed.
#[derive(Debug, Default)]
pub(crate) struct KnownWays {
    ways: RefCell<BTreeMap<String, KnownWay>>,
    /// Whether steps of a change set were only possible together with the last moves of other members.
    are_joined: Cell<bool>,
}

/// The rest of a way.
#[derive(Debug)]
struct KnownWay {
    /// The bundles, the next one last.
    left: Vec<SelectedBundle>,
    /// The requirements and APIs of the bundles that were judged when it was found.
    judged: CandidateRequirements,
}

impl KnownWays {
    /// Forgets the way of an Operator.
    pub(crate) fn forget(&self, name: &str) {
        self.ways.borrow_mut().remove(name);
    }

    /// Takes note of steps of a change set that are only possible together with the last moves of other members.
    pub(super) fn join(&self) {
        self.are_joined.set(true);
    }

    /// Returns whether there were such steps.
    pub(crate) fn are_joined(&self) -> bool {
        self.are_joined.get()
    }

    /// Takes the next bundle off the way of an Operator. Returns it, with what was judged when the way was found;
    /// `None` if no way is known, or it has no further bundle.
    pub(super) fn next(&self, name: &str) -> Option<(SelectedBundle, CandidateRequirements)> {
        let mut ways = self.ways.borrow_mut();
        let way = ways.get_mut(name)?;
        let selected = way.left.pop()?;
        Some((selected, way.judged.clone()))
    }

    /// Adds a way that begins with its second bundle.
    fn add(&self, name: &str, left: Vec<SelectedBundle>, judged: CandidateRequirements) {
        self.ways.borrow_mut().insert(name.to_owned(), KnownWay { left, judged });
    }
}

/// A search for a way of an Operator to a requested version.
pub(super) struct WaySearch<'s, 'a> {
    installed: &'s InstalledBundles<'a>,
    catalogs: &'a OfferedCatalogs,
    known: &'s KnownWays,
    name: &'a str,
    operator: &'a RequestedOperator,
    /// The bundles that were judged, each with its catalog.
    passed: BTreeSet<(&'a str, &'a str)>,
}

/// A bundle that is passed on the way, and the place of the one before it; `None` for the first.
struct Passed {
    selected: SelectedBundle,
    before: Option<usize>,
}

impl<'s, 'a> WaySearch<'s, 'a> {
    /// Creates the search of an Operator.
    pub(super) fn new(
        installed: &'s InstalledBundles<'a>,
        catalogs: &'a OfferedCatalogs,
        known: &'s KnownWays,
        name: &'a str,
        operator: &'a RequestedOperator,
    ) -> Self {
        Self { installed, catalogs, known, name, operator, passed: BTreeSet::new() }
    }

    /// Judges the move to a bundle, and all further ones to a requested version if that bundle is only a step.
    /// Adds the bundles to `judged`.
    ///
    /// # Errors
    ///
    /// The block that is met first, if all ways are blocked.
    pub(super) fn judge(
        &mut self,
        first: &Offer<'a>,
        judged: &mut CandidateRequirements,
    ) -> Result<SelectedBundle, OperatorBlock> {
        let mut block: Option<OperatorBlock> = None;
        let mut trail: Vec<Passed> = Vec::new();
        let mut left = vec![(first.clone(), None)];
        while let Some((offer, before)) = left.pop() {
            if !self.passed.insert(place(&offer)) {
                continue;
            }
            judged.add(offer.bundle);
            match self.judge_one(&offer) {
                Ok(selected) if offer.is_step => trail.push(Passed { selected, before }),
                Ok(selected) => {
                    let (begin, left) = way(trail, Passed { selected, before });
                    self.known.add(self.name, left, judged.clone());
                    return Ok(begin);
                }
                Err(found) => {
                    block.get_or_insert(found);
                    continue;
                }
            }
            let here = Some(trail.len() - 1);
            match self.onwards(&offer) {
                Ok(offers) => left.extend(offers.into_iter().rev().map(|it| (it, here))),
                Err(found) => {
                    block.get_or_insert(found);
                }
            }
        }
        Err(block.unwrap_or_else(|| leads_back(self.name, first)))
    }

    /// Returns the bundles that a step leads to, the most preferred first.
    fn onwards(&self, step: &Offer<'a>) -> Result<Vec<Offer<'a>>, OperatorBlock> {
        let operator = moved(self.operator, step);
        let OfferedCatalogs { parts, index } = self.catalogs;
        let inputs = self.installed.inputs();
        let found = candidates_indexed(inputs, parts, index, self.name, &operator)?;
        Ok(found.offers)
    }

    /// Judges the move to one bundle.
    fn judge_one(&self, offer: &Offer<'a>) -> Result<SelectedBundle, OperatorBlock> {
        let (now, name, operator) = (self.installed, self.name, self.operator);
        let after = now.with(name, offer.bundle);
        let broken = || now.broken_by(&after, &BTreeSet::from([name]));
        judge_offer(now, &after, name, operator, offer, &broken).map_err(|block| {
            match offer.is_step {
                true => {
                    let message = format!(
                        "on the way to version {}, {}",
                        operator.spec.version, block.message
                    );
                    OperatorBlock::new(block.reason, message)
                }
                false => block,
            }
        })
    }
}

/// Returns the catalog and the name of the bundle of an offer.
fn place<'a>(offer: &Offer<'a>) -> (&'a str, &'a str) {
    (offer.catalog.name.name.as_str(), offer.bundle.name.as_str())
}

/// Returns the first bundle of the way to a destination, and the others, backwards.
fn way(mut trail: Vec<Passed>, destination: Passed) -> (SelectedBundle, Vec<SelectedBundle>) {
    let Passed { selected: mut begin, mut before } = destination;
    let mut left = Vec::new();
    while let Some(at) = before {
        trail.truncate(at + 1);
        let Some(passed) = trail.pop() else { break };
        before = passed.before;
        left.push(std::mem::replace(&mut begin, passed.selected));
    }
    (begin, left)
}

/// Returns an Operator after it moved to a bundle.
pub(crate) fn moved(operator: &RequestedOperator, offer: &Offer<'_>) -> RequestedOperator {
    let mut operator = operator.clone();
    if let Some(installed) = &mut operator.installed {
        installed.reference = reference(offer);
        installed.bundle = offer.bundle.clone();
    }
    operator
}

/// Returns the block of a bundle from which no way leads to a requested version.
pub(super) fn leads_back(name: &str, offer: &Offer<'_>) -> OperatorBlock {
    let message = format!("{} leads back to itself", named(name, offer.bundle));
    OperatorBlock::new(Reason::NoUpgradePath, message)
}

#[cfg(test)]
mod tests;
