//! Pinned Operators of people: they move only if they are requested, or if one that moves, or is repaired, requires
//! it.
//!
//! The resolver may move any Operator for a solution. A pin that it moves for nothing but that is kept in the next
//! attempt, so that what is requested is limited to what the pinned Operators accept: what moves only because a pin
//! does is no reason for that. If there is no solution otherwise, the pins move without which there is none. What is
//! wanted of the packages that are named does not break a pin, only what these require.

use std::collections::BTreeSet;

use plimsoll_resolve::{Bundle, ExplanationStep, ExplanationStepKind};

use super::*;
use crate::planner::check;
use crate::planner::repair::halves;

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

    /// Lets pinned Operators move that were kept.
    fn release(&mut self, names: &[String]) {
        self.kept.retain(|it| !names.contains(it));
        self.released.extend(names.iter().cloned());
    }

    /// Keeps pinned Operators where they are that were released.
    fn keep_again(&mut self, names: &[String]) {
        self.released.retain(|it| !names.contains(it));
        self.kept.extend(names.iter().cloned());
    }
}

impl Search<'_> {
    /// Returns the pinned Operators that proposed bundles move although they are not requested, and nothing requires
    /// it that moves for another reason than these, or is repaired; `None` if there are none.
    pub(super) fn moved_pins(
        &self,
        requested: &BTreeSet<&str>,
        proposed: &ChosenBundles<'_>,
    ) -> Option<BTreeSet<String>> {
        let is_asked = |name: &str| {
            requested.contains(name)
                || self.request.wanted.contains_key(name)
                || self.pins.released.contains(name)
        };
        let all = proposed.iter().map(|(name, it)| (*name, *it));
        let (mut due, mut left): (ChosenBundles<'_>, ChosenBundles<'_>) =
            all.partition(|(name, _)| is_asked(name));
        loop {
            let pins = left.iter().filter(|(name, it)| self.leaves_pin(name, &it.bundle.version));
            let pins: BTreeSet<String> = pins.map(|(name, _)| (*name).to_owned()).collect();
            if pins.is_empty() {
                return None;
            }
            let state = Outcome::new(self.inputs, self.catalogs, &due);
            let next = left.iter().filter(|(name, it)| self.is_due(name, it.bundle, &left, &state));
            let next: Vec<&str> = next.map(|(name, _)| *name).collect();
            if next.is_empty() {
                return Some(pins);
            }
            due.extend(next.into_iter().filter_map(|name| left.remove_entry(name)));
        }
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

    /// Returns whether something makes an Operator move to a bundle in `state`, in which those that are `left` have not
    /// moved: another one lacks that bundle, or its own requirements are not satisfied, for which no pin moves.
    fn is_due(
        &self,
        name: &str,
        bundle: &Bundle,
        left: &ChosenBundles<'_>,
        state: &Outcome<'_>,
    ) -> bool {
        let is_lacking = || state.requirements(name).iter().any(|it| it.provider.is_none());
        if !self.leaves_pin(name, &bundle.version) && is_lacking() {
            return true;
        }
        let moved = state.packages.with(name, bundle);
        let is_for = |dependant: &str, of: &Bundle| {
            let now = state.requirements(dependant).into_iter();
            let mut moved = now.zip(check(state.inputs, &moved, dependant, of));
            moved.any(|(now, moved)| now.provider.is_none() && moved.provider.is_some())
        };
        let dependants = state.packages.concerned_by(name, &bundle.provides).into_iter();
        let mut dependants = dependants.filter(|it| *it != name && !left.contains_key(*it));
        dependants.any(|it| state.bundles.get(it).copied().is_some_and(|of| is_for(it, of)))
    }

    /// Lets pinned Operators move that are kept, and without which there is no solution, apart from those that what is
    /// wanted of the named ones breaks; all of the others if there is none with them either. Returns whether there are
    /// any.
    pub(super) fn release_pins(&mut self) -> bool {
        let requested = self.requested();
        let destinations = self.destinations(&requested);
        let before = Outcome::new(self.inputs, self.catalogs, &ChosenBundles::new());
        let kept = self.pins.kept.iter().filter(|it| !self.is_broken(it, &destinations, &before));
        let kept: Vec<String> = kept.cloned().collect();
        if kept.is_empty() {
            return false;
        }
        let is_solved = |search: &Self| search.solved(&destinations, &requested, false).is_ok();
        self.pins.release(&kept);
        let mut groups = if is_solved(self) { halves(&kept) } else { Vec::new() };
        while let Some(group) = groups.pop() {
            self.pins.keep_again(group);
            if !is_solved(self) {
                self.pins.release(group);
                groups.extend(halves(group));
            }
        }
        kept.iter().any(|it| self.pins.released.contains(it))
    }

    /// Returns whether no version that is wanted of a named Operator satisfies what another one requires of it.
    fn is_broken(&self, name: &str, destinations: &Destinations<'_>, before: &Outcome<'_>) -> bool {
        let Some(bundle) = before.bundles.get(name).copied() else { return false };
        let requirements = before.requirements(name);
        let mut provided = requirements.iter().enumerate().filter_map(|(at, it)| {
            let provider = before.provider(it)?;
            Some((at, provider, self.wanted_range(provider)?))
        });
        provided.any(|(at, provider, range)| {
            if before.bundles.get(provider).is_some_and(|it| is_in_range(range, &it.version)) {
                return false;
            }
            let reached: BTreeSet<&str> = destinations.bundles(provider).collect();
            let packages = self.catalogs.iter().filter_map(|it| it.package(provider));
            let mut wanted = packages
                .flat_map(|it| &it.bundles)
                .filter(|it| is_in_range(range, &it.version) && reached.contains(it.name.as_str()));
            !wanted.any(|it| {
                let after = before.packages.with(provider, it);
                let after = check(before.inputs, &after, name, bundle);
                after.get(at).is_some_and(|it| it.provider.is_some())
            })
        })
    }

    /// Returns the text of a step of an explanation, which says of a pinned Operator that is kept why it stays.
    pub(super) fn text_of(&self, step: &ExplanationStep) -> String {
        let pins = self.pins_of(step);
        match (pins.as_slice(), step.text.split_once(" is installed")) {
            ([], _) => step.text.clone(),
            ([name, ..], Some((bundle, _))) => {
                format!("{bundle} is installed and pinned, and {name} is not named")
            }
            ([name], None) => format!("{}: {name} is pinned and not named", step.text),
            (names, None) => {
                format!("{}: {} are pinned and not named", step.text, names.join(" and "))
            }
        }
    }

    /// Returns the names of the pinned Operators that stay where they are, of which a step of an explanation says that.
    pub(super) fn pins_of<'s>(&'s self, step: &ExplanationStep) -> Vec<&'s str> {
        let bundles: Vec<&str> = if step.kind == ExplanationStepKind::Installed {
            step.text.split_once(" is installed").map(|(bundle, _)| bundle).into_iter().collect()
        } else if step.kind == ExplanationStepKind::Chosen && step.text.ends_with(" kept") {
            step.bundles.iter().map(String::as_str).collect()
        } else {
            Vec::new()
        };
        let is_named = |name: &str| {
            let operator = self.inputs.operators.get(name);
            operator.and_then(|it| it.installed.as_ref()).is_some_and(|it| {
                let text = format!("{name} {}", it.bundle.version);
                bundles.iter().any(|bundle| *bundle == it.bundle.name || *bundle == text)
            })
        };
        self.pins.kept.iter().map(String::as_str).filter(|it| is_named(it)).collect()
    }
}
