//! Finds the solution that is preferred, with a solver that only says whether there is one.
//!
//! # The order of preference
//! Choices are made one after the other: those of what stays, of the requests and of what is
//! followed, in the order of the problem; then those of what was chosen, as it was chosen. A
//! choice that a node chosen before satisfies needs none of its own. Otherwise it takes its first
//! candidate with which all choices so far and everything that must hold can still be satisfied.
//! So an earlier choice is never made worse for a later one. What is not needed in the end is left
//! out, what was chosen last first, and everything is chosen again without it.
//!
//! # How it is found
//! Walking on as if the solver agreed gives guesses, which are assumptions of one call. Only when
//! they cannot hold together, the longest beginning that can is sought by halving, and the next
//! guess is refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::encode::Encoding;
use crate::model::{ChoiceId, Model, NodeId, Owner};
use crate::sat::{Batsat, Literal, Verdict};

/// What became of the search.
pub(crate) enum Found {
    Selection(Selection),
    Unsatisfiable,
    /// The solver took too long.
    LimitExceeded,
}

/// Nodes that satisfy everything.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// In the order in which they were chosen, what is installed among them.
    pub(crate) chosen: Vec<NodeId>,
    /// The candidates of choices that could not be taken, in the order of preference.
    pub(crate) refused: BTreeMap<ChoiceId, Vec<NodeId>>,
}

pub(crate) fn search(model: &Model<'_>) -> Found {
    let mut without = BTreeSet::new();
    let mut encoding = Encoding::new(model, Batsat::new(), false);
    loop {
        let mut search = Search::new(model, &mut encoding, &without);
        let selection = match search.run() {
            Verdict::Satisfiable => search.selection(),
            Verdict::Unsatisfiable => return Found::Unsatisfiable,
            Verdict::LimitExceeded => return Found::LimitExceeded,
        };
        let unneeded = unneeded(model, &selection, &mut encoding);
        if unneeded.is_empty() {
            return Found::Selection(selection);
        }
        without.extend(unneeded);
    }
}

struct Search<'a, 'p> {
    model: &'a Model<'p>,
    encoding: &'a mut Encoding<Batsat>,
    /// Nodes that are known not to be needed.
    without: &'a BTreeSet<NodeId>,
    /// The sets of nodes that exclude each other, of each node.
    rivals: Vec<Vec<usize>>,
    state: State,
    refused: BTreeMap<ChoiceId, Vec<NodeId>>,
    /// What is refused, to be found again.
    tried: BTreeSet<(ChoiceId, NodeId)>,
}

/// How far the choices have been made.
#[derive(Clone, Default)]
struct State {
    agenda: VecDeque<ChoiceId>,
    chosen: Vec<NodeId>,
    is_chosen: BTreeSet<NodeId>,
    /// The sets of nodes that exclude each other of which one is chosen.
    taken: BTreeSet<usize>,
}

/// A choice as if the solver agreed.
struct Guess {
    choice: ChoiceId,
    node: NodeId,
    /// The candidates before it, which what was chosen before rules out.
    passed: Vec<NodeId>,
}

impl<'a, 'p> Search<'a, 'p> {
    fn new(
        model: &'a Model<'p>,
        encoding: &'a mut Encoding<Batsat>,
        without: &'a BTreeSet<NodeId>,
    ) -> Self {
        let mut rivals = vec![Vec::new(); model.nodes.len()];
        for (at, exclusion) in model.exclusions.iter().enumerate() {
            for node in &exclusion.nodes {
                rivals[*node].push(at);
            }
        }
        let state = State { agenda: (0..model.roots).collect(), ..State::default() };
        Self {
            model,
            encoding,
            without,
            rivals,
            state,
            refused: BTreeMap::new(),
            tried: BTreeSet::new(),
        }
    }

