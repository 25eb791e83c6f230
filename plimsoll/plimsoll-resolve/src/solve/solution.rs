//! A selection of solvables as a solution: what is to be done, for whom, and why nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::bundle::{Bundle, Constraint};
use crate::conflict::Conflicts;
use crate::explain::{
    ExplanationStep, ExplanationStepKind, channel_of, described, explanation_steps, named,
    shortened,
};
use crate::model::{
    CatalogEntry, ChoiceId, ExclusionCause, Ineligible, Model, Origin, Owner, Solvable, SolvableId,
    later,
};
use crate::range::masterminds;
use crate::sat::WorkBudget;
use crate::search::{Selection, choices_of};
use crate::solution::{
    InstallReason, KeptBundle, LowerRanked, PlannedBundle, RefusedCandidate, Solution,
    UnreachableBundle,
};

pub(super) fn solution(model: &Model<'_>, selection: &Selection, budget: &WorkBudget) -> Solution {
    let mut builder = SolutionBuilder::new(model, selection, budget);
    let mut solution = Solution::default();
    for id in &selection.chosen {
        match model.solvables[*id].catalog_entry() {
            Some(offered) => {
                let item = builder.item(*id, &offered);
                solution.install.push(item);
            }
            None => solution.stays.extend(builder.stay(*id)),
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
    solution.warnings.extend(deprecations(model, selection));
    solution
}

/// Returns what of the selected bundles is deprecated.
fn deprecations(model: &Model<'_>, selection: &Selection) -> BTreeSet<String> {
    let chosen = selection.chosen.iter().map(|id| &model.solvables[*id]);
    let warning = |solvable: &Solvable<'_>| {
        let entry = solvable.catalog_entry()?;
        let (what, message) = entry.deprecation(solvable.bundle)?;
        let name = &solvable.bundle.name;
        Some(match solvable.bundle.deprecation {
            Some(_) => format!("{name} is deprecated: {}", shortened(message)),
            None => format!("{name}: {what} is deprecated: {}", shortened(message)),
        })
    };
    chosen.filter_map(warning).collect()
}

/// Returns what is wrong in the catalogs, as far as they were read.
pub(super) fn warnings(model: &Model<'_>) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    for catalog_package in &model.index.packages {
        for (name, why) in catalog_package.broken_channels() {
            warnings.insert(format!(
                "channel `{name}` of package `{}` in catalog {} is ignored: {why}",
                catalog_package.package.name, catalog_package.catalog.name
            ));
        }
    }
    for solvable in &model.solvables {
        if let (Some(Ineligible::Defect(cause)), Some(offered)) =
            (&solvable.ineligible, solvable.catalog_entry())
        {
            warnings.insert(format!(
                "bundle {} of package `{}` in catalog {} is ignored: {cause}",
                solvable.bundle.name, offered.package.name, offered.catalog.name
            ));
        }
    }
    warnings.into_iter().collect()
}

struct SolutionBuilder<'a, 'p> {
    model: &'a Model<'p>,
    selection: &'a Selection,
    /// What is selected.
    chosen: BTreeSet<SolvableId>,
    /// Solvables of which one takes the place of the other.
    successions: Vec<&'a [SolvableId]>,
    /// The choices that each chosen solvable satisfies.
    satisfied: BTreeMap<SolvableId, Vec<ChoiceId>>,
    budget: &'a WorkBudget,
    /// Only made when something was refused.
    conflicts: Option<Conflicts<'a, 'p>>,
}

impl<'a, 'p> SolutionBuilder<'a, 'p> {
    fn new(model: &'a Model<'p>, selection: &'a Selection, budget: &'a WorkBudget) -> Self {
        let chosen: BTreeSet<SolvableId> = selection.chosen.iter().copied().collect();
        let mut satisfied: BTreeMap<SolvableId, Vec<ChoiceId>> = BTreeMap::new();
        for choice in choices_of(model, selection) {
            for solvable in model.choices[choice].candidates.iter() {
                if chosen.contains(solvable) {
                    satisfied.entry(*solvable).or_default().push(choice);
                }
            }
        }
        let successions = model.exclusions.iter();
        let successions = successions.filter(|it| matches!(it.why, ExclusionCause::Succession));
        let successions = successions.map(|it| it.solvables.as_slice()).collect();
        Self { model, selection, chosen, successions, satisfied, budget, conflicts: None }
    }

    fn item(&mut self, id: SolvableId, offered: &CatalogEntry<'p>) -> PlannedBundle {
        let solvable = &self.model.solvables[id];
        PlannedBundle {
            namespace: solvable.namespace.to_owned(),
            package: offered.package.name.clone(),
            version: solvable.bundle.version.clone(),
            bundle: solvable.bundle.name.clone(),
            channel: offered.channel.name.clone(),
            catalog: offered.catalog.name.clone(),
            updates: self.updated(id),
            towards: self.towards(id),
            replaces: offered.entry.replaces.clone(),
            because: self.because(id),
            instead_of: self.instead_of(id),
            rather_than: self.rather_than(id, offered),
        }
    }

