//! A selection of nodes as a solution: what is to be done, for whom, and why nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::bundle::Constraint;
use crate::conflict::Conflicts;
use crate::explain::{
    ExplanationStep, ExplanationStepKind, described, named, offered_from, sentences,
};
use crate::model::{ChoiceId, Model, NodeId, Offer, Owner, Rivalry, Unfit};
use crate::search::{Selection, choices_of};
use crate::solution::{
    InstallReason, KeptBundle, LowerRanked, PlannedBundle, RefusedCandidate, Solution,
};

pub(super) fn solution(model: &Model<'_>, selection: &Selection) -> Solution {
    let mut reporter = Reporter::new(model, selection);
    let mut solution = Solution::default();
    for id in &selection.chosen {
        match model.nodes[*id].offer() {
            Some(offer) => {
                let item = reporter.item(*id, &offer);
                solution.install.push(item);
            }
            None => solution.stays.extend(reporter.stay(*id)),
        }
    }
    solution.install.sort_by(|left, right| {
        (&left.namespace, &left.package, &left.bundle).cmp(&(
            &right.namespace,
            &right.package,
            &right.bundle,
        ))
    });
    solution.stays.sort_by(|left, right| {
        (&left.namespace, &left.bundle).cmp(&(&right.namespace, &right.bundle))
    });
    solution.overrides = overrides(model, selection);
    solution.warnings = warnings(model);
    solution
}

/// What is wrong in the catalogs as far as it was looked at.
pub(super) fn warnings(model: &Model<'_>) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    for shelf in &model.index.shelves {
        for (name, why) in shelf.broken_channels() {
            warnings.insert(format!(
                "channel `{name}` of package `{}` in catalog {} is left out: {why}",
                shelf.package.name, shelf.catalog.name
            ));
        }
    }
    for node in &model.nodes {
        if let (Some(Unfit::Defect(cause)), Some(offer)) = (&node.unfit, node.offer()) {
            warnings.insert(format!(
                "bundle {} of package `{}` in catalog {} is left out: {cause}",
                node.bundle.name, offer.package.name, offer.catalog.name
            ));
        }
    }
    warnings.into_iter().collect()
}

struct Reporter<'a, 'p> {
    model: &'a Model<'p>,
    selection: &'a Selection,
    /// The choices that each chosen node satisfies.
    satisfied: BTreeMap<NodeId, Vec<ChoiceId>>,
    /// Only made when something was refused.
    conflicts: Option<Conflicts>,
}

impl<'a, 'p> Reporter<'a, 'p> {
    fn new(model: &'a Model<'p>, selection: &'a Selection) -> Self {
        let chosen: BTreeSet<NodeId> = selection.chosen.iter().copied().collect();
        let mut satisfied: BTreeMap<NodeId, Vec<ChoiceId>> = BTreeMap::new();
        for choice in choices_of(model, selection) {
            for node in model.choices[choice].candidates.iter() {
                if chosen.contains(node) {
                    satisfied.entry(*node).or_default().push(choice);
                }
            }
        }
        Self { model, selection, satisfied, conflicts: None }
    }

    fn item(&mut self, id: NodeId, offer: &Offer<'p>) -> PlannedBundle {
        let node = &self.model.nodes[id];
        PlannedBundle {
            namespace: node.namespace.to_owned(),
            package: offer.package.name.clone(),
            version: node.bundle.version.clone(),
            bundle: node.bundle.name.clone(),
            channel: offer.channel.name.clone(),
            catalog: offer.catalog.name.clone(),
            updates: self.updated(id),
            replaces: offer.entry.replaces.clone(),
            because: self.because(id),
            instead_of: self.instead_of(id),
            rather_than: self.rather_than(id, offer),
        }
    }

    fn stay(&mut self, id: NodeId) -> Option<KeptBundle> {
        let node = &self.model.nodes[id];
        let because = self.because(id);
        let instead_of = self.instead_of(id);
        if because.is_empty() && instead_of.is_empty() {
            return None;
        }
        Some(KeptBundle {
            namespace: node.namespace.to_owned(),
            bundle: node.bundle.name.clone(),
            version: node.bundle.version.clone(),
            because,
            instead_of,
        })
    }

