//! Matching of bundles and constraints.

use std::collections::BTreeSet;

use crate::bundle::{Api, Bundle, Constraint, Requirement};
use crate::range::blang;

/// A constraint whose ranges are read.
pub(crate) enum ConstraintMatcher<'a> {
    Api(&'a Api),
    /// A range that cannot be read holds for nothing: the bundle that states it is out of the
    /// race anyway.
    Package(&'a str, Option<blang::Range>),
    Label(&'a String),
    All(Vec<ConstraintMatcher<'a>>),
    Any(Vec<ConstraintMatcher<'a>>),
    Not(Vec<ConstraintMatcher<'a>>),
    Cel(&'a str),
}

impl<'a> ConstraintMatcher<'a> {
    pub(crate) fn new(constraint: &'a Constraint) -> Self {
        let tests = |members: &'a [Requirement]| {
            members.iter().map(|member| Self::new(&member.constraint)).collect()
        };
        match constraint {
            Constraint::Api(api) => Self::Api(api),
            Constraint::Package { name, range } => {
                Self::Package(name, blang::Range::parse(range).ok())
            }
            Constraint::Label(label) => Self::Label(label),
            Constraint::All(members) => Self::All(tests(members)),
            Constraint::Any(members) => Self::Any(tests(members)),
            Constraint::Not(members) => Self::Not(tests(members)),
            Constraint::Cel { rule } => Self::Cel(rule),
        }
    }

    /// Returns whether it holds for a bundle of a package; `evaluate` says it of expressions.
    pub(crate) fn holds(
        &self,
        bundle: &Bundle,
        package: Option<&str>,
        evaluate: &dyn Fn(&str) -> bool,
    ) -> bool {
        let holds = |member: &Self| member.holds(bundle, package, evaluate);
        match self {
            Self::Api(api) => bundle.provides.contains(api),
            Self::Package(name, range) => {
                package == Some(*name)
                    && range.as_ref().is_some_and(|range| range.matches(&bundle.version))
            }
            Self::Label(label) => bundle.labels.contains(label),
            Self::All(members) => members.iter().all(holds),
            Self::Any(members) => members.iter().any(holds),
            Self::Not(members) => !members.iter().any(holds),
            Self::Cel(rule) => evaluate(rule),
        }
    }
}

/// Returns whether the cluster itself satisfies a constraint with the APIs that it serves.
pub(crate) fn served(constraint: &Constraint, apis: &[Api]) -> bool {
    let served = |member: &Requirement| served(&member.constraint, apis);
    match constraint {
        Constraint::Api(api) => apis.contains(api),
        Constraint::All(members) => !members.is_empty() && members.iter().all(served),
        Constraint::Any(members) => members.iter().any(served),
        Constraint::Package { .. }
        | Constraint::Label(_)
        | Constraint::Not(_)
        | Constraint::Cel { .. } => false,
    }
}

/// The expressions in a requirement.
pub(crate) fn rules_of(requirement: &Requirement) -> BTreeSet<&str> {
    let mut rules = BTreeSet::new();
    visit(requirement, &mut |constraint| {
        if let Constraint::Cel { rule } = constraint {
            rules.insert(rule.as_str());
        }
    });
    rules
}

/// The first range in a requirement that cannot be read.
pub(crate) fn unreadable_range(requirement: &Requirement) -> Option<String> {
    let mut found = None;
    visit(requirement, &mut |constraint| {
        if let Constraint::Package { range, .. } = constraint
            && let Err(error) = blang::Range::parse(range)
        {
            found.get_or_insert_with(|| error.to_string());
        }
    });
    found
}

/// Visits a constraint and all that it is made of.
pub(crate) fn visit<'a>(requirement: &'a Requirement, look: &mut dyn FnMut(&'a Constraint)) {
    look(&requirement.constraint);
    match &requirement.constraint {
        Constraint::All(members) | Constraint::Any(members) | Constraint::Not(members) => {
            members.iter().for_each(|member| visit(member, look));
        }
        Constraint::Api(_)
        | Constraint::Package { .. }
        | Constraint::Label(_)
        | Constraint::Cel { .. } => {}
    }
}
