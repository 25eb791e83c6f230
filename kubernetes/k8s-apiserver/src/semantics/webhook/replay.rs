//! Webhook calls of synchronous verbs, by replaying the verb.
//!
//! Verbs are synchronous and run under the lock of the cluster; webhook calls are neither. A verb
//! that needs a response which it does not have registers the call and is suspended: it returns an
//! error before it has changed anything. The call is made without the lock, and the verb runs again
//! from its beginning with the response. Responses are found by the content of the call, so a call
//! that differs because the cluster changed in between is made anew. Each run of a request draws
//! the same uids and names, so that its calls stay the same.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::ids::Ids;
use crate::semantics::webhook::Endpoint;
use crate::status::ApiError;

/// A call to a webhook.
#[derive(Clone, Debug)]
pub(crate) struct WebhookCall {
    /// Identifies the caller: calls of different callers are different, whatever their review.
    pub(crate) caller: String,
    /// The webhook.
    pub(crate) endpoint: Arc<Endpoint>,
    /// The review to send; its `request` has no uid yet.
    pub(crate) review: Value,
}

/// A call that is to be made, with the uid that the response has to repeat.
#[derive(Clone, Debug)]
pub(crate) struct PendingCall {
    pub(crate) call: WebhookCall,
    pub(crate) uid: String,
}

/// The response to a call, or why it failed.
pub(crate) type WebhookResult = Result<WebhookResponse, String>;

/// The response to a call.
#[derive(Clone, Debug)]
pub(crate) struct WebhookResponse {
    /// The uid of the call.
    pub(crate) uid: String,
    /// The review as the webhook sent it.
    pub(crate) review: Arc<Value>,
}

/// The webhook calls of one request, across its runs.
#[derive(Debug, Default)]
pub(crate) struct WebhookReplay {
    answers: BTreeMap<String, WebhookResult>,
    pending: BTreeMap<String, WebhookCall>,
    ids: Option<Ids>,
    started_at: Option<String>,
    /// Whether the request has to run again without further calls.
    is_outdated: bool,
    /// The audit annotations of the last run.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The error of a suspended verb; it runs again, once its calls were made. No client sees it.
pub(crate) fn suspended() -> ApiError {
    ApiError::internal("a call to a webhook is still open")
}

impl WebhookReplay {
    /// The response to a call; a call without one is registered as pending.
    ///
    /// # Errors
    /// When there is no response yet: the verb has to return this error.
    pub(crate) fn call(&mut self, call: WebhookCall) -> Result<WebhookResult, ApiError> {
        let key = format!("{} {}", call.caller, call.review);
        if let Some(answer) = self.answers.get(&key) {
            return Ok(answer.clone());
        }
        self.pending.insert(key, call);
        Err(suspended())
    }

    /// The time of the first run of the request.
    pub(crate) fn started_at(&mut self, now: impl FnOnce() -> String) -> String {
        self.started_at.get_or_insert_with(now).clone()
    }

    /// Has the request run again: what it found in the cluster before it was locked has changed since.
    pub(crate) fn start_over(&mut self) {
        self.is_outdated = true;
    }

    /// Whether the request has to run again; asked once for each run.
    pub(crate) fn take_outdated(&mut self) -> bool {
        std::mem::take(&mut self.is_outdated)
    }

    /// Whether calls are pending.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes the pending calls, each with its key and a uid from `ids`.
    pub(crate) fn take_pending(&mut self, ids: &mut Ids) -> Vec<(String, PendingCall)> {
        std::mem::take(&mut self.pending)
            .into_iter()
            .map(|(key, call)| (key, PendingCall { call, uid: ids.next_review() }))
            .collect()
    }

    /// Records the result of a call.
    pub(crate) fn record(&mut self, key: String, answer: WebhookResult) {
        self.answers.insert(key, answer);
    }

    /// The ids of the request, the same at the beginning of each of its runs.
    pub(crate) fn request_ids(&mut self, ids: &mut Ids) -> Ids {
        self.ids.get_or_insert_with(|| ids.fork()).clone()
    }
}
