//! Orphans: Operators that were installed as dependencies and that no Operator depends on any more.
//!
//! What an Operator requires is known once the controller has chosen a bundle for it. Until then it may require any
//! dependency, and none is an orphan.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::has_rollout;
use crate::observed::ObservedOperator;

/// The orphans of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orphans {
    /// The Operators that no Operator, or only orphans, depend on.
    pub names: BTreeSet<String>,
    /// Those of which that is not known yet.
    pub possible: Vec<PossibleOrphan>,
}

/// A dependency that is kept because it is not known yet whether an Operator depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PossibleOrphan {
    /// The name of the Operator.
    pub name: String,
    /// The Operators that may depend on it.
    pub unknown: Vec<String>,
}

impl PossibleOrphan {
    /// Returns a sentence that says why it is kept.
    pub fn text(&self) -> String {
        let verb = if self.unknown.len() == 1 { "requires" } else { "require" };
        format!("{} is kept: what {} {verb} is not known yet", self.name, self.unknown.join(", "))
    }
}

/// Returns the orphans among all Operators.
pub fn orphans(operators: &BTreeMap<String, ObservedOperator>) -> Orphans {
    let dependants = Dependants::of(operators);
    let mut going = BTreeSet::new();
    loop {
        let more = dependants.orphaned(&going, |_| true);
        if more.is_empty() {
            break;
        }
        going.extend(more);
    }
    Orphans {
        possible: dependants.possible(&going, |_| true),
        names: going.into_iter().map(str::to_owned).collect(),
    }
}

/// The Operators that depend on others: that have a requirement which another one satisfies, or which names it. Each of
/// both reports that, and one may do so before the other.
#[derive(Debug)]
pub struct Dependants<'a> {
    operators: &'a BTreeMap<String, ObservedOperator>,
    /// The dependants, by the name of what they depend on.
    by_name: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Dependants<'a> {
    /// Returns the dependants of all Operators.
    pub fn of(operators: &'a BTreeMap<String, ObservedOperator>) -> Self {
        let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, operator) in operators {
            let reported = operator.status.dependants.iter().map(|it| it.operator.as_str());
            let reported = reported.filter(|it| operators.contains_key(*it));
            by_name.entry(name.as_str()).or_default().extend(reported);
            for dependency in dependencies(operators, name) {
                by_name.entry(dependency).or_default().insert(name.as_str());
            }
        }
        Self { operators, by_name }
    }

    /// Returns the Operators that depend on the given one.
    pub fn on(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.by_name.get(name).into_iter().flatten().copied()
    }

    /// Returns the dependencies of deleted Operators that no Operator would depend on any more.
    pub(super) fn orphaned_without(&self, going: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        self.orphaned(going, |name| self.is_lost(name, going))
    }

    /// Returns the dependencies of deleted Operators of which it is not known yet whether others depend on them.
    pub(super) fn possible_orphans(&self, going: &BTreeSet<&'a str>) -> Vec<PossibleOrphan> {
        self.possible(going, |name| self.is_lost(name, going))
    }

    /// Returns whether a deleted Operator depends on one.
    fn is_lost(&self, name: &str, going: &BTreeSet<&'a str>) -> bool {
        self.on(name).any(|it| going.contains(it))
    }

    /// Returns the orphans of which something holds, apart from those that are deleted anyway.
    fn orphaned(
        &self,
        going: &BTreeSet<&'a str>,
        is_meant: impl Fn(&str) -> bool,
    ) -> BTreeSet<&'a str> {
        let unused = self.unused(going).filter(|name| is_meant(name));
        unused.filter(|name| self.unknown(name, going).is_empty()).collect()
    }

    /// Returns what is an orphan unless an Operator depends on it whose requirements are not known yet.
    fn possible(
        &self,
        going: &BTreeSet<&'a str>,
        is_meant: impl Fn(&str) -> bool,
    ) -> Vec<PossibleOrphan> {
        let mut possible = Vec::new();
        for name in self.unused(going).filter(|name| is_meant(name)) {
            let unknown = self.unknown(name, going);
            if !unknown.is_empty() {
                let unknown = unknown.into_iter().map(str::to_owned).collect();
                possible.push(PossibleOrphan { name: name.to_owned(), unknown });
            }
        }
        possible
    }

    /// Returns the dependencies that no Operator, or only deleted ones, are known to depend on.
    fn unused(&self, going: &BTreeSet<&'a str>) -> impl Iterator<Item = &'a str> {
        let found = self.operators.iter().filter(move |(name, operator)| {
            operator.is_dependency
                && !going.contains(name.as_str())
                && !operator.is_deleting
                && !is_unreported(operator)
                && !self.is_awaited(name, operator)
                && self.on(name).all(|it| going.contains(it))
        });
        found.map(|(name, _)| name.as_str())
    }

    /// Returns whether the controller knows of an Operator that depends on one once it is updated: that is installed,
    /// and the controller reports neither dependants nor an orphan.
    fn is_awaited(&self, name: &str, operator: &ObservedOperator) -> bool {
        let status = &operator.status;
        let is_unused = status.dependants.is_empty() && self.on(name).next().is_none();
        is_unused && status.bundle.is_some() && !status.orphaned
    }

    /// Returns the Operators of which it is not known yet whether they depend on the given one, apart from those that
    /// are deleted.
    fn unknown(&self, name: &str, going: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let status = self.operators.get(name).map(|it| &it.status);
        // What it provides may change.
        let is_moving = status.is_none_or(|it| it.bundle.is_none() || has_rollout(it));
        let unknown = self.operators.iter().filter(|(other, operator)| {
            let mut requirements = operator.status.dependencies.iter();
            let mut has_unmet = || requirements.any(|it| !it.satisfied && it.operator.is_empty());
            other.as_str() != name
                && !going.contains(other.as_str())
                && !operator.is_deleting
                && (is_unknown(operator) || (is_moving && has_unmet()))
        });
        unknown.map(|(other, _)| other.as_str()).collect()
    }
}

/// Returns whether the controller has not reported on an Operator as it is requested.
fn is_unreported(operator: &ObservedOperator) -> bool {
    operator.status.observed_generation < operator.generation
}

/// Returns whether it is not known what an Operator requires, as it is requested.
fn is_unknown(operator: &ObservedOperator) -> bool {
    let status = &operator.status;
    let has_bundle = status.bundle.is_some() || has_rollout(status);
    is_unreported(operator) || (!has_bundle && status.dependencies.is_empty())
}

/// Returns the Operators that satisfy the requirements of the given one, or that these name.
pub(super) fn dependencies<'a>(
    operators: &'a BTreeMap<String, ObservedOperator>,
    name: &str,
) -> impl Iterator<Item = &'a str> {
    let status = operators.get(name).map(|it| &it.status);
    let found = status.into_iter().flat_map(|it| &it.dependencies);
    found.map(|it| it.operator.as_str()).filter(|it| operators.contains_key(*it))
}
