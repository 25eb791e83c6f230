//! A minimal conflict as a chain of sentences.

use std::collections::{BTreeMap, BTreeSet};

use super::format::{bundles, described, joined, named, several};
use super::{ExplanationStep, ExplanationStepKind, diagnosis};
use crate::conflict::Conflict;
use crate::encode::Reason;
use crate::model::{ChoiceId, ExclusionCause, Ineligible, Model, Owner, SolvableId};

/// Explains a conflict: the requests, then the requirements along their edges, then the blockers.
/// With a `refused` solvable, the conflict is the one that selecting it would cause.
pub(crate) fn explanation_steps(
    model: &Model<'_>,
    conflict: &Conflict,
    refused: Option<SolvableId>,
) -> Vec<ExplanationStep> {
    let mut explainer = Explainer::new(model, conflict);
    if let Some(solvable) = refused {
        explainer.reached.insert(solvable);
        explainer.eligibility(&[solvable]);
    }
    let others = conflict.solvables.iter().copied().filter(|solvable| Some(*solvable) != refused);
    let (installed, chosen): (Vec<SolvableId>, Vec<SolvableId>) =
        others.partition(|solvable| model.solvables[*solvable].is_installed());
    explainer.chosen(&installed, "is kept", "are kept");
    explainer.chosen(&chosen, "is selected first", "are selected first");
    for choice in explainer.roots.clone() {
        explainer.root(choice);
    }
    explainer.requirements();
    explainer.rest();
    if refused.is_none() {
        explainer.conclusion();
    }
    explainer.steps
}

/// A package and what its bundles need, as people say it.
type Need<'p> = (Option<&'p str>, String);

struct Explainer<'a, 'p> {
    model: &'a Model<'p>,
    roots: Vec<ChoiceId>,
    /// Choices of solvables, those of the same package and requirement together, with their owners.
    needs: BTreeMap<Need<'p>, Vec<(SolvableId, ChoiceId)>>,
    exclusions: BTreeSet<usize>,
    ineligible: BTreeSet<SolvableId>,
    /// The solvables that were spoken of.
    reached: BTreeSet<SolvableId>,
    steps: Vec<ExplanationStep>,
}

impl<'a, 'p> Explainer<'a, 'p> {
    fn new(model: &'a Model<'p>, conflict: &Conflict) -> Self {
        let mut explainer = Self {
            model,
            roots: Vec::new(),
            needs: BTreeMap::new(),
            exclusions: BTreeSet::new(),
            ineligible: BTreeSet::new(),
            reached: BTreeSet::new(),
            steps: Vec::new(),
        };
        for reason in &conflict.reasons {
            match *reason {
                Reason::Exclusion(at) => {
                    explainer.exclusions.insert(at);
                }
                Reason::Ineligible(solvable) => {
                    explainer.ineligible.insert(solvable);
                }
                Reason::Choice(choice) => match model.choices[choice].owner {
                    Owner::Solvable(solvable, _) => {
                        let requirement = model.requirement(choice).map(described);
                        let key =
                            (model.solvables[solvable].package(), requirement.unwrap_or_default());
                        explainer.needs.entry(key).or_default().push((solvable, choice));
                    }
                    Owner::Stays(_) | Owner::Request(_) | Owner::Follows(_) => {
                        explainer.roots.push(choice);
                    }
                },
            }
        }
        explainer
    }

