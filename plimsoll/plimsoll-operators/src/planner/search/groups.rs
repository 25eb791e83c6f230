//! Refusals of many bundles: Operators that nothing connects with others are searched alone, so that what one of
//! them is refused does not cost a search for all.
//!
//! An attempt for all Operators makes the changes of all groups that need it one change set, and all changes if that is
//! requested, and such a set moves only as a whole. So what is to be refused are bundles of the groups whose own
//! changes cannot be made together, rather than the first ones that cannot be installed alone.
//!
//! Other groups may change what becomes of some: a step that is only possible together with the last moves of others
//! waits for them, and steps of other groups may wait for that. What is stuck alone is refused all the same, since it
//! never moves. Of the others, one is refused only if nothing else is to blame.

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

/// What the controller would do with the proposal for a group alone.
struct GroupState {
    /// The first difference if the Operators are changed one by one; `None` if there is none.
    missed: Option<FirstMissed>,
    /// The first difference if the Operators are changed together; `None` if there is none.
    stuck: Option<Missed>,
    /// What is to be refused if the group, of which nothing is stuck alone, does not move with others; `None` if the
    /// others do not matter.
    swayed: Option<RefusedBundle>,
}

/// Operators of a group, converged without the others.
struct ConvergedAlone {
    converged: ConvergedOperators,
    /// Whether others may change that.
    is_swayed: bool,
}

/// The first difference of a group.
struct FirstMissed {
    /// The place among those of all groups.
    place: (bool, String),
    missed: Missed,
}

impl<'a> Search<'a> {
    /// Refuses, group by group, what keeps changes from being made, or learns what steps require; `missed` is the
    /// difference of the attempt for all Operators. Returns whether that is anything: it is not if groups cannot be
    /// searched alone.
    pub(super) fn refuse_in_groups(&mut self, missed: &Missed) -> bool {
        let before = self.count_learned();
        if before < self.grouped_from || !self.is_divisible() {
            return false;
        }
        if let Some(groups) = self.groups() {
            let searches = groups.iter().map(|it| self.within(it)).collect();
            self.refuse_in(searches, matches!(missed, Missed::Refused(_)));
        }
        let after = self.count_learned();
        if after == before {
            // What cannot be found here is not sought again and again.
            self.grouped_from = after.saturating_add(1).saturating_mul(2);
        }
        after > before
    }

    /// Refuses bundles until no group is to blame; `is_refused` is whether a bundle of the attempt for all Operators
    /// would not be installed.
    fn refuse_in(&mut self, mut searches: Vec<Search<'_>>, is_refused: bool) {
        // The state of a group is not known if its problem has no solution, or if nothing more is to be refused.
        let mut states: Vec<Option<GroupState>> = searches.iter_mut().map(Search::state).collect();
        let together = self.request.together;
        let mut has_learned = false;
        for search in &searches {
            has_learned |= self.learn_ways_of(search);
        }
        let mut next = blamed(&states, together);
        // Each group can be changed, and yet they cannot all be changed together.
        if next.is_none() && is_refused && !has_learned {
            next = swayed(&states, together);
        }
        while let Some(at) = next {
            let refused = states[at].take().and_then(GroupState::refused);
            if let Some(refused) = refused.filter(|it| self.refuse(it)) {
                let search = &mut searches[at];
                search.refuse(&refused);
                states[at] = search.state();
                self.learn_ways_of(search);
                if states[at].is_some() {
                    self.orphans.extend(search.orphans.iter().cloned());
                }
            }
            next = blamed(&states, together);
        }
    }

    /// Refuses a bundle. Returns whether it was not refused before.
    fn refuse(&mut self, refused: &RefusedBundle) -> bool {
        let known = self.refused.entry(refused.name.clone()).or_default();
        let is_new = known.iter().all(|it| it.bundle != refused.bundle);
        if is_new {
            known.push(refused.clone());
        }
        is_new
    }

    /// Returns the number of refused bundles, and of what steps on the way to others require.
    fn count_learned(&self) -> usize {
        let refused: usize = self.refused.values().map(Vec::len).sum();
        refused + self.count_required()
    }

    /// Returns whether nothing but requirements and kinds connects Operators.
    fn is_divisible(&self) -> bool {
        !self.request.is_install
            && self.steered.is_empty()
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
        let has = |name: &String| {
            let mut parts = catalogs.iter();
            operators.contains_key(name) || parts.any(|part| part.package(name).is_some())
        };
        let refused = self.refused.iter().filter(|(name, _)| has(name));
        let ways = self.ways.iter().filter(|(name, _)| has(name));
        let sources = self.sources.iter().filter(|(name, _)| has(name));
        let orphans = self.orphans.iter().filter(|name| operators.contains_key(*name));
        let narrowed = self.narrowed.iter().filter(|name| has(name));
        let pinned = self.pinned.iter().filter(|name| has(name));
        let mut unmet = self.unmet.clone();
        unmet.repaired.retain(&has);
        unmet.ignored.retain(&has);
        Search {
            before: inputs,
            present,
            inputs,
            catalogs,
            request: self.request,
            progress: self.progress,
            unmet,
            concerned: None,
            orphans: orphans.cloned().collect(),
            refused: refused.map(|(name, it)| (name.clone(), it.clone())).collect(),
            ways: ways.map(|(name, it)| (name.clone(), it.clone())).collect(),
            steered: Vec::new(),
            accepted: None,
            tried: BTreeSet::new(),
            narrowed: narrowed.cloned().collect(),
            pinned: pinned.cloned().collect(),
            pins: self.pins.clone(),
            sources: sources.map(|(name, it)| (name.clone(), it.clone())).collect(),
            grouped_from: usize::MAX,
        }
    }

