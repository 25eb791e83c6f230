//! Delete, of one object and of many.
use std::sync::Arc;

use serde_json::{Value, json};

use super::list::{Listing, Query};
use super::metadata;
use crate::admission::{Attributes, Operation};
use crate::cluster::{Call, Cluster, is_finished};
use crate::registry::ApiResource;
use crate::request::parameters::{
    DryRun, OptionsKind, Parameters, Propagation, parse_dry_run, parse_propagation,
};
use crate::status::{ApiError, Result};
use crate::store::{ObjectKey, Stored};
use crate::{admission, controllers, convert, kinds};

/// Finalizers that stand for propagation policies.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// What errors about the options name.
const OPTIONS: OptionsKind = OptionsKind("DeleteOptions");

/// How long a pod on a node has to end, unless told otherwise.
const POD_GRACE_SECONDS: i64 = 30;

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: DryRun,
}

/// What a delete did.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Arc<Stored>),
    /// The object waits for its finalizers or its grace period.
    Marked(Arc<Stored>),
}

impl Deleted {
    /// The same in the version of `resource`; `before` is the object in that version.
    fn shown(self, resource: &ApiResource, before: &Stored) -> Self {
        if !resource.is_converted_by_webhook() {
            return self;
        }
        match self {
            Self::Gone(last) => Self::Gone(convert::marked(resource, before, &last)),
            Self::Marked(stored) => Self::Marked(convert::marked(resource, before, &stored)),
        }
    }
}

impl DeleteOptions {
    /// Takes the query's options, and the body's where it has them.
    ///
    /// # Errors
    /// When an option makes no sense.
    pub(crate) fn read(parameters: &Parameters, body: Option<&Value>) -> Result<Self> {
        let mut options = Self {
            propagation: parameters.propagation,
            grace_period_seconds: parameters.grace_period_seconds,
            dry_run: parameters.dry_run,
            ..Self::default()
        };
        let Some(body) = body.filter(|body| body.is_object()) else {
            return Ok(options);
        };
        match body["propagationPolicy"].as_str() {
            Some(policy) => options.propagation = Some(parse_propagation(OPTIONS, policy)?),
            None => {
                if let Some(orphan) = body["orphanDependents"].as_bool() {
                    options.propagation =
                        Some(if orphan { Propagation::Orphan } else { Propagation::Background });
                }
            }
        }
        if let Some(seconds) = body["gracePeriodSeconds"].as_i64() {
            options.grace_period_seconds = Some(seconds);
        }
        for value in body["dryRun"].as_array().into_iter().flatten() {
            options.dry_run = parse_dry_run(OPTIONS, value.as_str().unwrap_or_default())?;
        }
        let precondition = |field: &str| body["preconditions"][field].as_str().map(str::to_owned);
        options.uid = precondition("uid");
        options.resource_version = precondition("resourceVersion");
        Ok(options)
    }

    /// The options as webhooks are shown them.
    fn to_value(&self) -> Value {
        let mut value = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = self.grace_period_seconds {
            value["gracePeriodSeconds"] = seconds.into();
        }
        for (field, precondition) in
            [("uid", &self.uid), ("resourceVersion", &self.resource_version)]
        {
            if let Some(text) = precondition {
                value["preconditions"][field] = text.as_str().into();
            }
        }
        if let Some(policy) = self.propagation {
            value["propagationPolicy"] = match policy {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            }
            .into();
        }
        if self.dry_run == DryRun::All {
            value["dryRun"] = json!(["All"]);
        }
        value
    }
}

