//! Failures, worded as an API server words them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

/// The number of seconds after which a client is to try again.
const RETRY_SECONDS: u32 = 1;

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    code: StatusCode,
    reason: &'static str,
    message: String,
    /// Whether it may be answered later.
    is_passing: bool,
}

impl Failure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let is_passing =
            matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        Self { code, reason, message: message.into(), is_passing }
    }

    /// The client is not who it says it is.
    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// The client may not do this.
    pub(super) fn forbidden(username: &str, path: &str, verb: &str) -> Self {
        let message = format!("forbidden: User {username:?} cannot {verb} path {path:?}");
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// The query cannot be read.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Nothing is served at the path.
    pub(super) fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// There is no such package.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// The path is served for other methods.
    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// The body is too large.
    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// Too many queries are being answered.
    pub(super) fn too_many_requests() -> Self {
        let message = "Too many requests, please try again later.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
    }

    /// The state is not known.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// Something is wrong with the service itself.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        let message = format!("Internal error occurred: {}", message.into());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Returns the response.
    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if self.is_passing {
            status["details"] = json!({ "retryAfterSeconds": RETRY_SECONDS });
        }
        let mut response = Response::new(Full::new(Bytes::from(format!("{status}\n"))));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.is_passing {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        response
    }
}
