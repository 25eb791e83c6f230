//! What can go wrong with a request.
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::storage::AsOf;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The server refuses and does nothing.
    Refused(Refusal),
    /// The connection fails before the server has seen the request.
    ConnectionLost,
    /// The server does what it was asked to; the connection fails before it has answered.
    AnswerLost,
    /// The request takes this long to get to the server.
    Delayed(Duration),
    /// A get or list is answered as of an earlier state, as by a server that lags behind. It is
    /// never older than the request asks for, nor than the history of the resource reaches back.
    /// Only the embedded server knows how; others answer as usual.
    Stale(AsOf),
    /// The server forgets its history before it sees the request: what asks for an earlier state
    /// gets `410 Expired`. Only the embedded server knows how; others answer as usual.
    Compacted,
    /// The server ends the stream of its answer after this time. Concerns watches only: others
    /// are not touched.
    WatchClosed(Duration),
    /// The connection fails under the stream of the answer after this time. Concerns watches only.
    WatchBroken(Duration),
    /// All events are lost, and after this time the server says that the watch is too old and ends
    /// it: the client has to list again. Concerns watches only, in JSON.
    WatchExpired(Duration),
    /// The events of this watch come twice, as they may around a reconnection. Concerns watches
    /// only, in JSON.
    WatchDuplicated,
}

/// The answer of a server that refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: u16,
    reason: String,
    message: String,
    retry_after_seconds: Option<u32>,
}

impl Fault {
    /// The server refuses with this HTTP status, in the words that Kubernetes has for it.
    pub fn refused(code: u16) -> Self {
        Self::Refused(Refusal::new(code))
    }
}

impl Refusal {
    /// A refusal with this HTTP status, in the words that Kubernetes has for it.
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

    /// The same with this machine-readable reason.
    #[must_use]
    pub fn reason(self, reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..self }
    }

    /// The same with this message.
    #[must_use]
    pub fn message(self, message: &str) -> Self {
        Self { message: message.to_owned(), ..self }
    }

    /// The same with the advice to come back after so many seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_seconds: Some(seconds), ..self }
    }

    /// The answer, whose body is the `Status`.
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
