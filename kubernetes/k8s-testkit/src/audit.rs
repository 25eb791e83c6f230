//! What was written to a cluster, by its own account.

use std::path::Path;
use std::sync::{Arc, Mutex};

use k8s_apiserver::{Audit, AuditLevel, AuditPolicy, AuditRule, AuditSink, AuditStage};
use serde_json::{Value, json};

use crate::service::lock;

/// The verbs that change something.
const VERBS: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// The audit log of an embedded server: every write, in the order of the answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditTrail(Arc<Mutex<Vec<Value>>>);

impl AuditTrail {
    /// How a server is told to record.
    pub(crate) fn audit(&self) -> Audit {
        let rule = AuditRule {
            level: AuditLevel::Metadata,
            verbs: VERBS.map(str::to_owned).to_vec(),
            ..AuditRule::default()
        };
        let omit_stages = vec![AuditStage::RequestReceived];
        Audit {
            policy: AuditPolicy { rules: vec![rule], omit_stages },
            sink: Arc::new(self.clone()),
        }
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        lock(&self.0).clone()
    }
}

impl AuditSink for AuditTrail {
    fn record(&self, event: &Value) {
        lock(&self.0).push(event.clone());
    }
}

/// The same policy for a kube-apiserver.
pub(crate) fn policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{ "level": "Metadata", "verbs": VERBS }, { "level": "None" }],
    })
}

/// The events that a kube-apiserver wrote to its log; a line that is being written is left out.
pub(crate) fn read(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
