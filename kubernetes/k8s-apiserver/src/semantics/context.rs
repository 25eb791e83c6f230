//! The context of a request: its options, its user, and what it has reported so far.
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::request::parameters::Parameters;
use crate::request::strict::StrictErrors;
use crate::semantics::webhook::replay::WebhookReplay;
use crate::user::UserInfo;

/// The context in which a verb runs, apart from its target and its object.
#[derive(Debug, Default)]
pub(crate) struct RequestContext {
    /// The query parameters.
    pub(crate) parameters: Parameters,
    /// The field manager, for `managedFields`.
    pub(crate) manager: String,
    /// The authenticated or impersonated user.
    pub(crate) user: Arc<UserInfo>,
    /// The time of the request, RFC 3339 in whole seconds.
    pub(crate) now: String,
    /// Warnings for the `Warning` headers of the response.
    pub(crate) warnings: Vec<String>,
    /// The webhook calls of the request and their responses.
    pub(crate) replay: WebhookReplay,
    /// The annotations that admission adds to the audit event of the request.
    pub(crate) annotations: BTreeMap<String, String>,
    /// What strict field validation found in the body so far.
    pub(crate) strict_errors: StrictErrors,
}

impl RequestContext {
    /// Adds an annotation to the audit event of the request, unless it has the key already.
    pub(crate) fn annotate(&mut self, key: String, value: String) {
        self.annotations.entry(key).or_insert(value);
    }
}
