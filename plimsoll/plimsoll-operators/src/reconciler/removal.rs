//! Deletion of objects: all objects of an Operator that is deleted, and those that a new revision lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::{
    CrdDeletion, DeletionPolicy, DeletionProgress, DeletionProtection, WorkloadDeletion,
};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::reconciler::Uptime;

use super::observed::{ObservedKind, ObservedObject};
use super::{Moment, OperatorEffect, OperatorReconciler};
use crate::deletion::{self, DeletionInputs, LiveObject, NextDeletion};

/// The delay before a refused deletion is requested again, and remaining objects are read again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The content of a namespace, as far as it was read.
#[derive(Debug, Clone)]
enum NamespaceContent {
    /// It is being read; the reason if the last attempt failed.
    Reading(Option<String>),
    /// It was read.
    Read {
        /// Whether it has no objects.
        is_empty: bool,
    },
    /// It cannot be read.
    Unreadable {
        /// The reason, and what resolves it.
        message: String,
        /// The time of the next attempt.
        retry_at: Uptime,
    },
}

/// A deletion of objects in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct Removal {
    /// The objects whose deletion was requested, by uid, each with the time to request it again.
    asked: BTreeMap<String, Uptime>,
    /// The reasons that the last requests were refused, by uid.
    refused: BTreeMap<String, String>,
    /// The content of namespaces, by name.
    namespaces: BTreeMap<String, NamespaceContent>,
    /// The definitions whose operands are watched.
    watched: BTreeSet<String>,
    /// The time at which the deletion of the Operator was requested; `None` if only objects of earlier
    /// revisions are deleted.
    started: Option<Timestamp>,
    progress: Option<DeletionProgress>,
    /// The reason that the deletion is refused, as a sentence; `None` if it is not.
    pub(super) refusal: Option<String>,
    /// Whether the finalizer is being removed.
    is_finished: bool,
    next: Option<Uptime>,
}

impl Removal {
    pub(super) fn wake_at(&self) -> Option<Uptime> {
        self.next
    }

    /// Clears the time of the next step if it has come.
    pub(super) fn woken(&mut self, now: Uptime) {
        self.next = self.next.filter(|at| *at > now);
    }

    /// Returns a namespace whose content cannot be read, with the reason; `None` if there is none.
    pub(super) fn unreadable(&self) -> Option<(&str, &str)> {
        self.namespaces.iter().find_map(|(name, content)| match content {
            NamespaceContent::Unreadable { message, .. }
            | NamespaceContent::Reading(Some(message)) => Some((name.as_str(), message.as_str())),
            NamespaceContent::Reading(None) | NamespaceContent::Read { .. } => None,
        })
    }

    /// Returns the progress of the deletion of the Operator; `None` if only objects of earlier revisions are
    /// deleted.
    pub(super) fn progress(&self) -> Option<&DeletionProgress> {
        self.progress.as_ref().filter(|_| self.is_of_operator())
    }

    /// Returns whether the Operator itself is being deleted.
    pub(super) fn is_of_operator(&self) -> bool {
        self.started.is_some()
    }

    /// Returns a sentence about objects of earlier revisions that cannot be deleted; `None` if there are
    /// none.
    pub(super) fn leftovers(&self) -> Option<String> {
        if self.is_of_operator() {
            return None;
        }
        let stuck = self.progress.iter().flat_map(|it| &it.stuck);
        let stuck: Vec<&str> = stuck.chain(self.refusals()).map(String::as_str).collect();
        match stuck.as_slice() {
            [] => None,
            stuck => {
                Some(format!("objects of earlier revisions are not deleted: {}", stuck.join("; ")))
            }
        }
    }

    /// Returns the reasons that objects cannot be deleted, as the API server reports them.
    pub(super) fn refusals(&self) -> impl Iterator<Item = &String> {
        self.refused.values()
    }
}

