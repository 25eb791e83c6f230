//! Differences between a proposal and what the controller would do.

use super::*;
use crate::OperatorAction;

/// A bundle that is to be installed, or to stay.
pub(super) struct PlannedBundle<'a> {
    /// The name of the Operator.
    pub(super) name: &'a str,
    /// The bundle.
    pub(super) chosen: ChosenBundle<'a>,
    /// Whether no higher version and no other catalog will do.
    pub(super) is_exact: bool,
}

impl Search<'_> {
    /// Returns what prevents the first bundle that would not be installed; of what an installation writes, and of
    /// what is not installed yet, also the first that would be another one.
    pub(super) fn missed(
        &self,
        proposed: &ChosenBundles<'_>,
        written: &BTreeSet<String>,
        operators: &BTreeMap<String, RequestedOperator>,
        converged: &ConvergedOperators,
    ) -> Option<Missed> {
        let planned = self.planned(proposed, written);
        self.first_missed(&planned, converged).or_else(|| {
            // An installation is not held back where an update of what is only expected would be.
            let is_expected = planned.iter().any(|it| self.is_only_expected(it.name));
            let present = is_expected.then(|| self.as_present(operators))?;
            self.first_missed(&planned, &self.converged(&present))
        })
    }

    /// Returns what prevents each bundle that would not be installed, and is another one.
    pub(super) fn all_missed(
        &self,
        proposed: &ChosenBundles<'_>,
        written: &BTreeSet<String>,
        operators: &BTreeMap<String, RequestedOperator>,
        converged: &ConvergedOperators,
    ) -> Vec<Missed> {
        let planned = self.planned(proposed, written);
        let all = |converged: &ConvergedOperators| -> Vec<Missed> {
            planned.iter().filter_map(|it| self.missed_one(it, converged)).collect()
        };
        let mut missed = all(converged);
        if planned.iter().any(|it| self.is_only_expected(it.name)) {
            missed.extend(all(&self.converged(&self.as_present(operators))));
        }
        missed
    }

    /// Returns the bundles that are to be installed, or to stay.
    pub(super) fn planned<'p>(
        &'p self,
        proposed: &ChosenBundles<'p>,
        written: &'p BTreeSet<String>,
    ) -> Vec<PlannedBundle<'p>> {
        let is_new = |name: &str| self.present.get(name).is_none_or(|it| it.installed.is_none());
        let written = written.iter().filter(|it| self.request.is_install || is_new(it));
        // What is written without another bundle stays as it is.
        let kept = written.clone().filter(|it| !proposed.contains_key(it.as_str()));
        let kept = kept.filter_map(|name| {
            let there = self.inputs.operators.get(name)?.installed.as_ref()?;
            Some((
                name.as_str(),
                ChosenBundle { bundle: &there.bundle, catalog: &there.reference.catalog },
            ))
        });
        let exact: BTreeSet<&str> = written.map(String::as_str).collect();
        let all = proposed.iter().map(|(name, it)| (*name, *it)).chain(kept);
        let planned = all.map(|(name, chosen)| {
            let is_exact = exact.contains(name);
            PlannedBundle { name, chosen, is_exact }
        });
        planned.collect()
    }

    /// Returns what prevents the first of some bundles that would not be installed, or else, the first difference that
    /// breaks a requirement of one.
    pub(super) fn first_missed(
        &self,
        planned: &[PlannedBundle<'_>],
        converged: &ConvergedOperators,
    ) -> Option<Missed> {
        let missed = planned.iter().find_map(|it| self.missed_one(it, converged));
        missed.or_else(|| self.first_broken(planned, converged))
    }

    /// Returns the members of change sets that hold them up only because higher versions are in what is written of
    /// them: a change set moves all members to the highest ones, or none. Returns none if it would not move with the
    /// proposed versions either.
    pub(super) fn too_wide(
        &self,
        proposed: &ChosenBundles<'_>,
        written: &BTreeSet<String>,
        operators: &BTreeMap<String, RequestedOperator>,
    ) -> Vec<String> {
        let mut narrowed = operators.clone();
        let mut names = Vec::new();
        for name in written {
            let Some(chosen) = proposed.get(name.as_str()) else { continue };
            let Some(operator) = narrowed.get_mut(name).filter(|it| it.change_set.is_some()) else {
                continue;
            };
            if self.has_higher(name, &operator.spec.version, &chosen.bundle.version) {
                operator.spec.version = chosen.bundle.version.to_string();
                names.push(name.clone());
            }
        }
        if names.is_empty() {
            return names;
        }
        let converged = self.converged(&narrowed);
        match self.missed(proposed, written, &narrowed, &converged) {
            None => names,
            Some(_) => Vec::new(),
        }
    }

    /// Returns whether a range that the plan writes has versions above another one.
    fn has_higher(&self, name: &str, range: &str, version: &Version) -> bool {
        let before = self.before.operators.get(name).map(|it| it.spec.version.as_str());
        // A range that a user wrote stays.
        let is_ours = self.wanted_range(name).is_some() || before != Some(range);
        let offered = self.catalogs.iter().filter_map(|it| it.package(name));
        let mut offered = offered.flat_map(|it| &it.bundles).map(|it| &it.version);
        is_ours && !is_pinned(range) && offered.any(|it| it > version && is_in_range(range, it))
    }

    /// Returns whether something else is really installed of an Operator.
    pub(super) fn is_only_expected(&self, name: &str) -> bool {
        let of = |all: &BTreeMap<String, RequestedOperator>| Some(all.get(name)?.installed.clone());
        let (present, expected) = (of(self.present), of(self.before.operators));
        present.is_some() && expected.is_some() && present != expected
    }

    /// Returns changed Operators with what is really installed of them.
    fn as_present(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
    ) -> BTreeMap<String, RequestedOperator> {
        let mut operators = operators.clone();
        for (name, it) in self.present {
            if let Some(operator) = operators.get_mut(name) {
                operator.installed.clone_from(&it.installed);
                operator.owned.clone_from(&it.owned);
            }
        }
        operators
    }

    fn missed_one(
        &self,
        planned: &PlannedBundle<'_>,
        converged: &ConvergedOperators,
    ) -> Option<Missed> {
        let PlannedBundle { name, chosen: ChosenBundle { bundle, catalog }, is_exact } = *planned;
        let there = converged.operators.get(name)?.installed.as_ref();
        let has_source = self.sources.contains_key(name);
        let name = name.to_owned();
        if let Some(there) = there.filter(|it| it.bundle.version >= bundle.version) {
            let is_it = there.bundle.version == bundle.version;
            return match is_exact {
                true if !is_it => {
                    Some(Missed::Higher { name, version: there.bundle.version.clone() })
                }
                true if there.reference.catalog != catalog && !has_source => {
                    Some(Missed::Source { name, catalog: catalog.to_owned() })
                }
                true | false => None,
            };
        }
        let decision = converged.decisions.get(&name)?;
        let block = match &decision.action {
            OperatorAction::Blocked(block) => Some(block.clone()),
            _ => decision.held_back.clone(),
        };
        if block.as_ref().is_some_and(|it| it.reason == Reason::AmbiguousCatalog) && !has_source {
            return Some(Missed::Source { name, catalog: catalog.to_owned() });
        }
        let block = block.unwrap_or_else(|| {
            let version = version_text(&bundle.version.to_string());
            let message = format!("{name} {version} is not preferred to what is installed");
            OperatorBlock::new(Reason::UpgradeBlocked, message)
        });
        let (bundle, version) = (bundle.name.clone(), bundle.version.clone());
        Some(Missed::Refused(RefusedBundle { name, bundle, version, block }))
    }
}
