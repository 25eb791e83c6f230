//! The execution of the steps of a plan.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{DynamicObject, Status};
use kube::{Api, ResourceExt as _};
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::{ObjectKey, Reason};
use plimsoll_content::immutable;
use plimsoll_plan::apply::fingerprint::FIELD_MANAGER;
use plimsoll_plan::apply::prepare::{self, PathPart};
use plimsoll_plan::plan::{Action, Step};
use plimsoll_plan::progress::{Deleted, Mark, StepOutcome, Transience, TryError};
use serde::Deserialize as _;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::failures::{missing_namespace, outcome, unchangeable_fields};
use super::replacement::{check_replacement, going};
use super::takeover::apply;
use super::unions::{apply_in_place, replacement, try_in_place};
use super::{Writer, create_parameters, delete_uid, field_manager};
use crate::observe::mark;
use crate::ownership;
use crate::resources::Served;

/// The maximum duration of a request. A healthy API server needs less, so the request counts as lost.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// The maximum number of attempts to apply a manifest, each without the fields that the API server refused.
const REFUSALS_MAX: usize = 16;

/// The result of a step that was tried.
#[derive(Debug)]
pub(crate) struct TriedObject {
    /// The object as it would be.
    pub(crate) object: DynamicObject,
    /// The fields that no update changes and for which it would be deleted and created again; empty if it
    /// would be updated.
    pub(crate) replaced_for: Vec<String>,
}

impl Writer {
    /// Executes a step. Failures are outcomes, not errors.
    pub(crate) async fn execute(&self, step: &Step, served: &Served) -> StepOutcome {
        self.execute_trusting(step, served, None).await
    }

    /// Executes a step whose object calls a service, and sets the certificates that it trusts (base64), if
    /// any are given.
    pub(crate) async fn execute_trusting(
        &self,
        step: &Step,
        served: &Served,
        ca_bundle: Option<&str>,
    ) -> StepOutcome {
        let work = self.carry_out(step, served, ca_bundle);
        match tokio::time::timeout(REQUEST_TIME_MAX, work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => outcome(step, &error),
            Err(_) => StepOutcome::Failed(TryError {
                reason: Reason::UpdatePayloadClusterDown,
                cause: format!(
                    "the server is down or not responding: no answer within {} seconds",
                    REQUEST_TIME_MAX.as_secs()
                ),
                transience: Transience::Transient,
                retry_after: None,
            }),
        }
    }

    async fn carry_out(
        &self,
        step: &Step,
        served: &Served,
        ca_bundle: Option<&str>,
    ) -> Result<StepOutcome, kube::Error> {
        if let Some(error) = missing_namespace(step, served) {
            return Ok(StepOutcome::Failed(error));
        }
        if let Some(refusal) = self.refusal(step, served).await? {
            return Ok(StepOutcome::Failed(refusal));
        }
        match step.action {
            Action::Delete => {
                self.delete(&step.manifest.key, served).await.map(StepOutcome::Deleted)
            }
            Action::CreateOnly => self.create(step, served).await.map(StepOutcome::Applied),
            Action::Migrate => self.migrate(step, served).await,
            Action::Apply | Action::Gate | Action::Refuse(_) => {
                self.apply_step(step, served, ca_bundle).await
            }
        }
    }

    async fn apply_step(
        &self,
        step: &Step,
        served: &Served,
        ca_bundle: Option<&str>,
    ) -> Result<StepOutcome, kube::Error> {
        let api = self.api(served, &step.manifest.key.namespace);
        let name = &step.manifest.key.name;
        let kept = kept_conversion(&api, step).await?;
        let mut refused: Vec<Vec<PathPart>> = Vec::new();
        // What plain create and update would drop, server-side apply refuses: drop it, say so,
        // and try again. A server names some of the fields at a time, so this may take rounds.
        for _ in 0..REFUSALS_MAX {
            let body = self.body(step, served, &refused, ca_bundle, kept.as_ref())?;
            let status = match apply(&api, step, &*body).await {
                Err(kube::Error::Api(status)) => status,
                other => return other.map(StepOutcome::Applied),
            };
            if self.is_replaced(step, &status) {
                check_replacement(&api, step, &body).await?;
                tracing::info!(
                    object = %step.manifest.key,
                    "a field changes that no update changes: it is replaced"
                );
                let live = api.get_metadata_opt(name).await?;
                let uid = live.and_then(|live| live.metadata.uid).unwrap_or_default();
                self.delete_object(&step.manifest.key, served, &uid).await?;
                // It is applied again when it is gone.
                match api.get_metadata_opt(name).await? {
                    Some(left) if left.metadata.deletion_timestamp.is_some() => {
                        return Ok(going(step, &left.metadata));
                    }
                    _ => break,
                }
            }
            if let Some(mark) = apply_in_place(&api, step, &*body, &status).await? {
                return Ok(StepOutcome::Applied(mark));
            }
            if !note_refusal(step, &status, &mut refused) {
                return Err(kube::Error::Api(status));
            }
        }
        let body = self.body(step, served, &refused, ca_bundle, kept.as_ref())?;
        apply(&api, step, &*body).await.map(StepOutcome::Applied)
    }

