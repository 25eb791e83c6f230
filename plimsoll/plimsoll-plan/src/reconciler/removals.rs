//! Bookkeeping of what releases remove: deletions are followed through the tracker, and objects
//! that releases left behind are remembered until they are gone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::progress::{DeletionState, Orphan, ReleaseProgressStatus};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::built_in::built_in_cluster_kinds;

use crate::plan::{Action, Plan};
use crate::progress::{Deleted, Mark, Progress, StepOutcome, Trace, Transience};
use crate::removal::{
    DeletionEvent, DeletionTracker, Prune, Terminating, orphans, orphans_of_cluster,
};

/// The objects of a cluster in which an earlier process carried out another plan.
#[derive(Debug, Clone, Default)]
pub struct InheritedObjects {
    /// Version of the release that the earlier process applied.
    pub version: String,
    /// The objects that are ours, each with an API version that it is served in.
    pub ours: BTreeMap<ObjectKey, String>,
    /// The kinds that are cluster-scoped.
    pub cluster_kinds: BTreeSet<GroupKind>,
}

/// Deletions and orphans of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Removals {
    tracker: DeletionTracker,
    orphans: Vec<Orphan>,
    /// The prune annotation of the ClusterVersion as last seen; `None` without one.
    annotation: Option<String>,
    /// The orphans that the annotation selects, without those that have been pruned since.
    prune: Prune,
    /// Whether something that the annotation names has been pruned. Known without looking at the
    /// annotation, which may be as long as an object and is asked about at every turn of the loop.
    is_annotation_stale: bool,
    /// What the annotation as last seen named and has been pruned since.
    carried_out: Vec<ObjectKey>,
    /// Objects that are terminating, as watches last showed them: a watch may do so before the
    /// response to the delete request is handled.
    terminating: BTreeMap<ObjectKey, Terminating>,
    /// Orphans recorded by an earlier process that no watch has shown yet: they may have
    /// been deleted since.
    unseen: BTreeSet<ObjectKey>,
    deletion_events: Vec<DeletionEvent>,
}

impl Removals {
    /// Resumes from what an earlier process recorded; `annotation` is the prune annotation of the
    /// ClusterVersion.
    pub fn recorded(recorded: &ReleaseProgressStatus, annotation: Option<String>) -> Self {
        let mut prune = Prune::parse(annotation.as_deref());
        let mut is_annotation_stale = false;
        for deletion in &recorded.deletions {
            if deletion.state == DeletionState::Completed {
                is_annotation_stale |= prune.carried_out(&deletion.object);
            }
        }
        // An entry without kind or name was not recorded by this controller.
        let is_object =
            |orphan: &&Orphan| !orphan.object.kind.is_empty() && !orphan.object.name.is_empty();
        let mut orphans: Vec<Orphan> = recorded.orphans.iter().filter(is_object).cloned().collect();
        for orphan in &mut orphans {
            orphan.object.normalize(built_in_cluster_kinds());
        }
        Self {
            annotation,
            prune,
            is_annotation_stale,
            carried_out: Vec::new(),
            tracker: DeletionTracker::recorded(&recorded.deletions),
            terminating: BTreeMap::new(),
            unseen: orphans.iter().map(|orphan| orphan.object.clone()).collect(),
            orphans,
            deletion_events: Vec::new(),
        }
    }

    /// Every deletion that was requested, and how far it has come.
    pub fn tracker(&self) -> &DeletionTracker {
        &self.tracker
    }

    /// The objects whose deletion an API server refused: it is requested again until it succeeds.
    pub fn refused(&self) -> BTreeSet<ObjectKey> {
        let refused = self.tracker.deletions().filter(|it| it.state == DeletionState::Refused);
        refused.map(|deletion| deletion.object.clone()).collect()
    }

    /// The objects that earlier releases applied and the plan does not mention.
    pub fn orphans(&self) -> &[Orphan] {
        &self.orphans
    }

