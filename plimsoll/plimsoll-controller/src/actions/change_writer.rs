//! The writes of the changes of a plan. Each write can be repeated: a change that the API server
//! already has counts as written.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use plimsoll_api::olm::action::{CREATED_BY_ANNOTATION, ChangeOperation, PlannedChange};
use plimsoll_api::olm::{CHANGE_SET_ANNOTATION, INSTALLED_AS_LABEL, INSTALLED_AS_USER};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME, OPERATOR};
use plimsoll_operators::actions::release::ObservedRelease;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::observed::ObservedOperator;
use serde_json::{Value, json};

use crate::listing_watch::WatchedObject;
use crate::resources::api_resource;
use crate::write::{Writer, chain};

/// The maximum number of attempts to write an object while other clients change it.
const CONFLICTS_MAX: usize = 5;

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// The API server has the change.
    Done,
    /// The object is not in the state that the plan was made for; the text says how it differs.
    Stale(String),
    /// The API server rejects the change; the text says why.
    Rejected(String),
    /// The write failed and has to be tried again; the text says why.
    Failed(String),
}

/// The writer of the changes of plans.
#[derive(Clone)]
pub(super) struct ChangeWriter {
    client: Client,
    writer: Writer,
    resource: ApiResource,
}

impl ChangeWriter {
    pub(super) fn new(client: Client, writer: Writer) -> Self {
        Self { client, writer, resource: api_resource(OPERATOR) }
    }

    /// Writes one change of the plan of an Action.
    pub(super) async fn write(
        &self,
        action: &ActionObject,
        change: &PlannedChange,
    ) -> WriteOutcome {
        let written = match change.operation {
            ChangeOperation::Create => self.create_operator(action, change).await,
            ChangeOperation::Update => self.update(change).await,
            ChangeOperation::Delete => self.delete_operator(change).await,
            ChangeOperation::UpdateRelease | ChangeOperation::EnableCapability => {
                self.change_release(change).await
            }
            ChangeOperation::Await => Ok(WriteOutcome::Done),
        };
        written.unwrap_or_else(|error| match &error {
            kube::Error::Api(status) if !matches!(status.code, 401 | 409 | 429 | 500..) => {
                WriteOutcome::Rejected(format!("{}: {}", change.subject(), status.message))
            }
            error => WriteOutcome::Failed(format!("{}: {}", change.subject(), chain(error))),
        })
    }

    /// Returns whether the API server has a change. It may have been written although no response
    /// was received.
    pub(super) async fn is_written(
        &self,
        action: &ActionObject,
        change: &PlannedChange,
    ) -> Result<bool, kube::Error> {
        if change.is_release() {
            let found = self.read_release().await?.filter(|it| it.uid == change.uid);
            return Ok(found.is_some_and(|it| match change.operation {
                ChangeOperation::EnableCapability => {
                    it.requested_capabilities().contains(&change.capability)
                }
                _ => it.requested() == change.requested,
            }));
        }
        let found = self.read(&change.operator).await?.map(|(_, it)| it);
        Ok(match change.operation {
            ChangeOperation::Create => {
                found.is_some_and(|it| it.created_by.as_deref() == Some(&action.uid))
            }
            ChangeOperation::Delete => {
                found.is_none_or(|it| it.uid != change.uid || it.is_deleting)
            }
            _ => found.is_some_and(|it| {
                let is_other = change.requested != change.requested_before;
                is_other && it.uid == change.uid && it.spec.version == change.requested
            }),
        })
    }

    async fn create_operator(
        &self,
        action: &ActionObject,
        change: &PlannedChange,
    ) -> Result<WriteOutcome, kube::Error> {
        let name = &change.operator;
        let mut manifest = change.manifest.clone().unwrap_or_default();
        // The name that policies were evaluated for is the one that is created, whatever the
        // manifest in the status says.
        manifest["metadata"]["name"] = name.as_str().into();
        manifest["metadata"]["annotations"][CREATED_BY_ANNOTATION] = action.uid.as_str().into();
        if !change.change_set.is_empty() {
            let set = change.change_set.as_str().into();
            manifest["metadata"]["annotations"][CHANGE_SET_ANNOTATION] = set;
        }
        if self.writer.create_new("", &self.resource, &manifest).await? {
            return Ok(WriteOutcome::Done);
        }
        Ok(match self.read(name).await? {
            Some((_, there)) if there.created_by.as_deref() == Some(&action.uid) => {
                WriteOutcome::Done
            }
            Some(_) => WriteOutcome::Stale(format!("another client created {name}")),
            None => WriteOutcome::Failed(format!("{name} was there and is gone")),
        })
    }