    fn choices(&self, id: NodeId) -> Vec<ChoiceId> {
        self.satisfied.get(&id).cloned().unwrap_or_default()
    }

    /// The installed bundle whose place a node takes: that which the choice that it was made for
    /// is about, or another of its package that does not stay.
    fn updated(&self, id: NodeId) -> Option<String> {
        let model = self.model;
        let kept: BTreeSet<NodeId> = self.selection.chosen.iter().copied().collect();
        let replaced = (0..model.problem().query.installed.len()).find(|old| {
            let (old_node, new) = (&model.nodes[*old], &model.nodes[id]);
            let succeeds = model.exclusions.iter().any(|exclusion| {
                matches!(exclusion.why, Rivalry::Succession)
                    && exclusion.nodes.contains(old)
                    && exclusion.nodes.contains(&id)
            });
            let same = old_node.package().is_some() && old_node.package() == new.package();
            !kept.contains(old) && old_node.namespace == new.namespace && (same || succeeds)
        });
        replaced.map(|old| model.nodes[old].bundle.name.clone())
    }

    fn because(&self, id: NodeId) -> Vec<InstallReason> {
        let query = &self.model.problem().query;
        let mut because: Vec<InstallReason> = Vec::new();
        for choice in self.choices(id) {
            because.extend(match self.model.choices[choice].owner {
                Owner::Request(at) => {
                    Some(InstallReason::Requested { request: named(&query.requests[at]) })
                }
                Owner::Follows(at) if at != id => {
                    let follows = query.installed[at].follows.as_ref();
                    follows
                        .map(|follows| InstallReason::Follows { channel: follows.channel.clone() })
                }
                Owner::Follows(_) | Owner::Stays(_) => None,
                Owner::Node(node, _) => {
                    self.model.requirement(choice).map(|requirement| InstallReason::Required {
                        by: self.model.nodes[node].bundle.name.clone(),
                        requirement: described(requirement),
                    })
                }
            });
        }
        because.sort();
        because.dedup();
        because
    }

    /// What would have been preferred for the choices that a node satisfies.
    fn instead_of(&mut self, id: NodeId) -> Vec<RefusedCandidate> {
        let mut found: Vec<RefusedCandidate> = Vec::new();
        for choice in self.choices(id) {
            let candidates = &self.model.choices[choice].candidates;
            let better = candidates.iter().take_while(|node| **node != id).count();
            let Some(refused) = self.selection.refused.get(&choice) else { continue };
            let refused: Vec<NodeId> =
                refused.iter().copied().filter(|it| candidates[..better].contains(it)).collect();
            let Some(first) = refused.first() else { continue };
            let node = &self.model.nodes[*first];
            if found.iter().any(|known| known.bundle == node.bundle.name) {
                continue;
            }
            let why = self.why_not(id, *first);
            found.push(RefusedCandidate {
                bundle: node.bundle.name.clone(),
                version: node.bundle.version.clone(),
                channel: node.offer().map(|offer| offer.channel.name.clone()),
                catalog: node.offer().map(|offer| offer.catalog.name.clone()),
                and_more: refused.len() - 1,
                why,
            });
        }
        found
    }

    /// Why a node could not be chosen beside what was chosen before another.
    fn why_not(&mut self, instead: NodeId, refused: NodeId) -> Vec<ExplanationStep> {
        let model = self.model;
        let conflicts = self.conflicts.get_or_insert_with(|| Conflicts::new(model));
        let before = self.selection.chosen.iter().copied().take_while(|node| *node != instead);
        let mut nodes: Vec<NodeId> = before.collect();
        nodes.push(refused);
        match conflicts.between(&nodes) {
            Some(conflict) => sentences(model, &conflict, Some(refused)),
            None => vec![ExplanationStep {
                text: format!(
                    "{} is not needed beside what else is installed",
                    model.nodes[refused].bundle.name
                ),
                kind: ExplanationStepKind::Chosen,
                bundles: vec![model.nodes[refused].bundle.name.clone()],
                candidates: Vec::new(),
            }],
        }
    }

