//! The validating webhooks, which ask for a decision about requests: those for guarded classes, which
//! are rejected while it cannot be reached, and those for others.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{ACTION, CRON_ACTION, EVENT_ACTION};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AdmissionRequest, Decision, rule, user};
use crate::actions::generators::GENERATORS;
use crate::webhook::{self, ClientConfig};

/// Path that reviews of requests for guarded classes are sent to.
pub(super) const PATH: &str = "/actions/guard";
/// Path that reviews of requests for other classes are sent to.
pub(super) const CHECK_PATH: &str = "/actions/check";
/// Name of the webhook of Actions of guarded classes.
const WEBHOOK: &str = "guard.actions.plimsoll.io";
/// Name of the webhook of the kinds with a template for Actions of guarded classes.
const TEMPLATE_WEBHOOK: &str = "guard-template.actions.plimsoll.io";
/// Name of the webhook of Actions of other classes.
const CHECK_WEBHOOK: &str = "check.actions.plimsoll.io";
/// Name of the webhook of the kinds with a template for Actions of other classes.
const CHECK_TEMPLATE_WEBHOOK: &str = "check-template.actions.plimsoll.io";
/// The field with the class of an Action, in CEL.
const CLASS: &str = "object.spec.actionClass";
/// The field with the class of a template, in CEL.
const TEMPLATE_CLASS: &str = "object.spec.template.actionClass";
/// The CEL condition that holds if another Action than before is requested, at other times, upon other
/// changes, or by another user.
const IS_REQUESTED: &str = "request.operation == 'CREATE' \
    || object.spec.template != oldObject.spec.template \
    || object.spec.?schedule.orValue('') != oldObject.spec.?schedule.orValue('') \
    || object.spec.?timeZone.orValue('') != oldObject.spec.?timeZone.orValue('') \
    || object.spec.?trigger.orValue({}) != oldObject.spec.?trigger.orValue({}) \
    || object.spec.?requester.orValue({}) != oldObject.spec.?requester.orValue({})";

/// A webhook: what of it depends on the guarded classes.
struct Guard {
    name: &'static str,
    failure_policy: &'static str,
    path: &'static str,
    /// Whether it is about the kinds with a template for Actions.
    is_template: bool,
    /// The CEL condition that holds if it is about the class.
    condition: String,
}

/// Returns the webhooks of the configuration.
pub(super) fn webhooks(guarded: &BTreeSet<String>, config: &ClientConfig) -> Vec<Value> {
    let webhook = |guard: Guard| {
        let Guard { name, failure_policy, path, is_template, condition } = guard;
        let rules = rules(is_template);
        let mut webhook = webhook::webhook(name, failure_policy, &config.at(path), &rules);
        let mut conditions = vec![json!({ "name": "is-of-class", "expression": condition })];
        if is_template {
            conditions.push(json!({ "name": "is-requested", "expression": IS_REQUESTED }));
        }
        webhook["matchConditions"] = json!(conditions);
        webhook
    };
    guards(guarded).into_iter().map(webhook).collect()
}

/// Returns the webhooks of guarded classes, if there are any, and those of the others.
fn guards(guarded: &BTreeSet<String>) -> Vec<Guard> {
    // A list of strings has the same syntax in CEL as in JSON.
    let list = json!(guarded);
    let guard = |name, class, is_template| Guard {
        name,
        failure_policy: "Fail",
        path: PATH,
        is_template,
        condition: format!("{class} in {list}"),
    };
    let check = |name, class, is_template| Guard {
        name,
        failure_policy: "Ignore",
        path: CHECK_PATH,
        is_template,
        condition: format!("!({class} in {list})"),
    };
    let mut guards = vec![
        guard(WEBHOOK, CLASS, false),
        guard(TEMPLATE_WEBHOOK, TEMPLATE_CLASS, true),
        check(CHECK_WEBHOOK, CLASS, false),
        check(CHECK_TEMPLATE_WEBHOOK, TEMPLATE_CLASS, true),
    ];
    guards.retain(|it| it.path == CHECK_PATH || !guarded.is_empty());
    guards
}

/// Returns the rules of a webhook of Actions, or of the kinds with a template for them.
fn rules(is_template: bool) -> Value {
    if is_template {
        json!([rule(&["CREATE"], &GENERATORS), rule(&["UPDATE"], &[CRON_ACTION, EVENT_ACTION])])
    } else {
        json!([rule(&["CREATE"], &[ACTION])])
    }
}

