//! What an installation changes of the Operators that are there.

use super::{InstallPlan, PlannedOperator, Planner, spelled};
use crate::OperatorInputs;
use crate::comparison::{OperatorVersion, displaced, newly_required, orphans};
use crate::planner::{ChosenBundles, Outcome};

impl Planner<'_> {
    /// Completes a plan with what it changes of the Operators of `inputs`: their versions before, why those move
    /// that nothing requests, and which of them no Operator depends on afterwards.
    pub(super) fn compare(
        &self,
        plan: &mut InstallPlan,
        inputs: OperatorInputs<'_>,
        chosen: &ChosenBundles<'_>,
    ) {
        let unchanged = ChosenBundles::new();
        let before = Outcome::new(inputs, self.catalogs, &unchanged);
        let after = Outcome::new(inputs, self.catalogs, chosen);
        let (wanted, used) = (&self.change.wanted, after.needed());
        let required = newly_required(&before, &after);
        let mut displaced = displaced(&before, &after, wanted, &required);
        for it in &mut plan.operators {
            let there = inputs.operators.get(&it.name).filter(|it| !it.is_undeclared);
            it.before = there.map(OperatorVersion::of);
            it.is_dependency &= there.is_none() || used.contains(it.name.as_str());
            it.displaced_by = displaced.remove(&it.name).unwrap_or_default();
        }
        plan.orphans = orphans(&before, &after, &|name| wanted.contains_key(name));
    }
}

impl PlannedOperator {
    /// Returns the line that says why it moves although nothing requests it; `None` if that is not so.
    pub(super) fn displacement(&self) -> Option<String> {
        let requirements: Vec<String> = self.displaced_by.iter().map(|it| spelled(it)).collect();
        let why = self.before.as_ref()?.displacement(&self.name, &requirements)?;
        Some(format!("* {why}"))
    }
}

impl InstallPlan {
    /// Returns what becomes of one of its Operators: the version of a new one, and what an update shows of another.
    pub(super) fn row(&self, operator: &PlannedOperator) -> String {
        let PlannedOperator { name, version, range, before, channel, repository, .. } = operator;
        let Some(before) = before else { return format!("{name}@v{version}") };
        let after = OperatorVersion { requested: range.clone(), installed: Some(version.clone()) };
        let is_changed = *before != after || channel.is_some() || repository.is_some();
        let orphaned = if self.orphans.contains_key(name) { " (orphaned)" } else { "" };
        let source = [("channel", channel), ("repository", repository)];
        let source =
            source.iter().filter_map(|(field, it)| Some(format!("{field} {}", (*it).as_ref()?)));
        let source = match source.collect::<Vec<_>>().join(", ") {
            it if it.is_empty() => it,
            it => format!(" ({it})"),
        };
        match is_changed {
            true => format!("{} -> {}{source}{orphaned}", before.text(name), after.text(name)),
            false => format!("{}{orphaned}", after.text(name)),
        }
    }

    /// Returns the lines of the orphans that are as they were, as an update shows them.
    pub(super) fn orphan_rows(&self) -> impl Iterator<Item = String> {
        let is_planned = |name: &String| self.operators.iter().any(|it| it.name == *name);
        let orphans = self.orphans.iter().filter(move |(name, _)| !is_planned(name));
        orphans.map(|(name, version)| version.orphan_row(name))
    }
}
