//! Finds the solution that is preferred, with a solver that only says whether there is one.
//!
//! # The order of preference
//! Choices are made one after the other: those of what stays, of the requests and of what is
//! followed, in the order of the problem; then those of what was chosen, as it was chosen. A
//! choice that a solvable chosen before satisfies needs none of its own. Otherwise it takes its first
//! candidate with which all choices so far and everything that must hold can still be satisfied.
//! So an earlier choice is never made worse for a later one. What is not needed in the end is left
//! out, what was chosen last first, and everything is chosen again without it.
//!
//! # How it is found
//! Walking on as if the solver agreed gives decisions, which are assumptions of one call. Only when
//! they cannot hold together, the longest beginning that can is sought by halving, and the next
//! decision is refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::encode::Encoding;
use crate::model::{ChoiceId, Model, Owner, SolvableId};
use crate::sat::{Batsat, Literal, SatResult, WorkBudget};

/// What became of the search.
pub(crate) enum SearchResult {
    Selection(Selection),
    Unsatisfiable,
    /// The solver took too long.
    LimitExceeded,
}

/// Nodes that satisfy everything.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// In the order in which they were chosen, what is installed among them.
    pub(crate) chosen: Vec<SolvableId>,
    /// The candidates of choices that could not be taken, in the order of preference.
    pub(crate) refused: BTreeMap<ChoiceId, Vec<SolvableId>>,
}

pub(crate) fn search(model: &Model<'_>, budget: &WorkBudget) -> SearchResult {
    let mut without = BTreeSet::new();
    let mut encoding = Encoding::new(model, Batsat::new(budget), false);
    loop {
        let mut search = Search::new(model, &mut encoding, &without);
        let selection = match search.run() {
            SatResult::Satisfiable => search.selection(),
            SatResult::Unsatisfiable => return SearchResult::Unsatisfiable,
            SatResult::LimitExceeded => return SearchResult::LimitExceeded,
        };
        let unneeded = unneeded(model, &selection, &mut encoding);
        if unneeded.is_empty() {
            return SearchResult::Selection(selection);
        }
        without.extend(unneeded);
    }
}

struct Search<'a, 'p> {
    model: &'a Model<'p>,
    encoding: &'a mut Encoding<Batsat>,
    /// Nodes that are known not to be needed.
    without: &'a BTreeSet<SolvableId>,
    /// The sets of solvables that exclude each other, of each solvable.
    exclusions_of: Vec<Vec<usize>>,
    state: State,
    refused: BTreeMap<ChoiceId, Vec<SolvableId>>,
    /// Of choices whose first candidates are refused, how many that are.
    tried: BTreeMap<ChoiceId, usize>,
}

/// How far the choices have been made.
#[derive(Clone, Default)]
struct State {
    pending: VecDeque<ChoiceId>,
    chosen: Vec<SolvableId>,
    is_chosen: BTreeSet<SolvableId>,
    /// The sets of solvables that exclude each other of which one is chosen.
    taken: BTreeSet<usize>,
}

/// A choice as if the solver agreed.
struct Decision {
    choice: ChoiceId,
    solvable: SolvableId,
    /// The candidates before it, which what was chosen before rules out.
    passed: Vec<SolvableId>,
}

impl<'a, 'p> Search<'a, 'p> {
    fn new(
        model: &'a Model<'p>,
        encoding: &'a mut Encoding<Batsat>,
        without: &'a BTreeSet<SolvableId>,
    ) -> Self {
        let mut exclusions_of = vec![Vec::new(); model.solvables.len()];
        for (at, exclusion) in model.exclusions.iter().enumerate() {
            for solvable in &exclusion.solvables {
                exclusions_of[*solvable].push(at);
            }
        }
        let state = State { pending: (0..model.roots).collect(), ..State::default() };
        Self {
            model,
            encoding,
            without,
            exclusions_of,
            state,
            refused: BTreeMap::new(),
            tried: BTreeMap::new(),
        }
    }

    fn run(&mut self) -> SatResult {
        loop {
            let mut decisions = Vec::new();
            let end = self.decide(&mut decisions);
            match self.satisfiable(&decisions) {
                SatResult::Satisfiable if end.is_some() => {
                    self.accept(decisions);
                    self.state = end.unwrap_or_default();
                    return SatResult::Satisfiable;
                }
                SatResult::LimitExceeded => return SatResult::LimitExceeded,
                SatResult::Satisfiable | SatResult::Unsatisfiable if decisions.is_empty() => {
                    return SatResult::Unsatisfiable;
                }
                SatResult::Satisfiable | SatResult::Unsatisfiable => {}
            }
            match self.longest(&decisions) {
                Ok(good) => self.refuse(decisions, good),
                Err(verdict) => return verdict,
            }
        }
    }

    fn selection(&mut self) -> Selection {
        Selection {
            chosen: std::mem::take(&mut self.state.chosen),
            refused: std::mem::take(&mut self.refused),
        }
    }

    /// Returns how many of the decisions can hold together with everything that must; fewer than all,
    /// which cannot.
    fn longest(&mut self, decisions: &[Decision]) -> Result<usize, SatResult> {
        let (mut good, mut bad) = (0, decisions.len());
        while bad - good > 1 {
            let middle = usize::midpoint(good, bad);
            match self.satisfiable(&decisions[..middle]) {
                SatResult::Satisfiable => good = middle,
                SatResult::Unsatisfiable => bad = middle,
                SatResult::LimitExceeded => return Err(SatResult::LimitExceeded),
            }
        }
        if good > 0 {
            return Ok(good);
        }
        match self.satisfiable(&[]) {
            SatResult::Satisfiable => Ok(0),
            other => Err(other),
        }
    }

