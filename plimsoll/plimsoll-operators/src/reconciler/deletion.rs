//! Deletion of objects: all objects of an Operator that is deleted, and those that a new revision lacks.

mod condition;
mod conversions;
mod definition;
mod leftovers;
mod namespaces;
mod shared;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::{
    CrdUpgradeSafety, DeletionProgress, DeletionProtection, Dependant, OperatorHistory,
    RemainingObjects,
};
use plimsoll_api::{GroupKind, ObjectKey, Reason};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use plimsoll_plan::reconciler::watches::WatchScope;

use super::events::{Findings, FoundObject, OperatorEffect};
use super::handler::OperatorHandler;
use super::observed::{ObservedKind, ObservedObject};
use super::removal::{
    DeletionRefusal, KindSearch, RETRY_INTERVAL, ReleaseObjects, Removal, Verification,
};
use super::revision::KeptRevision;
use crate::deletion::{self, DeletionInputs, DeletionPhase, LiveObject, NextDeletion};

impl OperatorHandler<'_> {
    /// Continues the deletion of the Operator.
    pub(super) fn remove(&mut self) {
        self.operator.forget_preparation();
        if !self.operator.object.has_finalizer() {
            self.operator.rollout = None;
            return;
        }
        if let Some(rollout) = &mut self.operator.rollout {
            rollout.execution.hold();
        }
        let started = self.operator.object.deleted.unwrap_or(self.moment.time);
        let removal = self.operator.removal.get_or_insert_default();
        if removal.started.is_none() {
            *removal = Removal { started: Some(started), ..Removal::default() };
        }
        removal.next = Some(self.moment.uptime + RETRY_INTERVAL);
        match self.loses_definition() {
            Some(false) => {}
            Some(true) => {
                self.let_go();
                return;
            }
            None => return,
        }
        if self.operator.removal.as_ref().is_some_and(|it| it.is_ending) {
            self.finish_removal();
            return;
        }
        if self.operator.is_deletion_held() {
            self.hold_deletion();
            return;
        }
        if self.operator.object.is_orphaning {
            self.let_go();
            return;
        }
        if !self.knows_kinds() || !self.sees_all_objects() {
            return;
        }
        // The label of an Operator finds what revisions that are gone recorded. What is not recorded is another
        // owner's while all revisions are there.
        let recorded = self.has_all_revisions().then(|| self.recorded_objects());
        let is_recorded = |key: &ObjectKey| recorded.as_ref().is_none_or(|it| it.contains(key));
        let mut objects = self.live_objects(|it| is_recorded(&it.key));
        objects.extend(self.abandoned_namespaces());
        let Some(shared) = self.shared(&objects) else { return };
        // Definitions that are kept keep their operands.
        let definitions: Vec<String> = objects
            .iter()
            .filter(|it| is_definition(&it.key) && !shared.contains(&it.key))
            .map(|it| it.key.name.clone())
            .collect();
        let Some(operands) = self.operands(&definitions) else { return };
        if self.is_protected(operands.len()) {
            self.keep_running();
            return;
        }
        let policy = self.operator.object.spec.deletion.clone();
        let inputs = DeletionInputs {
            policy: &policy,
            objects: &objects,
            operands: &operands,
            shared: &shared,
            occupied: const { &BTreeSet::new() },
            started,
            now: self.moment.time,
        };
        let Some(occupied) = self.occupied(&inputs) else { return };
        self.advance(&DeletionInputs { occupied: &occupied, ..inputs });
    }

    /// Takes the next step of the deletion of the Operator.
    fn advance(&mut self, inputs: &DeletionInputs<'_>) {
        match deletion::next(inputs) {
            NextDeletion::Refused { remaining } => {
                self.keep_running();
                let Some(removal) = &mut self.operator.removal else { return };
                removal.refusal = Some(refusal(&remaining));
            }
            NextDeletion::Phase { phase, delete, progress } => {
                match phase {
                    DeletionPhase::Operands => self.keep_running(),
                    _ => self.operator.rollout = None,
                }
                if phase > DeletionPhase::Definitions && !self.remove_conversions(inputs) {
                    return;
                }
                self.request_deletions(delete, progress);
            }
            NextDeletion::Complete { kept } => {
                self.operator.rollout = None;
                // An object that is being applied would be left.
                if self.operator.executing.is_empty() && self.is_verified(&kept) {
                    self.finish_removal();
                }
            }
        }
    }

    /// Maintains the objects of the Operator while there are operands: only the operator removes their
    /// finalizers.
    pub(super) fn keep_running(&mut self) {
        let operator = &mut *self.operator;
        if operator.rollout.is_none()
            && let Some(number) = operator.begun().or(operator.installed)
        {
            self.roll_out(number, &[]);
        }
        let is_recorded = self.operator.is_rollout_recorded();
        if let Some(rollout) = self.operator.rollout.as_mut().filter(|_| is_recorded) {
            rollout.execution.skip_migrations();
            rollout.execution.release();
            self.start();
        }
    }

    /// Requests the deletion of objects, and records the progress.
    fn request_deletions(&mut self, objects: Vec<LiveObject>, progress: DeletionProgress) {
        let removal = self.operator.removal.get_or_insert_default();
        removal.progress = Some(progress);
        removal.next = Some(self.moment.uptime + RETRY_INTERVAL);
        if !objects.is_empty() && removal.release.is_outdated(self.moment.uptime) {
            removal.release = ReleaseObjects::Due;
            self.mark_pending();
            return;
        }
        for object in removal.due(objects, self.moment.uptime) {
            let operator = self.name.to_owned();
            self.output.effects.push(OperatorEffect::Delete { operator, object });
        }
    }

    /// Returns whether the Operator is protected from a deletion that has not begun. One that has begun
    /// continues: deleted objects are lost.
    fn is_protected(&mut self, operands: usize) -> bool {
        let dependants = self.operator.decision.as_ref().map(|it| it.dependants.as_slice());
        let protection = self.operator.object.spec.deletion.protect;
        let refusal = protected(protection, dependants.unwrap_or_default(), operands);
        let Some(removal) = &mut self.operator.removal else { return false };
        removal.refusal = refusal.filter(|_| removal.progress.is_none());
        removal.refusal.is_some()
    }

    /// Returns whether no object exists but those that are kept. If it is not known, the objects are
    /// inspected.
    fn is_verified(&mut self, kept: &[ObjectKey]) -> bool {
        let Some(removal) = &mut self.operator.removal else { return false };
        if removal.verification == Verification::Due {
            let ticket = self.output.ticket();
            removal.verification = Verification::Inspecting { ticket };
            let manifests = self.operator.revisions.values().flat_map(|it| it.manifests());
            let deleted = manifests.filter(|it| !kept.contains(&it.key));
            let objects: BTreeMap<ObjectKey, String> =
                deleted.map(|it| (it.key.clone(), it.version.clone())).collect();
            self.output.effects.push(OperatorEffect::InspectObjects {
                operator: self.name.to_owned(),
                ticket,
                objects: objects.into_iter().collect(),
                definitions: Vec::new(),
                safety: CrdUpgradeSafety::Off,
                kinds: BTreeSet::new(),
            });
        }
        removal.verification == Verification::Passed
    }

    /// Handles the findings of a verification. Returns whether they have its ticket. If an object exists
    /// that no watch has shown yet, the objects are inspected again later.
    pub(super) fn verified(&mut self, ticket: u64, findings: &Result<Findings, String>) -> bool {
        let Some(removal) = &mut self.operator.removal else { return false };
        if removal.verification != (Verification::Inspecting { ticket }) {
            return false;
        }
        let is_ours = |it: &FoundObject| it.is_ours && it.operator == self.name;
        let is_passed = findings.as_ref().is_ok_and(|it| !it.objects.iter().any(is_ours));
        removal.verification = match is_passed {
            true => Verification::Passed,
            false => Verification::Due,
        };
        if is_passed {
            self.mark_pending();
        }
        true
    }

    /// Ends the deletion: OperatorRevisions are released, then the Operator.
    fn finish_removal(&mut self) {
        let Some(removal) = &mut self.operator.removal else { return };
        // What was recorded goes now: it says nothing about what is left.
        removal.is_ending = true;
        if !self.are_revisions_released() {
            return;
        }
        let Some(removal) = &mut self.operator.removal else { return };
        let watched = std::mem::take(&mut removal.watched);
        if !std::mem::replace(&mut removal.is_finished, true) {
            self.output.effects.push(OperatorEffect::SetFinalizer {
                operator: self.name.to_owned(),
                before: self.operator.object.finalizers.clone(),
                is_added: false,
            });
        }
        for definition in watched {
            if !self.peers.watch_operands(&definition)
                && self.cluster.objects.operands.remove(&definition).is_some()
            {
                self.output.effects.push(OperatorEffect::UnwatchOperands(definition));
            }
        }
    }

    /// Records that the finalizer was not removed, so that it is tried again.
    pub(super) fn removal_unfinished(&mut self) {
        if let Some(removal) = &mut self.operator.removal {
            removal.is_finished = false;
        }
    }

    /// Returns whether all revisions exist that the Operator has had objects of.
    fn has_all_revisions(&self) -> bool {
        let revisions = &self.operator.revisions;
        let is_kept = |it: &OperatorHistory| {
            revisions.get(&it.revision).is_some_and(KeptRevision::is_complete)
        };
        // Numbers begin with 1, and the history is shorter than the list of all revisions.
        let newest = revisions.keys().next_back();
        newest.is_some_and(|newest| u32::try_from(revisions.len()) == Ok(*newest))
            && self.operator.history.iter().all(is_kept)
    }

    /// Returns the objects that the revisions of the Operator record.
    fn recorded_objects(&self) -> BTreeSet<ObjectKey> {
        let manifests = self.operator.revisions.values().flat_map(|it| it.manifests());
        manifests.map(|it| it.key.clone()).collect()
    }

    /// Returns whether the kinds of all objects of the Operator are known. Revisions that another client
    /// deleted do not name them any more, so that all served kinds are searched.
    fn knows_kinds(&mut self) -> bool {
        if self.has_all_revisions() {
            return true;
        }
        let Some(removal) = &mut self.operator.removal else { return false };
        match &removal.kinds {
            KindSearch::Found(_) => return true,
            KindSearch::Running => return false,
            KindSearch::Failed { retry_at, .. } if *retry_at > self.moment.uptime => return false,
            KindSearch::Failed { .. } | KindSearch::Due => {}
        }
        removal.kinds = KindSearch::Running;
        self.output.effects.push(OperatorEffect::FindKinds { operator: self.name.to_owned() });
        false
    }

    /// Handles the result of a search for the kinds of the objects of the Operator.
    pub(super) fn kinds_found(&mut self, kinds: Result<BTreeMap<GroupVersionKind, Scope>, String>) {
        let Some(removal) = &mut self.operator.removal else { return };
        removal.kinds = match kinds {
            Ok(kinds) => {
                // Some may have been defined since the process began.
                self.cluster
                    .served
                    .extend(kinds.iter().map(|(kind, scope)| (kind.clone(), *scope)));
                KindSearch::Found(kinds.into_keys().collect())
            }
            Err(message) => {
                KindSearch::Failed { message, retry_at: self.moment.uptime + RETRY_INTERVAL }
            }
        };
        self.mark_pending();
    }

    /// Watches all kinds that the Operator has had objects of. Returns whether their objects are listed.
    fn sees_all_objects(&mut self) -> bool {
        let found = self.operator.removal.as_ref().and_then(|it| match &it.kinds {
            KindSearch::Found(kinds) => Some(kinds),
            KindSearch::Due | KindSearch::Running | KindSearch::Failed { .. } => None,
        });
        let manifests = self.operator.revisions.values().flat_map(|it| it.manifests());
        let kinds: BTreeSet<GroupVersionKind> = manifests
            .map(|it| GroupVersionKind {
                group: it.key.group.clone(),
                version: it.version.clone(),
                kind: it.key.kind.clone(),
            })
            .chain(always_watched())
            .chain(found.into_iter().flatten().cloned())
            .collect();
        let mut sees_all = true;
        for kind in kinds {
            let group_kind = GroupKind::new(&kind.group, &kind.kind);
            // A kind that is not served has no objects.
            let Some(served) = self.cluster.served_version(&kind) else { continue };
            self.watch(served, WatchScope::Metadata);
            let known = self.cluster.objects.kinds.get(&group_kind);
            sees_all &= known.is_some_and(|it| it.is_listed);
        }
        sees_all
    }

    /// Returns the existing objects that were applied for the Operator.
    fn live_objects(&self, is_meant: impl Fn(&ObservedObject) -> bool) -> Vec<LiveObject> {
        let objects = self.cluster.objects.of_operator(self.name).into_iter();
        objects.filter(|it| is_meant(it)).map(ObservedObject::live).collect()
    }

    /// Returns the operands of definitions; `None` until all are listed.
    fn operands(&mut self, definitions: &[String]) -> Option<Vec<LiveObject>> {
        let removal = self.operator.removal.as_mut()?;
        let observed = &mut self.cluster.objects.operands;
        for definition in definitions {
            if removal.watched.insert(definition.clone()) && !observed.contains_key(definition) {
                observed.insert(definition.clone(), ObservedKind::default());
                let effect = OperatorEffect::WatchOperands(definition.clone());
                self.output.effects.push(effect);
            }
        }
        let mut operands = Vec::new();
        for definition in definitions {
            let known = observed.get(definition).filter(|it| it.is_listed)?;
            operands.extend(known.objects().map(ObservedObject::live));
        }
        Some(operands)
    }

    /// Handles the response to a request to delete an object.
    pub(super) fn deletion_answered(&mut self, uid: &str, result: Result<(), String>) {
        let Some(removal) = &mut self.operator.removal else { return };
        match result {
            Ok(()) => {
                removal.refused.remove(uid);
            }
            Err(message) => {
                removal.refused.insert(uid.to_owned(), message);
                removal.asked.insert(uid.to_owned(), self.moment.uptime + RETRY_INTERVAL);
            }
        }
        self.mark_pending();
    }
}

