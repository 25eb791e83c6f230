//! Refusals of many bundles: Operators that nothing connects with others are searched alone, so that what one of
//! them is refused does not cost a search for all.
//!
//! What is refused here is what attempts for all Operators would refuse one after the other. Such an attempt
//! refuses the first bundle that would not be installed, unless all changes together form a change set that is
//! carried out; while a group exists of which the changes cannot be made together, it is not.

use std::collections::{BTreeMap, BTreeSet};

use super::missed::PlannedBundle;
use super::*;
use crate::loadout::converge_apart;
use crate::planner::{chosen, related};

/// The number of refused bundles from which on groups are searched alone. The usual few cost less without.
pub(super) const REFUSED_MIN: usize = 3;

/// Operators, and packages, that nothing connects with others.
#[derive(Default)]
struct Group {
    operators: BTreeMap<String, RequestedOperator>,
    present: BTreeMap<String, RequestedOperator>,
    catalogs: Vec<CatalogPart>,
}

/// What the controller would do with the proposal for a group.
struct GroupState {
    /// The first difference if the Operators are changed one by one; `None` if there is none.
    missed: Option<FirstMissed>,
    /// Whether the changes cannot be made together.
    is_stuck: bool,
}

/// The first difference of a group.
struct FirstMissed {
    /// The place among those of all groups.
    place: (bool, String),
    missed: Missed,
}

impl<'a> Search<'a> {
    /// Refuses, group by group, what the next attempts would refuse. Does nothing while that is little, or if
    /// groups cannot be searched alone.
    pub(super) fn refuse_in_groups(&mut self) {
        if self.count_refused() < self.grouped_from || !self.is_divisible() {
            return;
        }
        if let Some(groups) = self.groups() {
            let searches = groups.iter().map(|it| self.within(it)).collect();
            self.refuse_in(searches);
        }
        // What cannot be found here is not sought again and again.
        self.grouped_from = self.count_refused().saturating_mul(2);
    }

    fn refuse_in(&mut self, mut searches: Vec<Search<'_>>) {
        let states: Option<Vec<GroupState>> = searches.iter_mut().map(Search::state).collect();
        let Some(mut states) = states else { return };
        self.orphans.extend(searches.iter().flat_map(|it| it.orphans.iter().cloned()));
        while states.iter().any(|it| it.is_stuck) {
            let missed = states.iter_mut().enumerate();
            let missed = missed.filter(|(_, it)| it.missed.is_some());
            let first = missed.min_by(|(_, one), (_, other)| one.place().cmp(&other.place()));
            let Some((at, state)) = first else { return };
            let Some(FirstMissed { missed: Missed::Refused(refused), .. }) = state.missed.take()
            else {
                return;
            };
            let known = self.refused.entry(refused.name.clone()).or_default();
            if known.iter().any(|it| it.bundle == refused.bundle) {
                return;
            }
            known.push(refused.clone());
            let search = &mut searches[at];
            search.refused.entry(refused.name.clone()).or_default().push(refused);
            let Some(state) = search.state() else { return };
            self.orphans.extend(search.orphans.iter().cloned());
            states[at] = state;
        }
    }

    fn count_refused(&self) -> usize {
        self.refused.values().map(Vec::len).sum()
    }

    /// Returns whether nothing but requirements and kinds connects Operators.
    fn is_divisible(&self) -> bool {
        let Unmet { repaired, ignored, .. } = &self.unmet;
        !self.request.is_install
            && self.request.wanted.is_empty()
            && repaired.is_empty()
            && ignored.is_empty()
            && self.steered.is_empty()
            && self.narrowed.is_empty()
            && self.pinned.is_empty()
            && self.sources.is_empty()
            && self.inputs.operators.values().all(|it| it.change_set.is_none())
    }

