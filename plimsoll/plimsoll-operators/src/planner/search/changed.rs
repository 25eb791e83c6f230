//! What a proposal writes, and what is said about it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;

use super::*;
use crate::change_set;
use crate::manifest::ChangeSetEdit;
use crate::planner::{CHANGE_SET_PREFIX, takes_back};

impl Search<'_> {
    /// Returns the Operators with the new requests.
    pub(super) fn changed(
        &self,
        proposed: &ChosenBundles<'_>,
        after: &Outcome<'_>,
        requested: &BTreeSet<&str>,
    ) -> BTreeMap<String, RequestedOperator> {
        let mut versions: BTreeMap<&str, String> = BTreeMap::new();
        let mut operators = self.inputs.operators.clone();
        for name in after.used_by(proposed.keys().copied()) {
            let revised = operators.get(name).and_then(|it| after.revised(name, it));
            versions.extend(revised.map(|it| (name, it)));
        }
        for name in proposed.keys() {
            versions.insert(name, self.version(name, after));
        }
        // A requested range is written even if the installed version is in it.
        for (name, wanted) in &self.request.wanted {
            let is_written = match (self.request.is_install, operators.get(name), &wanted.range) {
                (true, Some(it), Some(range)) => {
                    (requested.contains(name.as_str()) || is_rewritten(it, range))
                        && !proposed.contains_key(name.as_str())
                }
                (false, Some(it), Some(range)) => {
                    wanted.follows || !is_pinned(&it.spec.version) || takes_back(range, it)
                }
                (true | false, ..) => false,
            };
            if let Some(range) = wanted.range.as_ref().filter(|_| is_written) {
                let version = match after.bundles.contains_key(name.as_str()) {
                    true => self.version(name, after),
                    false => range.clone(),
                };
                versions.insert(name, version);
            }
        }
        for (name, version) in versions {
            let is_dependency = !self.request.wanted.contains_key(name);
            let new = || {
                let mut new = RequestedOperator::new(OperatorSpec::default(), is_dependency);
                if let Some(wanted) = self.request.wanted.get(name) {
                    wanted.set(&mut new);
                }
                new
            };
            let operator = operators.entry(name.to_owned()).or_insert_with(new);
            operator.spec.version = version;
            if let Some(catalog) = self.sources.get(name) {
                operator.spec.repository.clone_from(catalog);
            }
        }
        // The change sets of changed Operators end: their remaining members would wait for those that left.
        let written = self.written(&operators);
        let mut over: BTreeSet<ChangeSet> =
            written.iter().filter_map(|name| change_set::of(operators.get(name)?)?.ok()).collect();
        over.extend(self.request.completed.iter().cloned());
        over.extend(proposed.keys().filter_map(|name| self.unfinished_set(name)));
        for operator in operators.values_mut() {
            if change_set::of(operator).and_then(Result::ok).is_some_and(|it| over.contains(&it)) {
                operator.change_set = None;
            }
        }
        operators
    }

    /// Returns the change set of an Operator if a plan made it and was not written as a whole: what is left of it
    /// never moves.
    fn unfinished_set(&self, name: &str) -> Option<ChangeSet> {
        let operators = self.inputs.operators;
        let set = change_set::of(operators.get(name)?)?.ok()?;
        let is_unfinished = set.id.starts_with(CHANGE_SET_PREFIX)
            && change_set::members(operators, &set).len() < set.members;
        is_unfinished.then_some(set)
    }

    /// Returns the names of the Operators that are created or changed, that are to be declared, or that leave a
    /// change set that was not written as a whole.
    pub(super) fn written(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
    ) -> BTreeSet<String> {
        let fields = |it: &RequestedOperator| {
            let spec = &it.spec;
            let fields = [&spec.version, &spec.channel, &spec.repository, &spec.namespace];
            (fields.map(Clone::clone), it.is_undeclared)
        };
        let written = operators.iter().filter(|(name, it)| {
            self.before.operators.get(*name).is_none_or(|before| {
                let is_left = before.change_set != it.change_set;
                fields(before) != fields(it) || (is_left && self.unfinished_set(name).is_some())
            })
        });
        written.map(|(name, _)| name.clone()).collect()
    }

    /// Returns what is written in `spec.version` of an Operator that has a proposed bundle.
    fn version(&self, name: &str, after: &Outcome<'_>) -> String {
        let present = self.inputs.operators.get(name);
        let chosen = &after.bundles[name].version;
        let is_pin = present.is_some_and(|it| is_pinned(&it.spec.version));
        match self.wanted_range(name) {
            _ if self.pinned.contains(name) => chosen.to_string(),
            Some(range) if self.is_narrowed(name, after) => after.range_within(name, range),
            Some(range) if !is_pin || self.request.wanted[name].follows => range.to_owned(),
            None if present.is_none() && self.request.wanted.contains_key(name) => {
                chosen.to_string()
            }
            Some(_) | None => after.version(name, present, self.request.pins),
        }
    }

    /// Returns whether less than the wanted range of an Operator is written.
    fn is_narrowed(&self, name: &str, after: &Outcome<'_>) -> bool {
        self.narrowed.contains(name)
            || self.is_too_wide(name, after)
            || self.is_narrowed_for_set(name, after)
    }

    /// Returns whether the wanted range of an existing Operator has versions that a dependant does not accept: of one
    /// that is installed by its name, or that a person asked for, those that it could move to; of another one, any
    /// that a dependency could have.
    fn is_too_wide(&self, name: &str, after: &Outcome<'_>) -> bool {
        let Some(range) = self.wanted_range(name).filter(|it| !is_pinned(it)) else { return false };
        let present = self.inputs.operators.get(name);
        present.filter(|it| may_move(it) && after.bundles.contains_key(name)).is_some_and(|it| {
            let follows = self.request.wanted[name].follows || !is_pinned(&it.spec.version);
            follows
                && match self.request.is_install || !it.is_dependency {
                    true => after.refused_above(name, range).is_some(),
                    false => after.refused_within(name, range).is_some(),
                }
        })
    }

    /// Returns whether less than the wanted range of an Operator was written for a change set of a plan, which would
    /// be held up otherwise and is not carried out yet.
    fn is_narrowed_for_set(&self, name: &str, after: &Outcome<'_>) -> bool {
        let range = self.wanted_range(name).filter(|it| !is_pinned(it));
        let (Some(range), Some(operator)) = (range, self.inputs.operators.get(name)) else {
            return false;
        };
        let set = change_set::of(operator).and_then(Result::ok);
        set.is_some_and(|it| it.id.starts_with(CHANGE_SET_PREFIX))
            && self.is_only_expected(name)
            && after.bundles.contains_key(name)
            && operator.spec.version == after.range_within(name, range)
    }

    /// Returns a line for each Operator that is written otherwise than it was requested.
    pub(super) fn notes(
        &self,
        operators: &BTreeMap<String, RequestedOperator>,
        after: &Outcome<'_>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let wanted = self.request.wanted.keys();
        let mut names: BTreeSet<&String> =
            wanted.filter(|it| self.is_narrowed(it, after)).collect();
        names.extend(&self.pinned);
        for name in names {
            let (Some(range), Some(operator)) = (self.wanted_range(name), operators.get(name))
            else {
                continue;
            };
            let written = &operator.spec.version;
            if written == range {
                continue;
            }
            let refusal = after.refused_above(name, range);
            let refusal = refusal.or_else(|| after.refused_within(name, range));
            let because = refusal.map(|it| {
                let (dependant, requirement) = (it.dependant, it.requirement);
                format!(": {dependant} depends on {requirement}")
            });
            let because = because.unwrap_or_else(|| {
                format!(": {} of the range would not be as planned", "another version")
            });
            notes.push(format!("{name} has {written} instead of {range}{because}"));
        }
        for (name, catalog) in &self.sources {
            notes.push(format!("{name} has repository {catalog}: other catalogs have it, too"));
        }
        notes
    }

    /// Returns the reasons that requested Operators do not have their highest version.
    pub(super) fn held_back(
        &self,
        solution: &Solution,
        destinations: &Destinations<'_>,
        requested: &BTreeSet<&str>,
    ) -> BTreeMap<String, String> {
        let mut reasons: BTreeMap<String, String> = BTreeMap::new();
        for name in requested {
            if let Some(why) = destinations.beyond(name) {
                reasons.insert((*name).to_owned(), why.to_owned());
            }
        }
        let refused = solution.stays.iter().map(|it| (&it.bundle, &it.instead_of));
        let refused = refused.chain(solution.install.iter().map(|it| (&it.bundle, &it.instead_of)));
        // Of several Operators with a bundle of one name, the first is meant.
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for name in requested {
            let there = self.inputs.operators[*name].installed.as_ref();
            let there = there.map(|it| it.bundle.name.as_str());
            for bundle in there.into_iter().chain(destinations.bundles(name)) {
                owners.entry(bundle).or_insert(*name);
            }
        }
        for (bundle, refused) in refused {
            let Some(first) = refused.first() else { continue };
            if let Some(name) = owners.get(bundle.as_str()) {
                let why: Vec<String> = first.why.iter().map(|it| self.text_of(it)).collect();
                reasons.insert((*name).to_owned(), why.join("; "));
            }
        }
        for (name, refused) in &self.refused {
            if let Some(RefusedBundle { version, block, .. }) = refused.first() {
                let version = version_text(&version.to_string());
                let message = format!("{version} is not reached: {}", block.message);
                reasons.insert(name.clone(), message);
            }
        }
        for name in self.ways.keys() {
            let mut installed = solution.install.iter();
            let reached = installed.find(|it| it.package == *name).map(|it| &it.version);
            if let Some((version, block)) = self.way_block(name, reached) {
                let version = version_text(&version.to_string());
                let message = format!("{version} is not reached: {}", block.message);
                reasons.insert(name.clone(), message);
            }
        }
        reasons
    }
}

