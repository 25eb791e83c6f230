//! Failures, worded as an API server words them.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

/// The number of seconds after which a client is to try again.
const RETRY_SECONDS: u32 = 1;

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    code: StatusCode,
    /// The reason, as API servers name it; empty if they have none for the code.
    reason: &'static str,
    message: String,
    /// Whether it may be answered later.
    is_passing: bool,
    /// The methods that the path is served for; empty unless it is asked for by another one.
    allow: &'static str,
}

impl Failure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let is_passing =
            matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        Self { code, reason, message: message.into(), is_passing, allow: "" }
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

    /// The client asks as another user.
    pub(super) fn impersonation() -> Self {
        let message = "forbidden: impersonation is not supported: send the token of the user, without the headers \
                       `Impersonate-…`";
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

    /// The path is served for other methods: these.
    pub(super) fn method_not_allowed(allow: &'static str) -> Self {
        let message = "the server does not allow this method on the requested resource";
        let failure = Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        Self { allow, ..failure }
    }

    /// The body did not arrive in time.
    pub(super) fn too_slow(patience: Duration) -> Self {
        let message = format!("the query did not arrive within {} seconds", patience.as_secs());
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", message)
    }

    /// The answer was not there in time.
    pub(super) fn not_in_time(patience: Duration) -> Self {
        let seconds = patience.as_secs();
        let message = format!("Timeout: the query was not answered within {seconds} seconds");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    /// The path is longer than that of any package.
    pub(super) fn too_long(limit: usize) -> Self {
        let message = format!("the path is too long: limit is {limit}");
        Self::new(StatusCode::URI_TOO_LONG, "", message)
    }

    /// The body is encoded.
    pub(super) fn encoded() -> Self {
        let message = "the query is compressed: send it without Content-Encoding";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
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
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if self.is_passing {
            status["details"] = json!({ "retryAfterSeconds": RETRY_SECONDS });
        }
        let mut response = Response::new(Full::new(Bytes::from(format!("{status}\n"))));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if !self.allow.is_empty() {
            headers.insert(ALLOW, HeaderValue::from_static(self.allow));
        }
        // Who may not ask must not keep one of the places for connections.
        let is_unwanted = matches!(
            self.code,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::REQUEST_TIMEOUT
        );
        if is_unwanted {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self.is_passing {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        response
    }
}
