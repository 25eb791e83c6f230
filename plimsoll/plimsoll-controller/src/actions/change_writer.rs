//! The writes of the changes of a plan. Each can be repeated: a change that the API server has, or
//! had before another client reverted it, is not written again.

use std::collections::BTreeSet;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::olm::action::{
    CHANGED_BY_ANNOTATION, CREATED_BY_ANNOTATION, CREATED_IN_ANNOTATION, ChangeOperation,
    INSPECTED_ANNOTATION, PlannedChange, TRIGGERED_BY_ANNOTATION, TRIGGERED_GENERATION_ANNOTATION,
};
use plimsoll_api::olm::{CHANGE_SET_ANNOTATION, INSTALLED_AS_LABEL, INSTALLED_AS_USER};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME, OPERATOR};
use plimsoll_operators::actions::execution::arrival::{Arrival, FoundObject, arrival, mark};
use plimsoll_operators::actions::plan::requests_anew;
use plimsoll_operators::actions::release::ObservedRelease;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::inspected::InspectedContent;
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_operators::update::is_set_of_update;
use serde_json::{Value, json};

use crate::listing_watch::WatchedObject;
use crate::resources::api_resource;
use crate::write::{Writer, chain};

/// The generation of an object that is created.
const FIRST_GENERATION: i64 = 1;
/// The maximum number of attempts to write an object while other clients change it.
const CONFLICTS_MAX: usize = 5;

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// The API server has the change.
    Done,
    /// The object is not in the state that the plan was made for; the text says how it differs.
    Stale(String),
    /// Whether the API server had the change cannot be found out; the text says why.
    Unknown(String),
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

    /// Writes the change at a position of the plan of an Action.
    pub(super) async fn write(&self, action: &ActionObject, at: usize) -> WriteOutcome {
        let change = &action.status.plan[at];
        let written = match change.operation {
            ChangeOperation::Create => self.create_operator(action, change).await,
            ChangeOperation::Update => self.update(action, at, change).await,
            ChangeOperation::Delete => self.delete_operator(change).await,
            ChangeOperation::UpdateRelease | ChangeOperation::EnableCapability => {
                self.change_release(action, at, change).await
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

    /// Returns the object that a change is about, as the API server has it now; `None` if there is
    /// none.
    pub(super) async fn find(
        &self,
        change: &PlannedChange,
    ) -> Result<Option<FoundObject>, kube::Error> {
        if change.is_release() {
            let found = self.read_cluster_version().await?;
            return Ok(found.map(|(object, it)| FoundObject::release(&object, &it)));
        }
        let found = self.read(&change.operator).await?;
        Ok(found.map(|(object, it)| FoundObject::operator(&object, &it)))
    }

    async fn create_operator(
        &self,
        action: &ActionObject,
        change: &PlannedChange,
    ) -> Result<WriteOutcome, kube::Error> {
        let name = &change.operator;
        let manifest = created(action, change);
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
        if let Some((object, there)) =
            found.filter(|(_, it)| it.uid == change.uid && !it.is_deleting)
        {
            if !has_fields(&object, change) {
                let mut operations = vec![unchanged(&object)];
                operations.extend(fields(&object, change));
                match self.writer.patch_guarded("", &self.resource, name, operations).await {
                    Err(kube::Error::Api(status)) if status.code == 409 => {
                        return Ok(WriteOutcome::Failed(format!("{name} keeps changing")));
                    }
                    // It is gone, and the others of its change set wait for it.
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    written => written?,
                }
            }
            let set = there.change_set.as_deref().filter(|it| is_set_of_update(it));
            self.end_change_sets(&set.into_iter().collect(), name).await?;
            self.writer.delete_uid("", &self.resource, name, &change.uid).await?;
        }
        Ok(WriteOutcome::Done)
    }

    /// Removes the Operators of change sets from them, except one, which may be none. They would
    /// wait for one that is deleted or in another set.
    ///
    /// # Errors
    ///
    /// When a request fails, or an Operator keeps changing.
    pub(super) async fn end_change_sets(
        &self,
        sets: &BTreeSet<&str>,
        except: &str,
    ) -> Result<(), kube::Error> {
        if sets.is_empty() {
            return Ok(());
        }
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &self.resource);
        let mut result = Ok(());
        for _ in 0..CONFLICTS_MAX {
            result = Ok(());
            for object in api.list(&ListParams::default()).await?.items {
                let name = object.name_any();
                let Some(operations) = departure(&object, sets).filter(|_| name != except) else {
                    continue;
                };
                match self.writer.patch_guarded("", &self.resource, &name, operations).await {
                    // It is gone.
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    // It was changed since, and may have left its change set.
                    Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => {
                        result = Err(kube::Error::Api(status));
                    }
                    written => written?,
                }
            }
            if result.is_ok() {
                break;
            }
        }
        result
    }

    async fn update(
        &self,
        action: &ActionObject,
        at: usize,
        change: &PlannedChange,
    ) -> Result<WriteOutcome, kube::Error> {
        let (name, chain) = (&change.operator, &action.triggered_by);
        let action = action.uid.as_str();
        for _ in 0..CONFLICTS_MAX {
            let there = self.read(name).await?;
            let found = there.as_ref().map(|(object, it)| FoundObject::operator(object, it));
            let arrival = arrival(action, at, change, found.as_ref());
            if let Some(outcome) = final_outcome(&arrival) {
                return Ok(outcome);
            }
            let Some((object, there)) = there else {
                return Ok(WriteOutcome::Stale(format!("{name} was deleted")));
            };
            let is_marked = found.is_some_and(|it| it.is_marked(action, at));
            if arrival == Arrival::Arrived
                && (is_marked || (is_as_requested(change, &there) && has_fields(&object, change)))
            {
                return Ok(WriteOutcome::Done);
            }
            let operations = update(&object, change, &mark(action, at));
            let operations = with_chain(&object, operations, chain);
            match self.writer.patch_guarded("", &self.resource, name, operations).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return written.map(|()| WriteOutcome::Done),
            }
        }
        Ok(WriteOutcome::Failed(format!("{name} keeps changing")))
    }

    async fn change_release(
        &self,
        action: &ActionObject,
        at: usize,
        change: &PlannedChange,
    ) -> Result<WriteOutcome, kube::Error> {
        let resource = api_resource(CLUSTER_VERSION);
        let (action, chain) = (action.uid.as_str(), &action.triggered_by);
        for _ in 0..CONFLICTS_MAX {
            let there = self.read_cluster_version().await?;
            let found = there.as_ref().map(|(object, it)| FoundObject::release(object, it));
            let refusal = there.as_ref().and_then(|(_, it)| it.refusal());
            let arrival = arrival(action, at, change, found.as_ref());
            let is_unmarked = found.is_some_and(|it| !it.is_marked(action, at));
            if let Some(message) = refusal.filter(|_| is_unmarked) {
                return Ok(WriteOutcome::Failed(message));
            }
            if let Some(outcome) = final_outcome(&arrival) {
                return Ok(outcome);
            }
            let (Arrival::Absent, Some((object, _))) = (arrival, there) else {
                return Ok(WriteOutcome::Done);
            };
            let operations = change_of_release(&object, change, &mark(action, at));
            let operations = with_chain(&object, operations, chain);
            match self.writer.patch_guarded("", &resource, CLUSTER_VERSION_NAME, operations).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return written.map(|()| WriteOutcome::Done),
            }
        }
        Ok(WriteOutcome::Failed("the ClusterVersion keeps changing".to_owned()))
    }

    /// Withdraws the request of an Action for a release that the platform has not followed, so that
    /// it is not followed later.
    pub(super) async fn withdraw(
        &self,
        action: &str,
        at: usize,
        change: &PlannedChange,
        chain: &str,
    ) -> Result<(), kube::Error> {
        let Some((object, there)) = self.read_cluster_version().await? else { return Ok(()) };
        let is_marked = FoundObject::release(&object, &there).is_marked(action, at);
        if there.uid != change.uid || !is_marked || !there.is_unfollowed(&change.requested) {
            return Ok(());
        }
        let resource = api_resource(CLUSTER_VERSION);
        let operations = with_chain(&object, withdrawal(&object), chain);
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
    Writer::guard(object["metadata"]["resourceVersion"].as_str().unwrap_or_default())
}