    /// Returns the groups; `None` if all Operators may be connected.
    fn groups(&self) -> Option<Vec<Group>> {
        let names = related::groups(self.inputs, self.present, self.catalogs)?;
        let places = names.iter().enumerate();
        let places: BTreeMap<&str, usize> =
            places.flat_map(|(at, names)| names.iter().map(move |name| (*name, at))).collect();
        let parts = self.catalogs.iter().map(|part| CatalogPart {
            name: part.name.clone(),
            weight: part.weight,
            packages: Vec::new(),
        });
        let parts: Vec<CatalogPart> = parts.collect();
        let empty = || Group { catalogs: parts.clone(), ..Group::default() };
        let mut groups: Vec<Group> = names.iter().map(|_| empty()).collect();
        for (name, operator) in self.inputs.operators {
            groups[places[name.as_str()]].operators.insert(name.clone(), operator.clone());
        }
        for (name, operator) in self.present {
            if let Some(at) = places.get(name.as_str()) {
                groups[*at].present.insert(name.clone(), operator.clone());
            }
        }
        for (of, part) in self.catalogs.iter().enumerate() {
            for package in &part.packages {
                if let Some(at) = places.get(package.name.as_str()) {
                    groups[*at].catalogs[of].packages.push(package.clone());
                }
            }
        }
        Some(groups)
    }

    /// Returns the search for a group alone.
    fn within<'g>(&self, group: &'g Group) -> Search<'g>
    where
        'a: 'g,
    {
        let Group { operators, present, catalogs } = group;
        let inputs = OperatorInputs { operators, ..self.inputs };
        let has = |name: &str| catalogs.iter().any(|part| part.package(name).is_some());
        let refused =
            self.refused.iter().filter(|(name, _)| operators.contains_key(*name) || has(name));
        let orphans = self.orphans.iter().filter(|name| operators.contains_key(*name));
        Search {
            before: inputs,
            present,
            inputs,
            catalogs,
            request: self.request,
            progress: self.progress,
            unmet: self.unmet.clone(),
            concerned: None,
            orphans: orphans.cloned().collect(),
            refused: refused.map(|(name, it)| (name.clone(), it.clone())).collect(),
            steered: Vec::new(),
            accepted: None,
            tried: BTreeSet::new(),
            narrowed: BTreeSet::new(),
            pinned: BTreeSet::new(),
            sources: BTreeMap::new(),
            grouped_from: usize::MAX,
        }
    }

    /// Proposes versions of a group and converges them; `None` if only attempts for all Operators say what
    /// becomes of them.
    fn state(&mut self) -> Option<GroupState> {
        loop {
            let requested = self.requested();
            let destinations = self.destinations(&requested);
            let solved = self.solved(&destinations, &requested, false).ok()?;
            let proposed = chosen(self.catalogs, &solved.solution);
            let after = Outcome::new(self.inputs, self.catalogs, &proposed);
            let after = after.without(&self.request.overrides.exclude);
            if let Some(name) = self.orphan(&requested, &after) {
                self.orphans.insert(name);
                continue;
            }
            let mut operators = self.changed(&proposed, &after, &requested);
            let written = self.written(&operators);
            let planned = self.planned(&proposed, &written);
            let missed = self.first_missed(&planned, &self.apart(&operators)?);
            let missed = missed.map(|missed| {
                let is_kept = !proposed.contains_key(missed.name());
                FirstMissed { place: (is_kept, missed.name().to_owned()), missed }
            });
            let is_stuck = !written.is_empty() && {
                changed::join(&written, &mut operators);
                self.are_stuck(&operators, &planned, &written)?
                    && self.too_wide(&proposed, &written, &operators).is_empty()
            };
            return Some(GroupState { missed, is_stuck });
        }
    }

    /// Returns whether some bundles would not be installed together; `None` if Operators that are not written
    /// move meanwhile, so that it matters how long the others wait.
    fn are_stuck(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
        planned: &[PlannedBundle<'_>],
        written: &BTreeSet<String>,
    ) -> Option<bool> {
        let converged = self.apart(operators)?;
        let mut others = converged.operators.iter().filter(|(name, _)| !written.contains(*name));
        let moves = others.any(|(name, it)| {
            let before = self.inputs.operators.get(name);
            before.is_none_or(|before| before.installed != it.installed)
        });
        (!moves).then(|| self.first_missed(planned, &converged).is_some())
    }

    fn apart(&self, operators: &BTreeMap<String, RequestedOperator>) -> Option<ConvergedOperators> {
        let inputs = OperatorInputs { operators, ..self.inputs };
        converge_apart(inputs, self.catalogs, self.progress)
    }
}

impl GroupState {
    fn place(&self) -> Option<&(bool, String)> {
        self.missed.as_ref().map(|it| &it.place)
    }
}

impl Missed {
    /// Returns the name of the Operator.
    fn name(&self) -> &str {
        match self {
            Self::Refused(refused) => &refused.name,
            Self::Source { name, .. } | Self::Higher { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests;