/// Deletes one object, if admission has nothing against it.
///
/// # Errors
/// When it does not exist, is not the one meant, must not go, or admission refuses or has to ask.
pub(crate) fn delete_asked(
    cluster: &mut Cluster,
    call: &mut Call,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<Deleted> {
    if !admission::is_configured(cluster) {
        return delete(cluster, &call.now, resource, key, options);
    }
    let before = admit(cluster, call, resource, key, options, &key.name)?;
    let deleted = delete(cluster, &call.now, resource, key, options)?;
    Ok(deleted.shown(resource, &before))
}

/// Asks admission whether an object may go; returns it in the version of the request.
///
/// Admission is told `name`, which a delete of many does not have.
fn admit(
    cluster: &Cluster,
    call: &mut Call,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    options: &DeleteOptions,
    name: &str,
) -> Result<Arc<Stored>> {
    let Some(stored) = cluster.store.find(&resource.storage, key) else {
        return Err(ApiError::not_found(resource.subject(), &key.name));
    };
    controllers::namespace::check_deletion(resource, key)?;
    check_preconditions(resource, stored, options)?;
    let shown = convert::shown(cluster, call, resource, stored)?;
    let live = convert::read(resource, &shown);
    let mut attributes = Attributes::new(call, Operation::Delete, resource, &key.namespace, name)
        .of("", Some(&live));
    attributes.options = options.to_value();
    attributes.dry_run = options.dry_run == DryRun::All;
    admission::admit(cluster, call, &attributes, &mut Value::Null)?;
    admission::validate(cluster, call, &attributes, None)?;
    Ok(shown)
}

/// Deletes one object.
///
/// # Errors
/// When it does not exist, is not the one meant, or must not go.
pub(crate) fn delete(
    cluster: &mut Cluster,
    now: &str,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<Deleted> {
    let Some(stored) = cluster.store.find(&resource.storage, key).cloned() else {
        return Err(ApiError::not_found(resource.subject(), &key.name));
    };
    controllers::namespace::check_deletion(resource, key)?;
    check_preconditions(resource, &stored, options)?;
    let mut object = stored.decode();
    if stored.deleting {
        return Ok(delete_again(cluster, resource, key, stored, object, options));
    }
    settle_finalizers(resource, &mut object, options.propagation);
    if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        controllers::definition::mark_terminating(&mut object, now);
    }
    let grace = grace_period(resource, &object, options);
    let dry = options.dry_run == DryRun::All;
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let marked = metadata::of(&mut object);
    marked.insert("deletionTimestamp".to_owned(), now.into());
    if resource.is("", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
    } else {
        marked.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        if generation > 0 {
            marked.insert("generation".to_owned(), (generation + 1).into());
        }
    }
    if is_finished(resource, &object) {
        if dry {
            return Ok(Deleted::Gone(stored));
        }
        let last = cluster.remove(&resource.storage, key).unwrap_or(stored);
        return Ok(Deleted::Gone(last));
    }
    if dry {
        return Ok(Deleted::Marked(stored));
    }
    let marked = cluster.put(&resource.storage, key, object, stored.stamp);
    Ok(Deleted::Marked(marked))
}

/// An object that is being deleted can only have its grace period cut short.
fn delete_again(
    cluster: &mut Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    stored: Arc<Stored>,
    mut object: Value,
    options: &DeleteOptions,
) -> Deleted {
    let left = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    if left > 0 && options.grace_period_seconds == Some(0) && options.dry_run == DryRun::Off {
        metadata::of(&mut object).insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        if is_finished(resource, &object) {
            let last = cluster.remove(&resource.storage, key).unwrap_or(stored);
            return Deleted::Gone(last);
        }
        let stamp = stored.stamp;
        return Deleted::Marked(cluster.put(&resource.storage, key, object, stamp));
    }
    Deleted::Marked(stored)
}

fn grace_period(resource: &ApiResource, object: &Value, options: &DeleteOptions) -> i64 {
    let runs = resource.is("", "Pod")
        && !object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty()
        && !matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !runs {
        return 0;
    }
    options
        .grace_period_seconds
        .or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(POD_GRACE_SECONDS)
        .max(0)
}

fn check_preconditions(
    resource: &ApiResource,
    stored: &Stored,
    options: &DeleteOptions,
) -> Result<()> {
    let subject = resource.kind_subject();
    if let Some(uid) = &options.uid
        && **uid != *stored.uid
    {
        return Err(ApiError::conflict(
            subject,
            &stored.key.name,
            &format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                stored.uid
            ),
        ));
    }
    if let Some(revision) = &options.resource_version
        && *revision != stored.revision.to_string()
    {
        return Err(ApiError::conflict(
            subject,
            &stored.key.name,
            &format!(
                "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({}). The object might have been modified",
                stored.revision
            ),
        ));
    }
    Ok(())
}

