//! The one module that writes to a cluster.
//!
//! Everything is applied server-side under one field manager with forced ownership: what the
//! manifest drops is dropped, what others own is left alone.

use std::fmt::Debug;
use std::time::Duration;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, Status};
use kube::{Api, Client, ResourceExt};
use plimsoll_api::olm::DELETION_FINALIZER;
use plimsoll_api::{ACTION, CLUSTER_VERSION, CLUSTER_VERSION_NAME, OPERATOR, ObjectKey, Reason};
use plimsoll_plan::apply::fingerprint::FIELD_MANAGER;
use plimsoll_plan::apply::prepare::{self, PathPart};
use plimsoll_plan::health::failure;
use plimsoll_plan::plan::{Action, Step};
use plimsoll_plan::progress::{
    Deleted, Mark, Scope, StepBlocker, StepOutcome, Transience, TryError,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::observe::mark;
use crate::resources::{Served, api_resource};

/// How long one request may take before it counts as lost: longer than any healthy server needs.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// How often one manifest is tried again with refused fields dropped: manifests have a handful.
const REFUSALS_MAX: usize = 16;

/// The field manager of what the built-in provider of certificates writes.
const CERTIFICATE_MANAGER: &str = "plimsoll-certificates";

/// Writes to a cluster.
#[derive(Clone)]
pub(crate) struct Writer {
    client: Client,
    /// Whether a Deployment whose selector changes is deleted and created again.
    replaces_workloads: bool,
}

impl Writer {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, replaces_workloads: false }
    }

    /// The same, which deletes and creates a Deployment whose selector changes: no API server changes
    /// the selector of one that exists.
    pub(crate) fn replacing_workloads(self) -> Self {
        Self { replaces_workloads: true, ..self }
    }

    /// Executes a step. Failures are outcomes, not errors.
    pub(crate) async fn execute(&self, step: &Step, served: &Served) -> StepOutcome {
        self.execute_trusting(step, served, None).await
    }

    /// Executes a step whose object calls a service: the certificates (base64) that it trusts are set
    /// in it, if any are given.
    pub(crate) async fn execute_trusting(
        &self,
        step: &Step,
        served: &Served,
        ca_bundle: Option<&str>,
    ) -> StepOutcome {
        let work = async {
            match step.action {
                Action::Delete => {
                    self.delete(&step.manifest.key, served).await.map(StepOutcome::Deleted)
                }
                Action::CreateOnly => self.create(step, served).await.map(StepOutcome::Applied),
                Action::Apply | Action::Gate | Action::Refuse(_) => {
                    self.apply_step(step, served, ca_bundle).await.map(StepOutcome::Applied)
                }
            }
        };
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

    async fn apply_step(
        &self,
        step: &Step,
        served: &Served,
        ca_bundle: Option<&str>,
    ) -> Result<Mark, kube::Error> {
        let api = self.api(served, &step.manifest.key.namespace);
        let name = &step.manifest.key.name;
        let mut refused: Vec<Vec<PathPart>> = Vec::new();
        // What plain create and update would drop, server-side apply refuses: drop it, say so,
        // and try again. A server names some of the fields at a time, so this may take rounds.
        for _ in 0..REFUSALS_MAX {
            let body = body(step, served, &refused, ca_bundle)?;
            let status = match apply(&api, name, &*body).await {
                Err(kube::Error::Api(status)) => status,
                other => return other,
            };
            if self.replaces_workloads && is_other_selector(step, &status) {
                tracing::info!(object = %step.manifest.key, "its selector changes: it is replaced");
                let live = api.get_metadata_opt(name).await?;
                let uid = live.and_then(|live| live.metadata.uid).unwrap_or_default();
                self.delete_object(&step.manifest.key, served, &uid).await?;
                break;
            }
            if !note_refusal(step, &status, &mut refused) {
                return Err(kube::Error::Api(status));
            }
        }
        apply(&api, name, &*body(step, served, &refused, ca_bundle)?).await
    }

    /// Tries a step without effect: the object as it would be, `None` when there is nothing to try.
    pub(crate) async fn try_out(
        &self,
        step: &Step,
        served: &Served,
    ) -> Result<Option<DynamicObject>, kube::Error> {
        match step.action {
            Action::Delete | Action::Refuse(_) => return Ok(None),
            Action::Apply | Action::CreateOnly | Action::Gate => {}
        }
        let api = self.api(served, &step.manifest.key.namespace);
        let parameters = PatchParams::apply(FIELD_MANAGER).force().dry_run();
        let mut refused = Vec::new();
        for _ in 0..=REFUSALS_MAX {
            let body = body(step, served, &refused, None)?;
            let name = &step.manifest.key.name;
            match api.patch(name, &parameters, &Patch::Apply(&*body)).await {
                Err(kube::Error::Api(status)) => {
                    if !note_refusal(step, &status, &mut refused) {
                        return Err(kube::Error::Api(status));
                    }
                }
                other => return other.map(Some),
            }
        }
        Ok(None)
    }

    async fn create(&self, step: &Step, served: &Served) -> Result<Mark, kube::Error> {
        let object = prepare::object(step, served.scope);
        let object = DynamicObject::deserialize(&object).map_err(kube::Error::SerdeError)?;
        let api = self.api(served, &step.manifest.key.namespace);
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match api.create(&parameters, &object).await {
            Ok(created) => Ok(mark(&created.metadata)),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let live = api.get_metadata(&step.manifest.key.name).await?;
                Ok(mark(&live.metadata))
            }
            Err(error) => Err(error),
        }
    }

    /// Asks for the deletion of an object, and does not wait for its end.
    async fn delete(&self, key: &ObjectKey, served: &Served) -> Result<Deleted, kube::Error> {
        let api = self.api(served, &key.namespace);
        match api.delete(&key.name, &DeleteParams::default()).await.map(|answer| answer.left()) {
            // What goes later is answered with; what is gone may be too, but not as going.
            Ok(Some(object)) if object.metadata.deletion_timestamp.is_some() => Ok(Deleted::Going),
            Ok(_) => Ok(Deleted::Gone),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Deleted::Absent),
            Err(error) => Err(error),
        }
    }

    /// Asks for the deletion of the object of a uid, and does not wait for its end; one that is gone, or
    /// that another one took the place of, is no error.
    pub(crate) async fn delete_object(
        &self,
        key: &ObjectKey,
        served: &Served,
        uid: &str,
    ) -> Result<(), kube::Error> {
        delete_uid(self.api(served, &key.namespace), &key.name, uid).await.map(|_| ())
    }

    /// Adds or removes the finalizer of an Operator; refused if its finalizers are not as they were any
    /// more.
    pub(crate) async fn set_operator_finalizer(
        &self,
        name: &str,
        before: &[String],
        is_added: bool,
    ) -> Result<(), kube::Error> {
        let path = PointerBuf::from_tokens(["metadata", "finalizers"]);
        let mut after = before.to_vec();
        after.retain(|it| it != DELETION_FINALIZER);
        if is_added {
            after.push(DELETION_FINALIZER.to_owned());
        }
        let mut patch = Vec::new();
        if !before.is_empty() {
            let value = serde_json::json!(before);
            patch.push(PatchOperation::Test(TestOperation { path: path.clone(), value }));
        }
        let value = serde_json::json!(after);
        patch.push(PatchOperation::Add(AddOperation { path, value }));
        let patch = Patch::<()>::Json(json_patch::Patch(patch));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &api_resource(OPERATOR));
        match api.patch_metadata(name, &status_parameters(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 && !is_added => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Gives a ClusterOperator the related objects of its manifest, unless its operator has
    /// reported already.
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
            match api.patch_status(name, &status_parameters(), &Patch::Merge(&status)).await {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                other => other.map(|_| ()),
            }
        };
        if let Err::<(), kube::Error>(error) = fill.await {
            tracing::debug!(%error, operator = %name, "could not fill in related objects");
        }
    }

    /// Applies an object of our own making, such as a CustomResourceDefinition.
    pub(crate) async fn apply_own(
        &self,
        resource: &ApiResource,
        name: &str,
        object: &Value,
    ) -> Result<(), kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        apply(&api, name, object).await.map(|_| ())
    }

    /// Applies an object of our own making that has a namespace.
    pub(crate) async fn apply_own_in(
        &self,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        object: &Value,
    ) -> Result<(), kube::Error> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, resource);
        apply(&api, name, object).await.map(|_| ())
    }

    /// Fills the Secret of a serving certificate, and creates it if it is missing. Its data has a
    /// field manager of its own: whoever applies the rest of the Secret leaves it.
    pub(crate) async fn fill_secret(
        &self,
        namespace: &str,
        name: &str,
        secret: &Secret,
    ) -> Result<(), kube::Error> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let parameters = PatchParams::apply(CERTIFICATE_MANAGER).force();
        api.patch_metadata(name, &parameters, &Patch::Apply(secret)).await.map(|_| ())
    }

    /// Replaces a cluster-scoped object that trusts other certificates now; a conflict if it changed
    /// since it was read.
    pub(crate) async fn replace_trusting(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let field_manager = Some(CERTIFICATE_MANAGER.to_owned());
        let parameters = PostParams { field_manager, ..PostParams::default() };
        api.replace(&object.name_any(), &parameters, object).await.map(|_| ())
    }

    /// Creates an OperatorRevision, which never changes. One that exists is the same if it belongs to the
    /// same Operator and has the same objects.
    ///
    /// # Errors
    ///
    /// When another one of that name exists, such as one of an Operator that was deleted.
    pub(crate) async fn create_revision(
        &self,
        resource: &ApiResource,
        object: &Value,
    ) -> Result<(), kube::Error> {
        let object = DynamicObject::deserialize(object).map_err(kube::Error::SerdeError)?;
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match api.create(&parameters, &object).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let there = api.get(&object.name_any()).await?;
                let is_same = there.owner_references() == object.owner_references()
                    && there.data["spec"]["digest"] == object.data["spec"]["digest"];
                if is_same { Ok(()) } else { Err(kube::Error::Api(status)) }
            }
            other => other.map(|_| ()),
        }
    }

    /// Deletes an object of our own making; one that is gone already is no error.
    pub(crate) async fn delete_own(
        &self,
        resource: &ApiResource,
        name: &str,
    ) -> Result<(), kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        match api.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Creates an object of our own making; one that exists is left alone, but for what it lacks.
    ///
    /// By server-side apply, since a kube-apiserver lets an ordinary creation of a custom resource
    /// wait for two seconds while its definition is new.
    pub(crate) async fn create_own(
        &self,
        resource: &ApiResource,
        object: Value,
    ) -> Result<(), kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let parameters = PatchParams::apply(FIELD_MANAGER);
        match api.patch_metadata(name, &parameters, &Patch::Apply(&object)).await {
            Ok(_) => Ok(()),
            // Somebody else made it first, and differently.
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status of a cluster-scoped object, whole: a merge could not write the null that
    /// `availableUpdates` must have. It is a conflict if the object is not at `revision` any more.
    pub(crate) async fn write_status(
        &self,
        resource: &ApiResource,
        name: &str,
        status: &Value,
        revision: &str,
    ) -> Result<DynamicObject, kube::Error> {
        self.write_status_in("", resource, name, status, revision).await
    }

    /// The same for an object of a namespace.
    #[tracing::instrument(
        name = "write status", level = "debug", parent = None, skip_all,
        fields(kind = resource.kind, name), err(level = "debug")
    )]
    pub(crate) async fn write_status_in(
        &self,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        status: &Value,
        revision: &str,
    ) -> Result<DynamicObject, kube::Error> {
        let api = self.api_in(namespace, resource);
        let guard = PatchOperation::Replace(ReplaceOperation {
            path: PointerBuf::from_tokens(["metadata", "resourceVersion"]),
            value: revision.into(),
        });
        let add = AddOperation { path: PointerBuf::from_tokens(["status"]), value: status.clone() };
        let patch = Patch::<()>::Json(json_patch::Patch(vec![guard, PatchOperation::Add(add)]));
        api.patch_status(name, &status_parameters(), &patch).await
    }

    /// Creates an object of our own making in a namespace, or cluster-scoped without one; false if there is
    /// one of that name.
    pub(crate) async fn create_new(
        &self,
        namespace: &str,
        resource: &ApiResource,
        object: &Value,
    ) -> Result<bool, kube::Error> {
        let object = DynamicObject::deserialize(object).map_err(kube::Error::SerdeError)?;
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.api_in(namespace, resource).create(&parameters, &object).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Changes an object of our own making by operations, of which those that test guard the others.
    pub(crate) async fn patch_guarded(
        &self,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        operations: Vec<PatchOperation>,
    ) -> Result<(), kube::Error> {
        let patch = Patch::<()>::Json(json_patch::Patch(operations));
        let api = self.api_in(namespace, resource);
        api.patch_metadata(name, &status_parameters(), &patch).await.map(|_| ())
    }

    /// Whether a user may use a verb on all objects of a kind. Nothing is stored: this asks.
    pub(crate) async fn is_allowed(
        &self,
        user: &str,
        groups: &[String],
        request: ResourceAttributes,
    ) -> Result<bool, kube::Error> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                groups: Some(groups.to_vec()),
                resource_attributes: Some(request),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|it| it.allowed))
    }

    /// Cancels an Action, unless it is gone.
    pub(crate) async fn cancel_action(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<(), kube::Error> {
        let patch = Patch::Merge(serde_json::json!({ "spec": { "cancelled": true } }));
        let api = self.api_in(namespace, &api_resource(ACTION));
        match api.patch_metadata(name, &status_parameters(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            written => written.map(|_| ()),
        }
    }

    /// Deletes the object of a uid; false if it is gone, or another one has its name.
    pub(crate) async fn delete_uid(
        &self,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        uid: &str,
    ) -> Result<bool, kube::Error> {
        delete_uid(self.api_in(namespace, resource), name, uid).await
    }

    fn api_in(&self, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
        match namespace {
            "" => Api::all_with(self.client.clone(), resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, resource),
        }
    }

    /// Removes the owner reference at a position of an object, unless it is to another uid by now.
    pub(crate) async fn remove_owner(
        &self,
        served: &Served,
        key: &ObjectKey,
        position: usize,
        uid: &str,
    ) -> Result<(), kube::Error> {
        let position = position.to_string();
        let path = PointerBuf::from_tokens(["metadata", "ownerReferences", position.as_str()]);
        let guard = PointerBuf::from_tokens(["metadata", "ownerReferences", &position, "uid"]);
        let patch = Patch::<()>::Json(json_patch::Patch(vec![
            PatchOperation::Test(TestOperation { path: guard, value: uid.into() }),
            PatchOperation::Remove(RemoveOperation { path }),
        ]));
        let api = self.api(served, &key.namespace);
        match api.patch_metadata(&key.name, &status_parameters(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            settled => settled.map(|_| ()),
        }
    }

    /// Replaces an annotation of the ClusterVersion, or removes it; refused if it is not as it was
    /// any more.
    pub(crate) async fn replace_annotation(
        &self,
        name: &str,
        before: &str,
        after: Option<String>,
    ) -> Result<(), kube::Error> {
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &api_resource(CLUSTER_VERSION));
        let path = PointerBuf::from_tokens(["metadata", "annotations", name]);
        let guard = TestOperation { path: path.clone(), value: before.into() };
        let change = match after {
            Some(value) => PatchOperation::Replace(ReplaceOperation { path, value: value.into() }),
            None => PatchOperation::Remove(RemoveOperation { path }),
        };
        let patch = Patch::<()>::Json(json_patch::Patch(vec![PatchOperation::Test(guard), change]));
        api.patch_metadata(CLUSTER_VERSION_NAME, &status_parameters(), &patch).await.map(|_| ())
    }

    /// Creates or replaces a Lease; its resourceVersion guards against others.
    pub(crate) async fn write_lease(
        &self,
        namespace: &str,
        lease: &Lease,
    ) -> Result<Lease, kube::Error> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        match lease.metadata.resource_version {
            Some(_) => api.replace(name, &PostParams::default(), lease).await,
            None => api.create(&PostParams::default(), lease).await,
        }
    }

    /// Creates an Event; its name is of the moment, so there is none yet.
    pub(crate) async fn create_event(&self, event: &Event) -> Result<(), kube::Error> {
        let api = self.events(event);
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), dry_run: false };
        api.create(&parameters, event).await.map(|_| ())
    }

    /// Brings the count of an Event up to date; one that was cleaned away meanwhile is created.
    pub(crate) async fn count_event(&self, event: &Event) -> Result<(), kube::Error> {
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let patch = serde_json::json!({ "series": event.series });
        let parameters = status_parameters();
        match self.events(event).patch(name, &parameters, &Patch::Merge(&patch)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => self.create_event(event).await,
            settled => settled.map(|_| ()),
        }
    }

    fn events(&self, event: &Event) -> Api<Event> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }

    fn api(&self, served: &Served, namespace: &str) -> Api<DynamicObject> {
        let client = self.client.clone();
        match served.scope {
            Scope::Namespaced => Api::namespaced_with(client, namespace, &served.resource),
            Scope::Cluster => Api::all_with(client, &served.resource),
        }
    }
}

