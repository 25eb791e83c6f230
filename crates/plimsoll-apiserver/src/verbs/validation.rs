//! Whether an object may be stored.
use plimsoll_schema::{self as schema, FieldError, FieldErrorKind};
use serde_json::Value;

use super::metadata;
use crate::cluster::Call;
use crate::kinds;
use crate::registry::ApiResource;
use crate::status::{ApiError, Result};

/// Checks an object; `live` is the object before an update.
///
/// # Errors
/// With everything that is wrong with it.
pub(crate) fn check(
    call: &mut Call,
    resource: &ApiResource,
    live: Option<&Value>,
    object: &Value,
) -> Result<()> {
    let mut errors = metadata::validate(resource, live, object);
    match resource.custom() {
        Some(custom) => {
            let found = schema::validate(resource.schema(), object);
            let blocks_rules = found.iter().any(blocks_rules);
            errors.extend(found);
            if blocks_rules && resource.has_rules() {
                errors.push(
                    FieldError::new(
                        "<nil>",
                        FieldErrorKind::Invalid,
                        "some validation rules were not checked because the object was invalid; \
                         correct the existing errors to complete validation",
                    )
                    .with_value(Value::Null),
                );
            }
            if let Some(warning) = &custom.deprecation_warning {
                call.warnings.push(warning.clone());
            }
        }
        None => errors.extend(kinds::validate(resource, live, object)),
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        resource.kind_subject(),
        metadata::text(object, "name"),
        &errors,
    ))
}

/// Whether an error keeps the rules of the schema from being evaluated at all.
fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::Required
            | FieldErrorKind::TypeInvalid
            | FieldErrorKind::NotSupported
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
    )
}