/// Returns the result of a write that needs no request; `None` if it may need one.
fn final_outcome(arrival: &Arrival) -> Option<WriteOutcome> {
    match arrival {
        Arrival::Arrived | Arrival::Absent => None,
        Arrival::Superseded(message) => Some(WriteOutcome::Stale(message.clone())),
        Arrival::Unknown(message) => Some(WriteOutcome::Unknown(message.clone())),
    }
}

/// Returns whether an Operator has all that a change requests of it.
fn is_as_requested(change: &PlannedChange, there: &ObservedOperator) -> bool {
    let is_in_set = change.change_set.is_empty()
        || there.change_set.as_deref() == Some(change.change_set.as_str());
    let is_of_catalog = change.repository.is_empty() || there.spec.repository == change.repository;
    let is_left = there.change_set.as_deref().is_none_or(|it| it != change.leaves_change_set);
    let has_label = !change.becomes_requested || !there.is_dependency;
    there.spec.version == change.requested && is_in_set && is_left && is_of_catalog && has_label
}

/// Returns the Operator that a change creates.
fn created(action: &ActionObject, change: &PlannedChange) -> Value {
    let mut manifest = change.manifest.clone().unwrap_or_default();
    // The name that policies were evaluated for is the one that is created, whatever the manifest
    // in the status says.
    manifest["metadata"]["name"] = change.operator.as_str().into();
    let annotations = &mut manifest["metadata"]["annotations"];
    annotations[CREATED_BY_ANNOTATION] = action.uid.as_str().into();
    annotations[CREATED_IN_ANNOTATION] = action.namespace.as_str().into();
    if !action.triggered_by.is_empty() {
        annotations[TRIGGERED_BY_ANNOTATION] = action.triggered_by.as_str().into();
        annotations[TRIGGERED_GENERATION_ANNOTATION] = FIRST_GENERATION.to_string().into();
    }
    if let Some(inspected) = InspectedContent::of(change) {
        annotations[INSPECTED_ANNOTATION] = json!(inspected).to_string().into();
    }
    if !change.change_set.is_empty() {
        let set = change.change_set.as_str().into();
        manifest["metadata"]["annotations"][CHANGE_SET_ANNOTATION] = set;
    }
    manifest
}

