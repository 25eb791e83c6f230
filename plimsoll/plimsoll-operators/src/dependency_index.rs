//! Dependencies between decisions: when an Operator changes, exactly those are decided again whose
//! requirements or dependants it may affect.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use plimsoll_resolve::NameIndex;
use plimsoll_resolve::requirement::RequiredNames;

use super::OperatorReconciler;
use crate::{CandidateRequirements, RequestedOperator, change_set};

/// A package or a kind that requirements name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// A package, by name.
    Package(String),
    /// A kind of API.
    Kind(GroupKind),
}

/// The requirements and APIs of an Operator: of its installed bundle, and of those that it may be updated to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Dependencies {
    requires: BTreeSet<Subject>,
    provides: BTreeSet<Subject>,
    /// Whether a requirement names neither a package nor a kind, so that anything may satisfy it.
    is_open: bool,
}

impl Dependencies {
    fn of(name: &str, operator: &RequestedOperator, judged: &CandidateRequirements) -> Self {
        let kinds = |it: &BTreeSet<GroupKind>| -> Vec<Subject> {
            it.iter().cloned().map(Subject::Kind).collect()
        };
        let mut dependencies = Self { is_open: judged.is_open, ..Self::default() };
        dependencies.provides.insert(Subject::Package(name.to_owned()));
        dependencies.provides.extend(kinds(&operator.owned));
        dependencies.provides.extend(kinds(&judged.provides));
        dependencies.requires.extend(judged.packages.iter().cloned().map(Subject::Package));
        dependencies.requires.extend(kinds(&judged.apis));
        if let Some(installed) = &operator.installed {
            let kind =
                |api: &plimsoll_resolve::Api| Subject::Kind(GroupKind::new(&api.group, &api.kind));
            let RequiredNames { packages, apis, is_open } = RequiredNames::of(&installed.bundle);
            dependencies.provides.extend(installed.bundle.provides.iter().map(kind));
            dependencies
                .requires
                .extend(packages.into_iter().map(|it| Subject::Package(it.to_owned())));
            dependencies.requires.extend(apis.into_iter().map(kind));
            dependencies.is_open |= is_open;
        }
        dependencies
    }
}

/// The requirements and APIs of all Operators.
#[derive(Debug, Clone, Default)]
pub(super) struct DependencyIndex {
    by_operator: BTreeMap<String, Dependencies>,
    requirers: NameIndex<Subject>,
    providers: NameIndex<Subject>,
    open: BTreeSet<String>,
}

impl DependencyIndex {
    /// Replaces the entry of an Operator, and returns the previous one.
    fn replace(&mut self, name: &str, after: Option<Dependencies>) -> Dependencies {
        let before = self.by_operator.remove(name).unwrap_or_default();
        let unchanged = after.as_ref().is_some_and(|after| *after == before);
        if !unchanged {
            before.requires.iter().for_each(|it| self.requirers.remove(it, name));
            before.provides.iter().for_each(|it| self.providers.remove(it, name));
            self.open.remove(name);
        }
        if let Some(after) = after {
            if !unchanged {
                after.requires.iter().for_each(|it| self.requirers.insert(it, name));
                after.provides.iter().for_each(|it| self.providers.insert(it, name));
                if after.is_open {
                    self.open.insert(name.to_owned());
                }
            }
            self.by_operator.insert(name.to_owned(), after);
        }
        before
    }

    /// Returns the Operators that are affected by a change of these requirements and APIs. Operators that
    /// provide the same API conflict.
    fn affected(&self, dependencies: &Dependencies) -> BTreeSet<String> {
        let of = |index: &NameIndex<Subject>, subjects: &BTreeSet<Subject>| {
            let found = subjects.iter().flat_map(|subject| index.names(subject));
            found.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut affected: BTreeSet<String> = self.open.clone();
        affected.extend(of(&self.requirers, &dependencies.provides));
        affected.extend(of(&self.providers, &dependencies.provides));
        affected.extend(of(&self.providers, &dependencies.requires));
        if dependencies.is_open {
            affected.extend(self.by_operator.keys().cloned());
        }
        affected
    }
}

impl OperatorReconciler {
    /// Updates the entry of an Operator. Returns the previous and the current one.
    fn update_dependencies(&mut self, name: &str) -> [Dependencies; 2] {
        let nothing = CandidateRequirements::default();
        let decision = self.operators.get(name).and_then(|it| it.decision.as_ref());
        let judged = decision.map_or(&nothing, |decision| &decision.judged);
        let after = self.requested.get(name).map(|it| Dependencies::of(name, it, judged));
        let before = self.dependencies.replace(name, after.clone());
        [before, after.unwrap_or_default()]
    }

    /// Updates the entry of an Operator after a decision on it.
    pub(super) fn decision_changed(&mut self, name: &str) {
        self.update_dependencies(name);
    }

    /// Marks the Operators to decide on again because the installed or requested bundle of one changed: those
    /// that it may satisfy, depend on or conflict with.
    pub(super) fn mark_affected_undecided(&mut self, name: &str) {
        for dependencies in self.update_dependencies(name) {
            self.output.undecided.extend(self.dependencies.affected(&dependencies));
        }
    }

    /// Marks the other members of a change set to decide on again because an Operator joined or left it.
    pub(super) fn undecided_with(&mut self, operator: &RequestedOperator) {
        let Some(Ok(set)) = change_set::of(operator) else { return };
        let is_member = |it: &RequestedOperator| {
            change_set::of(it).and_then(Result::ok).is_some_and(|other| other.id == set.id)
        };
        let members = self.requested.iter().filter(|(_, it)| is_member(it));
        self.output.undecided.extend(members.map(|(name, _)| name.clone()));
    }
}
