//! Decodes the document of a request as an object of its kind: type, unknown fields, defaults.
use k8s_schema as schema;
use serde_json::{Map, Value, json};

use super::metadata;
use crate::request::parameters::FieldValidation;
use crate::semantics::context::RequestContext;
use crate::semantics::kinds;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, Result, Subject};

/// Number of characters of an unrecognized document that an error repeats.
const SHOWN_LEN_MAX: usize = 200;

/// Number of bytes of its beginning that the error repeats once more.
const BEGINNING_LEN_MAX: usize = 30;

/// Checks that `object` is of the kind of `resource`; built-in kinds may omit `apiVersion` and
/// `kind`.
///
/// # Errors
/// When it is something else.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go: createHandler
pub(crate) fn check_type(resource: &ApiResource, object: &mut Value) -> Result<()> {
    check_applied_type(resource, object)?;
    drop_null_metadata(&mut object["metadata"]);
    Ok(())
}

/// [`check_type`] for applied documents, in which null metadata fields have a meaning.
///
/// # Errors
/// When it is something else.
pub(crate) fn check_applied_type(resource: &ApiResource, object: &mut Value) -> Result<()> {
    if resource.custom().is_some() || !object.is_object() {
        check_custom_type(resource, object)?;
    }
    let fields = as_fields(object);
    let text = |value: Option<&Value>| -> String {
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (text(fields.get("apiVersion")), text(fields.get("kind")));
    let expected = resource.api_version();
    let is_other_kind = !kind.is_empty() && kind != resource.kind;
    let is_other_version = !api_version.is_empty() && api_version != expected;
    if is_other_kind || is_other_version {
        if kind == resource.list_kind && !is_other_version && resource.custom().is_none() {
            return Err(cannot_be_converted(resource, &kind));
        }
        let given_version = if api_version.is_empty() { &expected } else { &api_version };
        let kind = if kind.is_empty() { &resource.kind } else { &kind };
        let (given_version, kind) = (given_version.clone(), kind.clone());
        return Err(other_type(resource, &given_version, &kind, object));
    }
    fields.insert("apiVersion".to_owned(), expected.into());
    fields.insert("kind".to_owned(), resource.kind.clone().into());
    if fields.get("metadata").is_none_or(Value::is_null) {
        fields.insert("metadata".to_owned(), Value::Object(Map::new()));
    }
    if !fields["metadata"].is_object() {
        return Err(cannot_be_handled(
            resource,
            "json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta",
        ));
    }
    Ok(())
}

/// The error about a list in place of an object: its type is known, but cannot be converted.
fn cannot_be_converted(resource: &ApiResource, kind: &str) -> ApiError {
    let package = match resource.group.as_str() {
        "" => "core",
        group => group.split('.').next().unwrap_or_default(),
    };
    let version = &resource.version;
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {own}: converting \
         ({version}.{kind}) to ({package}.{own}): unknown conversion",
        own = resource.kind
    ))
}

/// Versions that kube-apiserver can decode although it no longer serves them.
const READ_ONLY_VERSIONS: [&str; 8] = [
    "apps/v1beta1",
    "apps/v1beta2",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1beta1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1beta1",
    "policy/v1beta1",
];

/// The error about a document of another type than the path's.
fn other_type(resource: &ApiResource, given_version: &str, kind: &str, object: &Value) -> ApiError {
    let (group, version) = given_version.split_once('/').unwrap_or(("", given_version));
    let known = schema::builtin::schema(group, version, kind);
    let is_known = known.is_some();
    let is_old = group == resource.group && READ_ONLY_VERSIONS.contains(&given_version);
    if kind == resource.kind && group == resource.group && (is_known || is_old) {
        return ApiError::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version \
             ({})",
            resource.api_version()
        ));
    }
    // The document is decoded as the type that it claims before that type is compared.
    let undecodable = known.and_then(|known| {
        schema::decoding_error(&known, object)
            .or_else(|| schema::canonicalize(&known, &mut object.clone()).err())
    });
    let why = if let Some(undecodable) = undecodable {
        undecodable
    } else if is_known {
        let package = match resource.group.as_str() {
            "" | "events.k8s.io" => "core",
            group => group.split('.').next().unwrap_or_default(),
        };
        format!(
            "converting ({version}.{kind}) to ({package}.{}): unknown conversion",
            resource.kind
        )
    } else {
        format!(
            "no kind \"{kind}\" is registered for version \"{given_version}\" in scheme \
             \"pkg/runtime/scheme.go:111\""
        )
    };
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        resource.kind
    ))
}

