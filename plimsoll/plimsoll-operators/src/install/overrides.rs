//! The overrides of a request: which had an effect, and which have no solution.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::{Bundle, BundleExclusion};

use super::{InstallRequest, Planner};
use crate::RequestedOperator;
use crate::planner::Proposal;

impl Planner<'_> {
    /// Returns the overrides of the request without one of which there is a plan, as command-line options.
    pub(super) fn unsatisfiable_preferences(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
    ) -> Vec<String> {
        let request = self.request;
        let is_solved = |without: &InstallRequest| {
            let planner = Planner::new(self.inputs, self.catalogs, without);
            planner.is_ok_and(|it| it.unexplained().proposed(operators).is_ok())
        };
        let mut preferences = Vec::new();
        for provider in each_once(&request.providers) {
            let mut without = request.clone();
            without.providers.retain(|it| it != provider);
            if is_solved(&without) {
                preferences.push(format!("--use {provider}"));
            }
        }
        for exclusion in each_once(&request.exclude) {
            let mut without = request.clone();
            without.exclude.retain(|it| it != exclusion);
            if is_solved(&without) {
                preferences.push(format!("--exclude {exclusion}"));
            }
        }
        preferences
    }

    /// Returns a line for each override: its effect, or that it has none.
    pub(super) fn overrides(&self, proposal: &Proposal) -> Vec<String> {
        let Proposal { solution, .. } = proposal;
        let is_asked = |it: &&String| {
            let Some(bundle) = it.strip_suffix(" is excluded") else { return true };
            let is_it = |(package, of): (&str, &Bundle)| {
                of.name == bundle
                    && self.change.overrides.exclude.iter().any(|it| {
                        it.package == package && it.bundle.as_ref().is_none_or(|it| it == bundle)
                    })
            };
            let packages = self.catalogs.iter().flat_map(|it| &it.packages);
            packages
                .flat_map(|it| it.bundles.iter().map(|bundle| (it.name.as_str(), bundle)))
                .any(is_it)
        };
        let had: Vec<String> = solution.overrides.iter().filter(is_asked).cloned().collect();
        let has = |test: &dyn Fn(&str) -> bool| had.iter().any(|it| test(it));
        let mut lines = had.clone();
        let mut add = |option: String, has_effect: bool| {
            if !has_effect {
                lines.push(format!("{option} has no effect"));
            }
        };
        for provider in &self.request.providers {
            let package = provider.split_once('=').map_or("", |it| it.1);
            let begin = format!("{package} provides ");
            add(format!("--use {provider}"), has(&|it| it.starts_with(&begin)));
        }
        for text in &self.request.exclude {
            let BundleExclusion { package, bundle, .. } = exclusion(text);
            let packages = self.catalogs.iter().filter_map(|it| it.package(&package));
            let mut names = packages.flat_map(|it| &it.bundles).map(|it| it.name.as_str());
            let is_of = |it: &str| bundle.as_ref().is_none_or(|bundle| bundle == it);
            let has_effect =
                names.any(|name| is_of(name) && has(&|it| it == format!("{name} is excluded")));
            add(format!("--exclude {text}"), has_effect);
        }
        if let Some(name) = &self.request.prefer_repository {
            let has_effect = has(&|it| it.starts_with("catalog ") && it.ends_with(" is preferred"));
            add(format!("--prefer-repository {name}"), has_effect);
        }
        lines
    }
}

/// Returns texts without those that are there before.
fn each_once(texts: &[String]) -> impl Iterator<Item = &String> {
    let mut seen = BTreeSet::new();
    texts.iter().filter(move |it| seen.insert(it.as_str()))
}

/// Parses an exclusion: `PACKAGE` or `PACKAGE/BUNDLE`.
pub(super) fn exclusion(text: &str) -> BundleExclusion {
    let (package, bundle) = match text.split_once('/') {
        Some((package, bundle)) => (package, Some(bundle.to_owned())),
        None => (text, None),
    };
    BundleExclusion { package: package.to_owned(), versions: None, bundle }
}
