//! Every deletion that was asked for, and how far it has come.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::progress::{Deletion, DeletionState};
use plimsoll_api::{GroupKind, ObjectKey, Reason};
use plimsoll_content::Manifest;
use plimsoll_content::built_in::built_in_cluster_kinds;
use plimsoll_content::inclusion::{self, Context, Decision};

use crate::plan::{DELETE, ORPHAN_FILE};

use super::{DeletionEvent, Terminating};

/// The deletions of this and earlier releases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletionTracker {
    entries: BTreeMap<ObjectKey, TrackedDeletion>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TrackedDeletion {
    deletion: Deletion,
    /// Whether a watch of this process has shown the object since it was requested to be deleted.
    seen: bool,
    /// Whether an event has reported that it is stuck.
    reported_stuck: bool,
    /// What holds the object, as recorded or shown by a watch; `None` if it is not terminating.
    terminating: Option<Terminating>,
}

impl TrackedDeletion {
    fn new(deletion: Deletion) -> Self {
        let terminating = deletion.terminating_since.map(|since| Terminating {
            since,
            finalizers: deletion.finalizers.clone(),
            remaining: Vec::new(),
        });
        Self { deletion, seen: false, reported_stuck: false, terminating }
    }

    fn is_unfinished(&self) -> bool {
        matches!(self.deletion.state, DeletionState::Requested | DeletionState::Refused)
    }
}

impl DeletionTracker {
    /// Takes up what an earlier process recorded.
    pub fn recorded(deletions: &[Deletion]) -> Self {
        let entries = deletions
            .iter()
            .map(|deletion| (deletion.object.clone(), TrackedDeletion::new(deletion.clone())));
        let mut tracker = Self { entries: entries.collect() };
        tracker.normalize_keys(built_in_cluster_kinds());
        tracker
    }

    /// Removes the namespaces of objects whose kinds, among `cluster_kinds`, have none.
    pub fn normalize_keys(&mut self, cluster_kinds: &BTreeSet<GroupKind>) {
        let normalized = |(mut key, mut entry): (ObjectKey, TrackedDeletion)| {
            key.normalize(cluster_kinds);
            entry.deletion.object.normalize(cluster_kinds);
            (key, entry)
        };
        self.entries = std::mem::take(&mut self.entries).into_iter().map(normalized).collect();
    }

    /// All deletions, in the order of their objects.
    pub fn deletions(&self) -> impl Iterator<Item = &Deletion> {
        self.entries.values().map(|entry| &entry.deletion)
    }

    /// The objects that were to go and have not gone: they object to another minor version.
    pub fn unfinished(&self) -> impl Iterator<Item = &ObjectKey> {
        self.entries.iter().filter(|(_, entry)| entry.is_unfinished()).map(|(key, _)| key)
    }

    /// What a release has removed and `manifests`, as far as they are included, would delete again.
    /// That is in order within a minor version; another minor version is to drop such manifests,
    /// and is held up by them (DEL-8). What was pruned on request is not
    /// meant: no release has asked for that yet.
    pub fn repeated(&self, manifests: &[Manifest], context: &Context) -> Vec<Deletion> {
        let deleting = manifests.iter().filter(|manifest| {
            manifest.is_annotated_true(DELETE)
                && inclusion::decide(manifest, context) == Decision::Included
        });
        let done = deleting.filter_map(|manifest| {
            // The key of a manifest may have a namespace that its kind, known to the server, has not.
            let entry = self.entries.get(&manifest.key);
            let entry = entry.or_else(|| self.entries.get(&manifest.key.without_namespace()));
            let deletion = &entry?.deletion;
            let by_release = deletion.state == DeletionState::Completed
                && !deletion.file.starts_with(ORPHAN_FILE);
            by_release.then(|| deletion.clone())
        });
        done.collect()
    }

    /// Forgets what is finished and no longer of interest: what neither the release nor anybody
    /// asks to be deleted.
    pub fn retain(&mut self, is_of_interest: impl Fn(&ObjectKey) -> bool) {
        self.entries.retain(|key, entry| entry.is_unfinished() || is_of_interest(key));
    }

    /// The API server was asked to delete an object by release `version`, and there was one.
    pub fn requested(
        &mut self,
        key: &ObjectKey,
        file: &str,
        version: &str,
        now: Timestamp,
    ) -> DeletionEvent {
        let entry = self.entry(key, file, version, now);
        entry.deletion.state = DeletionState::Requested;
        entry.deletion.completed_at = None;
        entry.deletion.message = String::new();
        (entry.seen, entry.reported_stuck) = (false, false);
        DeletionEvent {
            key: key.clone(),
            reason: Reason::ResourceDeletionRequested,
            is_warning: false,
            message: format!("Deletion of {key} requested by release {version}"),
        }
    }

    /// The API server refused to delete an object.
    pub fn refused(
        &mut self,
        key: &ObjectKey,
        file: &str,
        version: &str,
        why: &str,
        now: Timestamp,
    ) -> Option<DeletionEvent> {
        let entry = self.entry(key, file, version, now);
        let is_known =
            entry.deletion.state == DeletionState::Refused && entry.deletion.message == why;
        entry.deletion.state = DeletionState::Refused;
        entry.deletion.completed_at = None;
        entry.deletion.message = why.to_owned();
        (!is_known).then(|| DeletionEvent {
            key: key.clone(),
            reason: Reason::ResourceDeletionRefused,
            is_warning: true,
            message: format!("{key} could not be deleted: {why}"),
        })
    }

