//! The deletion of Actions that are not kept any longer, by the limits of their classes and their
//! own.
//!
//! An Action that an object generated is kept as that object says: it has to see how each one
//! ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use plimsoll_api::{ACTION, NamespacedName};
use plimsoll_operators::actions::history::{EndedAction, Outdated};
use tokio::time::Instant;

use super::queue::WorkItem;
use super::{ControlLoop, RETRY_INTERVAL};
use crate::resources::api_resource;
use crate::write::chain;

/// The maximum number of Actions that are deleted at a time.
const BATCH_MAX: usize = 16;
/// The pause between two batches, in which other work is done.
const PAUSE: Duration = Duration::from_millis(50);

/// The Actions whose deletion failed. They are left out until all others are deleted and a delay is
/// over.
#[derive(Debug, Default)]
pub(super) struct FailedDeletions {
    uids: BTreeSet<Box<str>>,
    /// When they are tried again; `None` before all others are deleted.
    again_at: Option<Instant>,
}

/// The Actions to delete at a time.
#[derive(Debug)]
struct Batch {
    actions: Vec<Arc<EndedAction>>,
    /// Whether more are left.
    is_more: bool,
}

impl FailedDeletions {
    /// Returns those of the outdated Actions to delete next.
    fn batch(&mut self, mut actions: Vec<Arc<EndedAction>>, now: Instant) -> Batch {
        if self.again_at.is_some_and(|it| it <= now) {
            *self = Self::default();
        }
        actions.retain(|it| !self.uids.contains(&it.uid));
        let is_more = actions.len() > BATCH_MAX;
        actions.truncate(BATCH_MAX);
        Batch { actions, is_more }
    }

    /// Returns the delay between a batch and the next one; `None` if nothing more is to be deleted.
    fn delay(&mut self, is_more: bool, now: Instant) -> Option<Duration> {
        if is_more {
            return Some(PAUSE);
        }
        if self.uids.is_empty() {
            return None;
        }
        let again_at = *self.again_at.get_or_insert(now + RETRY_INTERVAL);
        Some(again_at.duration_since(now))
    }
}

impl ControlLoop {
    /// Deletes Actions that are outdated, those first that ended first.
    pub(super) async fn delete_outdated(&mut self) {
        let now = self.clock.now();
        let Outdated { delete, wake_at } = self.ended.outdated(&self.classes, now);
        let Batch { actions, is_more } = self.undeleted.batch(delete, Instant::now());
        let resource = api_resource(ACTION);
        let deletions = actions.iter().map(|it| {
            let (namespace, name) = (it.name.namespace(), it.name.name());
            self.writer.delete_uid(namespace, &resource, name, &it.uid)
        });
        for (ended, deleted) in actions.iter().zip(join_all(deletions).await) {
            match deleted {
                Ok(_) => {
                    // The watch shows later that it is gone, or that a finalizer holds it up.
                    self.action_gone(&NamespacedName::from(&ended.name));
                }
                Err(error) => {
                    self.undeleted.uids.insert(ended.uid.clone());
                    let (error, name) = (chain(&error), ended.name.name());
                    tracing::debug!(error, name, "cannot delete an Action");
                }
            }
        }
        if let Some(delay) = self.undeleted.delay(is_more, Instant::now()) {
            self.queue.retry(WorkItem::Outdated, delay);
        }
        if let Some(at) = wake_at {
            self.queue.add_at(WorkItem::Outdated, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_that_fail_do_not_hold_up_others() {
        let outdated = |number: usize| {
            let uid = format!("{number:02}").into();
            Arc::new(EndedAction { uid, ..EndedAction::default() })
        };
        let mut there: Vec<Arc<EndedAction>> = (0..=BATCH_MAX * 2).map(outdated).collect();
        let (mut failed, now) = (FailedDeletions::default(), Instant::now());
        // The first ones cannot be deleted.
        let is_stuck = |it: &EndedAction| &*it.uid < "16";
        let mut delays = Vec::new();
        for _ in 0..3 {
            let Batch { actions, is_more } = failed.batch(there.clone(), now);
            failed.uids.extend(actions.iter().filter(|it| is_stuck(it)).map(|it| it.uid.clone()));
            there.retain(|it| is_stuck(it) || actions.iter().all(|other| it.uid != other.uid));
            delays.push(failed.delay(is_more, now));
        }
        assert_eq!(there.len(), BATCH_MAX, "all others are deleted");
        assert_eq!(delays, [Some(PAUSE), Some(PAUSE), Some(RETRY_INTERVAL)]);
        // What ends meanwhile is deleted, and does not put off the others.
        let soon = now + RETRY_INTERVAL / 2;
        there.push(outdated(99));
        let Batch { actions, is_more } = failed.batch(there.clone(), soon);
        assert_eq!(actions.iter().map(|it| &*it.uid).collect::<Vec<_>>(), ["99"]);
        assert_eq!(failed.delay(is_more, soon), Some(RETRY_INTERVAL / 2));
        let Batch { actions, .. } = failed.batch(there, now + RETRY_INTERVAL);
        assert_eq!(actions.len(), BATCH_MAX);
        assert_eq!(FailedDeletions::default().delay(false, now), None);
    }
}
