//! What a release removes: the tracker of deletions, and the objects that releases left behind.
//!
//! Deletions do not hold up an update (DEL-4): each is asked for once, and the
//! tracker follows it to its end, through restarts, since it is kept in ReleaseProgress. What a
//! release no longer mentions is an orphan: listed, and deleted only on request.

mod deletions;
mod orphans;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::{GroupKind, ObjectKey, Reason};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::{self, Context, Decision};
use serde_json::Value;

use crate::health::parse;
use crate::plan::DELETE;

pub use deletions::DeletionTracker;
pub use orphans::{PRUNE, PRUNE_ALL, Prune, orphans, orphans_of_cluster};

/// The time that an object may take to be deleted before it counts as stuck, and what holds it is named.
pub const STUCK_AFTER: Duration = Duration::from_secs(60);

/// An object that is being deleted, as a watch shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminating {
    /// Since when (`metadata.deletionTimestamp`).
    pub since: Timestamp,
    /// What has to be done first (`metadata.finalizers`).
    pub finalizers: Vec<String>,
    /// For a namespace: what is left in it, in the words of its own controller.
    pub remaining: Vec<String>,
}

impl Terminating {
    /// Returns when it counts as stuck.
    pub fn stuck_at(&self) -> Timestamp {
        self.since.saturating_add(STUCK_AFTER).unwrap_or(Timestamp::MAX)
    }

    /// Returns whether it is stuck.
    pub fn is_stuck(&self, now: Timestamp) -> bool {
        self.stuck_at() <= now
    }

    /// Returns its finalizers as messages name them, `None` without any.
    pub fn finalizers_text(&self) -> Option<String> {
        match self.finalizers.as_slice() {
            [] => None,
            [one] => Some(format!("finalizer {one}")),
            several => Some(format!("finalizers {}", several.join(", "))),
        }
    }

    /// Returns a text with what is left in the namespace added to it.
    pub fn with_remaining(&self, text: String) -> String {
        self.remaining.iter().fold(text, |text, what| format!("{text}: {what}"))
    }
}

/// The conditions by which a namespace that is being deleted tells why it is still there.
const REMAINING: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
];

/// What keeps a namespace that is being deleted: content, its finalizers, kinds that cannot be
/// listed.
pub fn remaining(namespace: &Value) -> Vec<String> {
    let conditions = REMAINING.iter().filter_map(|type_| parse::condition(namespace, type_));
    conditions.filter(|it| it.status == "True").map(|it| it.message.to_owned()).collect()
}

/// The kinds that a release removes with their definitions, as far as it or the release before it says
/// which kinds those are.
pub fn removed_kinds(
    before: &[Manifest],
    next: &[Manifest],
    context: &Context,
) -> BTreeSet<GroupKind> {
    let is_removed = |manifest: &&Manifest| {
        manifest.is_annotated_true(DELETE)
            && inclusion::decide(manifest, context) == Decision::Included
    };
    let removed: BTreeSet<&ObjectKey> = next.iter().filter(is_removed).map(|it| &it.key).collect();
    let all = before.iter().chain(next);
    all.filter(|it| removed.contains(&it.key))
        .filter_map(|it| Some(it.definition.as_ref()?.kind.clone()))
        .collect()
}

/// Something about a deletion that people should hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionEvent {
    /// The object.
    pub key: ObjectKey,
    /// What happened.
    pub reason: Reason,
    /// Whether an administrator may have to intervene.
    pub is_warning: bool,
    /// What it waits for, as a sentence.
    pub message: String,
}
