//! The mutating webhook, which sets `spec.requester` where it is left out: to the user who creates
//! an Action, or who changes an object that makes Actions. An API server that serves
//! MutatingAdmissionPolicies has done the same already.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_api::{ACTION, RETRY_ACTION};
use serde_json::{Value, json};

use super::{rule, user};
use crate::actions::generators::GENERATORS;
use crate::webhook::{self, ClientConfig};

/// Path that reviews are sent to.
pub(super) const PATH: &str = "/actions/requester";
/// Name of the webhook.
const WEBHOOK: &str = "requester.actions.plimsoll.io";
/// The field of a spec that names the requester.
const FIELD: &str = "requester";
/// The CEL condition that holds if the requester may have to be set.
const CONDITION: &str = "request.operation == 'CREATE' ? !has(object.spec.requester) \
    : object.spec != oldObject.spec";

/// Returns the webhook of the configuration. While it cannot be reached, an admission policy
/// rejects requests without a requester.
pub(super) fn webhook(config: &ClientConfig) -> Value {
    let rules = json!([rule(&["CREATE"], &[ACTION]), rule(&["CREATE", "UPDATE"], &GENERATORS)]);
    let mut webhook = webhook::webhook(WEBHOOK, "Ignore", &config.at(PATH), &rules);
    webhook["matchConditions"] = json!([{ "name": "may-lack-requester", "expression": CONDITION }]);
    webhook
}

/// Answers a review: allows every request, and sets the requester if necessary.
pub(super) fn answer(request: &Value) -> Value {
    let mut response = json!({ "allowed": true });
    let (spec, old) = (&request["object"]["spec"], &request["oldObject"]["spec"]);
    if !spec.is_object() {
        return response;
    }
    let (before, given) = (&old[FIELD], &spec[FIELD]);
    if !given.is_null() && given != before {
        return response;
    }
    let user = user(request);
    // Whoever cancels a RetryAction does not take it over.
    let is_kept = old.is_object() && request["kind"]["kind"] == RETRY_ACTION.kind;
    let is_changed = !is_kept && without_requester(spec) != without_requester(old);
    let wanted = if is_changed { json!(user) } else { before.clone() };
    if wanted == *given {
        return response;
    }
    let patch = json!([{ "op": "add", "path": "/spec/requester", "value": wanted }]);
    response["patchType"] = json!("JSONPatch");
    response["patch"] = json!(STANDARD.encode(patch.to_string()));
    response
}

fn without_requester(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove(FIELD);
    }
    spec
}

#[cfg(test)]
mod tests {
    //! Tests of the requester that is set.

    use super::*;

    /// Reviews a request of Bob, and checks which requester is set.
    #[track_caller]
    fn check(old: &Value, new: &Value, expected: Option<&Value>) {
        check_kind("CronAction", old, new, expected);
    }

    #[track_caller]
    fn check_kind(kind: &str, old: &Value, new: &Value, expected: Option<&Value>) {
        let user = json!({ "username": "bob", "groups": ["dev"], "uid": "7" });
        let request = json!({
            "kind": { "kind": kind }, "userInfo": user, "object": { "spec": new }, "oldObject": { "spec": old },
        });
        let response = answer(&request);
        assert_eq!(response["allowed"], true);
        let patch = response["patch"].as_str().map(|it| STANDARD.decode(it).expect("base64"));
        let patch = patch.map(|it| serde_json::from_slice::<Value>(&it).expect("JSON"));
        assert_eq!(patch.as_ref().map(|it| &it[0]["value"]), expected, "{old} {new}");
    }

    #[test]
    fn the_requester_is_set_where_it_is_left_out() {
        let bob = json!({ "username": "bob", "groups": ["dev"] });
        let (alice, earlier) = (json!({ "username": "alice" }), json!({ "username": "bob" }));
        let spec = |class: &str| json!({ "template": { "actionClass": class } });
        let of = |requester: &Value, class: &str| {
            let mut spec = spec(class);
            spec["requester"] = requester.clone();
            spec
        };
        check(&Value::Null, &spec("a"), Some(&bob));
        check(&Value::Null, &of(&alice, "a"), None);
        check(&Value::Null, &json!([]), None);
        // An object of another user: with the requester unchanged, without one, restored, and taken
        // over.
        check(&of(&alice, "a"), &of(&alice, "b"), Some(&bob));
        check(&of(&alice, "a"), &spec("b"), Some(&bob));
        check(&of(&alice, "a"), &spec("a"), Some(&alice));
        check(&of(&alice, "a"), &of(&bob, "b"), None);
        check(&of(&bob, "a"), &of(&alice, "b"), None);
        // An object of the same user, also with the groups of an earlier time.
        check(&of(&bob, "a"), &of(&bob, "b"), None);
        check(&of(&earlier, "a"), &of(&earlier, "b"), Some(&bob));
        // A RetryAction stays with its user.
        check_kind("RetryAction", &Value::Null, &spec("a"), Some(&bob));
        check_kind("RetryAction", &of(&alice, "a"), &of(&alice, "b"), None);
        check_kind("RetryAction", &of(&alice, "a"), &spec("b"), Some(&alice));
        check_kind("RetryAction", &of(&earlier, "a"), &of(&earlier, "b"), None);
    }
}