/// The fields of a document that is an object.
fn as_fields(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    object.as_object_mut().expect("the document was made an object above")
}

/// Checks the type of a custom object, which has to name it.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go: Decode
fn check_custom_type(resource: &ApiResource, object: &Value) -> Result<()> {
    let is_missing = |field: &str| object[field].as_str().unwrap_or_default().is_empty();
    let shown = || object.to_string().chars().take(SHOWN_LEN_MAX).collect::<String>();
    let problem = if !object.is_object() {
        format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; \
             json parse error: not an object ({})",
            resource.kind,
            shown()
        )
    } else if is_missing("kind") {
        // Decoding errors of kube-apiserver end with the beginning of the document.
        let whole = object.to_string();
        let rest = if whole.len() > BEGINNING_LEN_MAX { " ..." } else { "" };
        format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing \
             in '{}' ({}{rest})",
            resource.kind,
            shown(),
            String::from_utf8_lossy(&whole.as_bytes()[..whole.len().min(BEGINNING_LEN_MAX)]),
        )
    } else if object["apiVersion"] != resource.api_version() {
        format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            object["apiVersion"].as_str().unwrap_or_default(),
            resource.api_version()
        )
    } else if object["kind"] != resource.kind.as_str() {
        let kind = object["kind"].as_str().unwrap_or_default();
        let detail = format!("must be {}", resource.kind);
        let error = schema::FieldError::new("kind", schema::FieldErrorKind::Invalid, detail);
        return Err(ApiError::invalid(
            Subject { group: &resource.group, noun: kind },
            metadata::text(object, "name"),
            &[error.with_value(kind.into())],
        ));
    } else {
        return Ok(());
    };
    Err(ApiError::bad_request(problem))
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta/algorithm.go: Coerce
fn drop_null_metadata(metadata: &mut Value) {
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
    }
}

fn cannot_be_handled(resource: &ApiResource, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}",
        kind = resource.kind,
        version = resource.version
    ))
}

/// [`normalize`] for the result of a server-side apply.
///
/// # Errors
/// When a value has the wrong type.
pub(crate) fn normalize_merged(
    context: &mut RequestContext,
    resource: &ApiResource,
    object: &mut Value,
) -> Result<()> {
    // The merge has pruned and defaulted it; a custom object is not decoded again.
    if resource.custom().is_some() { Ok(()) } else { normalize(context, resource, object) }
}

