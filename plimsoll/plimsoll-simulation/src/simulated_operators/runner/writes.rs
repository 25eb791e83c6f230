//! The writes of the simulation.

use std::future::Future;
use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use plimsoll_api::CLUSTER_OPERATOR;
use plimsoll_api::config::ClusterOperatorStatus;
use plimsoll_controller::api_resource;
use serde_json::{Value, json};

use super::{Runner, WriteResult, api_in, status_of, whole, workload_resource};
use crate::simulated_operators::MANAGER;
use crate::simulated_operators::fixtures::create_fixtures;
use crate::simulated_operators::packages::{Operand, PackageAction};
use crate::simulated_operators::simulator::SimulatorAction;
use crate::simulated_operators::workload::{WorkloadKind, simulated_status};

/// The maximum number of attempts at a write. After the last one it is left to the next change of the object.
const ATTEMPTS_MAX: u32 = 6;
/// The pause after the first attempt; it doubles with each.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);
/// The HTTP status of a write to an object that does not exist.
const NOT_FOUND: u16 = 404;
/// The HTTP status of a write to an object that changed since it was read.
const CONFLICT: u16 = 409;
/// The HTTP status of a write that is never accepted.
const INVALID: u16 = 422;

impl Runner {
    /// Executes an action of the simulator.
    pub(super) fn execute(&mut self, action: SimulatorAction) {
        match action {
            SimulatorAction::Report { name, create, status } => {
                tracing::info!(operator = name, "{}", summary(&status));
                let api: Api<DynamicObject> =
                    Api::all_with(self.client.clone(), &api_resource(CLUSTER_OPERATOR));
                self.write(async move {
                    if create {
                        create_operator(&api, &name).await;
                    }
                    let patch = json!({ "status": status });
                    let status = patch_status(&api, &name, &patch).await.map(|it| status_of(&it));
                    WriteResult::Report { name, status }
                });
            }
            SimulatorAction::CreateFixtures => {
                let created = create_fixtures(self.client.clone(), self.fixtures.clone());
                self.write(async move { WriteResult::Fixtures(created.await) });
            }
        }
    }

    /// Executes an action of a package.
    pub(super) fn execute_of_package(&mut self, action: PackageAction) {
        match action {
            PackageAction::RollOut(key) => {
                let kind = WorkloadKind::Deployment;
                let api = api_in(&self.client, &key.namespace, &workload_resource(kind));
                let time = self.time();
                self.write(async move {
                    // It may have changed since it was seen.
                    if let Ok(Some(object)) = api.get_opt(&key.name).await
                        && let Some(patch) = simulated_status(kind, &whole(&object), time)
                    {
                        patch_status(&api, &key.name, &patch).await;
                    }
                    WriteResult::Other
                });
            }
            PackageAction::SetFinalizers(key, operand) => {
                let Some(watched) = self.watched_kinds.get(&key.group_kind()) else { return };
                let api = api_in(&self.client, &key.namespace, &watched.resource);
                self.write(async move {
                    set_finalizers(&api, &key.name, &operand).await;
                    WriteResult::Other
                });
            }
        }
    }
}

/// Patches the status of an object and returns the object; `None` if it is gone or cannot be
/// written, which is logged.
pub(super) async fn patch_status(
    api: &Api<DynamicObject>,
    name: &str,
    patch: &Value,
) -> Option<DynamicObject> {
    let (parameters, patch) = (parameters(), Patch::Merge(patch));
    written(name, &[NOT_FOUND], || api.patch_status(name, &parameters, &patch)).await
}

/// Replaces the finalizers of an object, unless it has changed: then it is observed again.
async fn set_finalizers(api: &Api<DynamicObject>, name: &str, operand: &Operand) {
    let patch = Patch::Merge(json!({ "metadata": {
        "resourceVersion": operand.resource_version,
        "finalizers": operand.finalizers,
    } }));
    let parameters = parameters();
    written(name, &[NOT_FOUND, CONFLICT], || api.patch(name, &parameters, &patch)).await;
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Repeats a write until it succeeds; `None` if it does not, which is logged unless the HTTP status is one of
/// `expected`.
async fn written<F>(name: &str, expected: &[u16], write: impl Fn() -> F) -> Option<DynamicObject>
where
    F: Future<Output = Result<DynamicObject, kube::Error>>,
{
    let mut pause = ATTEMPT_PAUSE;
    for attempt in 1..=ATTEMPTS_MAX {
        let error = match write().await {
            Ok(object) => return Some(object),
            Err(error) => error,
        };
        let code = if let kube::Error::Api(status) = &error { status.code } else { 0 };
        if expected.contains(&code) {
            return None;
        }
        if code == INVALID || attempt == ATTEMPTS_MAX {
            tracing::warn!(name, %error, "failed to write an object");
            return None;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    None
}

/// Creates a ClusterOperator, as its operator does when it finds none. A failure shows when the status
/// is written.
async fn create_operator(api: &Api<DynamicObject>, name: &str) {
    let object =
        DynamicObject::new(name, &api_resource(CLUSTER_OPERATOR)).data(json!({ "spec": {} }));
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    if let Err(error) = api.create(&params, &object).await {
        tracing::debug!(name, %error, "did not create a clusteroperator");
    }
}

/// Summarizes a report for the log.
fn summary(status: &ClusterOperatorStatus) -> String {
    let trouble = status.conditions.iter().find(|it| it.reason != "AsExpected");
    let version = status.versions.iter().find(|it| it.name == "operator");
    match (trouble, version) {
        (Some(condition), _) => condition.message.clone(),
        (None, Some(version)) => format!("At v{}", version.version),
        (None, None) => "All is well".to_owned(),
    }
}
