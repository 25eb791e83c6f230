//! Whether what a bundle requires is installed: for who installs single packages, and reports what is
//! missing (OPR-8).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::bundle::{Api, Bundle, Constraint, Property, Requirement};
use crate::catalog::Expressions;
use crate::explain::{described, shortened};
use crate::matching::{ConstraintMatcher, rules_of, served, visit};
use crate::model::unfit;
use crate::problem::ClusterFacts;

/// What is installed, or would be after changes, with what requirements name at hand: who satisfies one
/// is found without looking at everything.
#[derive(Debug, Clone)]
pub struct InstalledPackages<'a> {
    now: Arc<InstalledNow<'a>>,
    /// What would be installed in place of what is, by package.
    changes: BTreeMap<&'a str, &'a Bundle>,
}

/// What is installed.
#[derive(Debug, Default)]
struct InstalledNow<'a> {
    /// By package.
    bundles: BTreeMap<&'a str, &'a Bundle>,
    /// The packages that provide an API.
    providers: BTreeMap<&'a Api, BTreeSet<&'a str>>,
    /// The packages whose requirements name a package.
    requirers: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The packages whose requirements name an API.
    callers: BTreeMap<&'a Api, BTreeSet<&'a str>>,
    /// The packages with requirements that anything may satisfy or break.
    open: BTreeSet<&'a str>,
}

/// What the requirements of bundles name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredNames<'a> {
    /// Packages, by name.
    pub packages: BTreeSet<&'a str>,
    /// APIs.
    pub apis: BTreeSet<&'a Api>,
    /// Whether one does not say by name what would satisfy it, such as an expression.
    pub is_open: bool,
}

impl<'a> RequiredNames<'a> {
    /// Those of a bundle.
    pub fn of(bundle: &'a Bundle) -> Self {
        let mut names = Self::default();
        for requirement in &bundle.requires {
            visit(requirement, &mut |constraint| match constraint {
                Constraint::Package { name, .. } => {
                    names.packages.insert(name);
                }
                Constraint::Api(api) => {
                    names.apis.insert(api);
                }
                Constraint::All(members) => names.is_open |= members.is_empty(),
                Constraint::Any(_) => {}
                Constraint::Label(_) | Constraint::Not(_) | Constraint::Cel { .. } => {
                    names.is_open = true;
                }
            });
        }
        names
    }
}

impl<'a> InstalledPackages<'a> {
    /// Bundles that are installed, by package.
    pub fn new(bundles: BTreeMap<&'a str, &'a Bundle>) -> Self {
        let mut now = InstalledNow::default();
        for (package, bundle) in &bundles {
            for api in &bundle.provides {
                now.providers.entry(api).or_default().insert(*package);
            }
            let RequiredNames { packages, apis, is_open } = RequiredNames::of(bundle);
            for name in packages {
                now.requirers.entry(name).or_default().insert(*package);
            }
            for api in apis {
                now.callers.entry(api).or_default().insert(*package);
            }
            if is_open {
                now.open.insert(*package);
            }
        }
        now.bundles = bundles;
        Self { now: Arc::new(now), changes: BTreeMap::new() }
    }

    /// The same after a package was installed or upgraded.
    #[must_use]
    pub fn with(&self, package: &'a str, bundle: &'a Bundle) -> Self {
        let mut changed = self.clone();
        changed.changes.insert(package, bundle);
        changed
    }