/// Reads the request of a review.
///
/// # Errors
///
/// When the request cannot be read; the error is a decision that denies it.
pub(super) fn read(request: &Value, is_guarded: bool) -> Result<AdmissionRequest, Decision> {
    let refused = |error: serde_json::Error| Decision {
        message: format!("the request cannot be read: {error}"),
        ..Decision::default()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&request["kind"]["kind"]);
    let spec = &request["object"]["spec"];
    let action = if kind == ACTION.kind { spec } else { &spec["template"] };
    let schedule =
        (kind == CRON_ACTION.kind).then(|| (text(&spec["schedule"]), text(&spec["timeZone"])));
    Ok(AdmissionRequest {
        namespace: text(&request["namespace"]),
        name: text(&request["name"]),
        requester: Deserialize::deserialize(&spec["requester"]).map_err(refused)?,
        user: user(request),
        action: Deserialize::deserialize(action).map_err(refused)?,
        schedule,
        filter: text(&spec["trigger"]["filter"]),
        dry_run: request["dryRun"] == true,
        is_guarded,
        kind,
    })
}

/// Returns a decision as the response to a review.
pub(super) fn answer(decision: Decision) -> Value {
    let mut response = json!({ "allowed": decision.allowed });
    if !decision.allowed {
        let (code, reason) = decision.denial.status();
        response["status"] = json!({
            "status": "Failure", "code": code, "reason": reason, "message": decision.message,
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
    //! Tests of the webhooks, of reading requests, and of the responses.

    use super::super::Denial;
    use super::*;

    #[test]
    fn requests_for_each_class_go_to_one_webhook() {
        let check = |guarded: &[&str], expected: &[(&str, &str, &str)]| {
            let guarded = guarded.iter().map(|it| (*it).to_owned()).collect();
            let found = guards(&guarded);
            let found: Vec<_> = found
                .iter()
                .map(|it| {
                    let name = it.name.trim_end_matches(".actions.plimsoll.io");
                    (name, it.failure_policy, it.condition.as_str())
                })
                .collect();
            assert_eq!(found, expected);
        };
        check(
            &[],
            &[
                ("check", "Ignore", "!(object.spec.actionClass in [])"),
                ("check-template", "Ignore", "!(object.spec.template.actionClass in [])"),
            ],
        );
        check(
            &["a", "b"],
            &[
                ("guard", "Fail", r#"object.spec.actionClass in ["a","b"]"#),
                ("guard-template", "Fail", r#"object.spec.template.actionClass in ["a","b"]"#),
                ("check", "Ignore", r#"!(object.spec.actionClass in ["a","b"])"#),
                ("check-template", "Ignore", r#"!(object.spec.template.actionClass in ["a","b"])"#),
            ],
        );
    }

    #[test]
    fn what_is_judged_is_in_the_name_of_the_requester() {
        let request = |kind: &str, spec: Value| {
            read(
                &json!({
                    "kind": { "kind": kind }, "namespace": "tea", "name": "a", "dryRun": true,
                    "userInfo": { "username": "system:serviceaccount:plimsoll:plimsoll" },
                    "object": { "spec": spec },
                }),
                true,
            )
        };
        let alice = json!({ "username": "alice", "groups": ["dev"] });
        let of = json!({ "actionClass": "a", "requester": alice });
        let asked = request("Action", of).expect("it can be read");
        assert_eq!((asked.requester.username.as_str(), asked.dry_run), ("alice", true));
        assert_eq!(asked.user.username, "system:serviceaccount:plimsoll:plimsoll");
        assert_eq!(asked.schedule, None);
        let of = json!({
            "template": { "actionClass": "b" }, "requester": alice, "schedule": "0 3 * * *",
        });
        let asked = request("CronAction", of).expect("it can be read");
        assert_eq!((asked.action.action_class.as_str(), asked.name.as_str()), ("b", "a"));
        assert_eq!(asked.schedule, Some(("0 3 * * *".to_owned(), String::new())));
        let of = json!({
            "template": { "actionClass": "b" }, "requester": alice,
            "trigger": { "kind": "Catalog", "filter": "true" },
        });
        let asked = request("EventAction", of).expect("it can be read");
        assert_eq!(asked.filter, "true");
        let refused = request("Action", json!({ "actionClass": "a" })).unwrap_err();
        assert!(refused.message.starts_with("the request cannot be read: "), "{refused:?}");
        assert!(!refused.allowed);
    }

    #[test]
    fn a_decision_is_answered_with_what_belongs_to_it() {
        let decision = Decision {
            allowed: false,
            denial: Denial::Forbidden,
            message: "no policy allows it".to_owned(),
            warnings: vec!["soon".to_owned()],
            audit: vec![("policy".to_owned(), "tenants".to_owned())],
        };
        let invalid = answer(Decision { denial: Denial::Invalid, ..decision.clone() });
        assert_eq!(invalid["status"]["code"], 422);
        let early = answer(Decision { denial: Denial::Unavailable, ..decision.clone() });
        assert_eq!(early["status"]["code"], 503);
        let response = answer(decision);
        assert_eq!(response["status"]["code"], 403);
        assert_eq!(response["status"]["message"], "no policy allows it");
        assert_eq!(response["auditAnnotations"], json!({ "policy": "tenants" }));
        assert_eq!(response["warnings"], json!(["soon"]));
        let allowed = Decision { allowed: true, ..Decision::default() };
        assert_eq!(answer(allowed), json!({ "allowed": true }));
    }
}
