//! Requirements of bundles against what is installed, for installing single packages and reporting
//! what is missing (OPR-8).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use semver::Version;

use crate::bundle::{Api, Bundle, Constraint, Property, Requirement};
use crate::catalog::{Expressions, RULES_COST_MAX};
use crate::explain::{described, shortened};
use crate::matching::{ConstraintMatcher, rules_of, served, visit};
use crate::model::unfit;
use crate::names::NameIndex;
use crate::problem::ClusterFacts;
use crate::range::blang;

/// What is installed, or would be after changes, with what requirements name at hand: who satisfies one
/// is found without looking at everything.
#[derive(Debug, Clone)]
pub struct InstalledPackages<'a> {
    /// What is installed, by package.
    bundles: Arc<BTreeMap<&'a str, &'a Bundle>>,
    index: IndexSource<'a>,
    /// What would be installed in place of what is, by package.
    changes: BTreeMap<&'a str, &'a Bundle>,
}

/// Where the index of what is installed comes from.
#[derive(Debug, Clone)]
enum IndexSource<'a> {
    /// It was made for this question.
    Made(Arc<InstalledIndex>),
    /// It is kept up to date by whoever asks.
    Kept(&'a InstalledIndex),
}

/// Who provides and requires what among the packages that are installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstalledIndex {
    /// The packages that provide an API.
    providers: NameIndex<Api>,
    /// The packages whose requirements name a package.
    requirers: NameIndex<String>,
    /// The packages whose requirements name an API.
    callers: NameIndex<Api>,
    /// The packages with requirements that anything may satisfy or break.
    open: BTreeSet<String>,
}

impl InstalledIndex {
    /// Returns whether some requirement may be an expression, which sees the properties of bundles.
    pub fn sees_properties(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes note of what is installed of a package of which nothing was.
    pub fn insert(&mut self, package: &str, bundle: &Bundle) {
        let RequiredNames { packages, apis, is_open } = RequiredNames::of(bundle);
        bundle.provides.iter().for_each(|api| self.providers.insert(api, package));
        packages.into_iter().for_each(|name| self.requirers.insert(name, package));
        apis.into_iter().for_each(|api| self.callers.insert(api, package));
        if is_open {
            self.open.insert(package.to_owned());
        }
    }

    /// Forgets what is installed of a package, which it was inserted with.
    pub fn remove(&mut self, package: &str, bundle: &Bundle) {
        let RequiredNames { packages, apis, is_open: _ } = RequiredNames::of(bundle);
        bundle.provides.iter().for_each(|api| self.providers.remove(api, package));
        packages.into_iter().for_each(|name| self.requirers.remove(name, package));
        apis.into_iter().for_each(|api| self.callers.remove(api, package));
        self.open.remove(package);
    }
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
        let mut index = InstalledIndex::default();
        for (package, bundle) in &bundles {
            index.insert(package, bundle);
        }
        let index = IndexSource::Made(Arc::new(index));
        Self { bundles: Arc::new(bundles), index, changes: BTreeMap::new() }
    }

    /// Bundles that are installed, by package, with the index of them.
    pub fn indexed(bundles: BTreeMap<&'a str, &'a Bundle>, index: &'a InstalledIndex) -> Self {
        let index = IndexSource::Kept(index);
        Self { bundles: Arc::new(bundles), index, changes: BTreeMap::new() }
    }

    fn index(&self) -> &InstalledIndex {
        match &self.index {
            IndexSource::Made(index) => index,
            IndexSource::Kept(index) => index,
        }
    }

