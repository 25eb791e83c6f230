//! Who owns the fields of an object.
use k8s_schema::managed::ManagerInfo;

use super::context::RequestContext;
use super::kinds;
use super::registry::ApiResource;

/// Who writes, for `managedFields`.
pub(crate) fn actor<'a>(
    context: &'a RequestContext,
    resource: &ApiResource,
    api_version: &'a str,
    subresource: &'a str,
) -> ManagerInfo<'a> {
    ManagerInfo {
        manager: &context.manager,
        api_version,
        subresource,
        now: &context.now,
        reset_fields: kinds::reset_fields(resource, subresource),
    }
}