    fn stay(&mut self, id: SolvableId) -> Option<KeptBundle> {
        let solvable = &self.model.solvables[id];
        let because = self.because(id);
        let instead_of = self.instead_of(id);
        let rather_than = self.updates_not_taken(id);
        let unreachable = self.unreachable(id);
        let is_explained =
            !instead_of.is_empty() || !rather_than.is_empty() || unreachable.is_some();
        if because.is_empty() && !is_explained {
            return None;
        }
        Some(KeptBundle {
            namespace: solvable.namespace.to_owned(),
            bundle: solvable.bundle.name.clone(),
            version: solvable.bundle.version.clone(),
            because,
            instead_of,
            rather_than,
            unreachable,
        })
    }

    /// The latest version that would do for the choice about an installed bundle, if no update leads on
    /// from that.
    fn unreachable(&self, id: SolvableId) -> Option<UnreachableBundle> {
        let model = self.model;
        let Origin::Installed(item) = model.solvables[id].origin else { return None };
        let (choice, request) =
            self.choices(id).into_iter().find_map(|choice| match model.choices[choice].owner {
                Owner::Request(at) => Some((choice, Some(&model.problem().query.requests[at]))),
                Owner::Follows(_) => Some((choice, None)),
                Owner::Stays(_) | Owner::Solvable(..) => None,
            })?;
        if model.choices[choice].candidates.iter().any(|candidate| *candidate != id) {
            return None;
        }
        let index = &model.index;
        let bundles = later(index, request, item).into_iter().filter_map(|candidate| {
            let package = &index.packages[candidate.package_id];
            let channel = &package.package.channels[candidate.channel];
            let bundle = package.bundle(&channel.entries[candidate.entry].name)?;
            Some((bundle, channel, package.catalog))
        });
        let (bundle, channel, catalog) =
            bundles.max_by(|(one, ..), (other, ..)| one.version.cmp_precedence(&other.version))?;
        Some(UnreachableBundle {
            bundle: bundle.name.clone(),
            version: bundle.version.clone(),
            channel: channel.name.clone(),
            catalog: catalog.name.clone(),
        })
    }

    /// The range that is requested, when a solvable is outside of it.
    fn towards(&self, id: SolvableId) -> Option<String> {
        let version = &self.model.solvables[id].bundle.version;
        self.choices(id).into_iter().find_map(|choice| {
            let Owner::Request(at) = self.model.choices[choice].owner else { return None };
            let text = self.model.problem().query.requests[at].version.as_ref()?;
            let range = masterminds::Range::parse(text).ok()?;
            (!range.matches(version)).then(|| text.clone())
        })
    }

    /// The updates of something that stays which rank lower than that.
    fn updates_not_taken(&self, id: SolvableId) -> Vec<LowerRanked> {
        let model = self.model;
        let of_request =
            |choice: &ChoiceId| matches!(model.choices[*choice].owner, Owner::Request(_));
        let choice = self.choices(id).into_iter().find(of_request);
        let candidates = choice.map(|choice| &model.choices[choice].candidates);
        let later = candidates.into_iter().flat_map(|list| list.iter());
        let update =
            later.skip_while(|solvable| **solvable != id).nth(1).map(|id| &model.solvables[*id]);
        let described = update.and_then(|solvable| {
            let entry = solvable.catalog_entry()?;
            let (what, message) = entry.deprecation(solvable.bundle)?;
            let (name, from) = (&solvable.bundle.name, channel_of(model, &entry));
            Some(LowerRanked {
                package: entry.package.name.clone(),
                bundle: name.clone(),
                version: solvable.bundle.version.clone(),
                why: format!(
                    "{name} from {from} would update it, but {what} is deprecated: {}",
                    shortened(message)
                ),
            })
        });
        described.into_iter().collect()
    }

    fn choices(&self, id: SolvableId) -> Vec<ChoiceId> {
        self.satisfied.get(&id).cloned().unwrap_or_default()
    }

    /// The installed bundle whose place a solvable takes: that which the choice that it was made for
    /// is about, or another of its package that does not stay.
    fn updated(&self, id: SolvableId) -> Option<String> {
        let model = self.model;
        let succeeds = |old: &SolvableId| {
            self.successions.iter().any(|it| it.contains(old) && it.contains(&id))
        };
        let replaced = (0..model.problem().query.installed.len()).find(|old| {
            let (old_solvable, new) = (&model.solvables[*old], &model.solvables[id]);
            let same = old_solvable.package().is_some() && old_solvable.package() == new.package();
            (same || succeeds(old))
                && old_solvable.namespace == new.namespace
                && !self.chosen.contains(old)
        });
        replaced.map(|old| model.solvables[old].bundle.name.clone())
    }

