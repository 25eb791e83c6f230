//! Refusals of many bundles: Operators that nothing connects with others are searched alone, so that what one of
//! them is refused does not cost a search for all.
//!
//! An attempt for all Operators makes all changes one change set if a single one needs that, and such a set moves
//! only as a whole. So what is to be refused are bundles of the groups whose own changes cannot be made together,
//! rather than the first ones that cannot be installed alone.

use std::collections::{BTreeMap, BTreeSet};

use super::missed::PlannedBundle;
use super::*;
use crate::loadout::converge_apart;
use crate::planner::{chosen, related};

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
    /// The first difference if the Operators are changed together; `None` if there is none.
    stuck: Option<Missed>,
}

/// The first difference of a group.
struct FirstMissed {
    /// The place among those of all groups.
    place: (bool, String),
    missed: Missed,
}

impl<'a> Search<'a> {
    /// Refuses, group by group, what keeps changes from being made. Returns whether that is anything: it is not if
    /// groups cannot be searched alone.
    pub(super) fn refuse_in_groups(&mut self) -> bool {
        let before = self.count_refused();
        if before < self.grouped_from || !self.is_divisible() {
            return false;
        }
        if let Some(groups) = self.groups() {
            let searches = groups.iter().map(|it| self.within(it)).collect();
            self.refuse_in(searches);
        }
        let after = self.count_refused();
        // What cannot be found here is not sought again and again.
        self.grouped_from = after.saturating_add(1).saturating_mul(2);
        after > before
    }

    fn refuse_in(&mut self, mut searches: Vec<Search<'_>>) {
        let states: Option<Vec<GroupState>> = searches.iter_mut().map(Search::state).collect();
        let Some(mut states) = states else { return };
        while let Some(at) = blamed(&states) {
            let GroupState { missed, stuck } = &mut states[at];
            let missed = missed.take().map(|it| it.missed).or_else(|| stuck.take());
            let Some(Missed::Refused(refused)) = missed else { return };
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
        let mut names = related::groups(self.inputs, self.present, self.catalogs)?;
        if let Some(concerned) = &self.concerned {
            names.retain(|it| !it.is_disjoint(concerned));
        }
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
            if let Some(at) = places.get(name.as_str()) {
                groups[*at].operators.insert(name.clone(), operator.clone());
            }
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
            let mut stuck = None;
            if !written.is_empty() {
                changed::join(&written, &mut operators);
                stuck = self.stuck(&operators, &planned, &written)?;
            }
            if stuck.is_some() && !self.too_wide(&proposed, &written, &operators).is_empty() {
                stuck = None;
            }
            return Some(GroupState { missed, stuck });
        }
    }

    /// Returns what prevents the first of some bundles that would not be installed together; `None` if Operators that
    /// are not written move meanwhile, so that it matters how long the others wait.
    fn stuck(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
        planned: &[PlannedBundle<'_>],
        written: &BTreeSet<String>,
    ) -> Option<Option<Missed>> {
        let converged = self.apart(operators)?;
        let mut others = converged.operators.iter().filter(|(name, _)| !written.contains(*name));
        let moves = others.any(|(name, it)| {
            let before = self.inputs.operators.get(name);
            before.is_none_or(|before| before.installed != it.installed)
        });
        (!moves).then(|| self.first_missed(planned, &converged))
    }

    fn apart(&self, operators: &BTreeMap<String, RequestedOperator>) -> Option<ConvergedOperators> {
        let inputs = OperatorInputs { operators, ..self.inputs };
        converge_apart(inputs, self.catalogs, self.progress)
    }
}

/// Returns the place of the group of which a bundle is to be refused; `None` if all changes can be made.
///
/// A group that cannot be changed together can be changed one by one, unless others need a change set.
fn blamed(states: &[GroupState]) -> Option<usize> {
    let stuck = || states.iter().enumerate().filter(|(_, it)| it.stuck.is_some());
    let needs_set = states.iter().any(|it| it.missed.is_some());
    let first = stuck().filter(|(_, it)| it.missed.is_some());
    let first = first.min_by(|(_, one), (_, other)| one.place().cmp(&other.place()));
    first.or_else(|| stuck().next().filter(|_| needs_set)).map(|(at, _)| at)
}

impl GroupState {
    fn place(&self) -> Option<&(bool, String)> {
        self.missed.as_ref().map(|it| &it.place)
    }
}

impl Missed {
    /// Returns the name of the Operator.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Refused(refused) => &refused.name,
            Self::Source { name, .. } | Self::Higher { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests;
