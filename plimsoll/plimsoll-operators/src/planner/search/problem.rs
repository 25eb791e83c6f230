//! The problem of an attempt, and its solution.

use std::collections::BTreeSet;

use plimsoll_resolve::{BundleExclusion, FollowedChannel, PackageRequest, Problem, Resolution};

use super::*;
use crate::planner::repair::solve_with_repairs;
use crate::planner::{CHANNEL, ProblemRequest, catalog_name};

impl<'a> Search<'a> {
    /// Returns the destinations of the Operators that may be changed.
    pub(super) fn destinations(&self, requested: &BTreeSet<&str>) -> Destinations<'a> {
        let is_refused = |name: &str, bundle: &str| {
            let refused = self.refused.get(name);
            refused.is_some_and(|it| it.iter().any(|it| it.bundle == bundle))
        };
        let is_concerned =
            |name: &str| self.concerned.as_ref().is_none_or(|all| all.contains(name));
        let (inputs, catalogs) = (self.inputs, self.catalogs);
        Destinations::of(inputs, catalogs, &self.ranges(), requested, &is_refused, &is_concerned)
    }

    /// Returns the solution of the problem of an attempt; `is_explained` is whether the explanation is needed if
    /// there is none.
    pub(super) fn solved(
        &self,
        destinations: &Destinations<'_>,
        requested: &BTreeSet<&str>,
        is_explained: bool,
    ) -> Result<RepairedSolution, Resolution> {
        let problem = |ignored: &BTreeSet<String>, stay: &BTreeSet<String>| {
            self.problem(destinations, requested, ignored, stay)
        };
        solve_with_repairs(&problem, &self.unmet(), self.inputs.expressions, is_explained)
    }

    fn problem(
        &self,
        destinations: &Destinations<'_>,
        requested: &BTreeSet<&str>,
        ignored: &BTreeSet<String>,
        stay: &BTreeSet<String>,
    ) -> Problem {
        let ChangeRequest { wanted, overrides, no_dependencies, is_install, .. } = self.request;
        let is_install = *is_install;
        let ranges = self.ranges();
        // An Operator that cannot be installed does not block others.
        let is_hopeless =
            |name: &&&str| destinations.has_none(name) && !wanted.contains_key(**name);
        let existing = requested.iter().filter(|it| !is_hopeless(it)).map(|name| PackageRequest {
            package: (*name).to_owned(),
            version: destinations.range(name).map(str::to_owned),
            ignore_dependencies: *no_dependencies,
            ..PackageRequest::default()
        });
        // An update names Operators that exist, not all of which are of each group that is searched alone.
        let is_new = |name: &&String| is_install && !self.inputs.operators.contains_key(*name);
        let new = wanted.keys().filter(is_new).map(|name| PackageRequest {
            package: name.clone(),
            channel: wanted[name].channel.clone(),
            version: ranges.get(name).cloned(),
            catalog: wanted[name].repository.as_deref().map(catalog_name),
            ignore_dependencies: *no_dependencies,
            ..PackageRequest::default()
        });
        let follows = |name: &str, _: &RequestedOperator| {
            let channel = CHANNEL.to_owned();
            let is_followed = destinations.are_followed(name)
                && !self.pins.is_kept(name)
                && (requested.contains(name) || !stay.contains(name));
            is_followed.then_some(FollowedChannel { channel, catalog: None })
        };
        let mut overrides = overrides.clone();
        let refused = self.refused.values().flatten();
        overrides.exclude.extend(refused.map(|it| BundleExclusion {
            package: it.name.clone(),
            versions: None,
            bundle: Some(it.bundle.clone()),
        }));
        let request = ProblemRequest {
            catalogs: self.with_ways(destinations.offered_by(self.catalogs)),
            requests: existing.chain(new).collect(),
            overrides,
            follows: &follows,
            ignored,
        };
        crate::planner::problem(self.inputs, request)
    }
}
