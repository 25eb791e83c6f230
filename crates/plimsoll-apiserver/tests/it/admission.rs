//! Admission: webhooks in process, conversion, policies.
mod hooks;
mod order;
mod webhooks;