    /// The kinds that have no namespaces are known: `cluster_kinds`. What a plan of the release turns out
    /// to name is no orphan.
    pub fn normalize_keys(&mut self, plan: &Plan, cluster_kinds: &BTreeSet<GroupKind>) {
        self.tracker.normalize_keys(cluster_kinds);
        let mut is_changed = false;
        for orphan in &mut self.orphans {
            is_changed |= orphan.object.normalize(cluster_kinds);
        }
        if !is_changed {
            return;
        }
        self.orphans.retain(|orphan| !plan.names(&orphan.object));
        let normalized = |mut key: ObjectKey| {
            key.normalize(cluster_kinds);
            key
        };
        self.unseen = std::mem::take(&mut self.unseen).into_iter().map(normalized).collect();
    }

    /// A process starts with a plan: objects that the plan applies are no orphans. If an earlier
    /// process had another plan, what else is ours in the cluster is.
    pub fn started(&mut self, plan: &Plan, inherited: Option<&InheritedObjects>, now: Timestamp) {
        self.orphans.retain(|orphan| !plan.names(&orphan.object));
        let Some(InheritedObjects { version, ours, cluster_kinds }) = inherited else { return };
        // An object that was deleted and has been applied again since is an orphan again.
        self.tracker.retain(|key| !ours.contains_key(key));
        for orphan in orphans_of_cluster(ours, version, plan, cluster_kinds, now) {
            let is_known = self.orphans.iter().any(|known| known.object == orphan.object)
                || self.tracker.unfinished().any(|key| *key == orphan.object);
            if !is_known {
                self.orphans.push(orphan);
            }
        }
    }

    /// What happened since the last call, for events.
    pub fn deletion_events(&mut self, now: Timestamp) -> Vec<DeletionEvent> {
        self.deletion_events.extend(self.tracker.stuck(now));
        std::mem::take(&mut self.deletion_events)
    }

    /// A step of a plan was executed.
    pub fn executed(
        &mut self,
        progress: &Progress,
        index: usize,
        outcome: &StepOutcome,
        now: Timestamp,
    ) {
        let plan = progress.plan();
        let step = &plan.steps[index];
        if step.action != Action::Delete {
            return;
        }
        let (key, file) = (&step.manifest.key, &*step.manifest.file);
        let version = plan.release.version.as_str();
        match outcome {
            StepOutcome::Deleted(deleted) => {
                if *deleted != Deleted::Absent {
                    self.deletion_events.push(self.tracker.requested(key, file, version, now));
                    if let Some(terminating) = self.terminating.get(key) {
                        self.deletion_events.extend(self.tracker.seen(key, Some(terminating)));
                    }
                }
                // The watch may have shown the end already.
                if *deleted != Deleted::Going || progress.is_gone(index) {
                    self.gone(key, now);
                }
            }
            StepOutcome::Failed(error) if error.transience == Transience::Lasting => {
                self.deletion_events.extend(self.tracker.refused(
                    key,
                    file,
                    version,
                    &error.cause,
                    now,
                ));
            }
            StepOutcome::Failed(_)
            | StepOutcome::Applied(_)
            | StepOutcome::Continued(_)
            | StepOutcome::Blocked(_) => {}
        }
    }

    /// A watch showed an object, or that it is gone.
    pub fn observed(
        &mut self,
        key: &ObjectKey,
        mark: Mark,
        terminating: Option<&Terminating>,
        now: Timestamp,
    ) {
        if mark.trace == Trace::Gone {
            self.gone(key, now);
        } else {
            self.unseen.remove(key);
            match terminating {
                Some(terminating) => self.terminating.insert(key.clone(), terminating.clone()),
                None => self.terminating.remove(key),
            };
            self.deletion_events.extend(self.tracker.seen(key, terminating));
        }
    }

    /// Discovery showed which kinds are served: no object of another kind exists.
    pub fn discovered(&mut self, is_served: impl Fn(&GroupKind) -> bool, now: Timestamp) {
        let deletion_events = self.tracker.withdrawn(is_served, now);
        self.deletion_events.extend(deletion_events);
    }

