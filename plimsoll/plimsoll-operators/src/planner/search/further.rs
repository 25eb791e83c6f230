//! Plans that go on: what another run after a plan would find is a part of the plan, where one run leads there.
//!
//! A plan may lead an Operator to where updates of another catalog begin, or make possible what its search refused:
//! a step that waits for versions which the plan leads to.

use super::*;
use crate::planner::related;

impl Search<'_> {
    /// Returns a plan that also leads to what another run after a plan would lead to; the plan itself if that is
    /// nothing more, or takes the other run.
    pub(super) fn furthest(&self, plan: Proposal, is_undivided: bool) -> Proposal {
        self.further(&plan, is_undivided).unwrap_or(plan)
    }

    fn further(&self, plan: &Proposal, is_undivided: bool) -> Option<Proposal> {
        // Each plan leads to higher versions only, so that there is a last one.
        if self.request.is_install || !is_higher(self.before.operators, &plan.converged) {
            return None;
        }
        let after = plan.afterwards();
        let inputs = OperatorInputs { operators: &after, ..self.before };
        let orphans = self.orphans_in(inputs);
        if !self.lead_on(inputs, &orphans) {
            return None;
        }
        let Self { catalogs, request, progress, .. } = *self;
        let start = Start { orphans, is_undivided };
        let next = propose_from(inputs, &after, catalogs, request, progress, start);
        let next = next.ok().filter(|it| is_higher(&after, &it.converged))?;
        let mut staying: BTreeSet<&str> = BTreeSet::new();
        loop {
            let missed = match self.joined(plan, &next, &staying) {
                Ok(joined) => {
                    return Some(joined).filter(|it| is_higher(&plan.converged, &it.converged));
                }
                Err(missed) => missed,
            };
            // What takes another run holds up nothing else.
            let groups = related::groups(self.inputs, self.present, catalogs)?;
            let group = groups.into_iter().find(|it| it.contains(missed.as_str()))?;
            if group.is_subset(&staying) {
                return None;
            }
            staying.extend(group);
        }
    }

    /// Returns the plan that leads to what a plan and the next one lead to; `staying` are the packages of which only
    /// the first one counts.
    ///
    /// # Errors
    ///
    /// The name of the first Operator that the controller would not do that with.
    fn joined(
        &self,
        plan: &Proposal,
        next: &Proposal,
        staying: &BTreeSet<&str>,
    ) -> Result<Proposal, String> {
        let mut operators = plan.operators.clone();
        for (name, it) in next.operators.iter().filter(|it| !staying.contains(it.0.as_str())) {
            let operator = operators.entry(name.clone()).or_insert_with(|| it.clone());
            operator.spec.clone_from(&it.spec);
            operator.is_undeclared = it.is_undeclared;
            operator.change_set.clone_from(&it.change_set);
        }
        for sets in [&plan.change_sets, &next.change_sets] {
            leave(&mut operators, sets);
        }
        let written = self.written(&operators);
        let proposed = next.converged.keys().filter_map(|name| {
            let is_staying = staying.contains(name.as_str());
            let of = if is_staying { &plan.converged } else { &next.converged };
            let (name, it) = of.get_key_value(name)?;
            let there = it.installed.as_ref()?;
            let before = self.inputs.operators.get(name);
            let is_moved = before.is_none_or(|before| before.installed != it.installed);
            let (bundle, catalog) = (&there.bundle, there.reference.catalog.as_str());
            is_moved.then_some((name.as_str(), ChosenBundle { bundle, catalog }))
        });
        let proposed: ChosenBundles<'_> = proposed.collect();
        let CarriedOut { change_sets, converged, missed, ways: _, too_wide: _ } =
            self.carried_out(&proposed, &written, &mut operators);
        if let Some(missed) = missed {
            return Err(missed.name().to_owned());
        }
        let is_of =
            |note: &String| staying.iter().any(|it| note.starts_with(&format!("{it} has ")));
        let mut notes = plan.notes_of_unchanged(&operators);
        notes
            .extend(next.notes.iter().filter(|it| !plan.notes.contains(it) && !is_of(it)).cloned());
        let mut unsatisfied = next.unsatisfied.clone();
        if !staying.is_empty() {
            let others = plan.unsatisfied.iter().filter(|it| !next.unsatisfied.contains(it));
            unsatisfied.extend(others.cloned());
        }
        let mut held_back = next.held_back.clone();
        held_back.retain(|name, _| !staying.contains(name.as_str()));
        let others = plan.held_back.iter().filter(|it| staying.contains(it.0.as_str()));
        held_back.extend(others.map(|(name, why)| (name.clone(), why.clone())));
        Ok(Proposal {
            solution: next.solution.clone(),
            converged: converged.operators,
            operators,
            written,
            change_sets,
            held_back,
            unsatisfied,
            notes,
        })
    }

    /// Returns the dependencies that are known to be orphans and that no Operator depends on.
    fn orphans_in(&self, inputs: OperatorInputs<'_>) -> BTreeSet<String> {
        if self.orphans.is_empty() {
            return BTreeSet::new();
        }
        let after = Outcome::new(inputs, self.catalogs, &ChosenBundles::new());
        let used = after.used_by(after.bundles.keys().copied());
        self.orphans.iter().filter(|it| !used.contains(it.as_str())).cloned().collect()
    }

    /// Returns whether updates lead any of the requested Operators on.
    fn lead_on(&self, inputs: OperatorInputs<'_>, orphans: &BTreeSet<String>) -> bool {
        let requested = self.requested_of(inputs.operators, orphans);
        let (none, is_requested) = (|_: &str, _: &str| false, |it: &str| requested.contains(it));
        let (ranges, catalogs) = (self.request.ranges(), self.catalogs);
        let destinations =
            Destinations::of(inputs, catalogs, &ranges, &requested, &none, &is_requested);
        requested.iter().any(|it| destinations.lead_on(it))
    }
}

