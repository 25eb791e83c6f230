//! Admission: webhooks in process, conversion, policies.
mod conversion;
mod hooks;
mod order;
mod policies;
mod webhooks;
