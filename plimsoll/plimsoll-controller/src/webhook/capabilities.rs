//! A validating admission webhook that refuses mistakes in `spec.capabilities` when they are made
//! (CAP-11), and a spec that cannot be read.
//!
//! It is a convenience: what it refuses the controller would not act on either. So a webhook that
//! cannot be reached lets everything pass.

use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus};
use plimsoll_api::{ApiKind, CLUSTER_VERSION, CLUSTER_VERSION_NAME, read_usable};
use plimsoll_plan::capabilities::{SpecChange, review};
use plimsoll_plan::reconciler::desired::CapabilityRules;
use plimsoll_plan::spec::read::read;
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
    let (old, new) = (&request["oldObject"], &request["object"]);
    if old.is_object() && old["spec"] == new["spec"] {
        return json!({ "allowed": true });
    }
    let new = match read(&new["spec"]) {
        Ok(new) => new,
        Err(why) => {
            return refused(&format!(
                "ClusterVersion \"{CLUSTER_VERSION_NAME}\" cannot be read: {why}; correct the field, or \
                 leave it out"
            ));
        }
    };
    let status: ClusterVersionStatus = read_usable(&old["status"]);
    let mut enabled = status.capabilities.enabled_capabilities;
    if old.is_object() {
        // The status may lag, and may be unable to name all.
        enabled.extend(rules.enabled.iter().cloned());
    }
    let old = spec_before(old);
    let change = SpecChange { old: old.as_ref(), new: &new, enabled: &enabled };
    let objections = review(&change, &rules.registry, &rules.gates);
    if objections.is_empty() {
        return json!({ "allowed": true });
    }
    let said: Vec<String> = objections.iter().map(ToString::to_string).collect();
    refused(&said.join("; "))
}

/// Returns the spec of an object before a write, with its capabilities alone; `None` if there was none, or they
/// could not be read. What else could not be read may be corrected.
fn spec_before(old: &Value) -> Option<ClusterVersionSpec> {
    let capabilities = &old["spec"]["capabilities"];
    old.is_object().then(|| read(&json!({ "capabilities": capabilities })).ok()).flatten()
}

/// Returns the answer that refuses a write.
fn refused(message: &str) -> Value {
    let status = json!({
        "status": "Failure", "code": 400, "reason": "BadRequest", "message": message,
    });
    json!({ "allowed": false, "status": status })
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

    #[test]
    fn a_spec_that_cannot_be_read_is_refused_and_may_be_corrected() {
        let check = |old: Value, new: Value, expected: &str| {
            let object = |spec: Value| match spec {
                Value::Null => Value::Null,
                spec => json!({ "spec": spec }),
            };
            let request = json!({ "oldObject": object(old), "object": object(new) });
            let answer = answer(&request, &CapabilityRules::default());
            assert_eq!(answer["allowed"], expected.is_empty(), "{request}");
            let said = answer["status"]["message"].as_str().unwrap_or_default();
            assert!(said.starts_with(expected), "{said}");
        };
        let channel = || json!({ "channel": 4 });
        let unreadable =
            "ClusterVersion \"version\" cannot be read: spec.channel: invalid type: integer";
        check(Value::Null, channel(), unreadable);
        check(json!({ "channel": "stable" }), channel(), unreadable);
        check(json!({ "channel": "a", "capabilities": 1 }), channel(), "ClusterVersion");
        // A write of something else, such as an annotation.
        check(channel(), channel(), "");
        check(channel(), json!({ "channel": "stable" }), "");
        check(json!({ "capabilities": 1 }), json!({ "channel": "stable" }), "");
        // What could be read is compared as ever.
        let capabilities = |names: &[&str]| json!({ "additionalEnabledCapabilities": names });
        let gone = capabilities(&["Gone"]);
        let before = json!({ "channel": 4, "capabilities": gone });
        check(before, json!({ "channel": "stable", "capabilities": gone }), "");
    }
}