impl OperatorReconciler {
    /// Continues the deletion of an Operator.
    pub(super) fn remove(&mut self, name: &str, moment: Moment) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        // Nothing is installed or reverted any more.
        operator.rollout = None;
        operator.forget_preparation();
        if !operator.object.has_finalizer() {
            return;
        }
        let started = operator.object.deleted.unwrap_or(moment.time);
        let removal = operator.removal.get_or_insert_default();
        if removal.started.is_none() {
            *removal = Removal { started: Some(started), ..Removal::default() };
        }
        removal.next = Some(moment.uptime + RETRY_INTERVAL);
        if !self.sees_all_of(name) {
            return;
        }
        let mut objects = self.live_objects(name, |_| true);
        objects.extend(self.abandoned_namespaces(name));
        let shared = self.shared(name, &objects);
        // Definitions that are kept keep their operands.
        let definitions: Vec<String> = objects
            .iter()
            .filter(|it| is_definition(&it.key) && !shared.contains(&it.key))
            .map(|it| it.key.name.clone())
            .collect();
        let Some(operands) = self.operands(name, &definitions) else { return };
        let Some(operator) = self.operators.get_mut(name) else { return };
        let policy = operator.object.spec.deletion.clone();
        let dependants = operator.decision.as_ref().map(|it| it.dependants.as_slice());
        let refusal = protected(policy.protect, dependants.unwrap_or_default(), operands.len());
        let Some(removal) = &mut operator.removal else { return };
        // A deletion that has begun continues: deleted objects are lost.
        if removal.progress.is_none() && refusal.is_some() {
            removal.refusal = refusal;
            return;
        }
        removal.refusal = None;
        let occupied = match self.occupied(name, &objects, moment) {
            Some(occupied) => occupied,
            None => return,
        };
        let inputs = DeletionInputs {
            policy: &policy,
            objects: &objects,
            operands: &operands,
            shared: &shared,
            occupied: &occupied,
            started,
            now: moment.time,
        };
        match deletion::next(&inputs) {
            NextDeletion::Refused { remaining } => {
                let Some(operator) = self.operators.get_mut(name) else { return };
                let Some(removal) = &mut operator.removal else { return };
                let counts = remaining.iter().map(|it| match it.namespace.as_str() {
                    "" => format!("{} {}", it.count, it.kind),
                    namespace => format!("{} {} in {namespace}", it.count, it.kind),
                });
                let counts: Vec<String> = counts.collect();
                removal.refusal = Some(format!(
                    "there are {}: delete them, or set spec.deletion.workloads to Delete or Orphan",
                    counts.join(", ")
                ));
            }
            NextDeletion::Phase { phase: _, delete, progress } => {
                let Some(operator) = self.operators.get_mut(name) else { return };
                let Some(removal) = &mut operator.removal else { return };
                removal.progress = Some(progress);
                removal.ask(name, delete, moment, &mut self.effects);
            }
            NextDeletion::Complete { .. } => self.finish_removal(name),
        }
    }

    fn finish_removal(&mut self, name: &str) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let Some(removal) = &mut operator.removal else { return };
        let watched = std::mem::take(&mut removal.watched);
        if !std::mem::replace(&mut removal.is_finished, true) {
            self.effects.push(OperatorEffect::SetFinalizer {
                operator: name.to_owned(),
                before: operator.object.finalizers.clone(),
                is_added: false,
            });
        }
        for definition in watched {
            self.unwatch_operands(definition);
        }
    }

    /// Records that the finalizer of an Operator was not removed, so that it is tried again.
    pub(super) fn removal_unfinished(&mut self, name: &str) {
        let removal = self.operators.get_mut(name).and_then(|it| it.removal.as_mut());
        if let Some(removal) = removal {
            removal.is_finished = false;
        }
    }

    /// Watches all kinds that an Operator has had objects of. Returns whether their objects are listed.
    fn sees_all_of(&mut self, name: &str) -> bool {
        let Some(operator) = self.operators.get(name) else { return false };
        let manifests = operator.revisions.values().flat_map(|it| it.manifests());
        let kinds: BTreeSet<GroupVersionKind> = manifests
            .map(|it| GroupVersionKind {
                group: it.key.group.clone(),
                version: it.version.clone(),
                kind: it.key.kind.clone(),
            })
            .chain(always_watched())
            .collect();
        let mut sees_all = true;
        for kind in kinds {
            let group_kind = GroupKind::new(&kind.group, &kind.kind);
            // A kind that is not served has no objects.
            let Some(served) = self.served_version(&kind) else { continue };
            self.watch(served);
            sees_all &= self.observed.kinds.get(&group_kind).is_some_and(|it| it.is_listed);
        }
        sees_all
    }

    fn served_version(&self, kind: &GroupVersionKind) -> Option<GroupVersionKind> {
        if self.served.contains_key(kind) {
            return Some(kind.clone());
        }
        let is_same = |it: &&GroupVersionKind| it.group == kind.group && it.kind == kind.kind;
        self.served.keys().find(is_same).cloned()
    }

    /// Returns the existing objects that were applied for an Operator.
    fn live_objects(
        &self,
        name: &str,
        is_meant: impl Fn(&ObservedObject) -> bool,
    ) -> Vec<LiveObject> {
        let objects = self.observed.of_operator(name).into_iter();
        objects.filter(|it| is_meant(it)).map(ObservedObject::live).collect()
    }

    /// Returns those of the objects that another Operator, which is not being deleted, holds too.
    fn shared(&self, name: &str, objects: &[LiveObject]) -> BTreeSet<ObjectKey> {
        let is_shared = |key: &&ObjectKey| {
            self.holder(name, key, |other| other.object.deleted.is_none()).is_some()
        };
        objects.iter().map(|it| &it.key).filter(is_shared).cloned().collect()
    }

    /// Returns the operands of definitions; `None` until all are listed.
    fn operands(&mut self, name: &str, definitions: &[String]) -> Option<Vec<LiveObject>> {
        let operator = self.operators.get_mut(name)?;
        let removal = operator.removal.as_mut()?;
        for definition in definitions {
            if removal.watched.insert(definition.clone())
                && !self.observed.operands.contains_key(definition)
            {
                self.observed.operands.insert(definition.clone(), ObservedKind::default());
                self.effects.push(OperatorEffect::WatchOperands(definition.clone()));
            }
        }
        let mut operands = Vec::new();
        for definition in definitions {
            let known = self.observed.operands.get(definition).filter(|it| it.is_listed)?;
            operands.extend(known.objects().map(ObservedObject::live));
        }
        Some(operands)
    }

    fn unwatch_operands(&mut self, definition: String) {
        let removals = self.operators.values().filter_map(|it| it.removal.as_ref());
        let is_needed = removals.into_iter().any(|it| it.watched.contains(&definition));
        if !is_needed && self.observed.operands.remove(&definition).is_some() {
            self.effects.push(OperatorEffect::UnwatchOperands(definition));
        }
    }

    /// Returns the namespaces of an Operator that contain objects of other owners; `None` until that is
    /// known. They are only read when no other objects are left.
    fn occupied(
        &mut self,
        name: &str,
        objects: &[LiveObject],
        moment: Moment,
    ) -> Option<BTreeSet<String>> {
        let is_namespace = |it: &&LiveObject| it.key.group.is_empty() && it.key.kind == "Namespace";
        let namespaces: Vec<&LiveObject> = objects.iter().filter(is_namespace).collect();
        if namespaces.len() < objects.len() {
            return Some(BTreeSet::new());
        }
        let mut occupied = BTreeSet::new();
        let mut is_known = true;
        for namespace in namespaces.into_iter().filter(|it| it.terminating_since.is_none()) {
            let namespace = &namespace.key.name;
            if self.is_used_by_others(name, namespace) {
                occupied.insert(namespace.clone());
                continue;
            }
            let removal = self.operators.get_mut(name)?.removal.as_mut()?;
            let failure = match removal.namespaces.get(namespace) {
                Some(NamespaceContent::Read { is_empty: true }) => continue,
                Some(NamespaceContent::Read { is_empty: false }) => {
                    occupied.insert(namespace.clone());
                    continue;
                }
                Some(NamespaceContent::Unreadable { message, retry_at })
                    if *retry_at <= moment.uptime =>
                {
                    Some(message.clone())
                }
                Some(NamespaceContent::Reading(_) | NamespaceContent::Unreadable { .. }) => {
                    is_known = false;
                    continue;
                }
                None => None,
            };
            is_known = false;
            removal.namespaces.insert(namespace.clone(), NamespaceContent::Reading(failure));
            self.effects.push(OperatorEffect::ReadNamespace {
                operator: name.to_owned(),
                namespace: namespace.clone(),
            });
        }
        is_known.then_some(occupied)
    }

    /// Handles the content of a namespace.
    pub(super) fn namespace_read(
        &mut self,
        name: &str,
        namespace: &str,
        objects: Result<Vec<ObjectKey>, String>,
        moment: Moment,
    ) {
        let removal = self.operators.get_mut(name).and_then(|it| it.removal.as_mut());
        let Some(removal) = removal else { return };
        let content = match objects {
            Ok(objects) => NamespaceContent::Read { is_empty: objects.is_empty() },
            Err(message) => {
                NamespaceContent::Unreadable { message, retry_at: moment.uptime + RETRY_INTERVAL }
            }
        };
        removal.namespaces.insert(namespace.to_owned(), content);
        self.unsettled.insert(name.to_owned());
    }

    /// Returns the namespaces of an Operator that were created for another one which was deleted or is being
    /// deleted.
    fn abandoned_namespaces(&self, name: &str) -> Vec<LiveObject> {
        let Some(operator) = self.operators.get(name) else { return Vec::new() };
        let names: BTreeSet<&String> =
            operator.revisions.values().map(|revision| &revision.namespace).collect();
        let namespaces = names.into_iter().filter_map(|it| self.observed.namespace(it));
        let abandoned = namespaces.filter(|it| {
            let is_gone = |maker: &str| {
                self.operators.get(maker).is_none_or(|it| it.object.deleted.is_some())
            };
            it.is_ours() && it.operator != name && !it.operator.is_empty() && is_gone(&it.operator)
        });
        abandoned.map(ObservedObject::live).collect()
    }

    /// Returns whether another Operator, which is not being deleted, is installed in a namespace or about to
    /// be.
    fn is_used_by_others(&self, name: &str, namespace: &str) -> bool {
        self.operators.iter().any(|(other, it)| {
            let is_there = it.object.spec.namespace == namespace
                || it.revisions.values().any(|revision| revision.namespace == namespace);
            other != name && it.object.deleted.is_none() && is_there
        })
    }

    /// Handles the response to a request to delete an object.
    pub(super) fn deletion_answered(
        &mut self,
        name: &str,
        uid: &str,
        result: Result<(), String>,
        moment: Moment,
    ) {
        let removal = self.operators.get_mut(name).and_then(|it| it.removal.as_mut());
        let Some(removal) = removal else { return };
        match result {
            Ok(()) => {
                removal.refused.remove(uid);
            }
            Err(message) => {
                removal.refused.insert(uid.to_owned(), message);
                removal.asked.insert(uid.to_owned(), moment.uptime + RETRY_INTERVAL);
            }
        }
        self.unsettled.insert(name.to_owned());
    }

    /// Marks the Operators that are being deleted, or have objects of earlier revisions to delete, for their
    /// next step.
    pub(super) fn unsettle_deleting(&mut self) {
        let deleting = self
            .operators
            .iter()
            .filter(|(_, it)| it.removal.is_some() || it.object.deleted.is_some());
        let names: Vec<String> = deleting.map(|(name, _)| name.clone()).collect();
        self.unsettled.extend(names);
    }

    /// Deletes objects of earlier revisions that the installed one lacks, except for definitions.
    pub(super) fn tidy(&mut self, name: &str, moment: Moment) {
        let Some(operator) = self.operators.get(name) else { return };
        let Some(rollout) = operator.rollout.as_ref().filter(|it| it.is_complete) else { return };
        if rollout.is_tidy || operator.revisions.len() < 2 {
            return;
        }
        let steps = &rollout.execution.progress().plan().steps;
        let has: BTreeSet<ObjectKey> = steps.iter().map(|it| it.manifest.key.clone()).collect();
        if !self.sees_all_of(name) {
            if let Some(operator) = self.operators.get_mut(name) {
                operator.removal.get_or_insert_default();
            }
            return;
        }
        let left = self.live_objects(name, |it| !has.contains(&it.key) && !is_definition(&it.key));
        let shared = self.shared(name, &left);
        let policy = DeletionPolicy {
            crds: CrdDeletion::Orphan,
            workloads: WorkloadDeletion::Orphan,
            ..DeletionPolicy::default()
        };
        let Some(operator) = self.operators.get_mut(name) else { return };
        operator.removal.get_or_insert_default();
        let Some(occupied) = self.occupied(name, &left, moment) else { return };
        let inputs = DeletionInputs {
            policy: &policy,
            objects: &left,
            operands: &[],
            shared: &shared,
            occupied: &occupied,
            started: moment.time,
            now: moment.time,
        };
        let Some(operator) = self.operators.get_mut(name) else { return };
        match deletion::next(&inputs) {
            NextDeletion::Phase { phase: _, delete, progress } => {
                let removal = operator.removal.get_or_insert_default();
                removal.next = Some(moment.uptime + RETRY_INTERVAL);
                removal.progress = Some(progress);
                removal.ask(name, delete, moment, &mut self.effects);
            }
            NextDeletion::Complete { .. } | NextDeletion::Refused { .. } => {
                operator.removal = None;
                if let Some(rollout) = &mut operator.rollout {
                    rollout.is_tidy = true;
                }
            }
        }
        // Objects that are not deleted block updates.
        let upgrade_block = self.upgrade_block(name);
        let known = self.requested.get(name).and_then(|it| it.installed.as_ref());
        if known.is_some_and(|it| it.upgrade_block != upgrade_block) {
            self.refresh_request(name);
            self.undecided.insert(name.to_owned());
        }
    }
}

