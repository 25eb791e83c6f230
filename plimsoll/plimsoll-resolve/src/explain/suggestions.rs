//! Changes that would make an unsatisfiable problem solvable, each tried out by solving again.

mod proposals;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalog::Expressions;
use crate::conflict::Conflict;
use crate::model::Model;
use crate::problem::Problem;
use crate::sat::WorkBudget;
use crate::search::{SearchResult, Selection, search};

/// Most changes that are named.
const CHANGES_MAX: usize = 3;
/// Most changes that are tried out, of all kinds in turn: solving once takes about as long as the
/// query itself.
const TRIALS_MAX: usize = 32;

/// A change after which the problem has a solution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedChange {
    /// What to do, as an imperative without a stop.
    pub text: String,
    /// What kind of change it is.
    pub kind: SuggestedChangeKind,
    /// The bundles that would then be installed.
    pub installs: Vec<String>,
}

/// Kinds of changes, the smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SuggestedChangeKind {
    /// Request other versions.
    Version,
    /// Request, or follow, another channel.
    Channel,
    /// Take back an override.
    Override,
    /// Let channels other than the default one count.
    AnyChannel,
    /// Remove something that is installed.
    Remove,
    /// Add a catalog that has what is missing.
    Catalog,
    /// Let the author of a bundle widen a range.
    Range,
    /// Change the cluster.
    Cluster,
    /// Drop a request.
    LeaveOut,
    /// Install something without its dependencies.
    IgnoreDependencies,
}

/// A change before it was tried out.
pub(super) struct Proposal {
    kind: SuggestedChangeKind,
    text: Wording,
    apply: Box<dyn Fn(&mut Problem)>,
}

/// The text of a change once it is known what it leads to.
pub(super) enum Wording {
    Plain(String),
    /// The version of a package that would be installed comes after the text.
    WithVersion(String, String),
}

impl Wording {
    fn words(&self) -> &str {
        match self {
            Self::Plain(text) | Self::WithVersion(text, _) => text,
        }
    }
}

/// The smallest changes that would help against a conflict.
pub(crate) fn suggestions(
    model: &Model<'_>,
    conflict: &Conflict,
    expressions: &dyn Expressions,
    budget: &WorkBudget,
) -> Vec<SuggestedChange> {
    let proposals = in_turn(proposals::proposals(model, conflict));
    let problem = model.problem();
    let mut found: Vec<SuggestedChange> = Vec::new();
    for proposal in proposals.into_iter().take(TRIALS_MAX) {
        if found.len() == CHANGES_MAX || budget.is_exhausted() {
            break;
        }
        let mut changed = problem.clone();
        (proposal.apply)(&mut changed);
        let model = Model::new(&changed, expressions);
        let SearchResult::Selection(selection) = search(&model, budget) else { continue };
        found.push(change(&model, &selection, proposal));
    }
    found.sort_by_key(|change| change.kind);
    found
}

/// The first proposals of each kind, the smallest kind first, then the second ones and so on: many
/// of one kind, such as the channels of a package, leave room for the others.
fn in_turn(proposals: Vec<Proposal>) -> Vec<Proposal> {
    let mut numbers: BTreeMap<SuggestedChangeKind, usize> = BTreeMap::new();
    let mut numbered: Vec<(usize, SuggestedChangeKind, Proposal)> = Vec::new();
    for proposal in proposals {
        let number = numbers.entry(proposal.kind).or_default();
        numbered.push((*number, proposal.kind, proposal));
        *number += 1;
    }
    numbered.sort_by_key(|(number, kind, _)| (*number, *kind));
    numbered.into_iter().map(|(_, _, proposal)| proposal).collect()
}

fn change(model: &Model<'_>, selection: &Selection, proposal: Proposal) -> SuggestedChange {
    let solvables = selection.chosen.iter().map(|id| &model.solvables[*id]);
    let new: Vec<_> = solvables.filter(|solvable| !solvable.is_installed()).collect();
    let text = match proposal.text {
        Wording::Plain(text) => text,
        Wording::WithVersion(text, package) => {
            let version = new.iter().find(|solvable| solvable.package() == Some(&*package));
            match version {
                Some(solvable) => format!("{text}, such as {}", solvable.bundle.version),
                None => text,
            }
        }
    };
    let mut installs: Vec<String> =
        new.iter().map(|solvable| solvable.bundle.name.clone()).collect();
    installs.sort();
    installs.retain(|name| *name != proposals::PLACEHOLDER);
    SuggestedChange { text, kind: proposal.kind, installs }
}
