//! A validating admission webhook that refuses mistakes in `spec.capabilities` when they are made
//! (CAP-11).
//!
//! It is a convenience: what it refuses the controller would not act on either. So a webhook that
//! cannot be reached lets everything pass.

use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus};
use plimsoll_api::{ApiKind, CLUSTER_VERSION};
use plimsoll_plan::capabilities::{SpecChange, review};
use plimsoll_plan::reconciler::desired::CapabilityRules;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{ClientConfig, Reviewer, VALIDATING, webhook};

/// Name of the ValidatingWebhookConfiguration.
const CONFIGURATION: &str = "plimsoll-capabilities";
/// Name of the webhook in the configuration, which rejections begin with.
const WEBHOOK: &str = "capabilities.plimsoll.io";
/// Path that reviews are sent to.
const PATH: &str = "/capabilities";

/// Judges changes of `spec.capabilities` by what holds at the time.
#[derive(Debug, Clone)]
pub(crate) struct CapabilityReviewer(pub(crate) watch::Receiver<CapabilityRules>);

impl Reviewer for CapabilityReviewer {
    const NAME: &'static str = "capability";
    const SECRET: &'static str = "plimsoll-capability-webhook";
    const CONFIGURATIONS: &'static [(ApiKind, &'static str)] = &[(VALIDATING, CONFIGURATION)];

    fn webhooks(&self, _: ApiKind, config: &ClientConfig) -> Vec<Value> {
        let rules = json!([{
            "apiGroups": [CLUSTER_VERSION.group],
            "apiVersions": [CLUSTER_VERSION.version],
            "operations": ["CREATE", "UPDATE"],
            "resources": [CLUSTER_VERSION.plural],
            "scope": "Cluster",
        }]);
        vec![webhook(WEBHOOK, "Ignore", &config.at(PATH), &rules)]
    }

    async fn review(&self, path: &str, request: &Value) -> Option<Value> {
        (path == PATH).then(|| answer(request, &self.0.borrow()))
    }
}

/// Answers a review.
fn answer(request: &Value, rules: &CapabilityRules) -> Value {
    let spec = |object: &Value| -> ClusterVersionSpec {
        ClusterVersionSpec::deserialize(&object["spec"]).unwrap_or_default()
    };
    let old = request["oldObject"].is_object().then(|| spec(&request["oldObject"]));
    let status = &request["oldObject"]["status"];
    let status = ClusterVersionStatus::deserialize(status).unwrap_or_default();
    let mut enabled = status.capabilities.enabled_capabilities;
    if old.is_some() {
        // The status may lag, and may be unable to name all.
        enabled.extend(rules.enabled.iter().cloned());
    }
    let new = spec(&request["object"]);
    let change = SpecChange { old: old.as_ref(), new: &new, enabled: &enabled };
    let objections = review(&change, &rules.registry, &rules.gates);
    let mut response = json!({ "allowed": objections.is_empty() });
    if !objections.is_empty() {
        let said: Vec<String> = objections.iter().map(ToString::to_string).collect();
        response["status"] = json!({
            "status": "Failure", "code": 400, "reason": "BadRequest", "message": said.join("; "),
        });
    }
    response
}

#[cfg(test)]
mod tests {
    //! What is refused, and what is let pass.

    use super::*;

    #[test]
    fn a_review_is_answered_with_400_or_let_pass() {
        let cluster_version = |additional: &[&str]| {
            json!({ "spec": { "capabilities": {
                "baselineCapabilitySet": "None", "additionalEnabledCapabilities": additional,
            } }, "status": { "capabilities": { "enabledCapabilities": ["Console"] } } })
        };
        let ask = |old: Value, new: Value| {
            answer(&json!({ "oldObject": old, "object": new }), &CapabilityRules::default())
        };
        let refused = ask(cluster_version(&["Console"]), cluster_version(&[]));
        assert_eq!(refused["allowed"], false);
        assert_eq!(refused["status"]["code"], 400);
        let said = refused["status"]["message"].as_str().unwrap();
        assert!(said.starts_with("spec.capabilities: Console is enabled"), "{said}");
        let allowed = ask(cluster_version(&["Console"]), cluster_version(&["Console", "Insights"]));
        assert_eq!(allowed, json!({ "allowed": true }));
        assert_eq!(ask(Value::Null, cluster_version(&["Consle"]))["allowed"], false);
    }
}
