//! Who owns the fields of an object.
use k8s_schema::managed::Actor;

use super::context::Call;
use super::kinds;
use super::registry::ApiResource;

/// Who writes, for `managedFields`.
pub(crate) fn actor<'a>(
    call: &'a Call,
    resource: &ApiResource,
    api_version: &'a str,
    subresource: &'a str,
) -> Actor<'a> {
    Actor {
        manager: &call.manager,
        api_version,
        subresource,
        now: &call.now,
        reset_fields: kinds::reset_fields(resource, subresource),
    }
}
