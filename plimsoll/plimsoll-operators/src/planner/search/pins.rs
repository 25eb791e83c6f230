//! Pinned Operators of people: they move only if they are requested, or if one that moves, or is repaired, requires
//! it.
//!
//! The resolver may move any Operator for a solution. A pin that it moves for nothing but that is kept in the next
//! attempt, so that what is requested is limited to what the pinned Operators accept. Only what the packages that are
//! named require, and not these themselves, may break a pin, if there is no solution otherwise.

use std::collections::BTreeSet;

use plimsoll_resolve::{Bundle, ExplanationStep, ExplanationStepKind};

use super::*;
use crate::planner::check;

/// The pinned Operators that a solution would move although nothing that moves requires it.
#[derive(Debug, Clone, Default)]
pub(super) struct Pins {
    /// Those that stay.
    kept: BTreeSet<String>,
    /// Those that may move, since there is no solution otherwise.
    released: BTreeSet<String>,
}

impl Pins {
    /// Keeps pinned Operators where they are.
    pub(super) fn keep(&mut self, names: BTreeSet<String>) {
        self.kept.extend(names);
    }

    /// Returns whether an Operator stays where it is.
    pub(super) fn is_kept(&self, name: &str) -> bool {
        self.kept.contains(name)
    }
}

impl Search<'_> {
    /// Returns the pinned Operators that proposed bundles move although they are not requested, and no other one that
    /// moves, or is repaired, requires it; `None` if there are none.
    pub(super) fn moved_pins(
        &self,
        requested: &BTreeSet<&str>,
        proposed: &ChosenBundles<'_>,
        after: &Outcome<'_>,
    ) -> Option<BTreeSet<String>> {
        let unasked = proposed.iter().filter(|(name, it)| {
            !requested.contains(**name) && self.leaves_pin(name, &it.bundle.version)
        });
        let mut moved: BTreeSet<&str> = unasked.map(|(name, _)| *name).collect();
        loop {
            let required = moved.iter().copied().find(|it| self.is_required(it, &moved, after));
            let Some(required) = required else { break };
            moved.remove(required);
        }
        let moved: BTreeSet<String> = moved.into_iter().map(str::to_owned).collect();
        Some(moved).filter(|it| !it.is_empty())
    }

    /// Returns whether a version is another one than a person pinned an Operator to, which is not named.
    fn leaves_pin(&self, name: &str, version: &Version) -> bool {
        self.inputs.operators.get(name).is_some_and(|it| {
            it.installed.is_some()
                && !it.is_dependency
                && is_pinned(&it.spec.version)
                && !is_in_range(&it.spec.version, version)
        }) && !self.request.wanted.contains_key(name)
            && !self.pins.is_kept(name)
            && !self.pins.released.contains(name)
    }

    /// Returns whether an Operator that does not stay, other than some that are `moved`, requires the bundle of an
    /// outcome rather than the installed one.
    fn is_required(&self, name: &str, moved: &BTreeSet<&str>, after: &Outcome<'_>) -> bool {
        let there = self.inputs.operators.get(name).and_then(|it| it.installed.as_ref());
        let (Some(there), Some(bundle)) = (there, after.bundles.get(name)) else { return false };
        let unmoved = after.packages.with(name, &there.bundle);
        let is_for = |dependant: &str, of: &Bundle| {
            let now = after.requirements(dependant).into_iter();
            let mut unmoved = now.zip(check(after.inputs, &unmoved, dependant, of));
            unmoved.any(|(now, unmoved)| now.provider.is_some() && unmoved.provider.is_none())
        };
        let dependants = after.packages.concerned_by(name, &bundle.provides).into_iter();
        let mut dependants = dependants.filter(|it| *it != name && !moved.contains(it));
        dependants.any(|it| after.bundles.get(it).copied().is_some_and(|of| is_for(it, of)))
    }

    /// Lets pinned Operators move that are kept, apart from those that depend on what is named. Returns whether there
    /// are any.
    pub(super) fn release_pins(&mut self) -> bool {
        let before = Outcome::new(self.inputs, self.catalogs, &ChosenBundles::new());
        let wanted = &self.request.wanted;
        let depends_on_named = |name: &str| {
            let requirements = before.requirements(name);
            let mut providers = requirements.iter().filter_map(|it| before.provider(it));
            providers.any(|it| wanted.contains_key(it))
        };
        let kept = self.pins.kept.iter().filter(|it| !depends_on_named(it.as_str()));
        let released: BTreeSet<String> = kept.cloned().collect();
        self.pins.kept.retain(|it| !released.contains(it));
        let is_any = !released.is_empty();
        self.pins.released.extend(released);
        is_any
    }

    /// Returns the text of a step of an explanation, which says of a pinned Operator that is kept why it stays.
    pub(super) fn text_of(&self, step: &ExplanationStep) -> String {
        let pinned = || {
            let (bundle, _) = step.text.split_once(" is installed")?;
            let mut kept = self.pins.kept.iter();
            let name = kept.find(|name| {
                let operator = self.inputs.operators.get(name.as_str());
                operator.and_then(|it| it.installed.as_ref()).is_some_and(|it| {
                    bundle == it.bundle.name || bundle == format!("{name} {}", it.bundle.version)
                })
            })?;
            Some(format!("{bundle} is installed and pinned, and {name} is not named"))
        };
        let text = (step.kind == ExplanationStepKind::Installed).then(pinned).flatten();
        text.unwrap_or_else(|| step.text.clone())
    }
}
