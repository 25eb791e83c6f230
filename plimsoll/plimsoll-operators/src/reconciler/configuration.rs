//! Changes of the Operators and OperatorRevisions that watches show.

use serde_json::Value;

use super::OperatorReconciler;
use super::events::{Moment, OperatorKind};
use super::messages::OF_ANOTHER;
use super::revision::KeptRevision;
use super::shown::{ShownOperator, ShownRevision, shown_operator, uid};
use crate::{InstalledOperator, RequestedOperator};

impl OperatorReconciler {
    /// Handles an Operator that a watch showed; `None` if it was deleted.
    pub(super) fn operator_changed(&mut self, name: &str, object: Option<&Value>, moment: Moment) {
        self.output.pending.insert(name.to_owned());
        let Some(object) = object else {
            self.operators.remove(name);
            if let Some(request) = self.requested.remove(name) {
                self.installed.remove(name, &request);
                self.undecided_with(&request);
            }
            self.mark_affected_undecided(name);
            self.release_abandoned();
            return;
        };
        let uid = uid(object);
        if self.operators.get(name).is_some_and(|known| known.object.uid != uid) {
            // The Operator was deleted and created again.
            self.operators.remove(name);
            self.release_abandoned();
        }
        let known = self.operators.get(name).map(|it| &it.object);
        let is_new = known.is_none();
        let ShownOperator { object, request, status } = shown_operator(object, known, moment);
        let mut before = self.requested.remove(name);
        let derived =
            before.as_mut().map(|it| (it.installed.take(), std::mem::take(&mut it.owned)));
        let (installed, owned) = derived.unwrap_or_default();
        let after = RequestedOperator { installed, owned, ..request };
        let is_changed = before.as_ref().is_none_or(|before| {
            before.spec != after.spec
                || before.change_set != after.change_set
                || before.is_dependency != after.is_dependency
                || before.is_of_user != after.is_of_user
                || before.is_deleting != after.is_deleting
        });
        let operator = self.operators.entry(name.to_owned()).or_default();
        operator.object = object;
        if operator.object.has_finalizer() {
            operator.is_finalizer_write_pending = false;
        }
        let has_predecessors = operator.reported.predecessors != status.predecessors;
        operator.reported = status;
        // The deletion of its predecessor may have been aborted: then its status is written back.
        operator.installed = operator.installed.or(operator.reported.revision);
        if is_new {
            operator.reported_conditions = operator.reported.conditions.clone();
        }
        operator.take_earlier_history();
        self.requested.insert(name.to_owned(), after);
        if is_new || has_predecessors {
            self.adopt_revisions(name);
            self.output.undecided.insert(name.to_owned());
        }
        self.refresh_request(name);
        if is_changed {
            if let Some(before) = before {
                self.undecided_with(&before);
            }
            self.output.undecided.insert(name.to_owned());
            self.mark_affected_undecided(name);
        }
    }

    /// Handles an OperatorRevision that a watch showed; `None` if it was deleted.
    pub(super) fn revision_changed(&mut self, name: &str, object: Option<&Value>, moment: Moment) {
        let Some(value) = object else {
            if let Some(written) = self.written_revisions.remove(name) {
                self.output.pending.insert(written.operator);
            }
            self.output.released.remove(name);
            self.unclaimed.remove(name);
            let mut affected = Vec::new();
            for (operator, tracked) in &mut self.operators {
                tracked.unusable.remove(name);
                let count = tracked.revisions.len();
                tracked.revisions.retain(|_, revision| !revision.forget(name));
                if tracked.revisions.len() != count {
                    affected.push(operator.clone());
                }
            }
            for operator in affected {
                self.reindex(&operator, moment);
                self.refresh_request(&operator);
                self.output.undecided.insert(operator);
            }
            return;
        };
        let shown = ShownRevision::read(name, value, self.key.as_ref());
        self.written_revisions.insert(name.to_owned(), shown.written(name));
        self.release_if_abandoned(name);
        let operator = self.operators.get_mut(&shown.operator);
        let Some(made_for) = &shown.made_for else {
            // Whether or not it has an owner, it is reported of the Operator that it names.
            if let Some(operator) = operator {
                operator.add_revision(name, &shown.spec);
                self.output.undecided.insert(shown.operator.clone());
            }
            self.unclaimed.insert(name.to_owned(), shown);
            return;
        };
        let Some(operator) = operator.filter(|it| it.object.uid == shown.owner) else {
            // Either its Operator was deleted, and it will be as well, or its Operator is new and was not
            // shown yet.
            self.unclaimed.insert(name.to_owned(), shown);
            return;
        };
        if !operator.takes(made_for) {
            operator.unusable.insert(name.to_owned(), OF_ANOTHER.to_owned());
            self.output.undecided.insert(shown.operator.clone());
            self.unclaimed.insert(name.to_owned(), shown);
            return;
        }
        self.unclaimed.remove(name);
        operator.add_revision(name, &shown.spec);
        let operator = shown.operator;
        self.reindex(&operator, moment);
        self.refresh_request(&operator);
        self.output.undecided.insert(operator);
    }

    /// Handles that all objects of a kind were shown.
    pub(super) fn configuration_listed(&mut self, kind: OperatorKind) {
        self.listed.insert(kind);
        self.release_abandoned();
    }

    /// Adds the revisions that were shown before their Operator, or before it named its predecessors.
    fn adopt_revisions(&mut self, name: &str) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let is_its_own =
            |it: &ShownRevision| it.operator == name && it.owner == operator.object.uid;
        let taken = self.unclaimed.extract_if(.., |_, it| {
            is_its_own(it) && it.made_for.as_deref().is_some_and(|uid| operator.takes(uid))
        });
        let taken: Vec<(String, ShownRevision)> = taken.collect();
        for (revision, shown) in &taken {
            operator.add_revision(revision, &shown.spec);
        }
        let uid = operator.object.uid.clone();
        for (revision, shown) in self.unclaimed.iter().filter(|(_, it)| it.operator == name) {
            match &shown.made_for {
                None => operator.add_revision(revision, &shown.spec),
                Some(_) if shown.owner == uid => {
                    operator.unusable.insert(revision.clone(), OF_ANOTHER.to_owned());
                }
                Some(_) => {}
            }
        }
    }

    /// Updates the inputs of decisions to what is installed. If they change, the Operators that this affects
    /// are decided on again.
    pub(super) fn refresh_request(&mut self, name: &str) {
        let Some(operator) = self.operators.get(name) else { return };
        let numbers = operator.installed.into_iter().chain(operator.begun());
        let owned = numbers.filter_map(|number| operator.revisions.get(&number));
        let owned = owned.flat_map(KeptRevision::defined).collect();
        let upgrade_block = operator.upgrade_block(name, &self.cluster.objects);
        let requested = operator.object.spec.revision.filter(|it| operator.installed != Some(*it));
        let returns_to = requested.and_then(|it| operator.revisions.get(&it));
        let returns_to = returns_to.filter(|it| it.is_complete());
        let returns_to = returns_to.map(|it| it.resolver_bundle(name));
        let Some(request) = self.requested.get_mut(name) else { return };
        request.returns_to = returns_to;
        let installed = operator.installed_revision().map(|(number, revision)| InstalledOperator {
            reference: revision.bundle.clone(),
            bundle: revision.resolver_bundle(name),
            revision: number,
            upgrade_block,
        });
        if request.owned == owned && request.installed == installed {
            return;
        }
        self.installed.remove(name, request);
        (request.owned, request.installed) = (owned, installed);
        self.installed.insert(name, request);
        self.mark_affected_undecided(name);
    }
}