impl Removal {
    /// Requests the deletion of objects, of each at most once per [`RETRY_INTERVAL`].
    fn ask(
        &mut self,
        name: &str,
        objects: Vec<LiveObject>,
        moment: Moment,
        effects: &mut Vec<OperatorEffect>,
    ) {
        for object in objects {
            if self.asked.get(&object.uid).is_some_and(|again| *again > moment.uptime) {
                continue;
            }
            self.asked.insert(object.uid.clone(), moment.uptime + RETRY_INTERVAL);
            effects.push(OperatorEffect::Delete { operator: name.to_owned(), object });
        }
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

fn is_definition(key: &ObjectKey) -> bool {
    key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

/// Returns the reason that an Operator is protected from deletion; `None` if it is not.
fn protected(
    protection: DeletionProtection,
    dependants: &[plimsoll_api::olm::Dependant],
    operands: usize,
) -> Option<String> {
    use DeletionProtection::{All, Dependants, Workloads};
    if matches!(protection, Dependants | All) && !dependants.is_empty() {
        let names: BTreeSet<&str> = dependants.iter().map(|it| it.operator.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let depend = if names.len() == 1 { "depends" } else { "depend" };
        return Some(format!(
            "{} {depend} on it: delete them first, or set spec.deletion.protect to None",
            names.join(", ")
        ));
    }
    if matches!(protection, Workloads | All) && operands > 0 {
        return Some(format!(
            "there are {operands} objects of its kinds: delete them first, or set \
             spec.deletion.protect to None"
        ));
    }
    None
}
