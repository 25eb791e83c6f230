//! The statuses of MaintenanceWindows, written when one opens or closes.

use plimsoll_api::{MAINTENANCE_WINDOW, NamespacedName};
use serde_json::json;

use super::observations::Observation;
use super::queue::WorkItem;
use super::{ControlLoop, RETRY_INTERVAL};
use crate::actions::windows::ChangedWindow;
use crate::listing_watch::WatchedObject as _;
use crate::resources::api_resource;
use crate::write::chain;

impl ControlLoop {
    /// Writes the statuses of the MaintenanceWindows that are not what they should be, and makes them due
    /// when the next one opens or closes.
    pub(super) async fn write_window_statuses(&mut self) {
        let resource = api_resource(MAINTENANCE_WINDOW);
        let review = self.window_states.review(self.clock.now());
        for ChangedWindow { name, revision, status } in review.changed {
            let status = json!(status);
            match self.writer.write_status_in("", &resource, &name, &status, &revision).await {
                Ok(written) => {
                    let id = NamespacedName { namespace: String::new(), name };
                    let value = Some(Box::new(written.into_value()));
                    self.observed(Observation::Object(MAINTENANCE_WINDOW, id, value));
                }
                // The watch delivers the change.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => {
                    let error = chain(&error);
                    tracing::debug!(error, name, "a status could not be written; trying again");
                    self.queue.retry(WorkItem::Windows, RETRY_INTERVAL);
                }
            }
        }
        if let Some(at) = review.changes_at {
            self.queue.add_at(WorkItem::Windows, at);
        }
    }
}
