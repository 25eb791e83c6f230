//! Ways of an Operator to a requested version that several updates lead to. The first one is made only if all
//! of them are possible now, so that an Operator does not stay half way.

use std::collections::BTreeSet;

use plimsoll_api::Reason;
use plimsoll_resolve::CatalogPart;
use plimsoll_resolve::offer::Offer;

use super::judge_offer;
use crate::installed::InstalledBundles;
use crate::selection::{candidates, named, reference};
use crate::{CandidateRequirements, OperatorBlock, RequestedOperator, SelectedBundle};

/// A search for a way of an Operator to a requested version.
pub(super) struct WaySearch<'s, 'a> {
    installed: &'s InstalledBundles<'a>,
    catalogs: &'a [CatalogPart],
    name: &'a str,
    operator: &'a RequestedOperator,
    /// The bundles that were judged, each with its catalog.
    passed: BTreeSet<(&'a str, &'a str)>,
}

impl<'s, 'a> WaySearch<'s, 'a> {
    /// Creates the search of an Operator.
    pub(super) fn new(
        installed: &'s InstalledBundles<'a>,
        catalogs: &'a [CatalogPart],
        name: &'a str,
        operator: &'a RequestedOperator,
    ) -> Self {
        Self { installed, catalogs, name, operator, passed: BTreeSet::new() }
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
        let mut selected: Option<SelectedBundle> = None;
        let mut block: Option<OperatorBlock> = None;
        let mut left = vec![first.clone()];
        while let Some(offer) = left.pop() {
            let place = (offer.catalog.name.name.as_str(), offer.bundle.name.as_str());
            if !self.passed.insert(place) {
                continue;
            }
            judged.add(offer.bundle);
            let begin = match self.judge_one(&offer) {
                Ok(bundle) => selected.get_or_insert(bundle),
                Err(found) => {
                    block.get_or_insert(found);
                    continue;
                }
            };
            if !offer.is_step {
                return Ok(begin.clone());
            }
            match self.onwards(&offer) {
                Ok(offers) => left.extend(offers.into_iter().rev()),
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
        let found = candidates(self.installed.inputs(), self.catalogs, self.name, &operator)?;
        Ok(found.offers)
    }

    /// Judges the move to one bundle.
    fn judge_one(&self, offer: &Offer<'a>) -> Result<SelectedBundle, OperatorBlock> {
        let (now, name, operator) = (self.installed, self.name, self.operator);
        let after = now.with(name, offer.bundle);
        let moving = BTreeSet::from([name]);
        judge_offer(now, &after, name, operator, offer, &moving).map_err(|block| {
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

/// Returns an Operator after it moved to a bundle.
pub(super) fn moved(operator: &RequestedOperator, offer: &Offer<'_>) -> RequestedOperator {
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