    /// Proposes versions of a group and converges them; `None` if there is no proposal.
    fn state(&mut self) -> Option<GroupState> {
        loop {
            let requested = self.requested();
            let destinations = self.destinations(&requested);
            let solved = match self.solved(&destinations, &requested, false) {
                Ok(solved) => solved,
                Err(_) if self.release_pins() => continue,
                Err(_) => return None,
            };
            let chosen = chosen(self.catalogs, &solved.solution);
            let reached = self.reached_by_steps(&chosen);
            let proposed = ways::replaced(chosen, &reached);
            let after = Outcome::new(self.inputs, self.catalogs, &proposed);
            let after = after.without(&self.request.overrides.exclude);
            if let Some(name) = self.orphan(&requested, &after) {
                self.orphans.insert(name);
                continue;
            }
            if let Some(names) = self.moved_pins(&requested, &proposed) {
                self.pins.keep(names);
                continue;
            }
            let mut operators = self.changed(&proposed, &after, &requested);
            let written = self.written(&operators);
            let planned = self.planned(&proposed, &written);
            let ConvergedAlone { converged, mut is_swayed } = self.alone(&operators);
            let missed = self.first_missed(&planned, &converged).map(|missed| {
                let is_kept = !proposed.contains_key(missed.name());
                FirstMissed { place: (is_kept, missed.name().to_owned()), missed }
            });
            let (mut stuck, mut joined) = (None, None);
            if !written.is_empty() {
                changed::join(&written, &mut operators);
                let together = self.alone(&operators);
                // It matters how long the others wait if what is not written moves meanwhile.
                is_swayed |= together.is_swayed || self.moves_others(&together.converged, &written);
                stuck = self.first_missed(&planned, &together.converged);
                joined = Some(together.converged);
            }
            if stuck.is_some() && !self.too_wide(&proposed, &written, &operators).is_empty() {
                stuck = None;
            }
            let joined = joined.as_ref().unwrap_or(&converged);
            let ways = self.missed_ways(stuck.as_ref(), &proposed, &converged, joined);
            let swayed = planned.first().filter(|_| is_swayed).map(does_not_fit);
            if self.learn_ways(&ways) {
                continue;
            }
            return Some(GroupState { missed, stuck, swayed });
        }
    }

    /// Returns whether Operators that are not written move.
    fn moves_others(&self, converged: &ConvergedOperators, written: &BTreeSet<String>) -> bool {
        let mut others = converged.operators.iter().filter(|(name, _)| !written.contains(*name));
        others.any(|(name, it)| {
            let before = self.inputs.operators.get(name);
            before.is_none_or(|before| before.installed != it.installed)
        })
    }

    fn alone(&self, operators: &BTreeMap<String, RequestedOperator>) -> ConvergedAlone {
        let inputs = OperatorInputs { operators, ..self.inputs };
        match converge_apart(inputs, self.catalogs, self.progress) {
            Some(converged) => ConvergedAlone { converged, is_swayed: false },
            None => ConvergedAlone { converged: self.converged(operators), is_swayed: true },
        }
    }
}

/// Returns the refusal of a bundle whose group does not move with others.
fn does_not_fit(planned: &PlannedBundle<'_>) -> RefusedBundle {
    let (name, bundle) = (planned.name.to_owned(), planned.chosen.bundle);
    let version = bundle.version.clone();
    let message = format!(
        "{name} {} moves in steps that do not fit those of other Operators of the change set",
        version_text(&version.to_string())
    );
    let block = OperatorBlock::new(Reason::ChangeSetBlocked, message);
    RefusedBundle { name, bundle: bundle.name.clone(), version, block }
}

/// Returns the groups with a known state, each with its place.
fn known(states: &[Option<GroupState>]) -> impl Iterator<Item = (usize, &GroupState)> {
    states.iter().enumerate().filter_map(|(at, it)| Some((at, it.as_ref()?)))
}

/// Returns the place of the group of which a bundle is to be refused; `None` if none is stuck alone that has to be
/// changed together. `together` is whether all groups have to.
fn blamed(states: &[Option<GroupState>], together: bool) -> Option<usize> {
    let stuck = || known(states).filter(|(_, it)| it.stuck.is_some());
    let first = first_missed(stuck());
    first.or_else(|| stuck().next().filter(|_| together).map(|(at, _)| at))
}

/// Returns the place of a group that has to be changed together and may not move with all others; `None` if there is
/// none. `together` is whether all groups have to.
fn swayed(states: &[Option<GroupState>], together: bool) -> Option<usize> {
    let swayed = || known(states).filter(|(_, it)| it.swayed.is_some());
    let first = first_missed(swayed());
    first.or_else(|| swayed().next().filter(|_| together).map(|(at, _)| at))
}

/// Returns the place of the group that has the first difference if the Operators of some are changed one by one.
fn first_missed<'g>(states: impl Iterator<Item = (usize, &'g GroupState)>) -> Option<usize> {
    let missed = states.filter(|(_, it)| it.missed.is_some());
    missed.min_by(|(_, one), (_, other)| one.place().cmp(&other.place())).map(|(at, _)| at)
}

impl GroupState {
    fn place(&self) -> Option<&(bool, String)> {
        self.missed.as_ref().map(|it| &it.place)
    }

    /// Returns what is to be refused of the group; `None` if that is nothing.
    fn refused(self) -> Option<RefusedBundle> {
        let Self { missed, stuck, swayed } = self;
        match missed.map(|it| it.missed).or(stuck) {
            Some(Missed::Refused(refused)) => Some(refused),
            Some(Missed::Source { .. } | Missed::Higher { .. }) => None,
            None => swayed,
        }
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
