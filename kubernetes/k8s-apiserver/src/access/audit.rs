//! Audit logging of requests.
//!
//! The first rule of the audit policy that matches a request decides how much of it is recorded;
//! a request that no rule matches is not recorded.
//!
//! Upstream: k8s.io/apiserver/pkg/endpoints/filters/audit.go: WithAudit
mod event;
mod policy;

pub use policy::{AuditGroup, AuditLevel, AuditPolicy, AuditRule, AuditStage};

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

pub(crate) use event::AuditRecord;

/// A consumer of audit events.
pub trait AuditSink: Send + Sync {
    /// Records an `Event` of `audit.k8s.io/v1`. It is called while the request is handled.
    fn record(&self, event: &Value);
}

/// The audit policy and the sink of a server.
#[derive(Clone)]
pub struct Audit {
    /// How much is recorded of which requests.
    pub policy: AuditPolicy,
    /// Where the events are sent.
    pub sink: Arc<dyn AuditSink>,
}

/// A sink that writes each event as a line of JSON to a writer.
pub struct JsonLines<W>(Mutex<W>);

impl<W: Write + Send> JsonLines<W> {
    /// A sink that writes to `out` and flushes it after each line.
    pub fn new(out: W) -> Arc<Self> {
        Arc::new(Self(Mutex::new(out)))
    }
}

impl<W: Write + Send> AuditSink for JsonLines<W> {
    fn record(&self, event: &Value) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(out, "{event}").and_then(|()| out.flush()) {
            tracing::warn!(%error, "could not write an audit event");
        }
    }
}
