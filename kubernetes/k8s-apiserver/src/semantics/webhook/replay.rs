//! What a request has to ask others before it can be answered.
//!
//! Verbs are synchronous and run under the lock of the cluster; webhooks are neither. So a verb
//! that needs an answer which it does not have notes the question and ends, before it has changed
//! anything. The question is asked without the lock, and the verb runs again from its beginning,
//! with the answer. Answers are found by the content of their question: if the cluster changed in
//! between so that the question is another one, it is asked anew. What a request drew from the
//! cluster's ids it draws again, so that the questions of both runs are the same.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::ids::Ids;
use crate::semantics::webhook::Endpoint;
use crate::status::ApiError;

/// A question to a webhook.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// On whose behalf: questions of different askers are different, whatever they say.
    pub(crate) asker: String,
    /// Who is asked.
    pub(crate) endpoint: Arc<Endpoint>,
    /// What is asked: a review whose `request` has no uid yet.
    pub(crate) review: Value,
}

/// A question with the uid that its answer has to repeat.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) question: Question,
    pub(crate) uid: String,
}

/// What came back: the review and the uid that it was asked under, or why nothing came.
pub(crate) type Answer = Result<Answered, String>;

/// A review that came back.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// The uid of the question.
    pub(crate) uid: String,
    /// The review as it came.
    pub(crate) review: Arc<Value>,
}

/// The memory of one request across its runs.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    answers: BTreeMap<String, Answer>,
    pending: BTreeMap<String, Question>,
    ids: Option<Ids>,
    began: Option<String>,
    /// What admission added to the audit event in the last run.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The verb has to run again once its questions are answered; nobody gets to see this error.
pub(crate) fn interrupted() -> ApiError {
    ApiError::internal("a question to a webhook is still open")
}

impl Asking {
    /// The answer to a question; without one, the question is noted.
    ///
    /// # Errors
    /// When the question has to be asked first: then the verb must end with this error.
    pub(crate) fn ask(&mut self, question: Question) -> Result<Answer, ApiError> {
        let key = format!("{} {}", question.asker, question.review);
        if let Some(answer) = self.answers.get(&key) {
            return Ok(answer.clone());
        }
        self.pending.insert(key, question);
        Err(interrupted())
    }

    /// The time of the request: that of its first run.
    pub(crate) fn began(&mut self, now: impl FnOnce() -> String) -> String {
        self.began.get_or_insert_with(now).clone()
    }

    /// Whether a question is open.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The open questions, each under its key, with uids from `ids`.
    pub(crate) fn take_pending(&mut self, ids: &mut Ids) -> Vec<(String, Pending)> {
        std::mem::take(&mut self.pending)
            .into_iter()
            .map(|(key, question)| (key, Pending { question, uid: ids.next_review() }))
            .collect()
    }

    /// Remembers an answer.
    pub(crate) fn answer(&mut self, key: String, answer: Answer) {
        self.answers.insert(key, answer);
    }

    /// The request's own ids, as they are at the beginning of each of its runs.
    pub(crate) fn own_ids(&mut self, ids: &mut Ids) -> Ids {
        self.ids.get_or_insert_with(|| ids.fork()).clone()
    }
}
