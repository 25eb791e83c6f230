//! What a request brings along besides its target and body.
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::request::parameters::Parameters;
use crate::semantics::webhook::replay::Asking;
use crate::user::UserInfo;

/// What a request brings along besides its target and body.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// Query parameters.
    pub(crate) parameters: Parameters,
    /// Who writes, for `managedFields`.
    pub(crate) manager: String,
    /// Whom the request comes from.
    pub(crate) user: Arc<UserInfo>,
    /// The time of the request, RFC 3339 in whole seconds.
    pub(crate) now: String,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
    /// What webhooks were asked, and what they answered.
    pub(crate) asking: Asking,
    /// What admission adds to the audit event of the request.
    pub(crate) annotations: BTreeMap<String, String>,
    /// What the body has twice, as strict validation tells of it.
    pub(crate) duplicate_fields: Vec<String>,
}

impl Call {
    /// Adds to the audit event of the request; the first value of a key stays.
    pub(crate) fn annotate(&mut self, key: String, value: String) {
        self.annotations.entry(key).or_insert(value);
    }
}
