//! Admission: webhooks in process, conversion, policies.
mod conversion;
mod hooks;
mod mutating;
mod order;
mod policies;
mod webhooks;
