//! The four kinds of patch.
use k8s_schema::managed::{self, ApplyError};
use k8s_schema::patch as schema_patch;
use k8s_schema::{FieldError, FieldErrorKind, canonicalize_numbers, go_kind};
use serde_json::Value;

use super::create::{CreateSource, create};
use super::update::{Ownership, WriteTarget, check_name, find, namespace_of, update};
use crate::request::content::MediaType;
use crate::request::parameters::{FieldValidation, OptionsKind};
use crate::request::strict;
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::ownership::actor;
use crate::semantics::part::ObjectPart;
use crate::semantics::{convert, decode, metadata};
use crate::status::{ApiError, Result, StatusCause, StatusReason};

mod invalid_result;

/// The patch of a request.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    /// The media type, which is the kind of patch.
    pub(crate) media_type: MediaType,
    /// The document of the patch.
    pub(crate) document: Value,
}

/// Patches an object; a server-side apply creates it if it is missing.
///
/// Returns the object and whether it is new.
///
/// # Errors
/// When the patch cannot be applied, or its result is invalid or denied.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: patchResource
pub(crate) fn patch(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    target: WriteTarget<'_>,
    patch: &Patch,
) -> Result<(Value, bool)> {
    check_options(context, patch.media_type)?;
    if patch.media_type == MediaType::ApplyPatch {
        return apply(cluster, context, target, &patch.document);
    }
    let Some(live) = find(cluster, context, target.resource, target.key)? else {
        return Err(ApiError::not_found(target.resource.subject(), &target.key.name));
    };
    let mut patched = patched(target, &live, patch)?;
    if patch.media_type == MediaType::StrategicMergePatch {
        // Its result is converted, those of the other patches are decoded.
        canonicalize_numbers(&mut patched);
    }
    decode::check_type(target.resource, &mut patched)
        .map_err(|error| invalid_result::undecodable(target, &live, patch, error))?;
    metadata::set_namespace(target.resource, namespace_of(target.key), &mut patched)?;
    check_name(target.key, &patched)?;
    let updated = update(cluster, context, target, &live, patched, Ownership::Record)
        .map_err(|error| invalid_result::undecodable(target, &live, patch, error))?;
    Ok((updated, false))
}

/// Applies a patch to an object.
fn patched(target: WriteTarget<'_>, live: &Value, patch: &Patch) -> Result<Value> {
    match patch.media_type {
        MediaType::JsonPatch => {
            schema_patch::json_patch(live, &patch.document).map_err(refused_patch)
        }
        MediaType::StrategicMergePatch => {
            schema_patch::strategic_merge_patch(target.resource.schema(), live, &patch.document)
                .map_err(refused_patch)
        }
        MediaType::MergePatch
        | MediaType::Json
        | MediaType::Yaml
        | MediaType::Protobuf
        | MediaType::ApplyPatch => Ok(schema_patch::merge_patch(live, &patch.document)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the end of the error")]
fn refused_patch(error: schema_patch::PatchError) -> ApiError {
    match &error {
        schema_patch::PatchError::Malformed(why) => ApiError::bad_request(why.clone()),
        schema_patch::PatchError::Internal(why) => {
            ApiError::new(StatusReason::Unknown, why.clone())
        }
        schema_patch::PatchError::TooMany(_) => ApiError::new(
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: {error}"),
        ),
        schema_patch::PatchError::Failed(_) | schema_patch::PatchError::CopiesTooMuch(_) => {
            ApiError {
                details: Some(Box::default()),
                ..ApiError::new(
                    StatusReason::Invalid,
                    "the server rejected our request due to an error in our request",
                )
            }
        }
    }
}

/// Checks that an apply has a field manager, and that only an apply is forced.
///
/// # Errors
/// When an option is not valid for the kind of patch.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go: ValidatePatchOptions
pub(crate) fn check_options(context: &RequestContext, media_type: MediaType) -> Result<()> {
    let problem = if media_type == MediaType::ApplyPatch {
        context.parameters.field_manager.as_deref().unwrap_or_default().is_empty().then(|| {
            FieldError::new("fieldManager", FieldErrorKind::Required, "is required for apply patch")
        })
    } else {
        context.parameters.force.is_some().then(|| {
            FieldError::new(
                "force",
                FieldErrorKind::Forbidden,
                "may not be specified for non-apply patch",
            )
        })
    };
    match problem {
        Some(problem) => Err(OptionsKind("PatchOptions").invalid(problem)),
        None => Ok(()),
    }
}

/// Checks that a merge patch is an object.
///
/// # Errors
/// When it is not an object.
pub(crate) fn check_merge_document(document: &Value) -> Result<()> {
    let kind = match document {
        Value::Object(_) => return Ok(()),
        Value::Null => return Err(ApiError::bad_request("Invalid JSON Patch")),
        other => go_kind(other),
    };
    Err(ApiError::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {kind} into Go value of type \
         map[string]interface {{}}"
    )))
}

/// Server-side apply.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: applyPatchToCurrentObject
fn apply(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    target: WriteTarget<'_>,
    document: &Value,
) -> Result<(Value, bool)> {
    let mut applied = document.clone();
    check_applied_type(target, &applied)?;
    decode::check_applied_type(target.resource, &mut applied)?;
    let live = find(cluster, context, target.resource, target.key)?;
    check_existence(target, live.as_ref(), &applied)?;
    let api_version = target.resource.api_version();
    let registry = &cluster.registry;
    let versions = |object: &Value, version: &str| {
        convert::to_version(registry, target.resource, object, version)
    };
    let merged = managed::server_side_apply(
        managed::VersionedKind::new(target.resource.schema(), &versions),
        live.as_ref(),
        &applied,
        &actor(context, target.resource, &api_version, target.part.subresource()),
        context.parameters.force.unwrap_or_default(),
    )
    .map_err(|error| {
        let live = live.as_ref().unwrap_or(&Value::Null);
        refused_apply(&api_version, &target.resource.kind, document, live, &error)
    })?;
    let mut merged = merged;
    report_duplicates(context)?;
    check_name(target.key, &merged)?;
    if let Some(live) = &live {
        check_preconditions(target, live, &applied)?;
    }
    match live {
        Some(live) => {
            metadata::set_namespace(target.resource, namespace_of(target.key), &mut merged)?;
            let updated = update(cluster, context, target, &live, merged, Ownership::Recorded)?;
            Ok((updated, false))
        }
        None if target.part == ObjectPart::Main => {
            let created = create(
                cluster,
                context,
                target.resource,
                namespace_of(target.key),
                merged,
                CreateSource::Apply,
            )?;
            Ok((created, true))
        }
        None => Err(ApiError::not_found(target.resource.subject(), &target.key.name)),
    }
}

/// Reports the duplicate keys of an applied document, of which the last one was applied.
fn report_duplicates(context: &mut RequestContext) -> Result<()> {
    let duplicates = std::mem::take(&mut context.strict_errors).into_repeated();
    if duplicates.is_empty() {
        return Ok(());
    }
    match context.parameters.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => context.warnings.extend(duplicates),
        FieldValidation::Strict => {
            return Err(ApiError::bad_request(format!(
                "error strict decoding patch: error converting YAML to JSON: {}",
                strict::unmarshal_errors(&duplicates)
            )));
        }
    }
    Ok(())
}