    fn because(&self, id: SolvableId) -> Vec<InstallReason> {
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
                Owner::Solvable(solvable, _) => {
                    self.model.requirement(choice).map(|requirement| InstallReason::Required {
                        by: self.model.solvables[solvable].bundle.name.clone(),
                        requirement: described(requirement),
                    })
                }
            });
        }
        because.sort();
        because.dedup();
        because
    }

    /// Returns what would have been preferred for the choices that a solvable satisfies.
    fn instead_of(&mut self, id: SolvableId) -> Vec<RefusedCandidate> {
        let mut found: Vec<RefusedCandidate> = Vec::new();
        for choice in self.choices(id) {
            let candidates = &self.model.choices[choice].candidates;
            let better = candidates.iter().take_while(|solvable| **solvable != id).count();
            let Some(refused) = self.selection.refused.get(&choice) else { continue };
            let better: BTreeSet<SolvableId> = candidates[..better].iter().copied().collect();
            let refused: Vec<SolvableId> =
                refused.iter().copied().filter(|it| better.contains(it)).collect();
            let Some(first) = refused.first() else { continue };
            let solvable = &self.model.solvables[*first];
            if found.iter().any(|known| known.bundle == solvable.bundle.name) {
                continue;
            }
            let why = self.why_not(id, *first);
            found.push(RefusedCandidate {
                bundle: solvable.bundle.name.clone(),
                version: solvable.bundle.version.clone(),
                channel: solvable.catalog_entry().map(|offered| offered.channel.name.clone()),
                catalog: solvable.catalog_entry().map(|offered| offered.catalog.name.clone()),
                and_more: refused.len() - 1,
                why,
            });
        }
        found
    }

    /// Returns why a solvable could not be chosen beside what was chosen before another.
    fn why_not(&mut self, instead: SolvableId, refused: SolvableId) -> Vec<ExplanationStep> {
        let model = self.model;
        let conflicts = self.conflicts.get_or_insert_with(|| Conflicts::new(model, self.budget));
        let before =
            self.selection.chosen.iter().copied().take_while(|solvable| *solvable != instead);
        let mut solvables: Vec<SolvableId> = before.collect();
        solvables.push(refused);
        match conflicts.between(&solvables) {
            Some(conflict) => explanation_steps(model, &conflict, Some(refused)),
            None => vec![ExplanationStep {
                text: format!(
                    "{} is not needed with the other installed bundles",
                    model.solvables[refused].bundle.name
                ),
                kind: ExplanationStepKind::Chosen,
                bundles: vec![model.solvables[refused].bundle.name.clone()],
                candidates: Vec::new(),
            }],
        }
    }

    /// Returns what people may have expected: a newer version, or another package that would do.
    fn rather_than(&self, id: SolvableId, chosen: &CatalogEntry<'p>) -> Vec<LowerRanked> {
        let model = self.model;
        let version = &model.solvables[id].bundle.version;
        let mut found: Vec<LowerRanked> = Vec::new();
        for choice in self.choices(id) {
            let candidates = &model.choices[choice].candidates;
            let later = candidates.iter().skip_while(|solvable| **solvable != id).skip(1);
            let expected = later
                .filter(|solvable| model.solvables[**solvable].ineligible.is_none())
                .find(|solvable| {
                    let solvable = &model.solvables[**solvable];
                    solvable.package() != Some(&chosen.package.name)
                        || solvable.bundle.version.cmp_precedence(version).is_gt()
                });
            let Some((solvable, offered)) = expected.and_then(|id| {
                Some((&model.solvables[*id], model.solvables[*id].catalog_entry()?))
            }) else {
                continue;
            };
            let owner = match model.choices[choice].owner {
                Owner::Solvable(owner, _) => model.solvables[owner].catalog_entry(),
                Owner::Stays(_) | Owner::Request(_) | Owner::Follows(_) => None,
            };
            let own = model.solvables[id].bundle;
            let why = rule(model, owner.as_ref(), chosen, own, &offered, solvable.bundle);
            let from = channel_of(model, &offered);
            let rather = LowerRanked {
                package: offered.package.name.clone(),
                bundle: solvable.bundle.name.clone(),
                version: solvable.bundle.version.clone(),
                why: format!("{} from {from} also qualifies, but {why}", solvable.bundle.name),
            };
            if !found.contains(&rather) {
                found.push(rather);
            }
        }
        found.extend(self.newer_elsewhere(id, chosen));
        found
    }

    /// The newest version of a package when it is only in channels that are not used, and the
    /// channel that is was not named. Pre-releases are of no interest to who has a release.
    fn newer_elsewhere(&self, id: SolvableId, chosen: &CatalogEntry<'p>) -> Option<LowerRanked> {
        let model = self.model;
        let solvable = &model.solvables[id];
        let (package, version) = (chosen.package, &solvable.bundle.version);
        let package_ids = model.index.named(&package.name).iter();
        let mut package_ids =
            package_ids.filter(|at| std::ptr::eq(model.index.packages[**at].package, package));
        let package_id = *package_ids.next()?;
        if model.index.is_channel_named(solvable.namespace, &package.name) {
            return None;
        }
        let catalog_package = &model.index.packages[package_id];
        let used = model.index.channels(solvable.namespace, package_id);
        let elsewhere =
            (0..package.channels.len()).filter(|at| !used.contains(at)).flat_map(|at| {
                let channel = &package.channels[at];
                let entries = catalog_package.order(at).entries.iter();
                let entries = entries.map(move |entry| &channel.entries[*entry].name);
                entries.filter_map(move |name| Some((catalog_package.bundle(name)?, channel)))
            });
        let usable = elsewhere.filter(|(bundle, _)| {
            bundle.version.cmp_precedence(version).is_gt()
                && (bundle.version.pre.is_empty() || !version.pre.is_empty())
                && !bundle.deprecated
                && bundle.defects.is_empty()
        });
        let (newest, channel) =
            usable.max_by(|left, right| left.0.version.cmp_precedence(&right.0.version))?;
        Some(LowerRanked {
            package: package.name.clone(),
            bundle: newest.name.clone(),
            version: newest.version.clone(),
            why: format!(
                "{} is newer, but in channel `{}`, and only the default channel is used",
                newest.name, channel.name
            ),
        })
    }
}