    /// The name of a package that is installed.
    fn installed_name(&self, package: &str) -> Option<&'a str> {
        self.bundles.get_key_value(package).map(|(name, _)| *name)
    }

    /// The same after a package was installed or upgraded.
    #[must_use]
    pub fn with(&self, package: &'a str, bundle: &'a Bundle) -> Self {
        let mut changed = self.clone();
        changed.changes.insert(package, bundle);
        changed
    }

    /// The same after several packages were installed or upgraded.
    #[must_use]
    pub fn with_all(&self, changes: impl IntoIterator<Item = (&'a str, &'a Bundle)>) -> Self {
        let mut changed = self.clone();
        changed.changes.extend(changes);
        changed
    }

    /// The bundle of a package; `None` if none is.
    pub fn bundle(&self, package: &str) -> Option<&'a Bundle> {
        self.changes.get(package).or_else(|| self.bundles.get(package)).copied()
    }

    /// The packages that are installed now whose requirements a package with some APIs may satisfy or
    /// break, by name.
    pub fn concerned_by(&self, package: &str, provides: &[Api]) -> BTreeSet<&'a str> {
        let index = self.index();
        let callers = provides.iter().flat_map(|api| index.callers.names(api));
        let requirers = callers.chain(index.requirers.names(package));
        let requirers = requirers.chain(index.open.iter().map(String::as_str));
        requirers.filter_map(|it| self.installed_name(it)).collect()
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
        let check = |requirement| check(self, package, bundle, requirement, facts, expressions);
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
                let changed = || Some(*self.changes.get_key_value(name.as_str())?.0);
                let package = self.installed_name(name).or_else(changed);
                Some(package.into_iter().collect())
            }
            Constraint::Api(api) => {
                let providers = self.index().providers.names(api);
                let providers = providers.filter_map(|it| self.installed_name(it));
                let changes = self.changes.iter().filter(|(_, it)| it.provides.contains(api));
                Some(providers.chain(changes.map(|(name, _)| *name)).collect())
            }
            Constraint::All(members) => all(members),
            Constraint::Any(members) => Some(any(members)?.into_iter().flatten().collect()),
            Constraint::Label(_) | Constraint::Not(_) | Constraint::Cel { .. } => None,
        }
    }

    /// The packages besides one, by name, with what is or would be installed of them.
    fn others(&self, package: &str) -> Vec<(&'a str, &'a Bundle)> {
        let names = self.bundles.keys().chain(self.changes.keys()).copied();
        let names: BTreeSet<&'a str> = names.filter(|name| *name != package).collect();
        names.into_iter().filter_map(|name| Some((name, self.bundle(name)?))).collect()
    }

    /// The first package besides one, by name, of which something holds among those that may satisfy a
    /// constraint.
    fn find(
        &self,
        package: &str,
        constraint: &Constraint,
        holds: impl Fn(&str, &Bundle) -> bool,
    ) -> Option<&'a str> {
        let packages = self
            .named(constraint)
            .unwrap_or_else(|| self.bundles.keys().chain(self.changes.keys()).copied().collect());
        packages.into_iter().find(|other| {
            *other != package && self.bundle(other).is_some_and(|bundle| holds(other, bundle))
        })
    }
}

/// For which packages the expressions of a requirement hold, each compiled once for all of them.
#[derive(Debug, Default)]
struct RuleTruths<'r> {
    /// The names of the packages that an expression holds for.
    holding: BTreeMap<&'r str, BTreeSet<String>>,
    /// Why the first of those that cannot be evaluated cannot be; `None` if all can.
    error: Option<String>,
}

impl<'r> RuleTruths<'r> {
    /// Evaluates the expressions of a requirement for bundles, by package.
    fn new(
        requirement: &'r Requirement,
        candidates: &[(&str, &Bundle)],
        expressions: &dyn Expressions,
    ) -> Self {
        let properties: Vec<&[Property]> =
            candidates.iter().map(|(_, bundle)| bundle.properties.as_slice()).collect();
        let mut truths = Self::default();
        let mut cost_left = RULES_COST_MAX;
        for rule in rules_of(requirement) {
            match expressions.evaluate(rule, &properties, &mut cost_left) {
                Ok(found) => {
                    let holding = candidates.iter().zip(found).filter(|(_, holds)| *holds);
                    let names = holding.map(|((name, _), _)| (*name).to_owned());
                    truths.holding.insert(rule, names.collect());
                }
                Err(cause) => {
                    truths.error.get_or_insert(cause);
                }
            }
        }
        truths
    }