/// Returns the kinds that are watched for every Operator, whatever its objects.
pub(super) fn always_watched() -> [GroupVersionKind; 2] {
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("", "Namespace")].map(
        |(group, kind)| GroupVersionKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
        },
    )
}

pub(super) fn is_definition(key: &ObjectKey) -> bool {
    key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

/// Returns whether the data of users goes with an object: it is deleted with its Operator only, not because
/// another version lacks it.
pub(super) fn has_users_data(key: &ObjectKey) -> bool {
    let is_volume = matches!(key.kind.as_str(), "PersistentVolumeClaim" | "PersistentVolume");
    is_definition(key) || key.group.is_empty() && is_volume
}

/// Returns the reason that a deletion is refused while there are operands.
fn refusal(remaining: &[RemainingObjects]) -> DeletionRefusal {
    let counts = remaining.iter().map(|it| match it.namespace.as_str() {
        "" => format!("{} {}", it.count, it.kind),
        namespace => format!("{} {} in {namespace}", it.count, it.kind),
    });
    let counts: Vec<String> = counts.collect();
    let message = format!(
        "there are {}: delete them, or set spec.deletion.workloads to Delete or Orphan",
        counts.join(", ")
    );
    DeletionRefusal { reason: Reason::WorkloadsRunning, message }
}

/// Returns the reason that an Operator is protected from deletion; `None` if it is not.
fn protected(
    protection: DeletionProtection,
    dependants: &[Dependant],
    operands: usize,
) -> Option<DeletionRefusal> {
    use DeletionProtection::{All, Dependants, Workloads};
    if matches!(protection, Dependants | All) && !dependants.is_empty() {
        let names: BTreeSet<&str> = dependants.iter().map(|it| it.operator.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let depend = if names.len() == 1 { "depends" } else { "depend" };
        let message = format!(
            "{} {depend} on it: delete them first, or set spec.deletion.protect to None; `kubectl \
             operator abort` keeps it",
            names.join(", ")
        );
        return Some(DeletionRefusal { reason: Reason::DependedUpon, message });
    }
    if matches!(protection, Workloads | All) && operands > 0 {
        let message = format!(
            "there are {operands} objects of its kinds: delete them first, or set \
             spec.deletion.protect to None; `kubectl operator abort` keeps it"
        );
        return Some(DeletionRefusal { reason: Reason::WorkloadsRunning, message });
    }
    None
}
