//! Changes of parts of an object, each refused if another client has changed the object in the meantime.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use kube::Api;
use kube::api::Patch;
use kube::core::{ApiResource, DynamicObject};
use plimsoll_api::olm::action::ACTION_FINALIZER;
use plimsoll_api::olm::{DELETION_FINALIZER, SIGNATURE_ANNOTATION};
use plimsoll_api::{
    ACTION, CLUSTER_VERSION, CLUSTER_VERSION_NAME, NamespacedName, OPERATOR, OPERATOR_REVISION,
    ObjectKey,
};
use serde_json::{Value, json};

use super::{Writer, field_manager, unless_missing};
use crate::resources::{Served, api_resource, definitions};

impl Writer {
    /// Returns the operation that makes a patch a conflict if the object is not at `revision` any
    /// more.
    pub(crate) fn guard(revision: &str) -> PatchOperation {
        PatchOperation::Replace(ReplaceOperation {
            path: PointerBuf::from_tokens(["metadata", "resourceVersion"]),
            value: revision.into(),
        })
    }

    /// Changes an object by operations, of which [`Writer::guard`] and those that test guard the
    /// others.
    pub(crate) async fn patch_guarded(
        &self,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        operations: Vec<PatchOperation>,
    ) -> Result<(), kube::Error> {
        patch(self.api_in(namespace, resource), name, operations).await
    }

    /// Adds or removes the finalizer of an Operator, unless its finalizers have changed.
    pub(crate) async fn set_operator_finalizer(
        &self,
        name: &str,
        before: &[String],
        is_added: bool,
    ) -> Result<(), kube::Error> {
        let operations = set_finalizer(DELETION_FINALIZER, before, is_added);
        let written = self.patch_guarded("", &api_resource(OPERATOR), name, operations).await;
        if is_added { written } else { unless_missing(written) }
    }