/// Turns the propagation policy into the finalizers that the garbage collector acts on.
fn settle_finalizers(resource: &ApiResource, object: &mut Value, policy: Option<Propagation>) {
    let metadata = metadata::of(object);
    let mut finalizers: Vec<Value> =
        metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    // Once upon a time these two left their pods alone, and by default they still do.
    let orphans_by_default =
        resource.is("batch", "Job") || resource.is("", "ReplicationController");
    let policy = policy.or_else(|| {
        let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
        if has(ORPHAN) {
            Some(Propagation::Orphan)
        } else if has(FOREGROUND) {
            Some(Propagation::Foreground)
        } else if orphans_by_default {
            Some(Propagation::Orphan)
        } else {
            None
        }
    });
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    match policy {
        Some(Propagation::Orphan) => finalizers.push(ORPHAN.into()),
        Some(Propagation::Foreground) => finalizers.push(FOREGROUND.into()),
        Some(Propagation::Background) | None => {}
    }
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), Value::Array(finalizers));
    }
}

/// The answer to a delete of one object.
pub(crate) fn answer(resource: &ApiResource, deleted: &Deleted) -> Value {
    match deleted {
        Deleted::Gone(stored) if !kinds::returns_deleted_object(resource) => {
            let mut details = json!({
                "name": stored.key.name,
                "kind": resource.plural,
                "uid": stored.uid,
            });
            if !resource.group.is_empty() {
                details["group"] = resource.group.clone().into();
            }
            json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            })
        }
        Deleted::Gone(stored) | Deleted::Marked(stored) => convert::read(resource, stored),
    }
}

/// Deletes all objects that a query selects; returns what they were.
///
/// # Errors
/// When the query or an option makes no sense.
pub(crate) fn delete_collection(
    cluster: &mut Cluster,
    call: &mut Call,
    resource: &Arc<ApiResource>,
    namespace: Option<&str>,
    body: Option<&Value>,
) -> Result<Listing> {
    let options = DeleteOptions::read(&call.parameters, body)?;
    let query = Query::read(resource, namespace, &call.parameters)?;
    let mut listing = query.run(cluster, resource)?;
    let before = admit_all(cluster, call, resource, &listing, &options)?;
    let mut deleted = Vec::new();
    for (index, stored) in listing.items.iter().enumerate() {
        // Something else may have gone first because of an object before it.
        if let Ok(done) = delete(cluster, &call.now, resource, &stored.key, &options) {
            let done = match before.get(index) {
                Some(before) => done.shown(resource, before),
                None => done,
            };
            deleted.push(match done {
                Deleted::Gone(last) => last,
                Deleted::Marked(marked) => marked,
            });
        }
    }
    listing.items = deleted;
    Ok(listing)
}

/// Asks admission whether all objects of a list may go; returns them in the version of the
/// request, or nothing if there is nobody to ask.
fn admit_all(
    cluster: &Cluster,
    call: &mut Call,
    resource: &Arc<ApiResource>,
    listing: &Listing,
    options: &DeleteOptions,
) -> Result<Vec<Arc<Stored>>> {
    if !admission::is_configured(cluster) {
        return Ok(Vec::new());
    }
    let asked: Vec<_> = listing
        .items
        .iter()
        .map(|stored| admit(cluster, call, resource, &stored.key, options, ""))
        .collect();
    if call.asking.is_pending() {
        return Err(crate::asking::interrupted());
    }
    asked.into_iter().collect()
}
