//! The errors of requests that are not authenticated or not authorized.
use super::attributes::AuthorizationAttributes;
use crate::status::{ApiError, StatusReason, Subject};
use crate::user::UserInfo;

/// The user could not be authenticated.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/filters/authentication.go: Unauthorized
pub(crate) fn unauthorized() -> ApiError {
    ApiError::new(StatusReason::Unauthorized, "Unauthorized")
}

/// The user is not allowed to make the request; `why` may be empty.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go: Forbidden
pub(crate) fn forbidden(
    user: &UserInfo,
    attributes: &AuthorizationAttributes<'_>,
    why: &str,
) -> ApiError {
    let who = &user.username;
    let verb = &attributes.verb;
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let Some(about) = &attributes.resource else {
        return ApiError {
            details: Some(Box::default()),
            ..ApiError::new(
                StatusReason::Forbidden,
                format!("forbidden: User {who:?} cannot {verb} path {:?}{why}", attributes.path),
            )
        };
    };
    let scope = if about.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", about.namespace)
    };
    let subject = Subject { group: about.group, noun: about.resource };
    let sentence = format!(
        "User {who:?} cannot {verb} resource {:?} in API group {:?} {scope}{why}",
        about.combined(),
        about.group
    );
    let mut error = ApiError::forbidden(subject, &about.name, &sentence);
    if about.name.is_empty() {
        error.message = format!("{subject} is forbidden: {sentence}");
    }
    error
}
