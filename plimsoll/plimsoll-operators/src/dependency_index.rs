//! Dependencies between decisions: when an Operator changes, exactly those are decided again whose
//! requirements or dependants it may affect.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use plimsoll_resolve::NameIndex;
use plimsoll_resolve::requirement::RequiredNames;

use crate::{CandidateRequirements, RequestedOperator};

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
pub(crate) struct Dependencies {
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
pub(crate) struct DependencyIndex {
    by_operator: BTreeMap<String, Dependencies>,
    requirers: NameIndex<Subject>,
    providers: NameIndex<Subject>,
    open: BTreeSet<String>,
}

impl DependencyIndex {
    /// Updates the entry of an Operator, or removes it if there is no such Operator. Returns the previous and the
    /// current one.
    pub(crate) fn update(
        &mut self,
        name: &str,
        operator: Option<&RequestedOperator>,
        judged: &CandidateRequirements,
    ) -> [Dependencies; 2] {
        let after = operator.map(|it| Dependencies::of(name, it, judged));
        let before = self.replace(name, after.clone());
        [before, after.unwrap_or_default()]
    }

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
    pub(crate) fn affected(&self, dependencies: &Dependencies) -> BTreeSet<String> {
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

    /// Returns whether another Operator than `name` may require what these provide.
    pub(crate) fn is_required(&self, name: &str, dependencies: &Dependencies) -> bool {
        self.requirers(dependencies).any(|other| other != name)
    }

    /// Returns the Operators that may require what these provide.
    fn requirers(&self, dependencies: &Dependencies) -> impl Iterator<Item = &str> {
        let requirers = dependencies.provides.iter().flat_map(move |it| self.requirers.names(it));
        requirers.chain(self.open.iter().map(String::as_str))
    }

    /// Returns the Operators that may require what an Operator provides.
    pub(crate) fn requirers_of(&self, name: &str) -> BTreeSet<String> {
        let dependencies = self.by_operator.get(name);
        let requirers = dependencies.into_iter().flat_map(|it| self.requirers(it));
        requirers.map(str::to_owned).collect()
    }

    /// Returns the Operators that may provide what these require.
    pub(crate) fn providers_for(&self, dependencies: &Dependencies) -> BTreeSet<String> {
        let providers = dependencies.requires.iter().flat_map(|it| self.providers.names(it));
        providers.map(str::to_owned).collect()
    }
}
