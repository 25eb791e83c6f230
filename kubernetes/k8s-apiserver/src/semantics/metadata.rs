//! `metadata`: the fields that the server sets, preserves and checks.
use k8s_schema::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::registry::{ApiResource, Scope};
use crate::semantics::warnings;
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::ObjectKey;

/// Longest prefix of a generated name, so that the suffix fits.
const GENERATED_PREFIX_LEN_MAX: usize = 58;

/// The metadata of an object, which is added if it is missing.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("metadata was made an object above")
}

/// A text field of the metadata; empty if it is missing.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Sets the namespace of an object to that of the URL.
///
/// # Errors
/// When the object names another one.
pub(crate) fn set_namespace(
    resource: &ApiResource,
    namespace: Option<&str>,
    object: &mut Value,
) -> Result<()> {
    let metadata = of(object);
    match (resource.scope, namespace) {
        (Scope::Namespaced, Some(namespace)) => {
            let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
            if !given.is_empty() && given != namespace {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        (Scope::Namespaced, None) => {
            return Err(ApiError::bad_request("an empty namespace may not be set during creation"));
        }
        (Scope::Cluster, _) => {
            metadata.remove("namespace");
        }
    }
    Ok(())
}

/// Generates the name of a new object from its `generateName`, unless it has a name.
///
/// # Errors
/// When it has neither a name nor a prefix for one.
pub(crate) fn generate_name(
    cluster: &mut Cluster,
    resource: &ApiResource,
    object: &mut Value,
) -> Result<()> {
    let metadata = of(object);
    let has = |field: &str| {
        metadata.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    };
    if has("name") {
        return Ok(());
    }
    if !has("generateName") {
        return Err(ApiError::invalid(
            resource.kind_subject(),
            "",
            &[FieldError::new(
                "metadata.name",
                FieldErrorKind::Required,
                "name or generateName is required",
            )],
        ));
    }
    let mut prefix = metadata["generateName"].as_str().unwrap_or_default().to_owned();
    let mut end = prefix.len().min(GENERATED_PREFIX_LEN_MAX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    prefix.truncate(end);
    let name = prefix + &cluster.ids.next_suffix();
    metadata.insert("name".to_owned(), name.into());
    Ok(())
}

/// Drops duplicate owner references, with a warning; `when` is the end of its text.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: dedupOwnerReferences
pub(crate) fn drop_duplicate_owners(context: &mut RequestContext, object: &mut Value, when: &str) {
    if object["metadata"].get("ownerReferences").is_none() {
        return;
    }
    if let Some(uids) = warnings::drop_duplicate_owners(of(object)) {
        context.warnings.push(warnings::about_owners(&uids, when));
    }
}

/// Sets the metadata of a new object that only the server may set: uid and creation time.
pub(crate) fn initialize(cluster: &mut Cluster, context: &RequestContext, object: &mut Value) {
    let uid = cluster.ids.next_uid();
    let metadata = of(object);
    for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        metadata.remove(field);
    }
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), context.now.clone().into());
}

/// Whether updates cannot change a field of the metadata.
fn is_kept(live: &Value, field: &str) -> bool {
    field == "deletionTimestamp" && !text(live, field).is_empty()
}

/// Checks the uid in an update against that of the live object, which is empty if there is none.
///
/// # Errors
/// When it means another one.
pub(crate) fn check_uid(
    resource: &ApiResource,
    key: &ObjectKey,
    live_uid: &str,
    object: &Value,
) -> Result<()> {
    let uid = text(object, "uid");
    if uid.is_empty() || uid == live_uid {
        return Ok(());
    }
    let group = match resource.group.as_str() {
        "apiextensions.k8s.io" | "apiregistration.k8s.io" => format!("{}/", resource.group),
        group if resource.custom().is_some() => format!("{group}/"),
        _ => String::new(),
    };
    let namespace = match &*key.namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    Err(ApiError::conflict(
        resource.subject(),
        &key.name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{namespace}{}, \
             ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
             {uid}, UID in object meta: {live_uid}",
            resource.plural, key.name
        ),
    ))
}

/// Copies the metadata that updates cannot change from the live object.
///
/// # Errors
/// When the object was changed since the update was made, or another one has its name.
pub(crate) fn carry_over(
    resource: &ApiResource,
    key: &ObjectKey,
    live: &Value,
    object: &mut Value,
) -> Result<()> {
    let live_metadata = &live["metadata"];
    let metadata = of(object);
    let given = |field: &str| -> Option<&str> {
        metadata.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    };
    if let Some(revision) = given("resourceVersion") {
        let parsed: u64 = revision.parse().map_err(|_| {
            ApiError::new(
                StatusReason::Unknown,
                format!("strconv.ParseUint: parsing {revision:?}: invalid syntax"),
            )
        })?;
        if parsed != 0 && live_metadata["resourceVersion"] != revision {
            return Err(ApiError::modified(resource.subject(), &key.name));
        }
    }
    // Validation rejects other values of these.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let is_left_out = |value: &Value| value.is_null() || value == "";
        if metadata.get(field).is_none_or(is_left_out) || is_kept(live, field) {
            metadata.remove(field);
            metadata.extend(live_metadata.get(field).map(|kept| (field.to_owned(), kept.clone())));
        }
    }
    for field in ["creationTimestamp", "generation", "resourceVersion", "namespace"] {
        match live_metadata.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    metadata.remove("selfLink");
    Ok(())
}
