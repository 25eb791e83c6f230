//! Delete, of one object and of a collection.
use std::sync::Arc;

use k8s_schema::{FieldError, FieldErrorKind, go_kind};
use serde_json::{Value, json};

use super::list::ListQuery;
use crate::clock::rfc3339_seconds;
use crate::request::parameters::{
    DryRun, OptionsKind, Parameters, Propagation, parse_dry_run, parse_propagation,
};
use crate::semantics::cluster::admission::{self, Operation, WriteAttributes};
use crate::semantics::cluster::{Cluster, is_finished};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::{ApiResource, Scope};
use crate::semantics::{convert, definition, kinds, metadata};
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::{ListPage, ObjectKey, Stored};

/// Finalizers that stand for propagation policies.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// The kind of the options in error messages.
const OPTIONS: OptionsKind = OptionsKind("DeleteOptions");

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Default grace period of a pod on a node, in seconds.
const POD_GRACE_SECONDS: i64 = 30;

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: DryRun,
}

/// The outcome of a deletion.
#[derive(Clone, Debug)]
pub(crate) enum DeleteOutcome {
    /// The object was removed; its last state.
    Gone(Arc<Stored>),
    /// The object was marked for deletion, and finalizers or a grace period block its removal.
    Marked(Arc<Stored>),
}

impl DeleteOutcome {
    /// The outcome in the version of `resource`; `before` is the object in that version.
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
    /// Reads the options of the body, or those of the query if there is no body.
    ///
    /// # Errors
    /// When an option is invalid.
    pub(crate) fn read(parameters: &Parameters, body: Option<&Value>) -> Result<Self> {
        let Some(body) = body.filter(|body| body.is_object()) else {
            return Ok(Self {
                propagation: settle_propagation(
                    parameters.propagation,
                    parameters.orphan_dependents,
                )?,
                grace_period_seconds: parameters.grace_period_seconds,
                dry_run: parameters.dry_run,
                ..Self::default()
            });
        };
        check_kind(body)?;
        let mut options = Self::default();
        let policy = body["propagationPolicy"].as_str();
        let policy = policy.map(|policy| parse_propagation(OPTIONS, policy)).transpose()?;
        options.propagation = settle_propagation(policy, body["orphanDependents"].as_bool())?;
        options.grace_period_seconds = match &body["gracePeriodSeconds"] {
            Value::Null => None,
            given => Some(given.as_i64().ok_or_else(|| {
                ApiError::bad_request(format!(
                    "json: cannot unmarshal {} into Go struct field \
                     DeleteOptions.gracePeriodSeconds of type int64",
                    go_kind(given)
                ))
            })?),
        };
        for value in body["dryRun"].as_array().into_iter().flatten() {
            options.dry_run = parse_dry_run(OPTIONS, value.as_str().unwrap_or_default())?;
        }
        let precondition = |field: &str| body["preconditions"][field].as_str().map(str::to_owned);
        options.uid = precondition("uid");
        options.resource_version = precondition("resourceVersion");
        Ok(options)
    }

    /// The options in admission reviews.
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

/// Deletes one object after admission.
///
/// # Errors
/// When it does not exist, a precondition fails, it may not be deleted, or admission denies it or
/// has to call a webhook first.
pub(crate) fn delete_with_admission(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<DeleteOutcome> {
    if !admission::is_configured(cluster) {
        return delete(cluster, &context.now, resource, key, options);
    }
    let before = admit(cluster, context, resource, key, options, &key.name)?;
    let deleted = delete(cluster, &context.now, resource, key, options)?;
    Ok(deleted.shown(resource, &before))
}

/// Runs admission for a deletion; returns the object in the version of the request.
///
/// `name` is the name in the review, which is empty in a deletion of a collection.
fn admit(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    options: &DeleteOptions,
    name: &str,
) -> Result<Arc<Stored>> {
    let Some(stored) = cluster.store.find(&resource.storage, key) else {
        return Err(ApiError::not_found(resource.subject(), &key.name));
    };
    check_immortal(resource, key)?;
    check_preconditions(resource, stored, options)?;
    let shown = convert::shown(cluster, context, resource, stored)?;
    let live = convert::read(resource, &shown);
    let mut attributes =
        WriteAttributes::new(context, Operation::Delete, resource, &key.namespace, name)
            .of("", Some(&live));
    attributes.options = options.to_value();
    attributes.dry_run = options.dry_run == DryRun::All;
    admission::admit(cluster, context, &attributes, &mut Value::Null)?;
    admission::validate(cluster, context, &attributes, None)?;
    Ok(shown)
}

/// Checks that the body of a deletion is of the kind `DeleteOptions`.
fn check_kind(body: &Value) -> Result<()> {
    let text = |field: &str| body[field].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind.is_empty() || kind == OPTIONS.0 {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "no kind {kind:?} is registered for version {version:?} in scheme \
         \"pkg/runtime/scheme.go:111\""
    )))
}

