//! The deletion of Actions that are not kept any longer, by the limits of their classes and their
//! own.
//!
//! An Action that an object generated is kept as that object says: it has to see how each one
//! ended.

use std::time::Duration;

use futures::future::join_all;
use plimsoll_api::ACTION;
use plimsoll_operators::actions::history::Outdated;

use super::queue::WorkItem;
use super::{ControlLoop, RETRY_INTERVAL};
use crate::resources::api_resource;
use crate::write::chain;

/// The maximum number of Actions that are deleted at a time.
const BATCH_MAX: usize = 16;
/// The pause between two batches, in which other work is done.
const PAUSE: Duration = Duration::from_millis(50);

impl ControlLoop {
    /// Deletes Actions that are outdated, those first that ended first.
    pub(super) async fn delete_outdated(&mut self) {
        let now = self.clock.now();
        let Outdated { delete: mut outdated, wake_at } = self.ended.outdated(&self.classes, now);
        let is_more = outdated.len() > BATCH_MAX;
        outdated.truncate(BATCH_MAX);
        let resource = api_resource(ACTION);
        let deletions = outdated.iter().map(|it| {
            let (namespace, name) = (&it.namespace, &it.name);
            self.writer.delete_uid(namespace, &resource, name, &it.uid)
        });
        let mut is_failed = false;
        for (ended, deleted) in outdated.iter().zip(join_all(deletions).await) {
            match deleted {
                Ok(_) => {
                    // The watch shows later that it is gone, or that a finalizer holds it up.
                    self.action_gone(&ended.id());
                }
                Err(error) => {
                    is_failed = true;
                    let (error, name) = (chain(&error), &*ended.name);
                    tracing::debug!(error, name, "cannot delete an Action");
                }
            }
        }
        if is_failed {
            self.queue.retry(WorkItem::Outdated, RETRY_INTERVAL);
        } else if is_more {
            self.queue.retry(WorkItem::Outdated, PAUSE);
        }
        if let Some(at) = wake_at {
            self.queue.add_at(WorkItem::Outdated, at);
        }
    }
}