    fn holds(&self, rule: &str, package: &str) -> bool {
        self.holding.get(rule).is_some_and(|names| names.contains(package))
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
    /// What satisfies it; `None` if nothing does.
    pub provider: Option<Provider>,
    /// The package that is required by name; `None` if something else is required.
    pub package: Option<String>,
    /// The version of the other package that satisfies it, or else of the one that is required by name;
    /// `None` if it is not installed.
    pub version: Option<Version>,
    /// What is missing, in a clause that follows "but"; empty if nothing is.
    pub missing: String,
}

/// Returns the versions of a package that the ranges of a requirement name: whether a version satisfies it is the
/// same for all between two of them. `None` when an expression decides.
pub fn named_versions(requirement: &Requirement, package: &str) -> Option<BTreeSet<Version>> {
    let mut named = Some(BTreeSet::new());
    visit(requirement, &mut |constraint| match constraint {
        Constraint::Package { name, range } if name == package => {
            let range = blang::Range::parse(range);
            if let (Some(named), Ok(range)) = (&mut named, range) {
                named.extend(range.bounds().cloned());
            }
        }
        Constraint::Cel { .. } => named = None,
        Constraint::Package { .. }
        | Constraint::Api(_)
        | Constraint::Label(_)
        | Constraint::All(_)
        | Constraint::Any(_)
        | Constraint::Not(_) => {}
    });
    named
}

/// Returns why a bundle does not fit a cluster, as a sentence without a stop; `None` if it does.
pub fn unfit_for(package: &str, bundle: &Bundle, facts: &ClusterFacts) -> Option<String> {
    let who = format!("{package} {}", bundle.version);
    unfit(facts, bundle).map(|it| it.sentence(&who, false, facts))
}

fn check(
    installed: &InstalledPackages<'_>,
    package: &str,
    bundle: &Bundle,
    requirement: &Requirement,
    facts: &ClusterFacts,
    expressions: &dyn Expressions,
) -> CheckedRequirement {
    let constraint = &requirement.constraint;
    let matcher = ConstraintMatcher::new(constraint);
    let mut candidates = vec![(package, bundle)];
    if !rules_of(requirement).is_empty() {
        candidates.extend(installed.others(package));
    }
    let truths = RuleTruths::new(requirement, &candidates, expressions);
    let holds = |name: &str, candidate: &Bundle| {
        matcher.holds(candidate, Some(name), &|rule: &str| truths.holds(rule, name))
    };
    let provider = if holds(package, bundle) {
        Some(Provider::Itself)
    } else if let Some(other) = installed.find(package, constraint, holds) {
        Some(Provider::Installed(other.to_owned()))
    } else {
        let apis = facts.apis.as_deref().unwrap_or_default();
        served(constraint, apis).then_some(Provider::Cluster)
    };
    let (required, text) = match constraint {
        Constraint::Package { name, range } => (Some(name), format!("{name} {}", shortened(range))),
        Constraint::Api(_)
        | Constraint::Label(_)
        | Constraint::All(_)
        | Constraint::Any(_)
        | Constraint::Not(_)
        | Constraint::Cel { .. } => {
            let alone = Requirement { message: None, constraint: constraint.clone() };
            (None, described(&alone))
        }
    };
    let instead = required.filter(|name| name.as_str() != package);
    let instead = instead.and_then(|name| installed.bundle(name));
    let other = match &provider {
        Some(Provider::Installed(other)) => installed.bundle(other),
        Some(Provider::Itself | Provider::Cluster) => None,
        None => instead,
    };
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
        if let Some(cause) = &truths.error {
            missing = format!("its expression is invalid: {cause}");
        } else if let Some(message) = &requirement.message {
            missing.push_str(&format!(" ({})", shortened(message)));
        }
    }
    let version = other.map(|it| it.version.clone());
    CheckedRequirement { text, provider, package: required.cloned(), version, missing }
}

#[cfg(test)]
mod tests;