/// What is sent for a step. As text, since the value of a large definition takes ten times its
/// room, and dozens are under way at a time.
fn body(
    step: &Step,
    served: &Served,
    refused: &[Vec<PathPart>],
    ca_bundle: Option<&str>,
) -> Result<Box<RawValue>, kube::Error> {
    let mut object = prepare::object(step, served.scope);
    if let Some(ca_bundle) = ca_bundle {
        prepare::set_ca_bundles(&mut object, ca_bundle);
    }
    for path in refused {
        prepare::remove_field(&mut object, path);
    }
    to_raw_value(&object).map_err(kube::Error::SerdeError)
}

/// Adds the fields that a server refuses to know to those that are dropped, and says so; false when
/// it refuses for another reason.
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

async fn apply<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    name: &str,
    object: &T,
) -> Result<Mark, kube::Error> {
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    // Metadata alone comes back: that is all that is looked at.
    let applied = api.patch_metadata(name, &parameters, &Patch::Apply(object)).await?;
    Ok(mark(&applied.metadata))
}

/// Deletes the object of a uid in the background; false if it is gone, or another one has its name. The
/// conflict of a uid is one answer with that of another write, which is an error.
async fn delete_uid(api: Api<DynamicObject>, name: &str, uid: &str) -> Result<bool, kube::Error> {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
    let parameters =
        DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match api.delete(name, &parameters).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let found = api.get_metadata_opt(name).await?;
            let is_there = found.is_some_and(|it| it.metadata.uid.as_deref() == Some(uid));
            if is_there { Err(kube::Error::Api(status)) } else { Ok(false) }
        }
        Err(error) => Err(error),
    }
}

