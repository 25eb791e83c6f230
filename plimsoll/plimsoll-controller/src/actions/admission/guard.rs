//! The validating webhook, which asks for a decision about requests for guarded classes.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{ACTION, CRON_ACTION, EVENT_ACTION};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AdmissionRequest, Decision, rule, user};
use crate::actions::generators::GENERATORS;
use crate::webhook::{self, ClientConfig};

/// Path that reviews are sent to.
pub(super) const PATH: &str = "/actions/guard";
/// Name of the webhook of Actions.
const WEBHOOK: &str = "guard.actions.plimsoll.io";
/// Name of the webhook of the kinds with a template for Actions.
const TEMPLATE_WEBHOOK: &str = "guard-template.actions.plimsoll.io";
/// The CEL condition that holds if another Action than before is requested, or by another user.
const IS_REQUESTED: &str = "request.operation == 'CREATE' \
    || object.spec.template != oldObject.spec.template \
    || object.spec.?requester.orValue({}) != oldObject.spec.?requester.orValue({})";

/// Returns the webhooks of the configuration; none if no class is guarded.
pub(super) fn webhooks(guarded: &BTreeSet<String>, config: &ClientConfig) -> Vec<Value> {
    if guarded.is_empty() {
        return Vec::new();
    }
    let webhook = |name: &str, rules: &Value, class: &str| {
        // A list of strings has the same syntax in CEL as in JSON.
        let expression = format!("{class} in {}", json!(guarded));
        let mut webhook = webhook::webhook(name, "Fail", &config.at(PATH), rules);
        webhook["matchConditions"] = json!([{ "name": "is-guarded", "expression": expression }]);
        webhook
    };
    let actions = json!([rule(&["CREATE"], &[ACTION])]);
    let actions = webhook(WEBHOOK, &actions, "object.spec.actionClass");
    let templates =
        json!([rule(&["CREATE"], &GENERATORS), rule(&["UPDATE"], &[CRON_ACTION, EVENT_ACTION])]);
    let mut templates = webhook(TEMPLATE_WEBHOOK, &templates, "object.spec.template.actionClass");
    if let Some(conditions) = templates["matchConditions"].as_array_mut() {
        conditions.push(json!({ "name": "is-requested", "expression": IS_REQUESTED }));
    }
    vec![actions, templates]
}

/// Reads the request of a review.
///
/// # Errors
///
/// When the request cannot be read; the error is a decision that denies it.
pub(super) fn read(request: &Value) -> Result<AdmissionRequest, Decision> {
    let refused = |error: serde_json::Error| Decision {
        message: format!("the request cannot be read: {error}"),
        ..Decision::default()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&request["kind"]["kind"]);
    let spec = &request["object"]["spec"];
    let action = if kind == ACTION.kind { spec } else { &spec["template"] };
    Ok(AdmissionRequest {
        namespace: text(&request["namespace"]),
        name: text(&request["name"]),
        requester: Deserialize::deserialize(&spec["requester"]).map_err(refused)?,
        user: user(request),
        action: Deserialize::deserialize(action).map_err(refused)?,
        dry_run: request["dryRun"] == true,
        kind,
    })
}

/// Returns a decision as the response to a review.
pub(super) fn answer(decision: Decision) -> Value {
    let mut response = json!({ "allowed": decision.allowed });
    if !decision.allowed {
        response["status"] = json!({
            "status": "Failure", "code": 403, "reason": "Forbidden", "message": decision.message,
        });
    }
    if !decision.warnings.is_empty() {
        response["warnings"] = json!(decision.warnings);
    }
    if !decision.audit.is_empty() {
        let annotations: BTreeMap<String, String> = decision.audit.into_iter().collect();
        response["auditAnnotations"] = json!(annotations);
    }
    response
}

#[cfg(test)]
mod tests {
    //! Tests of reading requests, and of the responses.

    use super::*;

    #[test]
    fn what_is_judged_is_in_the_name_of_the_requester() {
        let request = |kind: &str, spec: Value| {
            read(&json!({
                "kind": { "kind": kind }, "namespace": "tea", "name": "a", "dryRun": true,
                "userInfo": { "username": "system:serviceaccount:plimsoll:plimsoll" },
                "object": { "spec": spec },
            }))
        };
        let alice = json!({ "username": "alice", "groups": ["dev"] });
        let of = json!({ "actionClass": "a", "requester": alice });
        let asked = request("Action", of).expect("it can be read");
        assert_eq!((asked.requester.username.as_str(), asked.dry_run), ("alice", true));
        assert_eq!(asked.user.username, "system:serviceaccount:plimsoll:plimsoll");
        let of = json!({ "template": { "actionClass": "b" }, "requester": alice });
        let asked = request("CronAction", of).expect("it can be read");
        assert_eq!((asked.action.action_class.as_str(), asked.name.as_str()), ("b", "a"));
        let refused = request("Action", json!({ "actionClass": "a" })).unwrap_err();
        assert!(refused.message.starts_with("the request cannot be read: "), "{refused:?}");
        assert!(!refused.allowed);
    }

    #[test]
    fn a_decision_is_answered_with_what_belongs_to_it() {
        let decision = Decision {
            allowed: false,
            message: "no policy allows it".to_owned(),
            warnings: vec!["soon".to_owned()],
            audit: vec![("policy".to_owned(), "tenants".to_owned())],
        };
        let response = answer(decision);
        assert_eq!(response["status"]["message"], "no policy allows it");
        assert_eq!(response["auditAnnotations"], json!({ "policy": "tenants" }));
        assert_eq!(response["warnings"], json!(["soon"]));
        let allowed = Decision { allowed: true, ..Decision::default() };
        assert_eq!(answer(allowed), json!({ "allowed": true }));
    }
}
