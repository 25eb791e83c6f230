//! Webhooks, as requests see them: where they are, and what they answered.
pub(crate) mod endpoint;
pub(crate) mod replay;

pub(crate) use endpoint::Endpoint;