/// The propagation policy of the options, of which `orphanDependents` is the older form.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: deletionFinalizersForGarbageCollection
fn settle_propagation(
    policy: Option<Propagation>,
    orphan_dependents: Option<bool>,
) -> Result<Option<Propagation>> {
    match (policy, orphan_dependents) {
        (Some(policy), Some(_)) => Err(OPTIONS.invalid(
            FieldError::new(
                "propagationPolicy",
                FieldErrorKind::Invalid,
                "orphanDependents and deletionPropagation cannot be both set",
            )
            .with_value(policy.name().into()),
        )),
        (None, Some(true)) => Ok(Some(Propagation::Orphan)),
        (None, Some(false)) => Ok(Some(Propagation::Background)),
        (policy, None) => Ok(policy),
    }
}

/// Checks that an object exists and meets the preconditions of the options.
///
/// # Errors
/// When it does not exist or a precondition fails.
pub(crate) fn check_live(
    cluster: &Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<()> {
    match cluster.store.find(&resource.storage, key) {
        Some(stored) => check_preconditions(resource, stored, options),
        None => Err(ApiError::not_found(resource.subject(), &key.name)),
    }
}

/// Deletes one object.
///
/// # Errors
/// When it does not exist, a precondition fails, or it may not be deleted.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: Delete
pub(crate) fn delete(
    cluster: &mut Cluster,
    now: &str,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<DeleteOutcome> {
    let Some(stored) = cluster.store.find(&resource.storage, key).cloned() else {
        return Err(ApiError::not_found(resource.subject(), &key.name));
    };
    check_immortal(resource, key)?;
    check_preconditions(resource, &stored, options)?;
    let mut object = stored.decode();
    if stored.deleting {
        return Ok(delete_again(cluster, resource, key, stored, object, options));
    }
    settle_finalizers(resource, &mut object, options.propagation);
    if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        definition::mark_terminating(&mut object, now);
    }
    let grace = grace_period(resource, &object, options);
    let dry = options.dry_run == DryRun::All;
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let marked = metadata::of(&mut object);
    marked.insert("deletionTimestamp".to_owned(), later(now, grace).into());
    if resource.is("", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
    } else {
        marked.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        if generation > 0 {
            marked.insert("generation".to_owned(), (generation + 1).into());
        }
    }
    if is_finished(resource, &object) {
        if !dry {
            cluster.remove(&resource.storage, key);
        }
        // The response for a pod has its deletion timestamp.
        let last = if resource.is("", "Pod") { with_value(&stored, object) } else { stored };
        return Ok(DeleteOutcome::Gone(last));
    }
    if dry {
        return Ok(DeleteOutcome::Marked(with_value(&stored, object)));
    }
    let marked = cluster.put(&resource.storage, key, object, stored.schema_id);
    Ok(DeleteOutcome::Marked(marked))
}

/// A stored object with another value, at its own revision.
fn with_value(stored: &Stored, mut value: Value) -> Arc<Stored> {
    value["metadata"]["resourceVersion"] = stored.revision.to_string().into();
    Arc::new(Stored::new(stored.key.clone(), &mut value, stored.revision, stored.schema_id))
}

/// A time some seconds later; a malformed one is returned as it is.
fn later(time: &str, seconds: i64) -> String {
    time.parse::<jiff::Timestamp>()
        .ok()
        .and_then(|time| time.checked_add(jiff::SignedDuration::from_secs(seconds)).ok())
        .map_or_else(|| time.to_owned(), rfc3339_seconds)
}

/// Deletes an object that is marked for deletion: its grace period can only be shortened.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/delete.go: BeforeDelete
fn delete_again(
    cluster: &mut Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    stored: Arc<Stored>,
    mut object: Value,
    options: &DeleteOptions,
) -> DeleteOutcome {
    let left = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    let Some(grace) = options.grace_period_seconds.filter(|grace| (0..left).contains(grace)) else {
        return DeleteOutcome::Marked(stored);
    };
    let metadata = metadata::of(&mut object);
    let end = metadata.get("deletionTimestamp").and_then(Value::as_str).unwrap_or_default();
    let end = later(end, grace - left);
    metadata.insert("deletionTimestamp".to_owned(), end.into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
    if options.dry_run == DryRun::All {
        return DeleteOutcome::Marked(with_value(&stored, object));
    }
    if is_finished(resource, &object) {
        cluster.remove(&resource.storage, key);
        return DeleteOutcome::Gone(with_value(&stored, object));
    }
    let schema_id = stored.schema_id;
    DeleteOutcome::Marked(cluster.put(&resource.storage, key, object, schema_id))
}

/// Upstream: k8s.io/apiserver/pkg/registry/rest/delete.go: BeforeDelete
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

/// Checks that an object is not a system namespace.
///
/// # Errors
/// When the object is one of those namespaces.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: Admit
fn check_immortal(resource: &ApiResource, key: &ObjectKey) -> Result<()> {
    if resource.is("", "Namespace") && IMMORTAL.contains(&&*key.name) {
        return Err(ApiError::forbidden(
            resource.subject(),
            &key.name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

/// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: Check
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
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: deletionFinalizersForGarbageCollection
fn settle_finalizers(resource: &ApiResource, object: &mut Value, policy: Option<Propagation>) {
    let metadata = metadata::of(object);
    let mut finalizers: Vec<Value> =
        metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    // Older API versions of these two orphaned their pods, which is still the default.
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

/// The response to a deletion of one object.
pub(crate) fn answer(resource: &ApiResource, deleted: &DeleteOutcome) -> Value {
    match deleted {
        DeleteOutcome::Gone(stored) if !kinds::returns_deleted_object(resource) => {
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
        DeleteOutcome::Gone(stored) | DeleteOutcome::Marked(stored) => {
            convert::read(resource, stored)
        }
    }
}

/// Deletes all objects that a query selects; returns them as they were.
///
/// # Errors
/// When the query or an option is invalid, or admission denies a deletion.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: DeleteCollection
pub(crate) fn delete_collection(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    namespace: Option<&str>,
    body: Option<&Value>,
) -> Result<ListPage> {
    if namespace.is_none() && resource.scope == Scope::Namespaced {
        return Err(ApiError::method_not_allowed());
    }
    let options = DeleteOptions::read(&context.parameters, body)?;
    let query = ListQuery::read(resource, namespace, &context.parameters)?;
    let mut listing = query.run(cluster, resource)?;
    listing.items = admit_all(cluster, context, resource, listing.items, &options)?;
    for stored in &listing.items {
        match delete(cluster, &context.now, resource, &stored.key, &options) {
            // Deleting an object before it may have removed it already.
            Err(error) if error.reason == StatusReason::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Ok(listing)
}

/// Runs admission for the deletion of all objects of a list; returns them in the version of the
/// request.
fn admit_all(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    items: Vec<Arc<Stored>>,
    options: &DeleteOptions,
) -> Result<Vec<Arc<Stored>>> {
    if !admission::is_configured(cluster) {
        return Ok(items);
    }
    let asked: Vec<_> = items
        .iter()
        .map(|stored| admit(cluster, context, resource, &stored.key, options, ""))
        .collect();
    if context.replay.is_pending() {
        return Err(crate::semantics::webhook::replay::suspended());
    }
    asked.into_iter().collect()
}