    async fn delete_operator(&self, change: &PlannedChange) -> Result<WriteOutcome, kube::Error> {
        let name = &change.operator;
        let found = self.read(name).await?;
        if let Some((object, _)) = found.filter(|(_, it)| it.uid == change.uid && !it.is_deleting) {
            if !has_fields(&object, change) {
                let mut operations = vec![unchanged(&object)];
                operations.extend(fields(&object, change));
                match self.writer.patch_guarded("", &self.resource, name, operations).await {
                    Err(kube::Error::Api(status)) if status.code == 409 => {
                        return Ok(WriteOutcome::Failed(format!("{name} keeps changing")));
                    }
                    written => written?,
                }
            }
            self.writer.delete_uid("", &self.resource, name, &change.uid).await?;
        }
        Ok(WriteOutcome::Done)
    }

    async fn update(&self, change: &PlannedChange) -> Result<WriteOutcome, kube::Error> {
        let name = &change.operator;
        for _ in 0..CONFLICTS_MAX {
            let Some((object, there)) =
                self.read(name).await?.filter(|(_, it)| it.uid == change.uid)
            else {
                return Ok(WriteOutcome::Stale(format!("{name} was deleted")));
            };
            let is_in_set = change.change_set.is_empty()
                || there.change_set.as_deref() == Some(change.change_set.as_str());
            let is_of_catalog =
                change.repository.is_empty() || there.spec.repository == change.repository;
            let has_label = !change.becomes_requested || !there.is_dependency;
            let is_there = there.spec.version == change.requested && has_fields(&object, change);
            if is_there && is_in_set && is_of_catalog && has_label {
                return Ok(WriteOutcome::Done);
            }
            if there.spec.version != change.requested_before {
                let requested = &there.spec.version;
                return Ok(WriteOutcome::Stale(format!("{requested:?} was requested of {name}")));
            }
            match self.writer.patch_guarded("", &self.resource, name, update(&object, change)).await
            {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return written.map(|()| WriteOutcome::Done),
            }
        }
        Ok(WriteOutcome::Failed(format!("{name} keeps changing")))
    }

    async fn change_release(&self, change: &PlannedChange) -> Result<WriteOutcome, kube::Error> {
        let resource = api_resource(CLUSTER_VERSION);
        for _ in 0..CONFLICTS_MAX {
            let found = self.read_cluster_version().await?;
            let Some((object, there)) = found.filter(|(_, it)| it.uid == change.uid) else {
                return Ok(WriteOutcome::Stale("the ClusterVersion was deleted".to_owned()));
            };
            if let Some(message) = there.refusal() {
                return Ok(WriteOutcome::Failed(message));
            }
            let operations = match change.operation {
                ChangeOperation::EnableCapability => {
                    if there.requested_capabilities().contains(&change.capability) {
                        return Ok(WriteOutcome::Done);
                    }
                    enable(&object, change)
                }
                _ => {
                    let requested = there.requested();
                    if requested == change.requested {
                        return Ok(WriteOutcome::Done);
                    }
                    if requested != change.requested_before {
                        return Ok(WriteOutcome::Stale(format!(
                            "release {requested:?} was requested"
                        )));
                    }
                    let update = json!({ "version": change.requested });
                    vec![unchanged(&object), add(&["spec", "desiredUpdate"], update)]
                }
            };
            match self.writer.patch_guarded("", &resource, CLUSTER_VERSION_NAME, operations).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return written.map(|()| WriteOutcome::Done),
            }
        }
        Ok(WriteOutcome::Failed("the ClusterVersion keeps changing".to_owned()))
    }

    /// Withdraws a request for a release that the platform has not followed, so that it is not
    /// followed later.
    pub(super) async fn withdraw(&self, change: &PlannedChange) -> Result<(), kube::Error> {
        let Some((object, there)) = self.read_cluster_version().await? else { return Ok(()) };
        if there.uid != change.uid || !there.is_unfollowed(&change.requested) {
            return Ok(());
        }
        let resource = api_resource(CLUSTER_VERSION);
        let path = path(&["spec", "desiredUpdate"]);
        let operations = vec![unchanged(&object), PatchOperation::Remove(RemoveOperation { path })];
        self.writer.patch_guarded("", &resource, CLUSTER_VERSION_NAME, operations).await
    }

    /// Returns what the ClusterVersion requests and reports; `None` if there is none.
    pub(super) async fn read_release(&self) -> Result<Option<ObservedRelease>, kube::Error> {
        Ok(self.read_cluster_version().await?.map(|(_, release)| release))
    }

    async fn read_cluster_version(&self) -> Result<Option<(Value, ObservedRelease)>, kube::Error> {
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &api_resource(CLUSTER_VERSION));
        let found = api.get_opt(CLUSTER_VERSION_NAME).await?.map(WatchedObject::into_value);
        Ok(found.map(|value| {
            let observed = ObservedRelease::read(&value);
            (value, observed)
        }))
    }

    /// Removes the annotation of a change set from an Operator that has it.
    pub(super) async fn leave(&self, change: &PlannedChange) -> Result<(), kube::Error> {
        let name = &change.operator;
        let is_in_set = |(_, it): &(Value, ObservedOperator)| {
            it.change_set.as_deref() == Some(change.change_set.as_str())
        };
        if self.read(name).await?.as_ref().is_none_or(|it| !is_in_set(it)) {
            return Ok(());
        }
        let path = PointerBuf::from_tokens(["metadata", "annotations", CHANGE_SET_ANNOTATION]);
        let value = change.change_set.as_str().into();
        let operations = vec![
            PatchOperation::Test(TestOperation { path: path.clone(), value }),
            PatchOperation::Remove(RemoveOperation { path }),
        ];
        self.writer.patch_guarded("", &self.resource, name, operations).await
    }

    async fn read(&self, name: &str) -> Result<Option<(Value, ObservedOperator)>, kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &self.resource);
        let found = api.get_opt(name).await?;
        Ok(found.map(|object| {
            let value = serde_json::to_value(object).unwrap_or_default();
            let observed = ObservedOperator::read(&value);
            (value, observed)
        }))
    }
}

