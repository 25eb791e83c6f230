//! Convergence of Operators: the result of carrying out all decisions about them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_api::Reason;
use plimsoll_resolve::{Bundle, CatalogPart, Package};

use crate::change_set;
use crate::decide::{KnownWays, OfferedCatalogs, decide_kept};
use crate::dependency_index::DependencyIndex;
use crate::installed::{OperatorIndex, kinds};
use crate::{
    CandidateRequirements, InstalledOperator, OperatorAction, OperatorBlock, OperatorDecision,
    OperatorInputs, RequestedOperator, SelectedBundle, version_text,
};

/// Operators after all of their decisions are carried out.
#[derive(Debug, Clone, Default)]
pub struct ConvergedOperators {
    /// The Operators, with their installed bundles.
    pub operators: BTreeMap<String, RequestedOperator>,
    /// The last decision on each of them: none is installed or updated any more.
    pub decisions: BTreeMap<String, OperatorDecision>,
}

impl ConvergedOperators {
    /// Returns whether no Operator depends on one that was installed as a dependency, or waits for it.
    pub(crate) fn is_orphaned(&self, name: &str) -> bool {
        let is_unused = self.decisions.get(name).is_some_and(|it| it.is_orphaned);
        let operator = self.operators.get(name).filter(|_| is_unused);
        operator.is_some_and(|operator| {
            let kinds = operator.provided();
            let mut others = self.decisions.iter().filter(|(other, _)| *other != name);
            !others.any(|(_, it)| it.awaits(name, &kinds))
        })
    }
}

/// The progress of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanningProgress {
    /// The number of bundles that were taken as installed so far.
    pub steps: usize,
}

/// Converges Operators: decides as the controller does, takes each decision as carried out, and repeats that
/// until no Operator is installed or updated any more. Operators that would move in a circle are blocked.
pub fn converge(inputs: OperatorInputs<'_>, catalogs: &[CatalogPart]) -> ConvergedOperators {
    converge_shown(inputs, catalogs, &|_| {})
}

/// Converges Operators, and reports the progress.
pub fn converge_shown(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    progress: &dyn Fn(PlanningProgress),
) -> ConvergedOperators {
    converge_watched(inputs, catalogs, &mut counted(progress))
}

/// Returns what reports the number of moves so far.
fn counted(progress: &dyn Fn(PlanningProgress)) -> impl FnMut(&BTreeMap<String, SelectedBundle>) {
    let mut steps = 0;
    move |moved| {
        steps += moved.len();
        progress(PlanningProgress { steps });
    }
}

/// Converges Operators, and shows the moves of each round before they are carried out.
pub(crate) fn converge_watched(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    watch: &mut dyn FnMut(&BTreeMap<String, SelectedBundle>),
) -> ConvergedOperators {
    let mut convergence = Convergence::new(inputs, IndexedParts::of(catalogs));
    convergence.run(watch);
    let Convergence { operators, decisions, .. } = convergence;
    ConvergedOperators { operators, decisions }
}

/// Converges some of all Operators, which nothing connects with the others but their change set. Returns `None` if
/// the others may change the result: Operators return to bundles that they had, or members of the change set only
/// move together with others.
pub(crate) fn converge_apart(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    progress: &dyn Fn(PlanningProgress),
) -> Option<ConvergedOperators> {
    let mut convergence = Convergence::new(inputs, IndexedParts::of(catalogs));
    convergence.run(&mut counted(progress));
    let Convergence { operators, decisions, states, circling, ways, .. } = convergence;
    let is_apart = states.is_empty() && circling.is_empty() && !ways.are_joined();
    is_apart.then_some(ConvergedOperators { operators, decisions })
}

/// The state of Operators, of which only those are decided on again that a move affects.
struct Convergence<'a> {
    inputs: OperatorInputs<'a>,
    catalogs: IndexedParts<'a>,
    operators: BTreeMap<String, RequestedOperator>,
    decisions: BTreeMap<String, OperatorDecision>,
    index: OperatorIndex,
    dependencies: DependencyIndex,
    ways: KnownWays,
    /// The members of change sets, by the id of the set.
    sets: BTreeMap<String, BTreeSet<String>>,
    /// The bundles that each Operator had, by catalog and name.
    passed: BTreeMap<String, BTreeSet<(String, String)>>,
    /// The states since an Operator returned to a bundle that it had, each with the Operators that moved to it.
    states: Vec<(State, BTreeSet<String>)>,
    /// The Operators that would move in a circle: they stay where they are.
    circling: BTreeSet<String>,
}

/// What decisions depend on and moves change: the installed bundles, by catalog and name, and how many kinds
/// are owned.
type State = Vec<(Option<(String, String)>, usize)>;