    /// Returns whether the object of a step is deleted and created again after this refusal.
    fn is_replaced(&self, step: &Step, status: &Status) -> bool {
        let fields = unchangeable_fields(step, status);
        let is_selector = || fields.iter().any(|field| field == "spec.selector");
        let key = &step.manifest.key;
        let is_workload = (key.group.as_str(), key.kind.as_str()) == ("apps", "Deployment");
        !fields.is_empty() && immutable::is_replaced(&step.manifest)
            || self.replaces_workloads && is_workload && is_selector()
    }

    /// Returns the object that a step would result in, by a dry run; `None` if the step applies none.
    /// `ca_bundle` is as for the execution.
    pub(crate) async fn try_out(
        &self,
        step: &Step,
        served: &Served,
        ca_bundle: Option<&str>,
    ) -> Result<Option<TriedObject>, kube::Error> {
        let updated = |object| TriedObject { object, replaced_for: Vec::new() };
        match step.action {
            Action::Delete | Action::Refuse(_) => return Ok(None),
            Action::Migrate => return Ok(self.try_migration(step, served).await?.map(updated)),
            Action::Apply | Action::CreateOnly | Action::Gate => {}
        }
        let api = self.api(served, &step.manifest.key.namespace);
        let parameters = PatchParams::apply(FIELD_MANAGER).force().dry_run();
        let kept = kept_conversion(&api, step).await?;
        let mut refused = Vec::new();
        for _ in 0..=REFUSALS_MAX {
            let body = self.body(step, served, &refused, ca_bundle, kept.as_ref())?;
            let name = &step.manifest.key.name;
            match api.patch(name, &parameters, &Patch::Apply(&*body)).await {
                Err(kube::Error::Api(status)) => {
                    if self.is_replaced(step, &status) {
                        check_replacement(&api, step, &body).await?;
                        let object = replacement(&api, step, &body).await?;
                        let replaced_for = unchangeable_fields(step, &status);
                        return Ok(Some(TriedObject { object, replaced_for }));
                    }
                    if let Some(object) = try_in_place(&api, step, &*body, &status).await? {
                        return Ok(Some(updated(object)));
                    }
                    if !note_refusal(step, &status, &mut refused) {
                        return Err(kube::Error::Api(status));
                    }
                }
                other => return other.map(|object| Some(updated(object))),
            }
        }
        Ok(None)
    }

