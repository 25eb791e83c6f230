//! Calls to webhooks, in parallel, each with its timeout.
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::Value;

use super::Webhooks;
use crate::semantics::webhook::replay::{PendingCall, WebhookResponse, WebhookResult};

/// Number of characters of an invalid response that an error repeats.
const SHOWN_LEN_MAX: usize = 2_048;

/// Makes all calls in parallel; the results are in the order of the calls.
pub(crate) async fn call_all(
    webhooks: &Webhooks,
    pending: Vec<(String, PendingCall)>,
) -> Vec<(String, WebhookResult)> {
    let asked = pending.into_iter().map(|(key, pending)| async move {
        let url = pending.call.endpoint.request_url();
        let answer = call_one(webhooks, pending).await;
        (key, answer.map_err(|cause| cause.written(&url)))
    });
    join_all(asked).await
}

/// Why a call failed.
enum CallError {
    /// The request was not answered.
    Transport(String),
    /// The response is not a review.
    WebhookResult(String),
}

impl CallError {
    fn written(self, url: &str) -> String {
        match self {
            Self::Transport(cause) => format!("Post \"{url}\": {cause}"),
            Self::WebhookResult(cause) => cause,
        }
    }
}

async fn call_one(webhooks: &Webhooks, pending: PendingCall) -> Result<WebhookResponse, CallError> {
    let PendingCall { call, uid } = pending;
    let mut review = call.review;
    review["request"]["uid"] = uid.as_str().into();
    let body = Full::new(Bytes::from(review.to_string()));
    let request = Request::post(call.endpoint.request_url())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, */*")
        .header(USER_AGENT, "kube-apiserver-admission")
        .body(body)
        .map_err(|error| CallError::Transport(error.to_string()))?;
    let sent = webhooks.send(&call.endpoint, request);
    let response = tokio::time::timeout(call.endpoint.timeout(), sent)
        .await
        .map_err(|_| CallError::Transport("context deadline exceeded".to_owned()))?
        .map_err(CallError::Transport)?;
    let review = read(&response).map_err(CallError::WebhookResult)?;
    Ok(WebhookResponse { uid, review: Arc::new(review) })
}

fn read(response: &Response<Bytes>) -> Result<Value, String> {
    let text = String::from_utf8_lossy(response.body());
    let shown: String = text.trim().chars().take(SHOWN_LEN_MAX).collect();
    if !response.status().is_success() {
        return Err(explain(response.status(), &shown));
    }
    serde_json::from_str(&text).map_err(|error| {
        let why = if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        };
        format!("couldn't get version/kind; json parse error: {why}")
    })
}

/// The message of client-go about an error response.
fn explain(status: StatusCode, shown: &str) -> String {
    let text = match status.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 => "the server was unable to respond with a content type that the client supports",
        409 => "the server reported a conflict",
        410 => "the server reported that the requested resource is no longer available",
        413 => "Request entity too large",
        415 => "the server was unable to decode the request body",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        _ => {
            let shown = if shown.is_empty() { "unknown" } else { shown };
            return format!(
                "an error on the server ({shown:?}) has prevented the request from succeeding"
            );
        }
    };
    text.to_owned()
}
