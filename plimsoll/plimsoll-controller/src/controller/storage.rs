//! Asks the API server for the newest revision of its storage: one that fell was restored from a
//! backup, and the controller has to begin again with what is there.

use std::time::Duration;

use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_plan::reconciler::revisions::{RevisionAnswer, RevisionChecks, StorageRollback};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clock::Stopwatch;
use crate::resources::api_resource;

/// How long the answer may take: a server that does not answer is asked again.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Checks the revision of the API server's storage.
pub(super) struct StorageChecks {
    client: Client,
    stopwatch: Stopwatch,
    pub(super) revisions: RevisionChecks,
    /// The request under way; it ends with this.
    request: JoinSet<RevisionAnswer>,
}

impl StorageChecks {
    pub(super) fn new(client: Client, stopwatch: Stopwatch) -> Self {
        let revisions = RevisionChecks::new(stopwatch.uptime());
        Self { client, stopwatch, revisions, request: JoinSet::new() }
    }

    /// A connection to the server was lost.
    pub(super) fn suspect(&mut self) {
        self.revisions.suspect(self.stopwatch.uptime());
    }

    /// Sends a request if it is time.
    pub(super) fn start_due(&mut self) {
        if self.revisions.start(self.stopwatch.uptime()) {
            let client = self.client.clone();
            self.request.spawn(async move {
                let answer = timeout(ANSWER_TIME_MAX, newest_revision(client)).await;
                answer.unwrap_or(RevisionAnswer::Lost)
            });
        }
    }

    /// Waits for the answer to the request under way, for ever when there is none; how far the
    /// storage went back, if it did.
    pub(super) async fn answered(&mut self) -> Option<StorageRollback> {
        match self.request.join_next().await {
            Some(answer) => self.revisions.answered(answer.unwrap_or(RevisionAnswer::Lost)),
            None => std::future::pending().await,
        }
    }
}

/// The revision of the storage when it was asked for a list, which servers answer with what is
/// current.
async fn newest_revision(client: Client) -> RevisionAnswer {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(CLUSTER_VERSION));
    match api.list_metadata(&ListParams::default().limit(1)).await {
        Ok(list) => {
            let revision = list.metadata.resource_version.and_then(|it| it.parse().ok());
            revision.map_or(RevisionAnswer::Lost, RevisionAnswer::Newest)
        }
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            tracing::warn!(
                error = status.message,
                "the API server refuses to list ClusterVersions: a restored API server goes unnoticed"
            );
            RevisionAnswer::Refused
        }
        Err(_) => RevisionAnswer::Lost,
    }
}