/// Drops or rejects unknown fields, by the field validation of the request, and sets defaults.
///
/// # Errors
/// When unknown fields are refused, or a value has the wrong type.
pub(crate) fn normalize(
    context: &mut RequestContext,
    resource: &ApiResource,
    object: &mut Value,
) -> Result<()> {
    if resource.custom().is_none() {
        // An empty list resets the ownership; decoded, it would be left out.
        let is_reset = object.pointer("/metadata/managedFields").is_some_and(is_empty_list);
        fit(context, resource, object)?;
        if is_reset {
            metadata::of(object).insert("managedFields".to_owned(), json!([]));
        }
        return Ok(());
    }
    // The server writes `managedFields`, which schemas of definitions do not describe.
    let managed = metadata::of(object).remove("managedFields");
    if let Some(problem) = managed.as_ref().and_then(malformed_ownership) {
        return Err(cannot_be_handled(resource, &problem));
    }
    // Of a custom object, an empty list is dropped.
    let managed = managed.filter(|managed| managed.is_array() && !is_empty_list(managed));
    let result = fit(context, resource, object);
    if let Some(managed) = managed {
        metadata::of(object).insert("managedFields".to_owned(), managed);
    }
    result
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// Why the `managedFields` of a custom object cannot be decoded, as those of built-in objects can:
/// but the metadata is decoded by itself.
fn malformed_ownership(managed: &Value) -> Option<String> {
    let schema = schema::builtin::schema("", "v1", "ConfigMap")?;
    let mut object = json!({"metadata": {"managedFields": managed}});
    schema::decoding_error(&schema, &object)
        .map(|problem| problem.replacen(".metadata.managedFields", ".managedFields", 1))
        .or_else(|| schema::canonicalize(&schema, &mut object).err())
}

/// Prunes and defaults an object that a webhook changed, without warnings about unknown fields.
///
/// # Errors
/// When a value has the wrong type.
pub(crate) fn redefault(resource: &ApiResource, object: &mut Value) -> Result<()> {
    let managed = metadata::of(object).remove("managedFields");
    if !keeps_unknown(resource) {
        schema::prune(resource.schema(), object);
    }
    let result = check_decodable(resource, object)
        .and_then(|()| complete(resource, object))
        .map_err(ApiError::internal);
    if let Some(managed) = managed {
        metadata::of(object).insert("managedFields".to_owned(), managed);
    }
    result
}

fn fit(context: &mut RequestContext, resource: &ApiResource, object: &mut Value) -> Result<()> {
    let refused = |problem: String| cannot_be_handled(resource, &problem);
    // A document that cannot be decoded has no unknown fields to report.
    check_decodable(resource, object).map_err(refused)?;
    if !keeps_unknown(resource) {
        let unknown = schema::prune(resource.schema(), object);
        report_unknown(context, resource, &unknown)?;
    }
    complete(resource, object).map_err(refused)?;
    if resource.custom().is_none() {
        kinds::convert_input(resource, object)?;
    }
    Ok(())
}

fn keeps_unknown(resource: &ApiResource) -> bool {
    resource.custom().is_some_and(|custom| custom.preserves_unknown_fields)
}

/// Checks that the values of a built-in kind have the types of its fields.
fn check_decodable(resource: &ApiResource, object: &Value) -> std::result::Result<(), String> {
    if resource.custom().is_some() {
        return Ok(());
    }
    schema::decoding_error(resource.schema(), object).map_or(Ok(()), Err)
}

/// Converts values to their canonical form and sets defaults.
fn complete(resource: &ApiResource, object: &mut Value) -> std::result::Result<(), String> {
    let kind_schema = resource.schema();
    schema::canonicalize_numbers(object);
    if resource.custom().is_some() {
        if let Some(problem) = schema::malformed_metadata(kind_schema, object) {
            return Err(problem);
        }
        schema::apply_defaults(kind_schema, object);
        return Ok(());
    }
    schema::canonicalize(kind_schema, object)?;
    schema::apply_defaults(kind_schema, object);
    schema::apply_builtin_defaults(&resource.group, &resource.version, &resource.kind, object);
    Ok(())
}

fn report_unknown(
    context: &mut RequestContext,
    resource: &ApiResource,
    unknown: &[String],
) -> Result<()> {
    // Only the fields in the document of the request count, not those that defaulting adds.
    let listed = std::mem::take(&mut context.strict_errors).with_unknown(unknown);
    match context.parameters.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => context.warnings.extend(listed.into_warnings()),
        FieldValidation::Strict => {
            if let Some(errors) = listed.message() {
                let why = format!("strict decoding error: {errors}");
                return Err(cannot_be_handled(resource, &why));
            }
        }
    }
    Ok(())
}