    async fn create(&self, step: &Step, served: &Served) -> Result<Mark, kube::Error> {
        let object = self.object(step, served);
        let object = DynamicObject::deserialize(&object).map_err(kube::Error::SerdeError)?;
        let api = self.api(served, &step.manifest.key.namespace);
        match api.create(&create_parameters(), &object).await {
            Ok(created) => Ok(mark(&created.metadata)),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let live = api.get_metadata(&step.manifest.key.name).await?;
                Ok(mark(&live.metadata))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the object that a step applies. The label of an Operator shows whose the object is, so that a
    /// release does not apply it.
    fn object(&self, step: &Step, served: &Served) -> Value {
        let mut object = prepare::object(step, served.scope);
        let labels = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
        if let Some(labels) = labels.filter(|_| self.is_of_release) {
            labels.remove(OPERATOR_LABEL);
        }
        object
    }

    /// Returns the object to send for a step, with the conversion that it keeps, if it keeps one. It is text,
    /// since the value of a large definition takes ten times the memory, and dozens are sent at a time.
    fn body(
        &self,
        step: &Step,
        served: &Served,
        refused: &[Vec<PathPart>],
        ca_bundle: Option<&str>,
        kept_conversion: Option<&Value>,
    ) -> Result<Box<RawValue>, kube::Error> {
        let mut object = self.object(step, served);
        if let Some(ca_bundle) = ca_bundle {
            prepare::set_ca_bundles(&mut object, ca_bundle);
        }
        if let Some(conversion) = kept_conversion {
            object["spec"]["conversion"] = conversion.clone();
        }
        for path in refused {
            prepare::remove_field(&mut object, path);
        }
        to_raw_value(&object).map_err(kube::Error::SerdeError)
    }

    /// Returns why a step of a release is not executed: its object belongs to an Operator. `None` if it does
    /// not.
    async fn refusal(&self, step: &Step, served: &Served) -> Result<Option<TryError>, kube::Error> {
        if !self.is_of_release || !self.has_operators {
            return Ok(None);
        }
        let key = &step.manifest.key;
        let live = self.api(served, &key.namespace).get_metadata_opt(&key.name).await?;
        let Some(live) = live else { return Ok(None) };
        let holder = ownership::holder(&self.client, step, &live.metadata).await?;
        Ok(holder.map(|operator| ownership::refusal(step, &operator)))
    }

    /// Requests the deletion of an object, and does not wait for its end.
    async fn delete(&self, key: &ObjectKey, served: &Served) -> Result<Deleted, kube::Error> {
        let api = self.api(served, &key.namespace);
        match api.delete(&key.name, &DeleteParams::default()).await.map(|answer| answer.left()) {
            // The response may have the object in either case.
            Ok(Some(object)) if object.metadata.deletion_timestamp.is_some() => Ok(Deleted::Going),
            Ok(_) => Ok(Deleted::Gone),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Deleted::Absent),
            Err(error) => Err(error),
        }
    }

    /// Requests the deletion of the object with a uid, and does not wait for its end. It is no error if the
    /// object is gone or another one has its name.
    pub(crate) async fn delete_object(
        &self,
        key: &ObjectKey,
        served: &Served,
        uid: &str,
    ) -> Result<(), kube::Error> {
        delete_uid(self.api(served, &key.namespace), &key.name, uid).await.map(|_| ())
    }

    /// Writes the related objects of its manifest to the status of a ClusterOperator, unless its operator
    /// has reported already.
    pub(crate) async fn fast_fill(&self, step: &Step, served: &Served) {
        let Some(mut status) = prepare::fast_fill(step) else {
            return;
        };
        let api = self.api(served, "");
        let name = &step.manifest.key.name;
        let fill = async {
            let there = api.get(name).await?;
            if there.data.get("status").is_some_and(|it| *it != serde_json::json!({})) {
                return Ok(());
            }
            status["metadata"] = serde_json::json!({ "resourceVersion": there.resource_version() });
            match api.patch_status(name, &field_manager(), &Patch::Merge(&status)).await {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                other => other.map(|_| ()),
            }
        };
        if let Err::<(), kube::Error>(error) = fill.await {
            tracing::debug!(%error, operator = %name, "could not fill in related objects");
        }
    }
}

/// Returns the conversion webhook that the definition of a step has in the cluster and keeps; `None` if it has
/// none, or the step sets the conversion.
async fn kept_conversion(
    api: &Api<DynamicObject>,
    step: &Step,
) -> Result<Option<Value>, kube::Error> {
    if !step.is_repeated || step.manifest.definition.is_none() {
        return Ok(None);
    }
    let live = api.get_opt(&step.manifest.key.name).await?;
    let conversion = live.map(|live| live.data["spec"]["conversion"].clone());
    Ok(conversion.filter(|it| it["strategy"] == "Webhook"))
}

/// Adds the fields that the API server does not know to those that are dropped, and logs them; returns false
/// if it refuses the object for another reason.
fn note_refusal(step: &Step, status: &Status, refused: &mut Vec<Vec<PathPart>>) -> bool {
    let paths = prepare::undeclared_fields(&status.message);
    let fresh: Vec<_> = paths.into_iter().filter(|path| !refused.contains(path)).collect();
    let names: Vec<String> = fresh.iter().map(|path| prepare::display_path(path)).collect();
    if fresh.is_empty() {
        return false;
    }
    tracing::warn!(
        file = %step.manifest.file,
        object = %step.manifest.key,
        fields = %names.join(", "),
        "the server does not know these fields; they are dropped"
    );
    refused.extend(fresh);
    true
}
