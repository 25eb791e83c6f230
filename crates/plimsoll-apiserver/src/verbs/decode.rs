//! From a request's document to an object of its kind: type, unknown fields, defaults.
use plimsoll_schema as schema;
use serde_json::{Map, Value};

use super::metadata;
use crate::cluster::Call;
use crate::kinds;
use crate::registry::ApiResource;
use crate::request::parameters::FieldValidation;
use crate::status::{ApiError, Result};

/// How much of an unrecognisable document an error repeats.
const SHOWN_LEN_MAX: usize = 200;

/// Checks that `object` is of the kind of `resource`; a built-in kind may leave its type out.
///
/// # Errors
/// When it is something else.
pub(crate) fn check_type(resource: &ApiResource, object: &mut Value) -> Result<()> {
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
        let given_version = if api_version.is_empty() { &expected } else { &api_version };
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {}: no kind \"{kind}\" is registered \
             for version \"{given_version}\" in scheme \"pkg/runtime/scheme.go:111\"",
            given_version.rsplit('/').next().unwrap_or_default(),
            resource.kind
        )));
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
    drop_null_metadata(&mut fields["metadata"]);
    Ok(())
}

/// The fields of a document that is an object.
fn as_fields(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    object.as_object_mut().expect("the document was made an object above")
}

/// A custom object says what it is, and anything is an object.
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
        format!("Object 'Kind' is missing in '{}'", shown())
    } else if is_missing("apiVersion") {
        format!("Object 'apiVersion' is missing in '{}'", shown())
    } else {
        return Ok(());
    };
    Err(ApiError::bad_request(problem))
}

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

/// Drops or refuses the fields that the kind does not have, and fills in defaults.
///
/// # Errors
/// When unknown fields are refused, or a value has the wrong type.
pub(crate) fn normalize(call: &mut Call, resource: &ApiResource, object: &mut Value) -> Result<()> {
    // Ownership is written by the server and follows a grammar of its own.
    let managed = metadata::of(object).remove("managedFields");
    let result = fit(call, resource, object);
    if let Some(managed) = managed {
        metadata::of(object).insert("managedFields".to_owned(), managed);
    }
    result
}

/// Fits an object to its kind that a webhook changed: nobody is told of unknown fields.
///
/// # Errors
/// When a value has the wrong type.
pub(crate) fn redefault(resource: &ApiResource, object: &mut Value) -> Result<()> {
    let managed = metadata::of(object).remove("managedFields");
    let kind_schema = resource.schema();
    if !resource.custom().is_some_and(|custom| custom.preserves_unknown_fields) {
        schema::prune(kind_schema, object);
    }
    if resource.custom().is_none()
        && let Some(why) = wrong_type(resource, object)
    {
        return Err(ApiError::internal(why));
    }
    schema::apply_defaults(kind_schema, object);
    if resource.custom().is_none() {
        schema::apply_builtin_defaults(&resource.group, &resource.version, &resource.kind, object);
    }
    if let Some(managed) = managed {
        metadata::of(object).insert("managedFields".to_owned(), managed);
    }
    Ok(())
}

fn fit(call: &mut Call, resource: &ApiResource, object: &mut Value) -> Result<()> {
    let kind_schema = resource.schema();
    let keeps_unknown = resource.custom().is_some_and(|custom| custom.preserves_unknown_fields);
    if !keeps_unknown {
        let unknown = schema::prune(kind_schema, object);
        report_unknown(call, resource, &unknown)?;
    }
    if resource.custom().is_none() {
        check_built_in_types(resource, object)?;
    }
    schema::apply_defaults(kind_schema, object);
    if resource.custom().is_none() {
        schema::apply_builtin_defaults(&resource.group, &resource.version, &resource.kind, object);
        kinds::convert_input(resource, object)?;
    }
    Ok(())
}

/// A built-in kind is decoded into a struct, which a value of the wrong type does not fit.
fn check_built_in_types(resource: &ApiResource, object: &Value) -> Result<()> {
    match wrong_type(resource, object) {
        Some(why) => Err(cannot_be_handled(resource, &why)),
        None => Ok(()),
    }
}

/// The first value that does not fit the struct of a built-in kind.
fn wrong_type(resource: &ApiResource, object: &Value) -> Option<String> {
    let wrong = schema::validate(resource.schema(), object)
        .into_iter()
        .find(|error| error.kind == schema::FieldErrorKind::TypeInvalid)?;
    Some(format!("json: cannot unmarshal {}: {}", wrong.path, wrong.message()))
}

fn report_unknown(call: &mut Call, resource: &ApiResource, unknown: &[String]) -> Result<()> {
    if unknown.is_empty() {
        return Ok(());
    }
    let listed = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    match call.parameters.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(listed),
        FieldValidation::Strict => {
            return Err(cannot_be_handled(
                resource,
                &format!("strict decoding error: {}", listed.collect::<Vec<_>>().join(", ")),
            ));
        }
    }
    Ok(())
}