/// Checks that an applied document names its type.
fn check_applied_type(target: WriteTarget<'_>, applied: &Value) -> Result<()> {
    let text = |field: &str| applied[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version == target.resource.api_version() && kind == target.resource.kind {
        return Ok(());
    }
    let shown =
        if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") };
    Err(ApiError::bad_request(format!("invalid object type: {shown}, Kind={kind}")))
}

/// Checks that an apply that creates an object names no uid.
fn check_existence(target: WriteTarget<'_>, live: Option<&Value>, applied: &Value) -> Result<()> {
    let uid = metadata::text(applied, "uid");
    if live.is_some() || uid.is_empty() {
        return Ok(());
    }
    Err(ApiError::conflict(
        target.resource.subject(),
        &target.key.name,
        &format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        ),
    ))
}

fn check_preconditions(target: WriteTarget<'_>, live: &Value, applied: &Value) -> Result<()> {
    let uid = metadata::text(applied, "uid");
    let revision = metadata::text(applied, "resourceVersion");
    if !revision.is_empty() && metadata::text(live, "resourceVersion") != revision {
        return Err(ApiError::modified(target.resource.subject(), &target.key.name));
    }
    if !uid.is_empty() && metadata::text(live, "uid") != uid {
        return Err(ApiError::invalid(
            target.resource.kind_subject(),
            &target.key.name,
            &[FieldError::new("metadata.uid", FieldErrorKind::Invalid, "field is immutable")
                .with_value(uid.into())],
        ));
    }
    Ok(())
}

/// The error of a failed apply to an object of this version and kind.
pub(crate) fn refused_apply(
    api_version: &str,
    kind: &str,
    document: &Value,
    live: &Value,
    error: &ApplyError,
) -> ApiError {
    let named = |object: &Value| {
        let slash = if api_version.contains('/') { "" } else { "/" };
        let (namespace, name) =
            (metadata::text(object, "namespace"), metadata::text(object, "name"));
        format!("({namespace}/{name}; {slash}{api_version}, Kind={kind})")
    };
    let typed = |which: &str, object: &Value| {
        let text = format!("failed to create typed {which} object {}: {error}", named(object));
        ApiError::new(StatusReason::Unknown, text)
    };
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.iter().map(|conflict| StatusCause {
                reason: "FieldManagerConflict".to_owned(),
                message: conflict.cause(),
                field: conflict.path.clone(),
            });
            ApiError::new(StatusReason::Conflict, error.to_string()).with_causes(causes)
        }
        ApplyError::ManagedFieldsInApply => ApiError::bad_request(error.to_string()),
        ApplyError::Version(why) => ApiError::new(StatusReason::Unknown, why.clone()),
        ApplyError::Typed(_) => typed("patch", document),
        // An object without `managedFields` gets them first, which fails with another message.
        ApplyError::TypedLive(_) if live["metadata"].get("managedFields").is_none() => {
            ApiError::new(
                StatusReason::Unknown,
                format!(
                    "failed to create manager for existing fields: failed to convert new object {} \
                     to smd typed: {error}",
                    named(live)
                ),
            )
        }
        ApplyError::TypedLive(_) => typed("live", live),
    }
}