    fn accept(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            if !decision.passed.is_empty() {
                self.refused.entry(decision.choice).or_default().extend(decision.passed);
            }
        }
    }

    /// Accepts the first decisions and refuses the next.
    fn refuse(&mut self, mut decisions: Vec<Decision>, good: usize) {
        let mut rest = decisions.drain(good..);
        let refused = rest.next().expect("not all decisions were good");
        drop(rest);
        let mut state = std::mem::take(&mut self.state);
        for decision in &decisions {
            self.choose(&mut state, decision.solvable);
        }
        self.state = state;
        self.accept(decisions);
        let Decision { choice, solvable, passed: mut refused } = refused;
        refused.push(solvable);
        *self.tried.entry(choice).or_default() += refused.len();
        self.refused.entry(choice).or_default().extend(refused);
    }

    fn satisfiable(&mut self, decisions: &[Decision]) -> SatResult {
        let mut assumptions: Vec<Literal> =
            self.state.chosen.iter().map(|solvable| self.encoding.solvable(*solvable)).collect();
        assumptions
            .extend(decisions.iter().map(|decision| self.encoding.solvable(decision.solvable)));
        assumptions.extend(self.without.iter().map(|solvable| !self.encoding.solvable(*solvable)));
        self.encoding.solve(&assumptions)
    }

    /// Makes all choices as if the solver agreed; none when what was decided rules out all
    /// candidates of one.
    fn decide(&self, decisions: &mut Vec<Decision>) -> Option<State> {
        let mut state = self.state.clone();
        while let Some(choice) = state.pending.front().copied() {
            let candidates = &self.model.choices[choice].candidates;
            if candidates.iter().any(|solvable| state.is_chosen.contains(solvable)) {
                state.pending.pop_front();
                continue;
            }
            let mut passed = Vec::new();
            let mut solvable = None;
            let tried = self.tried.get(&choice).copied().unwrap_or_default();
            for candidate in &candidates[tried..] {
                if self.possible(&state, *candidate) {
                    solvable = Some(*candidate);
                    break;
                }
                passed.push(*candidate);
            }
            let solvable = solvable?;
            state.pending.pop_front();
            self.choose(&mut state, solvable);
            decisions.push(Decision { choice, solvable, passed });
        }
        Some(state)
    }

    fn possible(&self, state: &State, solvable: SolvableId) -> bool {
        self.model.solvables[solvable].ineligible.is_none()
            && !self.encoding.is_impossible(solvable)
            && !self.without.contains(&solvable)
            && !self.exclusions_of[solvable].iter().any(|set| state.taken.contains(set))
    }

    fn choose(&self, state: &mut State, solvable: SolvableId) {
        state.chosen.push(solvable);
        state.is_chosen.insert(solvable);
        state.taken.extend(&self.exclusions_of[solvable]);
        state.pending.extend(&self.model.needs[solvable]);
    }
}

/// Returns what of a selection is not needed: it could be left out and everything would still hold.
fn unneeded(
    model: &Model<'_>,
    selection: &Selection,
    encoding: &mut Encoding<Batsat>,
) -> Vec<SolvableId> {
    let chosen: BTreeSet<SolvableId> = selection.chosen.iter().copied().collect();
    if surely_needed(model, &chosen) {
        return Vec::new();
    }
    let mut kept = chosen;
    let outside = (0..model.solvables.len()).filter(|solvable| !kept.contains(solvable));
    let mut assumptions: Vec<Literal> =
        outside.map(|solvable| !encoding.solvable(solvable)).collect();
    let mut dropped = Vec::new();
    for solvable in selection.chosen.iter().rev() {
        if model.solvables[*solvable].is_installed() || !kept.contains(solvable) {
            continue;
        }
        assumptions.push(!encoding.solvable(*solvable));
        if encoding.solve(&assumptions) != SatResult::Satisfiable {
            assumptions.pop();
            continue;
        }
        let gone: Vec<SolvableId> =
            kept.iter().copied().filter(|solvable| !encoding.solver_holds(*solvable)).collect();
        for solvable in gone {
            kept.remove(&solvable);
            if !model.solvables[solvable].is_installed() {
                assumptions.push(!encoding.solvable(solvable));
                dropped.push(solvable);
            }
        }
    }
    dropped
}

/// Returns whether each choice is satisfied by one solvable only: then all are needed, as each was
/// chosen for a choice of something that is needed.
fn surely_needed(model: &Model<'_>, chosen: &BTreeSet<SolvableId>) -> bool {
    let owned = chosen.iter().flat_map(|solvable| &model.needs[*solvable]).copied();
    (0..model.roots).chain(owned).all(|choice| {
        let candidates = model.choices[choice].candidates.iter();
        candidates.filter(|solvable| chosen.contains(solvable)).count() == 1
    })
}

/// The choices that count in a selection: those without owner and those of its solvables.
pub(crate) fn choices_of(model: &Model<'_>, selection: &Selection) -> Vec<ChoiceId> {
    let owned = selection.chosen.iter().flat_map(|solvable| &model.needs[*solvable]).copied();
    let choices = (0..model.roots).chain(owned);
    choices.filter(|choice| !matches!(model.choices[*choice].owner, Owner::Stays(_))).collect()
}
