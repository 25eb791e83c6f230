//! Objects that a webhook or a policy changed: what may not change, and what follows.
use k8s_schema::{FieldError, FieldErrorKind, Schema, builtin, prune};
use serde_json::Value;

use crate::semantics::cluster::admission::kind_of;
use crate::semantics::registry::ApiResource;
use crate::semantics::{decode, metadata};
use crate::status::{ApiError, Result, StatusReason, Subject};

/// Prunes and defaults an object that was changed; `own` is the schema of a subresource that has a
/// kind of its own.
///
/// # Errors
/// When a value has the wrong type.
pub(super) fn redefault(
    resource: &ApiResource,
    own: Option<&Schema>,
    object: &mut Value,
) -> Result<()> {
    match own {
        Some(own) => {
            prune(own, object);
            Ok(())
        }
        None => decode::redefault(resource, object),
    }
}

/// Checks that a webhook or a policy has not changed the kind of an object.
///
/// # Errors
/// When it has, with the message of kube-apiserver.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go: callAttrMutatingHook
pub(super) fn check_kind(resource: &ApiResource, before: &Value, patched: &Value) -> Result<()> {
    fn text<'a>(object: &'a Value, field: &str) -> &'a str {
        object[field].as_str().unwrap_or_default()
    }
    let [found, wanted] =
        [patched, before].map(|object| (text(object, "apiVersion"), text(object, "kind")));
    if found == wanted {
        return Ok(());
    }
    let (api_version, kind) = found;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if resource.custom().is_some() {
        if api_version != wanted.0 {
            let why = format!(
                "{group}/{version}, Kind={kind} is unstructured and is not suitable for \
                 converting to {:?}",
                wanted.0
            );
            return Err(ApiError::new(StatusReason::Unknown, why));
        }
        let problem =
            FieldError::new("kind", FieldErrorKind::Invalid, format!("must be {}", wanted.1));
        let subject = Subject { group, noun: kind };
        let name = metadata::text(patched, "name");
        return Err(ApiError::invalid(subject, name, &[problem.with_value(kind.into())]));
    }
    if builtin::schema(group, version, kind).is_none() {
        return Err(ApiError::internal(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        )));
    }
    let package = match resource.group.split('.').next() {
        Some("") | None => "core",
        Some(first) => first,
    };
    let why =
        format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", wanted.1);
    Err(ApiError::new(StatusReason::Unknown, why))
}

/// The schema of a subresource that has a kind of its own.
pub(super) fn own_schema(resource: &ApiResource, subresource: &str) -> Option<Schema> {
    let [group, version, kind] = kind_of(resource, subresource);
    (kind != resource.kind).then(|| builtin::schema(group, version, kind)).flatten()
}
