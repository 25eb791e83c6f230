//! Whether an object may be stored.
use plimsoll_schema as schema;
use serde_json::Value;

use super::metadata;
use crate::admission;
use crate::cluster::Call;
use crate::kinds;
use crate::registry::ApiResource;
use crate::status::{ApiError, Result};
use crate::warnings;

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
        Some(_) => errors.extend(schema::validate(resource.schema(), object)),
        None => {
            errors.extend(kinds::validate(resource, live, object));
            errors.extend(admission::problems(resource, object, live.is_none()));
        }
    }
    if errors.is_empty() {
        if resource.custom().is_none() {
            call.warnings.extend(warnings::of_object(resource, live, object));
        }
        return Ok(());
    }
    Err(ApiError::invalid(resource.kind_subject(), metadata::text(object, "name"), &errors))
}
