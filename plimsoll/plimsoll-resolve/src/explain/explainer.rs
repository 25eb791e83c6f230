//! A minimal conflict as a chain of sentences.

use std::collections::{BTreeMap, BTreeSet};

use super::format::{bundles, described, named, several};
use super::{ExplanationStep, ExplanationStepKind, diagnosis};
use crate::conflict::Conflict;
use crate::encode::Reason;
use crate::model::{ChoiceId, Model, NodeId, Owner, Rivalry, Unfit};

/// Tells a conflict, from what was asked along what is needed to what is in the way. With a node
/// that is `refused` it is the conflict that comes of choosing it.
pub(crate) fn sentences(
    model: &Model<'_>,
    conflict: &Conflict,
    refused: Option<NodeId>,
) -> Vec<ExplanationStep> {
    let mut teller = Teller::new(model, conflict);
    if let Some(node) = refused {
        teller.reached.insert(node);
        teller.fitness(&[node]);
    }
    let others = conflict.nodes.iter().copied().filter(|node| Some(*node) != refused);
    let (installed, chosen): (Vec<NodeId>, Vec<NodeId>) =
        others.partition(|node| model.nodes[*node].is_installed());
    teller.chosen(&installed, "stays as it is", "stay as they are");
    teller.chosen(&chosen, "is chosen before", "are chosen before");
    for choice in teller.roots.clone() {
        teller.root(choice);
    }
    teller.requirements();
    teller.rest();
    teller.told
}

/// A package and what its bundles need, as people say it.
type Need<'p> = (Option<&'p str>, String);

struct Teller<'a, 'p> {
    model: &'a Model<'p>,
    roots: Vec<ChoiceId>,
    /// Choices of nodes, those of the same package and requirement together, with their owners.
    needs: BTreeMap<Need<'p>, Vec<(NodeId, ChoiceId)>>,
    exclusions: BTreeSet<usize>,
    unfit: BTreeSet<NodeId>,
    /// The nodes that were spoken of.
    reached: BTreeSet<NodeId>,
    told: Vec<ExplanationStep>,
}

impl<'a, 'p> Teller<'a, 'p> {
    fn new(model: &'a Model<'p>, conflict: &Conflict) -> Self {
        let mut teller = Self {
            model,
            roots: Vec::new(),
            needs: BTreeMap::new(),
            exclusions: BTreeSet::new(),
            unfit: BTreeSet::new(),
            reached: BTreeSet::new(),
            told: Vec::new(),
        };
        for reason in &conflict.reasons {
            match *reason {
                Reason::Exclusion(at) => {
                    teller.exclusions.insert(at);
                }
                Reason::Unfit(node) => {
                    teller.unfit.insert(node);
                }
                Reason::Choice(choice) => match model.choices[choice].owner {
                    Owner::Node(node, _) => {
                        let requirement = model.requirement(choice).map(described);
                        let key = (model.nodes[node].package(), requirement.unwrap_or_default());
                        teller.needs.entry(key).or_default().push((node, choice));
                    }
                    Owner::Stays(_) | Owner::Request(_) | Owner::Follows(_) => {
                        teller.roots.push(choice);
                    }
                },
            }
        }
        teller
    }

