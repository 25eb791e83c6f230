//! Whether an object may be stored.
use plimsoll_schema as schema;
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
            errors.extend(schema::validate(resource.schema(), object));
            if !errors.iter().any(|error| error.kind.blocks_expressions()) {
                let verdict = resource.schema().evaluate_rules(object, live);
                errors.extend(verdict.errors);
                call.warnings.extend(verdict.warnings);
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
    Err(ApiError::invalid(resource.kind_subject(), metadata::text(object, "name"), &errors))
}
