//! Audit: a record of who asked for what, and how it went.
//!
//! A policy of rules says how much of which request is recorded; the first rule that a request
//! matches counts, and without one nothing is recorded.
mod event;
mod policy;

pub use policy::{AuditGroup, AuditLevel, AuditPolicy, AuditRule, AuditStage};

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

pub(crate) use event::Record;

/// Where audit events go.
pub trait AuditSink: Send + Sync {
    /// Takes one event, an `Event` of `audit.k8s.io/v1`. It is called within the request.
    fn record(&self, event: &Value);
}

/// What is recorded of requests, and where.
#[derive(Clone)]
pub struct Audit {
    /// How much of which requests.
    pub policy: AuditPolicy,
    /// Where it goes.
    pub sink: Arc<dyn AuditSink>,
}

/// A sink that writes each event as a line of JSON.
pub struct JsonLines<W>(Mutex<W>);

impl<W: Write + Send> JsonLines<W> {
    /// A sink that writes to `out`, which is flushed after each line.
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