    /// The bundle of a package; `None` if none is.
    pub fn bundle(&self, package: &str) -> Option<&'a Bundle> {
        self.changes.get(package).or_else(|| self.now.bundles.get(package)).copied()
    }

    /// The packages that are installed now whose requirements a package with some APIs may satisfy or
    /// break, by name.
    pub fn concerned_by(&self, package: &str, provides: &[Api]) -> BTreeSet<&'a str> {
        let callers = provides.iter().filter_map(|api| self.now.callers.get(api));
        let requirers = callers.chain(self.now.requirers.get(package)).chain([&self.now.open]);
        requirers.flatten().copied().collect()
    }

    /// Holds the requirements of a bundle against what is installed. The bundle itself counts as
    /// installed, and other bundles of its package do not.
    pub fn check(
        &self,
        package: &str,
        bundle: &Bundle,
        facts: &ClusterFacts,
        expressions: &dyn Expressions,
    ) -> Vec<CheckedRequirement> {
        let check = |requirement| check(self, (package, bundle), requirement, facts, expressions);
        bundle.requires.iter().map(check).collect()
    }

    /// The packages that may satisfy a constraint, by name; `None` if any may.
    fn named(&self, constraint: &Constraint) -> Option<BTreeSet<&'a str>> {
        let all = |members: &[Requirement]| {
            let named = members.iter().map(|member| self.named(&member.constraint));
            named.flatten().min_by_key(BTreeSet::len)
        };
        let any = |members: &[Requirement]| {
            members.iter().map(|member| self.named(&member.constraint)).collect::<Option<Vec<_>>>()
        };
        match constraint {
            Constraint::Package { name, .. } => {
                let package = self.now.bundles.get_key_value(name.as_str());
                let package = package.or_else(|| self.changes.get_key_value(name.as_str()));
                Some(package.map(|(package, _)| *package).into_iter().collect())
            }
            Constraint::Api(api) => {
                let providers = self.now.providers.get(api).into_iter().flatten();
                Some(providers.chain(self.changes.keys()).copied().collect())
            }
            Constraint::All(members) => all(members),
            Constraint::Any(members) => Some(any(members)?.into_iter().flatten().collect()),
            Constraint::Label(_) | Constraint::Not(_) | Constraint::Cel { .. } => None,
        }
    }

    /// The first package besides one, by name, of which something holds among those that may satisfy a
    /// constraint.
    fn find(
        &self,
        package: &str,
        constraint: &Constraint,
        holds: impl Fn(&str, &Bundle) -> bool,
    ) -> Option<&'a str> {
        let packages = self.named(constraint).unwrap_or_else(|| {
            self.now.bundles.keys().chain(self.changes.keys()).copied().collect()
        });
        packages.into_iter().find(|other| {
            *other != package && self.bundle(other).is_some_and(|bundle| holds(other, bundle))
        })
    }
}

/// Who satisfies a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// The bundle itself.
    Itself,
    /// The cluster, with an API that it serves.
    Cluster,
    /// A package that is installed, by name.
    Installed(String),
}

/// A requirement of a bundle, held against what is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRequirement {
    /// The requirement, such as `bar >=1.2.3`.
    pub text: String,
    /// Who satisfies it; `None` if nobody does.
    pub provider: Option<Provider>,
    /// The package that is required by name; `None` if something else is required.
    pub package: Option<String>,
    /// What is missing, in a clause that follows "but"; empty if nothing is.
    pub missing: String,
}

/// Why a bundle does not fit a cluster, as a sentence without a stop; `None` if it does.
pub fn unfit_for(package: &str, bundle: &Bundle, facts: &ClusterFacts) -> Option<String> {
    let who = format!("{package} {}", bundle.version);
    unfit(facts, bundle).map(|it| it.sentence(&who, false, facts))
}

fn check(
    installed: &InstalledPackages<'_>,
    (package, bundle): (&str, &Bundle),
    requirement: &Requirement,
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
    let provider = if holds(package, bundle) {
        Some(Provider::Itself)
    } else if let Some(other) = installed.find(package, constraint, holds) {
        Some(Provider::Installed(other.to_owned()))
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
    let instead = required.filter(|name| name.as_str() != package);
    let instead = instead.and_then(|name| installed.bundle(name));
    let mut missing = match (&provider, required, instead) {
        (Some(_), ..) => String::new(),
        (None, Some(name), Some(it)) if installed.changes.contains_key(name.as_str()) => {
            format!("{name} v{} would be installed", it.version)
        }
        (None, Some(name), Some(it)) => format!("{name} v{} is installed", it.version),
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
    CheckedRequirement { text, provider, package: required.cloned(), missing }
}

#[cfg(test)]
mod tests;