impl Proposal {
    /// Returns the Operators once the plan is carried out, without the change sets that it makes.
    fn afterwards(&self) -> BTreeMap<String, RequestedOperator> {
        let mut after = self.converged.clone();
        leave(&mut after, &self.change_sets);
        after
    }

    /// Returns the notes about the Operators that are written as the plan has them.
    fn notes_of_unchanged(&self, operators: &BTreeMap<String, RequestedOperator>) -> Vec<String> {
        let is_changed = |(name, it): &(&String, &RequestedOperator)| {
            operators.get(*name).is_none_or(|other| other.spec != it.spec)
        };
        let changed: Vec<String> = self
            .operators
            .iter()
            .filter(is_changed)
            .map(|(name, _)| format!("{name} has "))
            .collect();
        let is_about = |note: &String| changed.iter().any(|it| note.starts_with(it.as_str()));
        self.notes.iter().filter(|it| !is_about(it)).cloned().collect()
    }
}

/// Removes the annotations of change sets.
fn leave(operators: &mut BTreeMap<String, RequestedOperator>, sets: &BTreeSet<String>) {
    for operator in operators.values_mut() {
        operator.change_set.take_if(|it| sets.contains(it));
    }
}

/// Returns whether some Operators have higher versions, or are new, and none has a lower one.
fn is_higher(
    before: &BTreeMap<String, RequestedOperator>,
    after: &BTreeMap<String, RequestedOperator>,
) -> bool {
    let version = |of: &BTreeMap<String, RequestedOperator>, name: &str| {
        Some(of.get(name)?.installed.as_ref()?.bundle.version.clone())
    };
    let moves = after.keys().map(|name| (version(before, name), version(after, name)));
    let moves: Vec<_> = moves.filter(|(from, to)| from != to).collect();
    !moves.is_empty() && moves.iter().all(|(from, to)| from < to)
}