    fn tell(
        &mut self,
        kind: ExplanationStepKind,
        text: String,
        about: &[NodeId],
        candidates: &[NodeId],
    ) {
        let names = |nodes: &[NodeId]| {
            let names = nodes.iter().map(|id| self.model.nodes[*id].bundle.name.clone());
            names.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (bundles, candidates_named) = (names(about), names(candidates));
        self.told.push(ExplanationStep { text, kind, bundles, candidates: candidates_named });
        self.reached.extend(candidates);
        self.fitness(candidates);
    }

    fn chosen(&mut self, nodes: &[NodeId], one: &str, more: &str) {
        if nodes.is_empty() {
            return;
        }
        let verb = if several(self.model, nodes) { more } else { one };
        let text = format!("{} {verb}", bundles(self.model, nodes));
        self.tell(ExplanationStepKind::Chosen, text, nodes, nodes);
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
                        let why = diagnosis::of_request(&model.index, request);
                        format!("{} is asked for, but {why}", named(request))
                    }
                    _ => {
                        let what = bundles(model, &candidates);
                        format!("{} is asked for: that is {what}", named(request))
                    }
                };
                (ExplanationStepKind::Request, text)
            }
            Owner::Stays(at) => {
                let name = &query.installed[at].bundle.name;
                let text = format!("{name} is installed and follows no channel, so it has to stay");
                (ExplanationStepKind::Installed, text)
            }
            Owner::Follows(at) => {
                let name = &query.installed[at].bundle.name;
                let text = match candidates.as_slice() {
                    [_] => format!("{name} is installed and its channel offers no update of it"),
                    [_, updates @ ..] => {
                        let updates = bundles(model, updates);
                        format!("{name} is installed: it can stay or be updated to {updates}")
                    }
                    [] => format!("{name} is installed"),
                };
                (ExplanationStepKind::Installed, text)
            }
            Owner::Node(..) => return,
        };
        self.tell(kind, text, &[], &candidates);
    }

    /// What nodes need that were spoken of, until nothing more is reached; then what is left.
    fn requirements(&mut self) {
        loop {
            let reached = |owners: &[(NodeId, ChoiceId)]| {
                owners.iter().any(|(owner, _)| self.reached.contains(owner))
            };
            let next = self.needs.iter().find(|(_, owners)| reached(owners));
            let Some(key) =
                next.or_else(|| self.needs.first_key_value()).map(|(key, _)| key.clone())
            else {
                return;
            };
            let Some(owners) = self.needs.remove(&key) else { return };
            self.requirement(&key.1, &owners);
        }
    }

    fn requirement(&mut self, needed: &str, owners: &[(NodeId, ChoiceId)]) {
        let model = self.model;
        let about: Vec<NodeId> = owners.iter().map(|(owner, _)| *owner).collect();
        let candidates: BTreeSet<NodeId> = owners
            .iter()
            .flat_map(|(_, choice)| model.choices[*choice].candidates.iter().copied())
            .collect();
        let candidates: Vec<NodeId> = candidates.into_iter().collect();
        let verb = if several(model, &about) { "need" } else { "needs" };
        let who = bundles(model, &about);
        let text = match (candidates.as_slice(), model.requirement(owners[0].1)) {
            ([], Some(requirement)) => {
                let namespace = model.nodes[about[0]].namespace;
                let why = diagnosis::of_requirement(&model.index, namespace, requirement);
                format!("{who} {verb} {needed}, but {why}")
            }
            _ => format!("{who} {verb} {needed}: that is {}", bundles(model, &candidates)),
        };
        self.tell(ExplanationStepKind::Requirement, text, &about, &candidates);
    }

    /// Why nodes that were just spoken of cannot be used.
    fn fitness(&mut self, nodes: &[NodeId]) {
        let mut reasons: BTreeMap<(Option<&'p str>, &Unfit), Vec<NodeId>> = BTreeMap::new();
        for id in nodes {
            if self.unfit.remove(id)
                && let Some(unfit) = &self.model.nodes[*id].unfit
            {
                reasons.entry((self.model.nodes[*id].package(), unfit)).or_default().push(*id);
            }
        }
        for ((_, unfit), nodes) in reasons {
            let text = unfitness(self.model, unfit, &nodes);
            self.tell(ExplanationStepKind::Unfit, text, &nodes, &[]);
        }
    }

    fn rest(&mut self) {
        let left: Vec<NodeId> = self.unfit.iter().copied().collect();
        self.fitness(&left);
        for at in std::mem::take(&mut self.exclusions) {
            let exclusion = &self.model.exclusions[at];
            let involved: Vec<NodeId> = exclusion
                .nodes
                .iter()
                .copied()
                .filter(|node| self.reached.contains(node))
                .collect();
            let what = bundles(self.model, &involved);
            let text = match exclusion.why {
                Rivalry::Package { package, .. } if !several(self.model, &involved) => {
                    format!("only one bundle of {package} can be installed, not {what} twice")
                }
                Rivalry::Package { package, .. } => {
                    format!(
                        "only one version of {package} can be installed: {what} exclude each other"
                    )
                }
                Rivalry::Api(api) => {
                    format!("only one operator may provide {api}: {what} exclude each other")
                }
                Rivalry::Succession => format!("one of {what} takes the place of the other"),
            };
            self.tell(ExplanationStepKind::Exclusion, text, &involved, &[]);
        }
    }
}

/// Why nodes cannot be used, as a sentence.
fn unfitness(model: &Model<'_>, unfit: &Unfit, nodes: &[NodeId]) -> String {
    let who = bundles(model, nodes);
    let many = several(model, nodes);
    let pick = |one: &'static str, more: &'static str| if many { more } else { one };
    let facts = &model.problem().query.facts;
    let namespace = model.nodes[nodes[0]].namespace;
    match unfit {
        Unfit::Defect(cause) => format!("{who} {} malformed: {cause}", pick("is", "are")),
        Unfit::Deprecated => {
            format!("{who} {} deprecated (`olm.deprecated`)", pick("is", "are"))
        }
        Unfit::Excluded => format!("{who} {} excluded by an override", pick("is", "are")),
        Unfit::Kubernetes(lowest) => {
            let has = facts.kubernetes.as_ref().map(ToString::to_string).unwrap_or_default();
            let verb = pick("needs", "need");
            format!("{who} {verb} Kubernetes {lowest} or newer; the cluster has {has}")
        }
        Unfit::OpenShift(newest) => {
            let has = facts.openshift.as_ref().map(ToString::to_string).unwrap_or_default();
            let verb = pick("runs", "run");
            format!("{who} {verb} on OpenShift {newest} at most; the cluster has {has}")
        }
        Unfit::InstallMode(mode) => {
            let verb = pick("does", "do");
            format!(
                "{who} {verb} not support install mode {mode}, which the operator group of \
                 namespace `{namespace}` needs"
            )
        }
        Unfit::NativeApi(api) => {
            format!("{who} {} {api}, which the cluster does not serve", pick("needs", "need"))
        }
        Unfit::Architecture(architecture) => {
            let verb = pick("does", "do");
            format!("{who} {verb} not run on {architecture}, which nodes of the cluster have")
        }
        Unfit::Capability(name) => {
            let verb = pick("needs", "need");
            format!("{who} {verb} capability {name}, which is not enabled")
        }
    }
}
