//! Differences between a proposal and what the controller would do.

use super::*;
use crate::OperatorAction;

impl Search<'_> {
    /// Returns what prevents the first bundle that would not be installed; of what an installation writes, also
    /// the first that would be another one.
    pub(super) fn missed(
        &self,
        proposed: &ChosenBundles<'_>,
        written: &BTreeSet<String>,
        converged: &ConvergedOperators,
    ) -> Option<Missed> {
        let written = written.iter().filter(|_| self.request.is_install);
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
        all.filter_map(|(name, it)| self.missed_one(name, it, exact.contains(name), converged))
            .next()
    }

    fn missed_one(
        &self,
        name: &str,
        planned: ChosenBundle<'_>,
        is_exact: bool,
        converged: &ConvergedOperators,
    ) -> Option<Missed> {
        let ChosenBundle { bundle, catalog } = planned;
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