/// Returns the operations that set annotations of an object.
fn annotate(object: &Value, annotations: &[(&str, &str)]) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    if !object["metadata"]["annotations"].is_object() {
        operations.push(add(&["metadata", "annotations"], json!({})));
    }
    let set = annotations
        .iter()
        .map(|(name, value)| add(&["metadata", "annotations", name], (*value).into()));
    operations.extend(set);
    operations
}

/// Returns a patch of an object that also leaves the chain of its Action there, with the generation that the patch leads
/// to; without a chain, the one that an earlier Action has left goes.
fn with_chain(
    object: &Value,
    mut operations: Vec<PatchOperation>,
    chain: &str,
) -> Vec<PatchOperation> {
    let mut after = object.clone();
    if json_patch::patch(&mut after, &operations).is_err() {
        // The API server refuses it as well.
        return operations;
    }
    if chain.is_empty() {
        let names = [TRIGGERED_BY_ANNOTATION, TRIGGERED_GENERATION_ANNOTATION];
        let left = names.iter().filter(|it| after["metadata"]["annotations"][**it].is_string());
        operations.extend(left.map(|name| {
            let path = path(&["metadata", "annotations", name]);
            PatchOperation::Remove(RemoveOperation { path })
        }));
        return operations;
    }
    let before = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let generation = before + i64::from(after["spec"] != object["spec"]);
    let annotations = [
        (TRIGGERED_BY_ANNOTATION, chain),
        (TRIGGERED_GENERATION_ANNOTATION, &generation.to_string()),
    ];
    operations.extend(annotate(&after, &annotations));
    operations
}

