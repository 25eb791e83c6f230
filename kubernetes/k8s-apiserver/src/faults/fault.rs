//! The faults that a request can get.
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::storage::AsOf;

/// A fault of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The server rejects the request with an error, without handling it.
    Refused(Refusal),
    /// The connection fails before the server received the request.
    ConnectionLost,
    /// The server handles the request; the connection fails before the response.
    AnswerLost,
    /// The server handles the request; the connection fails in the midst of the response. It only
    /// affects complete responses, not watches.
    AnswerTruncated,
    /// The server handles the request; only the first half of the response arrives, as if it were
    /// all. It only affects complete responses, not watches.
    AnswerCorrupted,
    /// The request reaches the server after this delay.
    Delayed(Duration),
    /// A get or list is answered from an earlier state, as by a lagging server, but from none
    /// before the requested revision or the oldest event that is kept. Only the embedded server
    /// does this; others answer as usual.
    Stale(AsOf),
    /// The server compacts its history before it handles the request: requests at an earlier
    /// revision get `410 Expired`. Only the embedded server does this; others answer as usual.
    Compacted,
    /// The server ends the response stream after this time. It only affects watches.
    WatchClosed(Duration),
    /// The connection of the response stream fails after this time. It only affects watches.
    WatchBroken(Duration),
    /// All events are lost, and after this time the watch ends with `410 Expired`: the client has
    /// to list again. It only affects watches in JSON.
    WatchExpired(Duration),
    /// Each event is sent twice, as can happen around a reconnection. It only affects watches in
    /// JSON.
    WatchDuplicated,
}

/// The error response of a rejected request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: u16,
    reason: String,
    message: String,
    retry_after_seconds: Option<u32>,
}

impl Fault {
    /// A rejection with this HTTP status, with the reason and message that Kubernetes has for it.
    pub fn refused(code: u16) -> Self {
        Self::Refused(Refusal::new(code))
    }
}

impl Refusal {
    /// A rejection with this HTTP status, with the reason and message that Kubernetes has for it.
    pub fn new(code: u16) -> Self {
        let (reason, message, retry_after_seconds) = match code {
            400 => ("BadRequest", "the request was refused", None),
            401 => ("Unauthorized", "Unauthorized", None),
            403 => ("Forbidden", "forbidden", None),
            404 => ("NotFound", "the server could not find the requested resource", None),
            409 => (
                "Conflict",
                "the object has been modified; please apply your changes to the latest version \
                 and try again",
                None,
            ),
            410 => ("Expired", "The resourceVersion for the provided list is too old.", None),
            429 => ("TooManyRequests", "too many requests, please try again later", Some(1)),
            500 => ("InternalError", "Internal error occurred: the fault was asked for", None),
            503 => {
                ("ServiceUnavailable", "the server is currently unable to handle the request", None)
            }
            504 => ("Timeout", "request did not complete within the allotted timeout", None),
            _ => ("", "the fault was asked for", None),
        };
        let (reason, message) = (reason.to_owned(), message.to_owned());
        Self { code, reason, message, retry_after_seconds }
    }

    /// Sets the machine-readable reason.
    #[must_use]
    pub fn reason(self, reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..self }
    }

    /// Sets the message.
    #[must_use]
    pub fn message(self, message: &str) -> Self {
        Self { message: message.to_owned(), ..self }
    }

    /// Sets `Retry-After`, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_seconds: Some(seconds), ..self }
    }

    /// The response, whose body is the `Status`.
    pub(super) fn answer(&self) -> Response<String> {
        let mut response = Response::new(self.status().to_string());
        *response.status_mut() =
            StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }

    fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_str().into();
        }
        if let Some(seconds) = self.retry_after_seconds {
            status["details"] = json!({ "retryAfterSeconds": seconds });
        }
        status
    }
}
