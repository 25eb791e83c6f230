//! A problem as solvables, choices and rules: what could be part of a solution, and what must hold.
//!
//! A solvable is a bundle in a channel that may be installed into a namespace, or something that is
//! installed. A choice is a list of solvables of which one must be part of the solution, in the order
//! in which they are preferred, once its owner is. Only what the requests can reach becomes a solvable.

mod build;
mod candidates;
mod eligibility;
mod index;
mod overlap;

use std::rc::Rc;

use crate::bundle::{Api, Bundle, Requirement};
use crate::catalog::Expressions;
use crate::package::{Channel, ChannelEntry, Package};
use crate::problem::{CatalogPart, InstalledBundle, Problem};

pub(crate) use candidates::{later, provider_allowed};
pub(crate) use eligibility::{Ineligible, excludes, malformed, unfit};
pub(crate) use index::{CatalogPackage, Index};

pub(crate) type SolvableId = usize;
pub(crate) type ChoiceId = usize;

/// Everything that a solution is made from.
pub(crate) struct Model<'p> {
    pub(crate) index: Index<'p>,
    pub(crate) solvables: Vec<Solvable<'p>>,
    /// Those of the requests and of what is installed come first.
    pub(crate) choices: Vec<Choice>,
    /// How many choices have no owner.
    pub(crate) roots: usize,
    /// Of each request, what of the installed it is about.
    pub(crate) claims: Vec<Option<usize>>,
    /// Of each solvable, what it needs.
    pub(crate) needs: Vec<Vec<ChoiceId>>,
    /// Sets of which only one solvable may be part of the solution.
    pub(crate) exclusions: Vec<MutualExclusion<'p>>,
}

impl<'p> Model<'p> {
    pub(crate) fn new(problem: &'p Problem, expressions: &dyn Expressions) -> Self {
        build::build(Index::new(problem, expressions))
    }

    pub(crate) fn problem(&self) -> &'p Problem {
        self.index.problem
    }
}

/// Something that may be part of a solution.
pub(crate) struct Solvable<'p> {
    /// Where it is, or would be, installed.
    pub(crate) namespace: &'p str,
    pub(crate) bundle: &'p Bundle,
    pub(crate) origin: Origin<'p>,
    /// Why it cannot be part of any solution.
    pub(crate) ineligible: Option<Ineligible>,
}

/// Where a solvable comes from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'p> {
    /// It is there.
    Installed(&'p InstalledBundle),
    /// A channel offers it.
    Catalog(CatalogEntry<'p>),
}

/// An entry of a channel of a package of a catalog.
#[derive(Clone, Copy)]
pub(crate) struct CatalogEntry<'p> {
    pub(crate) catalog: &'p CatalogPart,
    pub(crate) package: &'p Package,
    pub(crate) channel: &'p Channel,
    pub(crate) entry: &'p ChannelEntry,
}

impl<'p> CatalogEntry<'p> {
    /// The message of the first deprecation that concerns it, with what is deprecated.
    pub(crate) fn deprecation<'b>(&self, bundle: &'b Bundle) -> Option<(String, &'b str)>
    where
        'p: 'b,
    {
        let Self { catalog: _, package, channel, entry: _ } = *self;
        if let Some(message) = &bundle.deprecation {
            return Some(("it".to_owned(), message));
        }
        if let Some(message) = &channel.deprecation {
            return Some((format!("channel `{}`", channel.name), message));
        }
        let message = package.deprecation.as_ref()?;
        Some((format!("package `{}`", package.name), message))
    }
}

impl<'p> Solvable<'p> {
    pub(crate) fn package(&self) -> Option<&'p str> {
        match self.origin {
            Origin::Installed(item) => item.package.as_deref(),
            Origin::Catalog(offered) => Some(&offered.package.name),
        }
    }

    pub(crate) fn is_installed(&self) -> bool {
        matches!(self.origin, Origin::Installed(..))
    }

    pub(crate) fn catalog_entry(&self) -> Option<CatalogEntry<'p>> {
        match self.origin {
            Origin::Installed(..) => None,
            Origin::Catalog(offered) => Some(offered),
        }
    }
}

/// A list of solvables, one of which must be part of the solution when the owner is.
pub(crate) struct Choice {
    pub(crate) owner: Owner,
    /// The most preferred first.
    pub(crate) candidates: Rc<[SolvableId]>,
}

/// Whose choice it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// It is installed and nothing updates it: the numbered one of what is installed.
    Stays(usize),
    /// The numbered request.
    Request(usize),
    /// What is installed stays or follows its channel.
    Follows(usize),
    /// A solvable, for the numbered one of its requirements.
    Solvable(SolvableId, usize),
}

/// Nodes of which at most one may be part of the solution.
pub(crate) struct MutualExclusion<'p> {
    pub(crate) why: ExclusionCause<'p>,
    pub(crate) solvables: Vec<SolvableId>,
}

/// Why solvables exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExclusionCause<'p> {
    /// They are of one package, in one namespace.
    Package { namespace: &'p str, package: &'p str },
    /// They provide one API.
    Api(&'p Api),
    /// The second takes the place of the first.
    Succession,
}

impl<'p> Model<'p> {
    /// The requirement behind a choice, when it has one.
    pub(crate) fn requirement(&self, choice: ChoiceId) -> Option<&'p Requirement> {
        match self.choices[choice].owner {
            Owner::Solvable(solvable, index) => self.solvables[solvable].bundle.requires.get(index),
            Owner::Stays(_) | Owner::Request(_) | Owner::Follows(_) => None,
        }
    }
}