    /// What people may have expected: a newer version, or another package that would do.
    fn rather_than(&self, id: NodeId, chosen: &Offer<'p>) -> Vec<LowerRanked> {
        let model = self.model;
        let version = &model.nodes[id].bundle.version;
        let mut found: Vec<LowerRanked> = Vec::new();
        for choice in self.choices(id) {
            let candidates = &model.choices[choice].candidates;
            let later = candidates.iter().skip_while(|node| **node != id).skip(1);
            let expected = later.filter(|node| model.nodes[**node].unfit.is_none()).find(|node| {
                let node = &model.nodes[**node];
                node.package() != Some(&chosen.package.name)
                    || node.bundle.version.cmp_precedence(version).is_gt()
            });
            let Some((node, offer)) =
                expected.and_then(|id| Some((&model.nodes[*id], model.nodes[*id].offer()?)))
            else {
                continue;
            };
            let owner = match model.choices[choice].owner {
                Owner::Node(owner, _) => model.nodes[owner].offer(),
                Owner::Stays(_) | Owner::Request(_) | Owner::Follows(_) => None,
            };
            let why = rule(model, owner.as_ref(), chosen, &offer);
            let from = offered_from(model, &offer);
            let rather = LowerRanked {
                bundle: node.bundle.name.clone(),
                version: node.bundle.version.clone(),
                why: format!("{} from {from} would do too, but {why}", node.bundle.name),
            };
            if !found.contains(&rather) {
                found.push(rather);
            }
        }
        found
    }
}

/// The first rule of the order of preference by which one offer comes before another.
fn rule(
    model: &Model<'_>,
    owner: Option<&Offer<'_>>,
    chosen: &Offer<'_>,
    other: &Offer<'_>,
) -> String {
    let names = (&chosen.catalog.name, &other.catalog.name);
    let default =
        |offer: &Offer<'_>| offer.package.default_channel.as_ref() == Some(&offer.channel.name);
    let preferred = &model.problem().query.overrides.prefer_catalogs;
    if names.0 != names.1 {
        if preferred.contains(names.0) {
            return format!("catalog {} is preferred by an override", names.0);
        }
        if owner.is_some_and(|owner| owner.catalog.name == *names.0) {
            return format!("catalog {} is where the bundle comes from that needs it", names.0);
        }
        if names.0.namespace != names.1.namespace && chosen.catalog.weight >= other.catalog.weight {
            return format!("catalog {} is of the same namespace", names.0);
        }
        if chosen.catalog.weight != other.catalog.weight {
            return format!("catalog {} has the lower weight", names.0);
        }
        return format!("catalog {} comes first by name", names.0);
    }
    if default(chosen) != default(other) {
        return format!("channel `{}` is the default one", chosen.channel.name);
    }
    if chosen.package.name != other.package.name {
        return format!("package {} comes first by name", chosen.package.name);
    }
    if chosen.channel.name != other.channel.name {
        return format!("channel `{}` comes first by name", chosen.channel.name);
    }
    "it is further from the head of the channel".to_owned()
}

/// The overrides that had a part in a selection.
fn overrides(model: &Model<'_>, selection: &Selection) -> Vec<String> {
    let query = &model.problem().query;
    let mut texts = BTreeSet::new();
    for node in &model.nodes {
        if node.unfit == Some(Unfit::Excluded) {
            texts.insert(format!("{} is excluded", node.bundle.name));
        }
    }
    for id in &selection.chosen {
        let node = &model.nodes[*id];
        let Some(offer) = node.offer() else { continue };
        for choice in &query.overrides.providers {
            let needed = selection.chosen.iter().any(|owner| {
                let mut requires = model.nodes[*owner].bundle.requires.iter();
                requires.any(|it| it.constraint == Constraint::Api(choice.api.clone()))
            });
            if needed && choice.package == offer.package.name {
                texts.insert(format!("{} is to provide {}", choice.package, choice.api));
            }
        }
        if query.overrides.prefer_catalogs.contains(&offer.catalog.name) {
            texts.insert(format!("catalog {} is preferred", offer.catalog.name));
        }
        let ignored = query.requests.iter().any(|request| {
            request.ignore_dependencies
                && request.namespace == node.namespace
                && request.package == offer.package.name
        });
        if ignored && !node.bundle.requires.is_empty() {
            texts.insert(format!("{} is installed without its dependencies", node.bundle.name));
        }
    }
    texts.into_iter().collect()
}
