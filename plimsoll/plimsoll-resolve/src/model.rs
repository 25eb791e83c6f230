//! A problem as nodes, choices and rules: what could be part of a solution, and what must hold.
//!
//! A node is a bundle in a channel that may be installed into a namespace, or something that is
//! installed. A choice is a list of nodes of which one must be part of the solution, in the order
//! in which they are preferred, once its owner is. Only what the requests can reach becomes a node.

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

pub(crate) use candidates::provider_allowed;
pub(crate) use eligibility::Unfit;
pub(crate) use index::Index;

pub(crate) type NodeId = usize;
pub(crate) type ChoiceId = usize;

/// Everything that a solution is made from.
pub(crate) struct Model<'p> {
    pub(crate) index: Index<'p>,
    pub(crate) nodes: Vec<Node<'p>>,
    /// Those of the requests and of what is installed come first.
    pub(crate) choices: Vec<Choice>,
    /// How many choices have no owner.
    pub(crate) roots: usize,
    /// Of each node, what it needs.
    pub(crate) needs: Vec<Vec<ChoiceId>>,
    /// Sets of which only one node may be part of the solution.
    pub(crate) exclusions: Vec<Exclusive<'p>>,
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
pub(crate) struct Node<'p> {
    /// Where it is, or would be, installed.
    pub(crate) namespace: &'p str,
    pub(crate) bundle: &'p Bundle,
    pub(crate) place: Place<'p>,
    /// Why it cannot be part of any solution.
    pub(crate) unfit: Option<Unfit>,
}

/// Where a node comes from.
#[derive(Clone, Copy)]
pub(crate) enum Place<'p> {
    /// It is there.
    Installed(&'p InstalledBundle),
    /// A channel offers it.
    Offered(Offer<'p>),
}

/// An entry of a channel of a package of a catalog.
#[derive(Clone, Copy)]
pub(crate) struct Offer<'p> {
    pub(crate) catalog: &'p CatalogPart,
    pub(crate) package: &'p Package,
    pub(crate) channel: &'p Channel,
    pub(crate) entry: &'p ChannelEntry,
}

impl<'p> Node<'p> {
    pub(crate) fn package(&self) -> Option<&'p str> {
        match self.place {
            Place::Installed(item) => item.package.as_deref(),
            Place::Offered(offer) => Some(&offer.package.name),
        }
    }

    pub(crate) fn is_installed(&self) -> bool {
        matches!(self.place, Place::Installed(..))
    }

    pub(crate) fn offer(&self) -> Option<Offer<'p>> {
        match self.place {
            Place::Installed(..) => None,
            Place::Offered(offer) => Some(offer),
        }
    }
}

/// A list of nodes, one of which must be part of the solution when the owner is.
pub(crate) struct Choice {
    pub(crate) owner: Owner,
    /// The most preferred first.
    pub(crate) candidates: Rc<[NodeId]>,
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
    /// A node, for the numbered one of its requirements.
    Node(NodeId, usize),
}

/// Nodes of which at most one may be part of the solution.
pub(crate) struct Exclusive<'p> {
    pub(crate) why: Rivalry<'p>,
    pub(crate) nodes: Vec<NodeId>,
}

/// Why nodes exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rivalry<'p> {
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
            Owner::Node(node, index) => self.nodes[node].bundle.requires.get(index),
            Owner::Stays(_) | Owner::Request(_) | Owner::Follows(_) => None,
        }
    }
}