    fn entry(
        &mut self,
        key: &ObjectKey,
        file: &str,
        version: &str,
        now: Timestamp,
    ) -> &mut TrackedDeletion {
        let deletion = || Deletion::new(key, file, version, now);
        self.entries.entry(key.clone()).or_insert_with(|| TrackedDeletion::new(deletion()))
    }

    /// A watch showed an object.
    pub fn seen(
        &mut self,
        key: &ObjectKey,
        terminating: Option<&Terminating>,
    ) -> Option<DeletionEvent> {
        let entry = self.entries.get_mut(key)?;
        let deletion = &mut entry.deletion;
        entry.seen = true;
        let (reason, is_warning, message) = match (deletion.state, terminating) {
            (DeletionState::Completed, None) => {
                deletion.state = DeletionState::Reappeared;
                let at = deletion.completed_at.map_or_else(String::new, |at| format!(" at {at}"));
                deletion.message = format!(
                    "{key} has reappeared after having been deleted{at}; it stays until an update \
                     to a release that deletes it"
                );
                (Reason::ResourceReappeared, true, deletion.message.clone())
            }
            (DeletionState::Requested | DeletionState::Refused, Some(terminating)) => {
                let is_known = deletion.terminating_since.is_some();
                deletion.state = DeletionState::Requested;
                deletion.terminating_since = Some(terminating.since);
                deletion.finalizers.clone_from(&terminating.finalizers);
                entry.terminating = Some(terminating.clone());
                deletion.message = format!("{key} is being deleted{}", held_by(terminating));
                if is_known {
                    return None;
                }
                (Reason::ResourceDeletionOngoing, false, deletion.message.clone())
            }
            _ => return None,
        };
        Some(DeletionEvent { key: key.clone(), reason, is_warning, message })
    }

    /// An object is gone, or was not there.
    pub fn gone(&mut self, key: &ObjectKey, now: Timestamp) -> Option<DeletionEvent> {
        let entry = self.entries.get_mut(key)?;
        let was_asked = entry.is_unfinished();
        let deletion = &mut entry.deletion;
        if deletion.state == DeletionState::Completed {
            return None;
        }
        deletion.state = DeletionState::Completed;
        deletion.completed_at = Some(now);
        deletion.terminating_since = None;
        deletion.finalizers.clear();
        entry.terminating = None;
        deletion.message.clear();
        was_asked.then(|| DeletionEvent {
            key: key.clone(),
            reason: Reason::ResourceDeletionCompleted,
            is_warning: false,
            message: format!("{key} has been deleted"),
        })
    }

    /// A watch has shown every object of a kind that exists: what it did not show is gone.
    pub fn listed(&mut self, kind: &GroupKind, now: Timestamp) -> Vec<DeletionEvent> {
        self.all_gone(|key, entry| key.group_kind() == *kind && !entry.seen, now)
    }

    /// None of the objects exists whose kind is not served any more.
    pub fn withdrawn(
        &mut self,
        is_served: impl Fn(&GroupKind) -> bool,
        now: Timestamp,
    ) -> Vec<DeletionEvent> {
        self.all_gone(|key, _| !is_served(&key.group_kind()), now)
    }

    fn all_gone(
        &mut self,
        is_gone: impl Fn(&ObjectKey, &TrackedDeletion) -> bool,
        now: Timestamp,
    ) -> Vec<DeletionEvent> {
        let entries = self.entries.iter();
        let gone: Vec<ObjectKey> = entries
            .filter(|(key, entry)| entry.is_unfinished() && is_gone(key, entry))
            .map(|(key, _)| key.clone())
            .collect();
        gone.iter().filter_map(|key| self.gone(key, now)).collect()
    }

    /// Names, once, what has been going for too long and what holds it.
    pub fn stuck(&mut self, now: Timestamp) -> Vec<DeletionEvent> {
        let mut deletion_events = Vec::new();
        for (key, entry) in &mut self.entries {
            if entry.reported_stuck || !entry.is_unfinished() {
                continue;
            }
            let Some(terminating) = entry.terminating.as_ref().filter(|it| it.is_stuck(now)) else {
                continue;
            };
            entry.reported_stuck = true;
            let deletion = &mut entry.deletion;
            deletion.message = format!(
                "{key} has been going since {}{}; see what should handle that",
                terminating.since,
                held_by(terminating)
            );
            deletion_events.push(DeletionEvent {
                key: key.clone(),
                reason: Reason::ResourceDeletionStuck,
                is_warning: true,
                message: deletion.message.clone(),
            });
        }
        deletion_events
    }

    /// When [`Self::stuck`] may have something to tell next.
    pub fn due_at(&self) -> Option<Timestamp> {
        let waiting =
            self.entries.values().filter(|entry| !entry.reported_stuck && entry.is_unfinished());
        waiting.filter_map(|entry| Some(entry.terminating.as_ref()?.stuck_at())).min()
    }
}

fn held_by(terminating: &Terminating) -> String {
    let finalizers = terminating.finalizers_text();
    terminating.with_remaining(finalizers.map(|it| format!(", held by {it}")).unwrap_or_default())
}
