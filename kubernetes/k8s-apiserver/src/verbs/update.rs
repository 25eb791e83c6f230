//! Update: replaces an object; patches end with it too.
use std::sync::Arc;

use k8s_schema::{FieldError, FieldErrorKind, managed};
use serde_json::Value;

use super::create::{AFTER_ADMISSION, CreateSource, create};
use crate::request::parameters::DryRun;
use crate::semantics::cluster::admission::{self, Operation, WriteAttributes};
use crate::semantics::cluster::{Cluster, is_finished};
use crate::semantics::context::RequestContext;
use crate::semantics::ownership::actor;
use crate::semantics::part::ObjectPart;
use crate::semantics::registry::ApiResource;
use crate::semantics::{convert, decode, kinds, metadata, storage_key, validation};
use crate::status::{ApiError, Result};
use crate::storage::ObjectKey;

/// The target of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTarget<'a> {
    /// The resource in the version of the request.
    pub(crate) resource: &'a Arc<ApiResource>,
    /// The key of the object.
    pub(crate) key: &'a ObjectKey,
    /// The part of the object that is written.
    pub(crate) part: ObjectPart,
}

/// Whether `managedFields` still have to be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// They have to be updated.
    Record,
    /// A server-side apply has updated them.
    Recorded,
}

/// Replaces an object, or creates it if the kind allows that.
///
/// Returns the object and whether it is new.
///
/// # Errors
/// When the object is invalid or denied, or it was changed in between.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/update.go: UpdateResource
pub(crate) fn put(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    target: WriteTarget<'_>,
    mut object: Value,
) -> Result<(Value, bool)> {
    let WriteTarget { resource, key, part } = target;
    decode::check_type(resource, &mut object)?;
    check_name(key, &object)?;
    let live_uid = cluster.store.find(&resource.storage, key).map(|stored| stored.uid.clone());
    if live_uid.is_some() || kinds::may_create_on_update(resource) {
        metadata::check_uid(resource, key, live_uid.as_deref().unwrap_or_default(), &object)?;
    }
    let Some(live) = find(cluster, context, resource, key)? else {
        if part == ObjectPart::Main && kinds::may_create_on_update(resource) {
            metadata::of(&mut object).remove("resourceVersion");
            let created = create(
                cluster,
                context,
                resource,
                namespace_of(key),
                object,
                CreateSource::Update,
            )?;
            return Ok((created, true));
        }
        return Err(ApiError::not_found(resource.subject(), &key.name));
    };
    metadata::set_namespace(resource, namespace_of(key), &mut object)?;
    let has_revision = !metadata::text(&object, "resourceVersion").is_empty();
    if !has_revision && !kinds::may_update_unconditionally(resource) {
        return Err(ApiError::invalid(
            resource.subject(),
            &key.name,
            &[FieldError::new(
                "metadata.resourceVersion",
                FieldErrorKind::Invalid,
                "must be specified for an update",
            )
            .with_value(0.into())],
        ));
    }
    metadata::drop_duplicate_owners(context, &mut object, "");
    let updated = update(cluster, context, target, &live, object, Ownership::Record)?;
    Ok((updated, false))
}

/// The namespace of a key; none for cluster-scoped objects.
pub(crate) fn namespace_of(key: &ObjectKey) -> Option<&str> {
    (!key.namespace.is_empty()).then_some(&*key.namespace)
}

/// The live object in the version of `resource`.
///
/// # Errors
/// When no object can have the key, or a conversion webhook has to be called first, or fails.
pub(crate) fn find(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &ApiResource,
    key: &ObjectKey,
) -> Result<Option<Value>> {
    storage_key::check(resource, key)?;
    let Some(stored) = cluster.store.find(&resource.storage, key) else {
        return Ok(None);
    };
    if resource.is_converted_by_webhook() {
        let shown = convert::shown(cluster, context, resource, stored)?;
        return Ok(Some(convert::read(resource, &shown)));
    }
    Ok(Some(convert::read(resource, stored)))
}

/// Checks that the object has the name in the URL.
///
/// # Errors
/// When it has another name or no name.
pub(crate) fn check_name(key: &ObjectKey, object: &Value) -> Result<()> {
    let name = metadata::text(object, "name").to_owned();
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            key.name
        )));
    }
    if *name != *key.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        )));
    }
    Ok(())
}