/// Returns the patch that changes a ClusterVersion and marks it. It fails if the object was changed
/// since it was read.
fn change_of_release(object: &Value, change: &PlannedChange, mark: &str) -> Vec<PatchOperation> {
    let request = match change.operation {
        ChangeOperation::EnableCapability => enable(object, &change.capability),
        _ => add(&["spec", "desiredUpdate"], json!({ "version": change.requested })),
    };
    let mut operations = vec![unchanged(object), request];
    operations.extend(annotate(object, &[(CHANGED_BY_ANNOTATION, mark)]));
    operations
}

/// Returns the operation that requests a capability in a ClusterVersion.
fn enable(object: &Value, name: &str) -> PatchOperation {
    let (field, list) = ("capabilities", "additionalEnabledCapabilities");
    let requested = &object["spec"][field];
    if requested[list].is_array() {
        add(&["spec", field, list, "-"], name.into())
    } else if requested.is_object() {
        add(&["spec", field, list], json!([name]))
    } else {
        add(&["spec", field], json!({ list: [name] }))
    }
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

/// Returns the patch that removes a marked request for a release. The mark goes too, so that a later
/// request of another client is not withdrawn.
fn withdrawal(object: &Value) -> Vec<PatchOperation> {
    let remove = |tokens: &[&str]| PatchOperation::Remove(RemoveOperation { path: path(tokens) });
    vec![
        unchanged(object),
        remove(&["spec", "desiredUpdate"]),
        remove(&["metadata", "annotations", CHANGED_BY_ANNOTATION]),
    ]
}

/// Returns the patch that removes an Operator from its change set; `None` if it is in none of
/// `sets`. It fails if the object was changed since it was read.
fn departure(object: &DynamicObject, sets: &BTreeSet<&str>) -> Option<Vec<PatchOperation>> {
    let set = object.annotations().get(CHANGE_SET_ANNOTATION)?;
    let read_at = object.metadata.resource_version.as_deref().unwrap_or_default();
    sets.contains(set.as_str()).then(|| {
        let path = path(&["metadata", "annotations", CHANGE_SET_ANNOTATION]);
        vec![Writer::guard(read_at), PatchOperation::Remove(RemoveOperation { path })]
    })
}

/// Returns the patch that updates an Operator and marks it. It fails if the object was changed since
/// it was read.
fn update(object: &Value, change: &PlannedChange, mark: &str) -> Vec<PatchOperation> {
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
    let mut annotations = vec![(CHANGED_BY_ANNOTATION, mark)];
    if !change.change_set.is_empty() {
        annotations.push((CHANGE_SET_ANNOTATION, change.change_set.as_str()));
    } else if !change.leaves_change_set.is_empty()
        && object["metadata"]["annotations"][CHANGE_SET_ANNOTATION] == *change.leaves_change_set
    {
        let path = path(&["metadata", "annotations", CHANGE_SET_ANNOTATION]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    let inspected = InspectedContent::of(change).map(|it| json!(it).to_string());
    if let Some(inspected) = &inspected {
        annotations.push((INSPECTED_ANNOTATION, inspected));
    } else if requests_anew(change)
        && object["metadata"]["annotations"][INSPECTED_ANNOTATION].is_string()
    {
        // What is requested now was not inspected.
        let path = path(&["metadata", "annotations", INSPECTED_ANNOTATION]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    operations.extend(annotate(object, &annotations));
    operations
}

#[cfg(test)]
mod tests;
