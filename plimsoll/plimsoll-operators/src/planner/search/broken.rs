//! Requirements that a proposal satisfies, and that the Operators do not once the controller is done: what stays in the
//! proposal follows its range beyond what a planned bundle accepts.

use super::missed::PlannedBundle;
use super::*;
use crate::selection::named;

impl Search<'_> {
    /// Returns what breaks a requirement of the first planned bundle that would be installed beside another version
    /// of what it depends on than the proposed one.
    pub(super) fn first_broken(
        &self,
        planned: &[PlannedBundle<'_>],
        converged: &ConvergedOperators,
    ) -> Option<Missed> {
        let moved: Vec<&PlannedBundle<'_>> = planned.iter().filter(|it| self.is_move(it)).collect();
        if moved.is_empty() {
            return None;
        }
        let chosen: ChosenBundles<'_> = planned.iter().map(|it| (it.name, it.chosen)).collect();
        let proposed = Outcome::new(self.inputs, self.catalogs, &chosen);
        let inputs = OperatorInputs { operators: &converged.operators, ..self.inputs };
        let there = Outcome::new(inputs, self.catalogs, &ChosenBundles::new());
        moved.into_iter().find_map(|it| self.broken_one(it, &proposed, &there))
    }

    /// Returns whether a planned bundle is another one than the installed one.
    fn is_move(&self, planned: &PlannedBundle<'_>) -> bool {
        let operator = self.inputs.operators.get(planned.name);
        let installed = operator.and_then(|it| it.installed.as_ref());
        installed.is_none_or(|it| it.bundle.name != planned.chosen.bundle.name)
    }

    fn broken_one(
        &self,
        planned: &PlannedBundle<'_>,
        proposed: &Outcome<'_>,
        there: &Outcome<'_>,
    ) -> Option<Missed> {
        let PlannedBundle { name, chosen: ChosenBundle { bundle, .. }, .. } = *planned;
        if there.bundles.get(name).is_none_or(|it| it.name != bundle.name) {
            return None;
        }
        let mut checked = proposed.requirements(name).into_iter().zip(there.requirements(name));
        checked.find_map(|(then, now)| {
            let other = proposed.provider(&then).filter(|_| now.provider.is_none())?;
            let (beyond, planned) = (there.bundles.get(other)?, proposed.bundles.get(other)?);
            if beyond.version <= planned.version {
                return None;
            }
            // What is written of it may lead to less.
            if self.wanted_range(other).is_some_and(|it| !is_pinned(it)) {
                let (name, version) = (other.to_owned(), beyond.version.clone());
                return Some(Missed::Higher { name, version });
            }
            if self.follows(name, &bundle.version) {
                return None;
            }
            let message = format!(
                "{} depends on {}, but {} would be installed: spec.version of {other} is {:?}",
                named(name, bundle),
                then.text,
                named(other, beyond),
                self.inputs.operators.get(other)?.spec.version
            );
            let block = OperatorBlock::new(Reason::UpgradeBlocked, message);
            let (name, version) = (name.to_owned(), bundle.version.clone());
            let bundle = bundle.name.clone();
            Some(Missed::Refused(RefusedBundle { name, bundle, version, block }))
        })
    }

    /// Returns whether the range of an Operator leads it to a version whatever the plan is.
    fn follows(&self, name: &str, version: &Version) -> bool {
        self.wanted_range(name).is_none()
            && self.before.operators.get(name).is_some_and(|it| {
                !is_pinned(&it.spec.version) && is_in_range(&it.spec.version, version)
            })
    }
}