fn status_parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Whether a server refuses to change the selector of a Deployment.
fn is_other_selector(step: &Step, status: &Status) -> bool {
    let key = &step.manifest.key;
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut selectors = causes.filter(|cause| cause.field == "spec.selector");
    status.code == 422
        && (key.group.as_str(), key.kind.as_str()) == ("apps", "Deployment")
        && selectors.any(|cause| cause.message.contains("immutable"))
}

/// What a failed execution means for its step.
pub(crate) fn outcome(step: &Step, error: &kube::Error) -> StepOutcome {
    let kube::Error::Api(status) = error else {
        return StepOutcome::Failed(TryError {
            reason: Reason::UpdatePayloadClusterDown,
            cause: format!("the server is down or not responding: {}", chain(error)),
            transience: Transience::Transient,
            retry_after: None,
        });
    };
    if let Some(blocker) = blocker(step, status) {
        return StepOutcome::Blocked(blocker);
    }
    let (reason, mut cause) =
        failure::from_api_status(status.code, &status.reason, &status.message);
    if step.manifest.is_sensitive() {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let fields = causes.map(|cause| cause.field.as_str()).filter(|field| !field.is_empty());
        let fields: Vec<&str> = fields.collect();
        let message = failure::without_values(status.code, &status.message, &fields);
        cause = failure::cause(reason, &message);
    }
    let transient = matches!(status.code, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504);
    let retry_after = status
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds)
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.into()));
    StepOutcome::Failed(TryError {
        reason,
        cause,
        transience: if transient { Transience::Transient } else { Transience::Lasting },
        retry_after,
    })
}

/// Answers that mean that something the object needs is not there.
fn blocker(step: &Step, status: &Status) -> Option<StepBlocker> {
    let namespace = &step.manifest.key.namespace;
    let details = status.details.as_ref();
    let about = |kind: &str, name: &str| {
        details.is_some_and(|details| details.kind == kind && details.name == name)
    };
    let terminating = details.is_some_and(|details| {
        details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    });
    if status.code == 403 && terminating {
        Some(StepBlocker::NamespaceTerminating(namespace.clone()))
    } else if status.code != 404 {
        None
    } else if about("namespaces", namespace) {
        Some(StepBlocker::NamespaceMissing(namespace.clone()))
    } else if details.is_none_or(|details| details.name.is_empty()) {
        // Not even the path is known: the kind is not served, whatever discovery said before.
        Some(StepBlocker::KindNotServed(step.kind()))
    } else {
        None
    }
}

/// An error with all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