/// Returns whether a wanted range is to be written of an Operator of which something is installed.
fn is_rewritten(operator: &RequestedOperator, range: &str) -> bool {
    let requested = operator.spec.version.as_str();
    may_move(operator)
        && operator.installed.is_some()
        && requested != range
        && (!is_pinned(requested) || !is_pinned(range) || takes_back(range, operator))
}

impl Proposal {
    /// Returns the annotation of the change set; `None` if there is none, or several.
    pub(crate) fn change_set(&self) -> Option<&String> {
        self.change_sets.first().filter(|_| self.change_sets.len() == 1)
    }

    /// Returns the change of the annotation of an Operator's change set; `before` is the Operator before the plan.
    pub(crate) fn change_set_edit(
        &self,
        name: &str,
        before: Option<&RequestedOperator>,
    ) -> ChangeSetEdit {
        let set = |of: Option<&RequestedOperator>| of.and_then(|it| it.change_set.clone());
        match (set(before), set(self.operators.get(name))) {
            (before, after) if before == after => ChangeSetEdit::Keep,
            (_, Some(after)) => ChangeSetEdit::Set(after),
            (_, None) => ChangeSetEdit::Remove,
        }
    }
}

/// Makes Operators one change set. Returns its annotation.
pub(super) fn join(
    written: &BTreeSet<String>,
    operators: &mut BTreeMap<String, RequestedOperator>,
) -> String {
    let id = change_set_id(written, operators);
    for name in written {
        if let Some(operator) = operators.get_mut(name) {
            operator.change_set = Some(id.clone());
        }
    }
    id
}

/// Returns the annotation of a change set, a hash of its changes, so that equal changes have equal
/// annotations.
fn change_set_id(
    written: &BTreeSet<String>,
    operators: &BTreeMap<String, RequestedOperator>,
) -> String {
    let mut hasher = fnv::FnvHasher::default();
    for name in written {
        hasher.write(name.as_bytes());
        hasher.write(&[0]);
        hasher.write(operators[name].spec.version.as_bytes());
        hasher.write(&[0]);
    }
    format!("{CHANGE_SET_PREFIX}{:016x}/{}", hasher.finish(), written.len())
}