/// Stores `object` in place of `live`; returns it in the version of the request.
///
/// # Errors
/// When the object is invalid or denied, or it was changed in between.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: Update
pub(crate) fn update(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    target: WriteTarget<'_>,
    live: &Value,
    mut object: Value,
    ownership: Ownership,
) -> Result<Value> {
    let WriteTarget { resource, key, part } = target;
    match ownership {
        Ownership::Record => decode::normalize(context, resource, &mut object)?,
        Ownership::Recorded => decode::normalize_merged(context, resource, &mut object)?,
    }
    metadata::carry_over(resource, key, live, &mut object)?;
    if ownership == Ownership::Record {
        let registry = &cluster.registry;
        let versions = |object: &Value, version: &str| {
            convert::to_version(registry, resource, object, version)
        };
        object = managed::track_update(
            managed::VersionedKind::new(resource.schema(), &versions),
            Some(live),
            object,
            &actor(context, resource, &resource.api_version(), part.subresource()),
        );
    }
    // A scale has passed admission in its own kind.
    let attributes = (part != ObjectPart::Subresource("scale")).then(|| {
        WriteAttributes::new(context, Operation::Update, resource, &key.namespace, &key.name)
            .of(part.subresource(), Some(live))
    });
    if let Some(attributes) = &attributes {
        admission::admit(cluster, context, attributes, &mut object)?;
        metadata::set_namespace(resource, namespace_of(key), &mut object)?;
        metadata::drop_duplicate_owners(context, &mut object, AFTER_ADMISSION);
        metadata::carry_over(resource, key, live, &mut object)?;
    }
    let mut object = restrict(resource, part, live, object);
    admission::authorize_content(cluster, context, resource, Some(live), true, &mut object)?;
    kinds::prepare_update(&cluster.settings, resource, part, live, &mut object)?;
    bump_generation(resource, part, live, &mut object);
    validation::check(cluster, context, resource, Some((live, part)), &object)?;
    kinds::allocate(cluster, resource, Some(live), &mut object)?;
    if let Some(attributes) = &attributes {
        admission::validate(cluster, context, attributes, Some(&object))?;
    }
    if is_same(live, &object) && is_same_at_rest(cluster, resource, key, &object) {
        return Ok(live.clone());
    }
    if context.parameters.dry_run == DryRun::All {
        return Ok(object);
    }
    let finished = is_finished(resource, &object);
    let kept = cluster.registry.storage_form(resource).map(|_| object.clone());
    let (at_rest, schema_id) = convert::to_stored_form(cluster, context, resource, object)?;
    if finished {
        let last = cluster.put_or_finish(resource, key, at_rest, schema_id);
        // The removal with the last finalizer is not a write of its own.
        let mut last = convert::written(cluster, resource, &last, kept);
        last["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        return Ok(last);
    }
    let stored = cluster.put(&resource.storage, key, at_rest, schema_id);
    Ok(convert::written(cluster, resource, &stored, kept))
}

/// Takes the fields that the endpoint may change from `object`, and the others from `live`.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: BeforeUpdate
fn restrict(resource: &ApiResource, part: ObjectPart, live: &Value, mut object: Value) -> Value {
    match part {
        ObjectPart::Main if resource.has_status() => {
            replace(&mut object, "status", live.get("status"));
            object
        }
        ObjectPart::Main | ObjectPart::Subresource(_) => object,
        ObjectPart::Status => {
            let mut kept = live.clone();
            replace(&mut kept, "status", object.get("status"));
            let from_request: &[&str] = if resource.custom().is_some() {
                &["managedFields"]
            } else if resource.is("apps", "Deployment") {
                &["managedFields", "annotations", "finalizers", "ownerReferences"]
            } else {
                &["managedFields", "annotations", "finalizers", "labels", "ownerReferences"]
            };
            for field in from_request {
                replace(&mut kept["metadata"], field, object["metadata"].get(*field));
            }
            kept
        }
    }
}

fn replace(object: &mut Value, field: &str, value: Option<&Value>) {
    if let Some(fields) = object.as_object_mut() {
        match value {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
    }
}

/// Increments the generation if anything but metadata and status changed; of a Deployment, whose
/// annotations its rollout copies, also if these changed.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/apps/deployment/strategy.go: PrepareForUpdate
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: PrepareForUpdate
fn bump_generation(resource: &ApiResource, part: ObjectPart, live: &Value, object: &mut Value) {
    if !kinds::has_generation(resource) {
        return;
    }
    let ignores_status = resource.custom().is_none() || resource.has_status();
    let is_desired = |(key, _): &(&String, &Value)| match key.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !ignores_status,
        _ => true,
    };
    let generation = live["metadata"]["generation"].as_i64().unwrap_or_default();
    let counts_annotations = part != ObjectPart::Status && resource.is("apps", "Deployment");
    let same_annotations =
        !counts_annotations || live["metadata"]["annotations"] == object["metadata"]["annotations"];
    let is_same = same_annotations && {
        let [before, after] = [live, &*object].map(|it| it.as_object().into_iter().flatten());
        before.filter(is_desired).eq(after.filter(is_desired))
    };
    let next = if is_same { generation } else { generation + 1 };
    if next > 0 {
        metadata::of(object).insert("generation".to_owned(), next.into());
    }
}

/// Whether the stored form stays the same: reading in another version, or under a newer schema, may
/// have dropped fields or set defaults, and an object may be stored in an earlier storage version.
///
/// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: GuaranteedUpdate
fn is_same_at_rest(
    cluster: &Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    object: &Value,
) -> bool {
    let Some(stored) = cluster.store.find(&resource.storage, key) else { return false };
    if cluster.registry.is_stored_in_earlier_version(resource, stored.schema_id) {
        return false;
    }
    if resource.custom().is_none() || convert::is_verbatim(resource, stored) {
        return true;
    }
    let mut at_rest = object.clone();
    convert::to_storage(resource, &mut at_rest);
    is_same(&stored.decode_as(&resource.api_version(), &resource.kind), &at_rest)
}

/// Whether an update changes nothing but the times in `managedFields`.
///
/// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: GuaranteedUpdate
fn is_same(live: &Value, object: &Value) -> bool {
    live == object || managed::is_same_but_times(live, object)
}
