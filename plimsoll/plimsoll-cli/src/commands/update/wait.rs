//! `plimsoll update status --watch` and `plimsoll update to --wait`: looking until an update is
//! completed.

use std::io::Write;
use std::time::Duration;

use kube::Client;
use plimsoll_api::config::{Update, UpdateState};
use plimsoll_simulation::cluster_state::ClusterState;
use tokio::time::sleep;

use crate::process::now;
use crate::render::format::Format;
use crate::render::update::{Assessment, UpdateStatus};

/// The time between two reads: an update takes minutes, and its status changes at most once a second.
const INTERVAL: Duration = Duration::from_secs(5);

/// How a requested update stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestedUpdate {
    /// It is applied completely.
    Completed,
    /// It is not, and what the cluster reports about that.
    Pending(String),
    /// Another one is requested, or none any more.
    Replaced,
}

impl RequestedUpdate {
    fn of(cluster: &ClusterState, requested: &Update) -> Self {
        let newest = cluster.status.history.first();
        let is_meant = |version: &str, image: &str| {
            (requested.image.is_empty() || requested.image == image)
                && (requested.version.is_empty() || requested.version == version)
        };
        if newest.is_some_and(|it| {
            it.state == UpdateState::Completed && is_meant(&it.version, &it.image)
        }) {
            return Self::Completed;
        }
        let desired = cluster.spec.desired_update.as_ref();
        if !desired.is_some_and(|it| it.version == requested.version && it.image == requested.image)
        {
            return Self::Replaced;
        }
        let is_begun = newest.is_some_and(|it| is_meant(&it.version, &it.image));
        let type_ = if is_begun { "Progressing" } else { "ReleaseAccepted" };
        Self::Pending(cluster.condition(type_).map(|it| it.message.clone()).unwrap_or_default())
    }
}

/// Waits until a requested update is completed, and prints each message on the way.
///
/// # Errors
///
/// When the request is replaced or cleared, or the output cannot be written. An API server that is
/// away for a while, as it is in an update of its own, is looked for again.
pub(super) async fn until_completed(
    client: &Client,
    requested: &Update,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let mut printed = String::new();
    loop {
        let message = match ClusterState::read(client).await {
            Err(error) => format!("no answer: {}", crate::exit::chain(&error.into())),
            Ok(cluster) => match RequestedUpdate::of(&cluster, requested) {
                RequestedUpdate::Completed => {
                    writeln!(out, "The update is completed")?;
                    return Ok(());
                }
                RequestedUpdate::Replaced => anyhow::bail!(
                    "the request was replaced or cleared; see `plimsoll update status`"
                ),
                RequestedUpdate::Pending(message) => message,
            },
        };
        if message != printed && !message.is_empty() {
            writeln!(out, "{message}")?;
            out.flush()?;
            printed = message;
        }
        sleep(INTERVAL).await;
    }
}

/// Prints the status of the update again and again, until there is none under way.
///
/// # Errors
///
/// When the cluster cannot be read, or the output cannot be written.
pub(super) async fn watch(
    client: &Client,
    output: &Format,
    out: &mut dyn Write,
) -> Result<UpdateStatus, anyhow::Error> {
    let mut is_first = true;
    loop {
        let cluster = ClusterState::read(client).await?;
        let status = UpdateStatus::of(&cluster, now());
        if !is_first && matches!(output, Format::Text | Format::Wide) {
            writeln!(out)?;
        }
        is_first = false;
        if !output.write(&status, out)? {
            status.print(output.is_wide(), out)?;
        }
        out.flush()?;
        if status.assessment == Assessment::Idle {
            return Ok(status);
        }
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(desired: &Value, history: &Value, expected: &RequestedUpdate) {
        let cluster = ClusterState {
            spec: serde_json::from_value(json!({"clusterID": "", "desiredUpdate": desired}))
                .unwrap(),
            status: serde_json::from_value(json!({
                "history": history,
                "conditions": [
                    {"type": "Progressing", "status": "True", "reason": "R", "message": "working",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"},
                    {"type": "ReleaseAccepted", "status": "False", "reason": "R",
                     "message": "not verified", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                ],
            }))
            .unwrap(),
            ..ClusterState::default()
        };
        let requested =
            Update { version: "1.1.0".to_owned(), image: "b".to_owned(), ..Update::default() };
        assert_eq!(RequestedUpdate::of(&cluster, &requested), *expected, "{:?}", cluster.spec);
    }

    #[test]
    fn a_request_is_pending_until_its_release_is_completed_or_it_is_replaced() {
        let entry = |version: &str, image: &str, state: &str| {
            json!([{"version": version, "image": image, "state": state,
                    "startedTime": "2026-01-01T00:00:00Z", "completionTime": null}])
        };
        let requested = json!({"version": "1.1.0", "image": "b"});
        let pending = |message: &str| RequestedUpdate::Pending(message.to_owned());
        let before = entry("1.0.0", "a", "Completed");
        let after = entry("1.1.0", "b", "Completed");
        check(&requested, &before, &pending("not verified"));
        check(&requested, &entry("1.1.0", "b", "Partial"), &pending("working"));
        check(&requested, &after, &RequestedUpdate::Completed);
        check(&Value::Null, &before, &RequestedUpdate::Replaced);
        let another = json!({"version": "1.2.0", "image": "c"});
        check(&another, &before, &RequestedUpdate::Replaced);
        check(&Value::Null, &after, &RequestedUpdate::Completed);
    }
}
