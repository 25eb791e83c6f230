//! Create.
use std::sync::Arc;

use k8s_schema::managed;
use serde_json::Value;

use crate::request::parameters::DryRun;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{self, Operation, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::ownership::actor;
use crate::semantics::registry::{ApiResource, Scope};
use crate::semantics::{convert, decode, kinds, metadata, storage_key, validation};
use crate::status::{ApiError, Result, StatusCause, StatusReason};
use crate::storage::{ObjectKey, StorageId};

/// The end of warnings about changes that admission made.
pub(crate) const AFTER_ADMISSION: &str = " after mutating admission happens";

/// The request that creates an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateSource {
    /// A create request.
    Create,
    /// An update of an object that is missing.
    Update,
    /// A server-side apply, which has already set `managedFields`.
    Apply,
}

/// Creates `object`; returns it in the version of the request.
///
/// # Errors
/// When the object is invalid or denied, or an object of its name exists.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go: createHandler
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: create
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go: Create
pub(crate) fn create(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    namespace: Option<&str>,
    mut object: Value,
    origin: CreateSource,
) -> Result<Value> {
    decode::check_type(resource, &mut object)?;
    metadata::set_namespace(resource, namespace, &mut object)?;
    let requested_version = metadata::text(&object, "resourceVersion").to_owned();
    match origin {
        CreateSource::Create | CreateSource::Update => {
            decode::normalize(context, resource, &mut object)?
        }
        CreateSource::Apply => decode::normalize_merged(context, resource, &mut object)?,
    }
    metadata::drop_duplicate_owners(context, &mut object, "");
    if origin != CreateSource::Apply {
        metadata::of(&mut object).remove("managedFields");
        object = managed::track_update(
            resource.schema(),
            None,
            object,
            &actor(context, resource, &resource.api_version(), ""),
        );
    }
    let generated = metadata::text(&object, "name").is_empty();
    check_namespace(cluster, resource, &key_of(resource, &object))?;
    kinds::admit_create(cluster, resource, &mut object)?;
    let named = metadata::text(&object, "name").to_owned();
    let namespace = namespace.unwrap_or_default();
    let attributes = WriteAttributes::new(context, Operation::Create, resource, namespace, &named);
    admission::admit(cluster, context, &attributes, &mut object)?;
    let in_url = (!namespace.is_empty()).then_some(namespace);
    metadata::set_namespace(resource, in_url, &mut object)?;
    metadata::drop_duplicate_owners(context, &mut object, AFTER_ADMISSION);
    metadata::generate_name(cluster, resource, &mut object)?;
    let key = key_of(resource, &object);
    let named_by_url = origin != CreateSource::Create;
    admission::authorize_content(cluster, context, resource, None, named_by_url, &mut object)?;
    metadata::initialize(cluster, context, &mut object);
    kinds::prepare_create(&cluster.settings, resource, &mut object)?;
    kinds::allocate(cluster, resource, None, &mut object)?;
    validation::check(cluster, context, resource, None, &object)?;
    if origin != CreateSource::Create {
        admission::authorize_create(cluster, context, resource, &key)?;
    }
    let attributes = WriteAttributes { name: key.name.to_string(), ..attributes };
    admission::validate(cluster, context, &attributes, Some(&object))?;
    // The storage refuses it before anything else; a dry run does not get there.
    let is_dry_run = context.parameters.dry_run == DryRun::All;
    let has_version = requested_version.parse::<u64>().is_ok_and(|version| version != 0);
    if origin != CreateSource::Apply && has_version && !is_dry_run {
        return Err(ApiError::new(
            StatusReason::Unknown,
            "resourceVersion should not be set on objects to be created",
        ));
    }
    if let Some(existing) = cluster.store.find(&resource.storage, &key) {
        let mut error = ApiError::already_exists(resource.subject(), &key.name);
        if existing.deleting {
            error.message.insert_str(0, "object is being deleted: ");
        }
        return Err(if generated {
            ApiError {
                message: format!(
                    "{}, the server was not able to generate a unique name for the object",
                    error.message
                ),
                ..error
            }
        } else {
            error
        });
    }
    if is_dry_run {
        if !requested_version.is_empty() {
            metadata::of(&mut object)
                .insert("resourceVersion".to_owned(), requested_version.into());
        }
        return Ok(object);
    }
    let kept = cluster.registry.storage_form(resource).map(|_| object.clone());
    let (at_rest, schema_id) = convert::to_stored_form(cluster, context, resource, object)?;
    let stored = cluster.put(&resource.storage, &key, at_rest, schema_id);
    Ok(convert::written(cluster, resource, &stored, kept))
}

/// The key of an object, from its metadata.
pub(crate) fn key_of(resource: &ApiResource, object: &Value) -> ObjectKey {
    let namespace = match resource.scope {
        Scope::Namespaced => metadata::text(object, "namespace"),
        Scope::Cluster => "",
    };
    ObjectKey::new(namespace, metadata::text(object, "name"))
}

/// Checks that the namespace of a new object exists and is not terminating.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: Admit
fn check_namespace(cluster: &Cluster, resource: &ApiResource, key: &ObjectKey) -> Result<()> {
    if resource.scope == Scope::Cluster {
        return Ok(());
    }
    let namespaces = StorageId::new("", "namespaces");
    let Some(namespace) = cluster.store.find(&namespaces, &ObjectKey::new("", &key.namespace))
    else {
        storage_key::check_parent(&key.namespace)?;
        return Err(ApiError::not_found(
            crate::status::Subject { group: "", noun: "namespaces" },
            &key.namespace,
        ));
    };
    if namespace.deleting {
        return Err(ApiError::forbidden(
            resource.subject(),
            &key.name,
            &format!(
                "unable to create new content in namespace {} because it is being terminated",
                key.namespace
            ),
        )
        .with_causes([StatusCause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {} is being terminated", key.namespace),
            field: "metadata.namespace".to_owned(),
        }]));
    }
    Ok(())
}