    /// Adds or removes the finalizer of an Action. It is a conflict if the Action is not at `revision` any more.
    /// Returns its new revision; `None` if it is gone.
    pub(crate) async fn set_action_finalizer(
        &self,
        action: &NamespacedName,
        before: &[String],
        revision: &str,
        is_added: bool,
    ) -> Result<Option<String>, kube::Error> {
        let mut operations = vec![Self::guard(revision)];
        operations.extend(set_finalizer(ACTION_FINALIZER, before, is_added));
        let patch = Patch::<()>::Json(json_patch::Patch(operations));
        let api = self.api_in(&action.namespace, &api_resource(ACTION));
        match api.patch_metadata(&action.name, &field_manager(), &patch).await {
            Ok(written) => Ok(written.metadata.resource_version),
            Err(kube::Error::Api(status)) if status.code == 404 && !is_added => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes our finalizer from an OperatorRevision, that with a uid if one is given. It is no error if it is
    /// gone or has no such finalizer.
    pub(crate) async fn release_revision(
        &self,
        name: &str,
        uid: Option<&str>,
    ) -> Result<(), kube::Error> {
        let resource = api_resource(OPERATOR_REVISION);
        let found = self.api_in("", &resource).get_metadata_opt(name).await?;
        let Some(found) = found else { return Ok(()) };
        let before = found.metadata.finalizers.unwrap_or_default();
        let is_meant = uid.is_none_or(|uid| found.metadata.uid.as_deref() == Some(uid));
        if !is_meant || !before.iter().any(|it| it == DELETION_FINALIZER) {
            return Ok(());
        }
        let path = PointerBuf::from_tokens(["metadata", "uid"]);
        let value = json!(found.metadata.uid);
        let mut operations = vec![PatchOperation::Test(TestOperation { path, value })];
        operations.extend(set_finalizer(DELETION_FINALIZER, &before, false));
        unless_missing(self.patch_guarded("", &resource, name, operations).await)
    }

    /// Signs an OperatorRevision as it was read, and adds our finalizer unless it is being deleted.
    pub(crate) async fn sign_revision(
        &self,
        revision: &DynamicObject,
        signature: &str,
    ) -> Result<(), kube::Error> {
        let metadata = &revision.metadata;
        let set = |name: &str, value| {
            let path = PointerBuf::from_tokens(["metadata", name]);
            PatchOperation::Add(AddOperation { path, value })
        };
        let mut annotations = metadata.annotations.clone().unwrap_or_default();
        annotations.insert(SIGNATURE_ANNOTATION.to_owned(), signature.to_owned());
        let read_at = metadata.resource_version.as_deref().unwrap_or_default();
        let mut operations = vec![Self::guard(read_at), set("annotations", json!(annotations))];
        if metadata.deletion_timestamp.is_none() {
            let finalizers = with_finalizer(
                DELETION_FINALIZER,
                metadata.finalizers.as_deref().unwrap_or_default(),
                true,
            );
            operations.push(set("finalizers", json!(finalizers)));
        }
        let name = metadata.name.as_deref().unwrap_or_default();
        let resource = api_resource(OPERATOR_REVISION);
        unless_missing(self.patch_guarded("", &resource, name, operations).await)
    }

    /// Removes the conversion webhook of the definition with a uid if a service answers it. It is no error if
    /// the definition is gone.
    pub(crate) async fn remove_conversion(
        &self,
        definition: &str,
        uid: &str,
        service: &ObjectKey,
    ) -> Result<(), kube::Error> {
        let api = self.api_in("", &definitions());
        let Some(live) = api.get_opt(definition).await? else { return Ok(()) };
        let conversion = &live.data["spec"]["conversion"];
        let called = &conversion["webhook"]["clientConfig"]["service"];
        let is_meant = conversion["strategy"] == "Webhook"
            && called["namespace"] == service.namespace
            && called["name"] == service.name;
        if !is_meant || live.metadata.uid.as_deref() != Some(uid) {
            return Ok(());
        }
        let path = PointerBuf::from_tokens(["spec", "conversion"]);
        let of = PointerBuf::from_tokens(["metadata", "uid"]);
        let value = conversion.clone();
        let operations = vec![
            PatchOperation::Test(TestOperation { path: of, value: uid.into() }),
            PatchOperation::Test(TestOperation { path: path.clone(), value }),
            PatchOperation::Replace(ReplaceOperation {
                path,
                value: json!({ "strategy": "None" }),
            }),
        ];
        unless_missing(self.patch_guarded("", &definitions(), definition, operations).await)
    }

    /// Removes the owner reference at a position of an object, unless it has another uid by now.
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
        let operations = vec![
            PatchOperation::Test(TestOperation { path: guard, value: uid.into() }),
            PatchOperation::Remove(RemoveOperation { path }),
        ];
        let api = self.api(served, &key.namespace);
        unless_missing(patch(api, &key.name, operations).await)
    }

    /// Replaces an annotation of the ClusterVersion or removes it, unless its value has changed.
    pub(crate) async fn replace_annotation(
        &self,
        name: &str,
        before: &str,
        after: Option<String>,
    ) -> Result<(), kube::Error> {
        let path = PointerBuf::from_tokens(["metadata", "annotations", name]);
        let guard = TestOperation { path: path.clone(), value: before.into() };
        let change = match after {
            Some(value) => PatchOperation::Replace(ReplaceOperation { path, value: value.into() }),
            None => PatchOperation::Remove(RemoveOperation { path }),
        };
        let operations = vec![PatchOperation::Test(guard), change];
        let resource = api_resource(CLUSTER_VERSION);
        self.patch_guarded("", &resource, CLUSTER_VERSION_NAME, operations).await
    }

    /// Replaces the whole status of a cluster-scoped object: a merge could not write the null that
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

    /// Replaces the whole status of an object in a namespace.
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
        let add = AddOperation { path: PointerBuf::from_tokens(["status"]), value: status.clone() };
        let operations = vec![Self::guard(revision), PatchOperation::Add(add)];
        let patch = Patch::<()>::Json(json_patch::Patch(operations));
        api.patch_status(name, &field_manager(), &patch).await
    }
}

/// Returns the operations that add or remove a finalizer, unless there are other ones than `before` by then.
fn set_finalizer(finalizer: &str, before: &[String], is_added: bool) -> Vec<PatchOperation> {
    let path = PointerBuf::from_tokens(["metadata", "finalizers"]);
    let mut operations = Vec::new();
    if !before.is_empty() {
        let value = json!(before);
        operations.push(PatchOperation::Test(TestOperation { path: path.clone(), value }));
    }
    let value = json!(with_finalizer(finalizer, before, is_added));
    operations.push(PatchOperation::Add(AddOperation { path, value }));
    operations
}

/// Returns finalizers with or without one.
fn with_finalizer(finalizer: &str, before: &[String], is_added: bool) -> Vec<String> {
    let mut after = before.to_vec();
    after.retain(|it| it != finalizer);
    if is_added {
        after.push(finalizer.to_owned());
    }
    after
}

async fn patch(
    api: Api<DynamicObject>,
    name: &str,
    operations: Vec<PatchOperation>,
) -> Result<(), kube::Error> {
    let patch = Patch::<()>::Json(json_patch::Patch(operations));
    api.patch_metadata(name, &field_manager(), &patch).await.map(|_| ())
}