impl<'a> Convergence<'a> {
    fn new(inputs: OperatorInputs<'a>, catalogs: IndexedParts<'a>) -> Self {
        let mut sets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut passed: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
        for (name, operator) in inputs.operators {
            if let Some(Ok(set)) = change_set::of(operator) {
                sets.entry(set.id).or_default().insert(name.clone());
            }
            passed.insert(name.clone(), operator.installed.iter().map(place).collect());
        }
        Self {
            inputs,
            catalogs,
            operators: inputs.operators.clone(),
            decisions: BTreeMap::new(),
            index: OperatorIndex::of(inputs.operators),
            dependencies: DependencyIndex::default(),
            ways: KnownWays::default(),
            sets,
            passed,
            states: Vec::new(),
            circling: BTreeSet::new(),
        }
    }

    /// Decides on Operators, shows the moves and carries them out, until none is installed or updated any more.
    fn run(&mut self, watch: &mut dyn FnMut(&BTreeMap<String, SelectedBundle>)) {
        let mut undecided: BTreeSet<String> = self.inputs.operators.keys().cloned().collect();
        while !undecided.is_empty() {
            let moved = self.decide(&undecided);
            watch(&moved);
            undecided = self.carry_out(&moved);
            let circle = self.circle(moved);
            self.block(circle);
            undecided.retain(|name| !self.circling.contains(name));
        }
    }

    /// Decides on Operators. Returns the bundles that are installed or updated.
    fn decide(&mut self, names: &BTreeSet<String>) -> BTreeMap<String, SelectedBundle> {
        let inputs = OperatorInputs { operators: &self.operators, ..self.inputs };
        let offered = |names: &BTreeSet<String>| self.catalogs.offered(names);
        let decisions = decide_kept(inputs, &self.index, names, &offered, &self.ways);
        let mut moved = BTreeMap::new();
        for (name, decision) in decisions {
            if let OperatorAction::Install(selected) | OperatorAction::Upgrade(selected) =
                &decision.action
            {
                moved.insert(name.clone(), selected.clone());
            }
            // Otherwise they were updated when the last move was carried out.
            let before = self.decisions.get(&name);
            if before.is_none_or(|before| before.judged != decision.judged) {
                self.dependencies.update(&name, self.operators.get(&name), &decision.judged);
            }
            self.decisions.insert(name, decision);
        }
        moved
    }

    /// Takes moves as carried out. Returns the Operators that they affect.
    fn carry_out(&mut self, moved: &BTreeMap<String, SelectedBundle>) -> BTreeSet<String> {
        let mut affected = BTreeSet::new();
        for (name, selected) in moved {
            let Some(bundle) = self.catalogs.bundle(name, selected) else { continue };
            let Some(operator) = self.operators.get_mut(name) else { continue };
            self.index.remove(name, operator);
            operator.owned.extend(kinds(bundle));
            let revision = operator.installed.as_ref().map_or(0, |it| it.revision) + 1;
            let upgrade_block = operator.installed.take().and_then(|it| it.upgrade_block);
            let is_free = upgrade_block.is_none();
            operator.installed = Some(InstalledOperator {
                reference: selected.reference.clone(),
                bundle: bundle.clone(),
                revision,
                upgrade_block,
            });
            self.index.insert(name, operator);
            let nothing = CandidateRequirements::default();
            let judged = self.decisions.get(name).map_or(&nothing, |it| &it.judged);
            for dependencies in self.dependencies.update(name, Some(operator), judged) {
                let others = self.dependencies.affected(&dependencies);
                others.iter().filter(|it| *it != name).for_each(|it| self.ways.forget(it));
                // What others require of it may change with each of its steps.
                if !is_free || self.dependencies.is_required(name, &dependencies) {
                    self.ways.forget(name);
                }
                affected.extend(others);
            }
        }
        self.with_members(affected)
    }

    /// Adds the other members of the change sets that Operators belong to.
    fn with_members(&self, names: BTreeSet<String>) -> BTreeSet<String> {
        if self.sets.is_empty() {
            return names;
        }
        let set = |name: &String| change_set::of(self.operators.get(name)?)?.ok();
        let sets: BTreeSet<String> = names.iter().filter_map(set).map(|it| it.id).collect();
        let members = sets.iter().flat_map(|id| &self.sets[id]).cloned();
        members.chain(names).collect()
    }

