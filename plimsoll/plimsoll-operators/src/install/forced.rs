//! Installation in spite of a conflict: what `--force` writes, and what it leaves as it is.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::OperatorSpec;

use super::{InstallPlan, PlannedOperator, Planner};
use crate::installed::all_unmet;
use crate::loadout::converge;
use crate::manifest::ChangeSetEdit;
use crate::planner::{ChosenBundle, ChosenBundles, Outcome, hold};
use crate::selection::candidates;
use crate::{OperatorAction, OperatorInputs, RequestedOperator, version_text};

/// A plan that is carried out in spite of a conflict.
#[derive(Debug, Default)]
pub(super) struct ForcedPlan {
    /// The plan.
    pub(super) plan: InstallPlan,
    /// The dependencies that exist and do not get the version that is needed, with the reason, a line each.
    pub(super) held: Vec<String>,
}

impl<'a> Planner<'a> {
    /// Returns the plan of an installation without other Operators as it is carried out beside some. A dependency
    /// that exists stays as it is if it will do, or if it cannot have the planned version.
    pub(super) fn beside(
        &self,
        mut plan: InstallPlan,
        operators: &BTreeMap<String, RequestedOperator>,
    ) -> ForcedPlan {
        let inputs = OperatorInputs { operators, ..self.inputs };
        let mut chosen = self.bundles(&plan.operators);
        let (mut held, mut left) = (Vec::new(), BTreeSet::new());
        for planned in plan.operators.iter().filter(|it| it.is_dependency) {
            let name = planned.name.as_str();
            let Some(there) = operators.get(name) else { continue };
            let Some(installed) = &there.installed else { continue };
            let mut without = chosen.clone();
            without.remove(name);
            let others: Vec<&str> = without.keys().copied().collect();
            let unmet = |chosen: &ChosenBundles<'_>| {
                let after = Outcome::new(inputs, self.catalogs, chosen);
                let requirements = others.iter().flat_map(|it| after.requirements(it));
                requirements.filter(|it| it.provider.is_none()).count()
            };
            if unmet(&without) > unmet(&chosen) {
                let Some(why) = self.stays(inputs, planned, there) else { continue };
                let version = version_text(&installed.bundle.version.to_string());
                held.push(format!("{name} stays at {version}: {why}"));
            }
            chosen = without;
            left.insert(planned.name.clone());
        }
        plan.operators.retain(|it| !left.contains(&it.name));
        for it in &mut plan.operators {
            it.change_set = ChangeSetEdit::Keep;
            it.becomes_requested = self.becomes_requested(&it.name, operators.get(&it.name));
        }
        plan.note_requested();
        plan.change_set = None;
        self.compare(&mut plan, inputs, &chosen);
        let notes = self.shortfalls(&plan.operators, inputs);
        plan.notes.extend(notes);
        ForcedPlan { plan, held }
    }

    /// Returns what planned Operators will not have beside those of `inputs`: the version, since the controller refuses
    /// it, or what they require; a line each.
    fn shortfalls(&self, planned: &[PlannedOperator], inputs: OperatorInputs<'_>) -> Vec<String> {
        let mut operators = inputs.operators.clone();
        for it in planned {
            let new = || RequestedOperator::new(OperatorSpec::default(), it.is_dependency);
            let operator = operators.entry(it.name.clone()).or_insert_with(new);
            operator.is_undeclared = false;
            let spec = &mut operator.spec;
            spec.version.clone_from(&it.range);
            let fields = [(&mut spec.channel, &it.channel), (&mut spec.repository, &it.repository)];
            for (field, wanted) in fields {
                if let Some(wanted) = wanted {
                    field.clone_from(wanted);
                }
            }
        }
        let requested = OperatorInputs { operators: &operators, ..inputs };
        let converged = converge(requested, self.catalogs);
        let after = OperatorInputs { operators: &converged.operators, ..inputs };
        let after = Outcome::new(after, self.catalogs, &ChosenBundles::new());
        let mut lines = Vec::new();
        for PlannedOperator { name, .. } in planned {
            if let Some(OperatorAction::Blocked(block)) =
                converged.decisions.get(name).map(|it| &it.action)
            {
                lines.push(block.message.clone());
            }
            let unmet = all_unmet(name, &after.requirements(name));
            if !unmet.is_empty() {
                lines.push(format!("{name} will be unsatisfied: {}", unmet.join("; ")));
            }
        }
        lines
    }

    /// Returns the bundles of planned Operators.
    fn bundles(&self, planned: &[PlannedOperator]) -> ChosenBundles<'a> {
        let catalogs = self.catalogs;
        let bundles = planned.iter().filter_map(|it| {
            let part = catalogs.iter().find(|part| part.name.name == it.catalog)?;
            let package = part.package(&it.name)?;
            let bundle = package.bundles.iter().find(|bundle| bundle.version == it.version)?;
            let catalog = part.name.name.as_str();
            Some((package.name.as_str(), ChosenBundle { bundle, catalog }))
        });
        bundles.collect()
    }

    /// Returns the reason that a dependency that exists does not get a planned version; `None` if it may.
    fn stays(
        &self,
        inputs: OperatorInputs<'_>,
        planned: &PlannedOperator,
        there: &RequestedOperator,
    ) -> Option<String> {
        let PlannedOperator { name, version, .. } = planned;
        if there.is_undeclared {
            return Some("it is of the cluster, and not declared here".to_owned());
        }
        if let Some(block) = hold(name, there) {
            return Some(block.message);
        }
        let mut asked = there.clone();
        asked.spec.version = version.to_string();
        if let Err(block) = candidates(inputs, self.catalogs, name, &asked) {
            return Some(block.message);
        }
        let is_lower = there.installed.as_ref().is_some_and(|it| *version < it.bundle.version);
        is_lower.then(|| format!("a lower version has to be named: `{name}@{version}`"))
    }
}