    fn push_step(
        &mut self,
        kind: ExplanationStepKind,
        text: String,
        about: &[SolvableId],
        candidates: &[SolvableId],
    ) {
        let names = |solvables: &[SolvableId]| {
            let names = solvables.iter().map(|id| self.model.solvables[*id].bundle.name.clone());
            names.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (bundles, candidates_named) = (names(about), names(candidates));
        self.steps.push(ExplanationStep { text, kind, bundles, candidates: candidates_named });
        self.reached.extend(candidates);
        self.eligibility(candidates);
    }

    fn chosen(&mut self, solvables: &[SolvableId], one: &str, more: &str) {
        if solvables.is_empty() {
            return;
        }
        let verb = if several(self.model, solvables) { more } else { one };
        let text = format!("{} {verb}", bundles(self.model, solvables));
        self.push_step(ExplanationStepKind::Chosen, text, solvables, solvables);
    }

    fn root(&mut self, choice: ChoiceId) {
        let model = self.model;
        let query = &model.problem().query;
        let candidates = model.choices[choice].candidates.to_vec();
        let (kind, text) = match model.choices[choice].owner {
            Owner::Request(at) => {
                let request = &query.requests[at];
                let text = match candidates.as_slice() {
                    [] => {
                        let installed = model.claims[at].map(|at| &query.installed[at]);
                        let why = diagnosis::of_request(&model.index, request, installed);
                        format!("{} is requested, but {why}", named(request))
                    }
                    _ => {
                        let what = bundles(model, &candidates);
                        format!("{} is requested, candidates: {what}", named(request))
                    }
                };
                (ExplanationStepKind::Request, text)
            }
            Owner::Stays(at) => {
                let name = &query.installed[at].bundle.name;
                let text = format!("{name} is installed without a channel, so it is never updated");
                (ExplanationStepKind::Installed, text)
            }
            Owner::Follows(at) => {
                let name = &query.installed[at].bundle.name;
                let text = match candidates.as_slice() {
                    [_] => {
                        let why = diagnosis::of_followed(&model.index, &query.installed[at]);
                        format!("{name} is installed and {why}")
                    }
                    [_, updates @ ..] => {
                        let updates = bundles(model, updates);
                        format!("{name} is installed and can be kept or updated to {updates}")
                    }
                    [] => format!("{name} is installed"),
                };
                (ExplanationStepKind::Installed, text)
            }
            Owner::Solvable(..) => return,
        };
        self.push_step(kind, text, &[], &candidates);
    }

    /// Explains the needs of solvables that were mentioned, until nothing more is reached; then those left.
    fn requirements(&mut self) {
        loop {
            let reached = |owners: &[(SolvableId, ChoiceId)]| {
                owners.iter().any(|(owner, _)| self.reached.contains(owner))
            };
            let next = self.needs.iter().find(|(_, owners)| reached(owners));
            let Some(key) =
                next.or_else(|| self.needs.first_key_value()).map(|(key, _)| key.clone())
            else {
                return;
            };
            let Some(mut owners) = self.needs.remove(&key) else { return };
            if reached(&owners) {
                owners.retain(|(owner, _)| self.reached.contains(owner));
            }
            self.requirement(&key.1, &owners);
        }
    }

    fn requirement(&mut self, needed: &str, owners: &[(SolvableId, ChoiceId)]) {
        let model = self.model;
        let about: Vec<SolvableId> = owners.iter().map(|(owner, _)| *owner).collect();
        let candidates: BTreeSet<SolvableId> = owners
            .iter()
            .flat_map(|(_, choice)| model.choices[*choice].candidates.iter().copied())
            .collect();
        let candidates: Vec<SolvableId> = candidates.into_iter().collect();
        let verb = if several(model, &about) { "require" } else { "requires" };
        let who = bundles(model, &about);
        let text = match (candidates.as_slice(), model.requirement(owners[0].1)) {
            ([], Some(requirement)) => {
                let namespace = model.solvables[about[0]].namespace;
                let why = diagnosis::of_requirement(&model.index, namespace, requirement);
                format!("{who} {verb} {needed}, but {why}")
            }
            _ => format!("{who} {verb} {needed}, candidates: {}", bundles(model, &candidates)),
        };
        self.push_step(ExplanationStepKind::Requirement, text, &about, &candidates);
    }

    /// Explains why solvables that were just mentioned cannot be used.
    fn eligibility(&mut self, solvables: &[SolvableId]) {
        let mut reasons: BTreeMap<(Option<&'p str>, &Ineligible), Vec<SolvableId>> =
            BTreeMap::new();
        for id in solvables {
            if self.ineligible.remove(id)
                && let Some(ineligible) = &self.model.solvables[*id].ineligible
            {
                reasons
                    .entry((self.model.solvables[*id].package(), ineligible))
                    .or_default()
                    .push(*id);
            }
        }
        for ((_, ineligible), solvables) in reasons {
            let text = ineligibility(self.model, ineligible, &solvables);
            self.push_step(ExplanationStepKind::Ineligible, text, &solvables, &[]);
        }
    }

    fn rest(&mut self) {
        let left: Vec<SolvableId> = self.ineligible.iter().copied().collect();
        self.eligibility(&left);
        for at in std::mem::take(&mut self.exclusions) {
            let exclusion = &self.model.exclusions[at];
            let involved: Vec<SolvableId> = exclusion
                .solvables
                .iter()
                .copied()
                .filter(|solvable| self.reached.contains(solvable))
                .collect();
            let what = bundles(self.model, &involved);
            let text = match exclusion.why {
                ExclusionCause::Package { package, .. } if !several(self.model, &involved) => {
                    format!("only one bundle of {package} can be installed, not {what} twice")
                }
                ExclusionCause::Package { package, .. } => {
                    format!("only one version of {package} can be installed: {what} conflict")
                }
                ExclusionCause::Api(api) => {
                    format!("only one operator may provide {api}: {what} conflict")
                }
                ExclusionCause::Succession => format!("{what} conflict: one replaces the other"),
            };
            self.push_step(ExplanationStepKind::Exclusion, text, &involved, &[]);
        }
    }
}

impl Explainer<'_, '_> {
    /// Writes the conclusion: what cannot be.
    fn conclusion(&mut self) {
        let query = &self.model.problem().query;
        let (mut requested, mut kept) = (Vec::new(), Vec::new());
        let mut verb = "updated";
        for choice in &self.roots {
            match self.model.choices[*choice].owner {
                Owner::Request(at) => {
                    requested.push(named(&query.requests[at]));
                    if self.model.claims[at].is_none() {
                        verb = "installed";
                    }
                }
                Owner::Stays(at) | Owner::Follows(at) => {
                    kept.push(query.installed[at].bundle.name.clone());
                }
                Owner::Solvable(..) => {}
            }
        }
        let together = if requested.len() > 1 { " together" } else { "" };
        let text = match (requested.as_slice(), kept.as_slice()) {
            ([], []) => return,
            ([], _) => format!("so {} cannot be kept", joined(&kept, "and")),
            (_, []) => format!("so {} cannot be {verb}{together}", joined(&requested, "and")),
            _ => format!(
                "so {} cannot be {verb}{together} beside {}",
                joined(&requested, "and"),
                joined(&kept, "and")
            ),
        };
        self.push_step(ExplanationStepKind::Conclusion, text, &[], &[]);
    }
}

/// Returns why solvables cannot be used, as a sentence.
fn ineligibility(model: &Model<'_>, ineligible: &Ineligible, solvables: &[SolvableId]) -> String {
    let facts = &model.problem().query.facts;
    ineligible.sentence(&bundles(model, solvables), several(model, solvables), facts)
}