    /// Returns the Operators that moved since all Operators had the state that they have now, if they had it
    /// before. A state is noted only once an Operator has returned to a bundle that it had.
    fn circle(&mut self, moved: BTreeMap<String, SelectedBundle>) -> BTreeSet<String> {
        let mut returned = false;
        for name in moved.keys() {
            let installed = self.operators.get(name).and_then(|it| it.installed.as_ref());
            if let (Some(installed), Some(passed)) = (installed, self.passed.get_mut(name)) {
                returned |= !passed.insert(place(installed));
            }
        }
        if moved.is_empty() || (!returned && self.states.is_empty()) {
            return BTreeSet::new();
        }
        let state = |it: &RequestedOperator| (it.installed.as_ref().map(place), it.owned.len());
        let state: State = self.operators.values().map(state).collect();
        let before = self.states.iter().position(|(it, _)| *it == state);
        let moved = moved.into_keys().collect();
        self.states.push((state, moved));
        let Some(before) = before else { return BTreeSet::new() };
        let since = self.states.drain(..).skip(before + 1);
        let circle = since.flat_map(|(_, moved)| moved).collect();
        self.with_members(circle)
    }

    /// Blocks Operators that move in a circle.
    fn block(&mut self, circle: BTreeSet<String>) {
        if circle.is_empty() {
            return;
        }
        // Moves on known ways are not reported.
        circle.iter().for_each(|name| self.ways.forget(name));
        self.decide(&circle);
        for name in &circle {
            let Some(decision) = self.decisions.get_mut(name) else { continue };
            let installed = self.operators.get(name).and_then(|it| it.installed.as_ref());
            let version = installed.map(|it| version_text(&it.bundle.version.to_string()));
            let message = format!(
                "{name} moves in a circle: updates lead from {} back to it; name the version in \
                 spec.version",
                version.as_deref().unwrap_or("its version")
            );
            decision.block(OperatorBlock::new(Reason::NoUpgradePath, message));
        }
        self.circling.extend(circle);
    }
}

/// Returns the catalog and the name of an installed bundle.
fn place(installed: &InstalledOperator) -> (String, String) {
    (installed.reference.catalog.clone(), installed.reference.name.clone())
}

/// The bundles of a package, by name.
type NamedBundles<'a> = BTreeMap<&'a str, &'a Bundle>;

/// Catalogs with their packages, by name.
struct IndexedParts<'a> {
    catalogs: Vec<(&'a CatalogPart, BTreeMap<&'a str, &'a Package>)>,
    /// The catalogs that were offered before, by the names of the packages.
    offered: RefCell<BTreeMap<BTreeSet<String>, Rc<OfferedCatalogs>>>,
    /// The bundles of packages that were installed from before, by catalog and package.
    bundles: RefCell<BTreeMap<(String, String), NamedBundles<'a>>>,
}

impl<'a> IndexedParts<'a> {
    fn of(catalogs: &'a [CatalogPart]) -> Self {
        let packages = |catalog: &'a CatalogPart| {
            catalog.packages.iter().map(|it| (it.name.as_str(), it)).collect()
        };
        Self {
            catalogs: catalogs.iter().map(|catalog| (catalog, packages(catalog))).collect(),
            offered: RefCell::default(),
            bundles: RefCell::default(),
        }
    }

    /// Returns the catalogs, each with those of the given packages that it has.
    fn offered(&self, names: &BTreeSet<String>) -> Rc<OfferedCatalogs> {
        if let Some(offered) = self.offered.borrow().get(names) {
            return Rc::clone(offered);
        }
        let part = |(catalog, packages): &(&CatalogPart, BTreeMap<&str, &Package>)| {
            let packages = names.iter().filter_map(|name| packages.get(name.as_str()));
            let packages: Vec<Package> = packages.map(|it| (*it).clone()).collect();
            CatalogPart { name: catalog.name.clone(), weight: catalog.weight, packages }
        };
        let parts: Vec<CatalogPart> = self.catalogs.iter().map(part).collect();
        let offered = Rc::new(OfferedCatalogs::from(parts));
        self.offered.borrow_mut().insert(names.clone(), Rc::clone(&offered));
        offered
    }

    fn bundle(&self, package: &str, selected: &SelectedBundle) -> Option<&'a Bundle> {
        let reference = &selected.reference;
        let key = (reference.catalog.clone(), package.to_owned());
        let mut known = self.bundles.borrow_mut();
        if let Some(bundles) = known.get(&key) {
            return bundles.get(reference.name.as_str()).copied();
        }
        let (_, packages) =
            self.catalogs.iter().find(|(it, _)| it.name.name == reference.catalog)?;
        let package = packages.get(package)?;
        // Of two bundles of one name the first is meant.
        let bundles = package.bundles.iter().rev();
        let bundles: BTreeMap<&str, &Bundle> = bundles.map(|it| (it.name.as_str(), it)).collect();
        let found = bundles.get(reference.name.as_str()).copied();
        known.insert(key, bundles);
        found
    }
}

#[cfg(test)]
mod tests;