    /// A watch has shown all objects of a kind that exist.
    pub fn listed(&mut self, kind: &GroupKind, now: Timestamp) {
        let of_kind = |key: &&ObjectKey| key.group_kind() == *kind;
        let unseen: Vec<ObjectKey> = self.unseen.iter().filter(of_kind).cloned().collect();
        for key in unseen {
            self.gone(&key, now);
        }
        let deletion_events = self.tracker.listed(kind, now);
        self.deletion_events.extend(deletion_events);
        self.forget_pruned();
    }

    fn gone(&mut self, key: &ObjectKey, now: Timestamp) {
        self.terminating.remove(key);
        self.unseen.remove(key);
        self.deletion_events.extend(self.tracker.gone(key, now));
        let before = self.orphans.len();
        self.orphans.retain(|orphan| orphan.object != *key);
        if self.orphans.len() < before {
            self.carried_out(key);
        }
    }

    /// An orphan is gone: the annotation is not to name it any more, if it does.
    fn carried_out(&mut self, key: &ObjectKey) {
        if self.prune.carried_out(key) {
            self.carried_out.push(key.clone());
            self.is_annotation_stale = true;
        }
    }

    fn forget_pruned(&mut self) {
        let completed: Vec<ObjectKey> = self
            .tracker
            .deletions()
            .filter(|deletion| deletion.state == DeletionState::Completed)
            .map(|deletion| deletion.object.clone())
            .collect();
        for key in completed {
            self.orphans.retain(|orphan| orphan.object != key);
            self.carried_out(&key);
        }
    }

    /// Another plan follows `outgoing`: updates the orphans, and returns the next plan with
    /// deletion steps for those to be pruned.
    pub fn replanned(&mut self, outgoing: &Plan, next: Plan, now: Timestamp) -> Plan {
        self.orphans = orphans(&self.orphans, outgoing, &next, now);
        let next = self.and_prune(next);
        let deletes = |key: &ObjectKey| {
            next.steps.iter().any(|step| step.action == Action::Delete && step.manifest.key == *key)
        };
        self.tracker.retain(deletes);
        next
    }

    /// The plan with deletion steps for the orphans to be pruned.
    pub fn and_prune(&self, plan: Plan) -> Plan {
        plan.and_prune(&self.prune.select(&self.orphans))
    }

    /// The prune annotation of the ClusterVersion was seen; true when it selects an orphan that
    /// the plan does not delete yet.
    pub fn prune_requested(&mut self, annotation: Option<String>, plan: &Plan) -> bool {
        if annotation != self.annotation {
            self.prune = Prune::parse(annotation.as_deref());
            self.annotation = annotation;
            self.is_annotation_stale = false;
            // What it named before and names still may be gone by now: the watch that showed that is
            // another one than that of the annotation.
            for key in std::mem::take(&mut self.carried_out) {
                if !self.orphans.iter().any(|orphan| orphan.object == key) {
                    self.carried_out(&key);
                }
            }
        }
        !self.prune.select(&self.orphans).iter().all(|orphan| is_planned(plan, orphan))
    }

    /// The prune annotation, and what remains of it to be carried out; `None` when the two agree.
    pub fn stale_annotation(&self) -> Option<(&str, &Prune)> {
        let annotation = self.annotation.as_deref().filter(|_| self.is_annotation_stale)?;
        Some((annotation, &self.prune))
    }

    /// Whether an orphan is to be pruned that the API server has not been asked to delete.
    pub fn is_pruning_due(&self) -> bool {
        let selected = self.prune.select(&self.orphans);
        selected.iter().any(|orphan| !self.tracker.unfinished().any(|key| *key == orphan.object))
    }
}

fn is_planned(plan: &Plan, orphan: &Orphan) -> bool {
    plan.steps.iter().any(|step| step.manifest.key == orphan.object)
}

#[cfg(test)]
mod tests;
