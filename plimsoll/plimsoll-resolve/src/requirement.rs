//! Whether what a bundle requires is installed: for who installs single packages, and reports what is
//! missing (OPR-8).

use crate::bundle::{Bundle, Constraint, Property, Requirement};
use crate::catalog::Expressions;
use crate::explain::{described, shortened};
use crate::matching::{ConstraintMatcher, rules_of, served};
use crate::model::unfit;
use crate::problem::ClusterFacts;

/// An installed bundle.
#[derive(Debug, Clone, Copy)]
pub struct InstalledPackage<'a> {
    /// Name of its package.
    pub package: &'a str,
    /// The bundle, with its properties if expressions are to see them.
    pub bundle: &'a Bundle,
}

/// Who satisfies a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The bundle itself.
    Itself,
    /// The cluster, with an API that it serves.
    Cluster,
    /// The numbered one of what is installed.
    Installed(usize),
}

/// A requirement of a bundle, held against what is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRequirement {
    /// The requirement, such as `bar >=1.2.3`.
    pub text: String,
    /// Who satisfies it; `None` if nobody does.
    pub provider: Option<Provider>,
    /// The numbered one of what is installed that is of the required package, in a version that does
    /// not satisfy it; `None` if there is none.
    pub instead: Option<usize>,
    /// The package that is required by name; `None` if something else is required.
    pub package: Option<String>,
    /// What is missing, in a clause that follows "but"; empty if nothing is.
    pub missing: String,
}

/// Holds the requirements of a bundle against what is installed. The bundle itself counts as installed,
/// and other bundles of its package do not.
pub fn check_requirements(
    package: &str,
    bundle: &Bundle,
    installed: &[InstalledPackage<'_>],
    facts: &ClusterFacts,
    expressions: &dyn Expressions,
) -> Vec<CheckedRequirement> {
    let check = |requirement| check(package, bundle, requirement, installed, facts, expressions);
    bundle.requires.iter().map(check).collect()
}

/// Why a bundle does not fit a cluster, as a sentence without a stop; `None` if it does.
pub fn unfit_for(package: &str, bundle: &Bundle, facts: &ClusterFacts) -> Option<String> {
    let who = format!("{package} {}", bundle.version);
    unfit(facts, bundle).map(|it| it.sentence(&who, false, facts))
}

fn check(
    package: &str,
    bundle: &Bundle,
    requirement: &Requirement,
    installed: &[InstalledPackage<'_>],
    facts: &ClusterFacts,
    expressions: &dyn Expressions,
) -> CheckedRequirement {
    let constraint = &requirement.constraint;
    let matcher = ConstraintMatcher::new(constraint);
    let holds = |name: &str, candidate: &Bundle| {
        let evaluate = |rule: &str| {
            let properties: &[Property] = &candidate.properties;
            matches!(expressions.evaluate(rule, &[properties]).as_deref(), Ok([true]))
        };
        matcher.holds(candidate, Some(name), &evaluate)
    };
    let others = || installed.iter().enumerate().filter(|(_, it)| it.package != package);
    let provider = if holds(package, bundle) {
        Some(Provider::Itself)
    } else if let Some((at, _)) = others().find(|(_, it)| holds(it.package, it.bundle)) {
        Some(Provider::Installed(at))
    } else {
        let apis = facts.apis.as_deref().unwrap_or_default();
        served(constraint, apis).then_some(Provider::Cluster)
    };
    let required = match constraint {
        Constraint::Package { name, .. } => Some(name),
        Constraint::Api(_)
        | Constraint::Label(_)
        | Constraint::All(_)
        | Constraint::Any(_)
        | Constraint::Not(_)
        | Constraint::Cel { .. } => None,
    };
    let instead = required
        .and_then(|name| others().find(|(_, it)| it.package == name))
        .filter(|_| provider.is_none());
    let mut missing = match (provider, required, instead) {
        (Some(_), ..) => String::new(),
        (None, Some(name), Some((_, it))) => format!("{name} v{} is installed", it.bundle.version),
        (None, Some(name), None) => format!("{name} is not installed"),
        (None, None, _) => "nothing that is installed satisfies it".to_owned(),
    };
    if provider.is_none() {
        let errors = rules_of(requirement).into_iter();
        let mut errors = errors.filter_map(|rule| expressions.evaluate(rule, &[]).err());
        if let Some(cause) = errors.next() {
            missing = format!("its expression is invalid: {cause}");
        } else if let Some(message) = &requirement.message {
            missing.push_str(&format!(" ({})", shortened(message)));
        }
    }
    let text = match constraint {
        Constraint::Package { name, range } => format!("{name} {}", shortened(range)),
        Constraint::Api(_)
        | Constraint::Label(_)
        | Constraint::All(_)
        | Constraint::Any(_)
        | Constraint::Not(_)
        | Constraint::Cel { .. } => {
            described(&Requirement { message: None, constraint: constraint.clone() })
        }
    };
    let package = required.cloned();
    CheckedRequirement { text, provider, instead: instead.map(|(at, _)| at), package, missing }
}

#[cfg(test)]
mod tests;