fn path(tokens: &[&str]) -> PointerBuf {
    PointerBuf::from_tokens(tokens.iter().copied())
}

fn add(tokens: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: path(tokens), value })
}

/// Returns the operation that makes a patch fail if the object was changed since it was read.
fn unchanged(object: &Value) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation {
        path: path(&["metadata", "resourceVersion"]),
        value: object["metadata"]["resourceVersion"].clone(),
    })
}

/// Returns the patch that requests a capability in a ClusterVersion. It fails if the object was
/// changed since it was read.
fn enable(object: &Value, change: &PlannedChange) -> Vec<PatchOperation> {
    let name = change.capability.as_str();
    let (field, list) = ("capabilities", "additionalEnabledCapabilities");
    let requested = &object["spec"][field];
    let operation = if requested[list].is_array() {
        add(&["spec", field, list, "-"], name.into())
    } else if requested.is_object() {
        add(&["spec", field, list], json!([name]))
    } else {
        add(&["spec", field], json!({ list: [name] }))
    };
    vec![unchanged(object), operation]
}

/// Returns the operations that set the other fields of the spec of an Operator. What they do not say
/// of a field stays as it is.
fn fields(object: &Value, change: &PlannedChange) -> Vec<PatchOperation> {
    let wanted = change.spec_fields.as_ref().and_then(Value::as_object).into_iter().flatten();
    let operations = wanted.map(|(field, wanted)| {
        let mut value = object["spec"][field].clone();
        json_patch::merge(&mut value, wanted);
        add(&["spec", field], value)
    });
    operations.collect()
}

/// Returns whether an Operator has the other fields of its spec as a change sets them.
fn has_fields(object: &Value, change: &PlannedChange) -> bool {
    let mut spec = object["spec"].clone();
    if let Some(fields) = &change.spec_fields {
        json_patch::merge(&mut spec, fields);
    }
    spec == object["spec"]
}

/// Returns the patch that updates an Operator. It fails if the object was changed since it was
/// read.
fn update(object: &Value, change: &PlannedChange) -> Vec<PatchOperation> {
    let mut operations = vec![unchanged(object)];
    if !change.requested.is_empty() {
        operations.push(add(&["spec", "version"], change.requested.as_str().into()));
    } else if object["spec"]["version"].is_string() {
        let path = path(&["spec", "version"]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    if !change.repository.is_empty() {
        operations.push(add(&["spec", "repository"], change.repository.as_str().into()));
    }
    operations.extend(fields(object, change));
    // The label is there: it says that the Operator is a dependency.
    if change.becomes_requested && object["metadata"]["labels"].is_object() {
        operations.push(add(&["metadata", "labels", INSTALLED_AS_LABEL], INSTALLED_AS_USER.into()));
    }
    if !change.change_set.is_empty() {
        if !object["metadata"]["annotations"].is_object() {
            operations.push(add(&["metadata", "annotations"], json!({})));
        }
        let set = change.change_set.as_str().into();
        operations.push(add(&["metadata", "annotations", CHANGE_SET_ANNOTATION], set));
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_a_dependency_that_is_asked_for_is_that_of_a_person() {
        for (becomes_requested, label) in [(false, "dependency"), (true, "user")] {
            let mut object = json!({
                "metadata": {
                    "resourceVersion": "7",
                    "labels": { "team": "quay", "olm.io/installed-as": "dependency" },
                },
                "spec": { "version": "1.2.5" },
            });
            let requested = "1.2.5".to_owned();
            let change = PlannedChange { requested, becomes_requested, ..PlannedChange::default() };
            let operations = update(&object, &change);
            json_patch::patch(&mut object, &operations).expect("a patch of the object");
            let labels = json!({ "team": "quay", "olm.io/installed-as": label });
            assert_eq!(object["metadata"]["labels"], labels);
        }
    }
}
