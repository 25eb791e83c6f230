//! Which policies or webhooks the second round of mutating admission calls again.
use std::collections::BTreeSet;

use serde_json::Value;

/// What the mutating policies, or the mutating webhooks, know of the rounds of a write.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/reinvocationcontext.go: policyReinvokeContext
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/reinvocationcontext.go: webhookReinvokeContext
#[derive(Debug, Default)]
pub(super) struct Reinvocation {
    round: usize,
    /// Those with reinvocation that were called since the last change.
    invoked: BTreeSet<String>,
    /// Those of them after which the object changed.
    due: BTreeSet<String>,
    /// The object at the end of the last round.
    output: Option<Value>,
    /// Whether a change asks for a second round.
    is_asked_for: bool,
}

impl Reinvocation {
    /// Begins a round with this object; what was called before is due if others changed it.
    pub(super) fn begin(&mut self, round: usize, object: &Value) {
        self.round = round;
        if round > 0 && self.output.as_ref() != Some(object) {
            self.due.append(&mut self.invoked);
        }
    }

    /// Ends a round with this object.
    pub(super) fn end(&mut self, object: &Value) {
        self.output = Some(object.clone());
    }

    /// The number of the round.
    pub(super) fn round(&self) -> usize {
        self.round
    }

    /// Whether this one is called in this round.
    pub(super) fn calls(&self, id: &str) -> bool {
        self.round == 0 || self.due.contains(id)
    }

    /// Notes that the object changed.
    pub(super) fn changed(&mut self) {
        self.due.append(&mut self.invoked);
        self.is_asked_for = true;
    }

    /// Notes that one with reinvocation was called.
    pub(super) fn invoked(&mut self, id: &str) {
        self.invoked.insert(id.to_owned());
    }

    /// Whether a change asks for a second round.
    pub(super) fn is_asked_for(&self) -> bool {
        self.is_asked_for
    }
}