    fn run(&mut self) -> Verdict {
        loop {
            let mut guesses = Vec::new();
            let end = self.guess(&mut guesses);
            match self.satisfiable(&guesses) {
                Verdict::Satisfiable if end.is_some() => {
                    self.accept(guesses);
                    self.state = end.unwrap_or_default();
                    return Verdict::Satisfiable;
                }
                Verdict::LimitExceeded => return Verdict::LimitExceeded,
                Verdict::Satisfiable | Verdict::Unsatisfiable if guesses.is_empty() => {
                    return Verdict::Unsatisfiable;
                }
                Verdict::Satisfiable | Verdict::Unsatisfiable => {}
            }
            match self.longest(&guesses) {
                Ok(good) => self.refuse(guesses, good),
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

    /// How many of the guesses can hold together with everything that must; fewer than all, which
    /// cannot.
    fn longest(&mut self, guesses: &[Guess]) -> Result<usize, Verdict> {
        let (mut good, mut bad) = (0, guesses.len());
        while bad - good > 1 {
            let middle = usize::midpoint(good, bad);
            match self.satisfiable(&guesses[..middle]) {
                Verdict::Satisfiable => good = middle,
                Verdict::Unsatisfiable => bad = middle,
                Verdict::LimitExceeded => return Err(Verdict::LimitExceeded),
            }
        }
        if good > 0 {
            return Ok(good);
        }
        match self.satisfiable(&[]) {
            Verdict::Satisfiable => Ok(0),
            other => Err(other),
        }
    }

    fn accept(&mut self, guesses: Vec<Guess>) {
        for guess in guesses {
            if !guess.passed.is_empty() {
                self.refused.entry(guess.choice).or_default().extend(guess.passed);
            }
        }
    }

    /// Accepts the first guesses and refuses the next.
    fn refuse(&mut self, mut guesses: Vec<Guess>, good: usize) {
        let mut rest = guesses.drain(good..);
        let refused = rest.next().expect("not all guesses were good");
        drop(rest);
        let mut state = std::mem::take(&mut self.state);
        for guess in &guesses {
            self.choose(&mut state, guess.node);
        }
        self.state = state;
        self.accept(guesses);
        let Guess { choice, node, passed: mut refused } = refused;
        refused.push(node);
        self.tried.extend(refused.iter().map(|node| (choice, *node)));
        self.refused.entry(choice).or_default().extend(refused);
    }

    fn satisfiable(&mut self, guesses: &[Guess]) -> Verdict {
        let mut assumptions: Vec<Literal> =
            self.state.chosen.iter().map(|node| self.encoding.node(*node)).collect();
        assumptions.extend(guesses.iter().map(|guess| self.encoding.node(guess.node)));
        assumptions.extend(self.without.iter().map(|node| !self.encoding.node(*node)));
        self.encoding.solve(&assumptions)
    }

    /// Makes all choices as if the solver agreed; none when what was guessed rules out all
    /// candidates of one.
    fn guess(&self, guesses: &mut Vec<Guess>) -> Option<State> {
        let mut state = self.state.clone();
        while let Some(choice) = state.agenda.front().copied() {
            let candidates = &self.model.choices[choice].candidates;
            if candidates.iter().any(|node| state.is_chosen.contains(node)) {
                state.agenda.pop_front();
                continue;
            }
            let mut passed = Vec::new();
            let mut node = None;
            for candidate in candidates.iter().filter(|it| !self.tried.contains(&(choice, **it))) {
                if self.possible(&state, *candidate) {
                    node = Some(*candidate);
                    break;
                }
                passed.push(*candidate);
            }
            let node = node?;
            state.agenda.pop_front();
            self.choose(&mut state, node);
            guesses.push(Guess { choice, node, passed });
        }
        Some(state)
    }

    fn possible(&self, state: &State, node: NodeId) -> bool {
        self.model.nodes[node].unfit.is_none()
            && !self.encoding.is_impossible(node)
            && !self.without.contains(&node)
            && !self.rivals[node].iter().any(|set| state.taken.contains(set))
    }

    fn choose(&self, state: &mut State, node: NodeId) {
        state.chosen.push(node);
        state.is_chosen.insert(node);
        state.taken.extend(&self.rivals[node]);
        state.agenda.extend(&self.model.needs[node]);
    }
}

/// What of a selection is not needed: it could be left out and everything would still hold.
fn unneeded(
    model: &Model<'_>,
    selection: &Selection,
    encoding: &mut Encoding<Batsat>,
) -> Vec<NodeId> {
    let chosen: BTreeSet<NodeId> = selection.chosen.iter().copied().collect();
    if surely_needed(model, &chosen) {
        return Vec::new();
    }
    let mut kept = chosen;
    let outside = (0..model.nodes.len()).filter(|node| !kept.contains(node));
    let mut assumptions: Vec<Literal> = outside.map(|node| !encoding.node(node)).collect();
    let mut dropped = Vec::new();
    for node in selection.chosen.iter().rev() {
        if model.nodes[*node].is_installed() || !kept.contains(node) {
            continue;
        }
        assumptions.push(!encoding.node(*node));
        if encoding.solve(&assumptions) != Verdict::Satisfiable {
            assumptions.pop();
            continue;
        }
        let gone: Vec<NodeId> =
            kept.iter().copied().filter(|node| !encoding.solver_holds(*node)).collect();
        for node in gone {
            kept.remove(&node);
            if !model.nodes[node].is_installed() {
                assumptions.push(!encoding.node(node));
                dropped.push(node);
            }
        }
    }
    dropped
}

/// Whether each choice is satisfied by one node only: then all are needed, as each was chosen for
/// a choice of something that is needed.
fn surely_needed(model: &Model<'_>, chosen: &BTreeSet<NodeId>) -> bool {
    let owned = chosen.iter().flat_map(|node| &model.needs[*node]).copied();
    (0..model.roots).chain(owned).all(|choice| {
        let candidates = model.choices[choice].candidates.iter();
        candidates.filter(|node| chosen.contains(node)).count() == 1
    })
}

/// The choices that count in a selection: those without owner and those of its nodes.
pub(crate) fn choices_of(model: &Model<'_>, selection: &Selection) -> Vec<ChoiceId> {
    let owned = selection.chosen.iter().flat_map(|node| &model.needs[*node]).copied();
    let choices = (0..model.roots).chain(owned);
    choices.filter(|choice| !matches!(model.choices[*choice].owner, Owner::Stays(_))).collect()
}