/// The first rule of the order of preference by which one offered comes before another.
fn rule(
    model: &Model<'_>,
    owner: Option<&CatalogEntry<'_>>,
    chosen: &CatalogEntry<'_>,
    bundle: &Bundle,
    other: &CatalogEntry<'_>,
    other_bundle: &Bundle,
) -> String {
    let deprecated = |entry: &CatalogEntry<'_>, bundle: &Bundle| {
        let (what, message) = entry.deprecation(bundle)?;
        Some(format!("{what} is deprecated: {}", shortened(message)))
    };
    let names = (&chosen.catalog.name, &other.catalog.name);
    let default = |offered: &CatalogEntry<'_>| {
        offered.package.default_channel.as_ref() == Some(&offered.channel.name)
    };
    let preferred = &model.problem().query.overrides.prefer_catalogs;
    if names.0 != names.1 {
        if preferred.contains(names.0) {
            return format!("catalog {} is preferred by an override", names.0);
        }
        if owner.is_some_and(|owner| owner.catalog.name == *names.0) {
            return format!("catalog {} is the catalog of the bundle that requires it", names.0);
        }
        if names.0.namespace != names.1.namespace && chosen.catalog.weight >= other.catalog.weight {
            return format!("catalog {} is in the same namespace", names.0);
        }
        if let (None, Some(why)) = (deprecated(chosen, bundle), deprecated(other, other_bundle)) {
            return why;
        }
        if chosen.catalog.weight != other.catalog.weight {
            return format!("catalog {} has the lower weight", names.0);
        }
        return format!("catalog {} comes first by name", names.0);
    }
    if let (None, Some(why)) = (deprecated(chosen, bundle), deprecated(other, other_bundle)) {
        return why;
    }
    if default(chosen) != default(other) {
        return format!("channel `{}` is the default channel", chosen.channel.name);
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
    for solvable in &model.solvables {
        if solvable.ineligible == Some(Ineligible::Excluded) {
            texts.insert(format!("{} is excluded", solvable.bundle.name));
        }
    }
    for id in &selection.chosen {
        let solvable = &model.solvables[*id];
        let Some(offered) = solvable.catalog_entry() else { continue };
        for choice in &query.overrides.providers {
            let needed = selection.chosen.iter().any(|owner| {
                let mut requires = model.solvables[*owner].bundle.requires.iter();
                requires.any(|it| it.constraint == Constraint::Api(choice.api.clone()))
            });
            if needed && choice.package == offered.package.name {
                texts.insert(format!("{} provides {}", choice.package, choice.api));
            }
        }
        if query.overrides.prefer_catalogs.contains(&offered.catalog.name) {
            texts.insert(format!("catalog {} is preferred", offered.catalog.name));
        }
        let ignored = query.requests.iter().any(|request| {
            request.ignore_dependencies
                && request.namespace == solvable.namespace
                && request.package == offered.package.name
        });
        if ignored && !solvable.bundle.requires.is_empty() {
            texts.insert(format!("{} is installed without its dependencies", solvable.bundle.name));
        }
    }
    texts.into_iter().collect()
}
