//! The `authorizer` library: expressions ask the host who may do what.
use super::{Outcome, failed};
use crate::Value;
use crate::names;
use crate::value::authorization::{AuthorizationDecision, Stage};
use crate::value::opaque::Opaque;

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<Outcome> {
    let [Value::Opaque(of), rest @ ..] = arguments else { return None };
    let Opaque::Authorization(check) = &**of else { return None };
    let mut next = check.clone();
    let question = &mut next.question;
    match (&check.stage, function, rest) {
        (Stage::Start, "path", [Value::String(path)]) => {
            if path.trim().is_empty() {
                return failed("path must not be empty");
            }
            question.path = Some(path.to_string());
            next.stage = Stage::Path;
        }
        (Stage::Start, "group", [Value::String(group)]) => {
            question.group = group.to_string();
            next.stage = Stage::Group;
        }
        (Stage::Start, "serviceAccount", [Value::String(namespace), Value::String(name)]) => {
            if !names::subdomain(name).is_empty() {
                return failed("Invalid service account name");
            }
            if !names::label(namespace).is_empty() {
                return failed("Invalid service account namespace");
            }
            question.service_account = Some((namespace.to_string(), name.to_string()));
        }
        (Stage::Group, "resource", [Value::String(resource)]) => {
            if resource.trim().is_empty() {
                return failed("resource must not be empty");
            }
            question.resource = resource.to_string();
            next.stage = Stage::Resource;
        }
        (Stage::Resource, "subresource", [Value::String(text)]) => {
            question.subresource = text.to_string();
        }
        (Stage::Resource, "namespace", [Value::String(text)]) => {
            question.namespace = text.to_string();
        }
        (Stage::Resource, "name", [Value::String(text)]) => question.name = text.to_string(),
        (Stage::Resource, "fieldSelector", [Value::String(text)]) => {
            question.field_selector = text.to_string();
        }
        (Stage::Resource, "labelSelector", [Value::String(text)]) => {
            question.label_selector = text.to_string();
        }
        (Stage::Path | Stage::Resource, "check", [Value::String(verb)]) => {
            question.verb = verb.to_string();
            let decision = check.authorizer.authorize(question);
            next.stage = Stage::Decided(decision);
        }
        (Stage::Decided(decision), _, []) => return about(function, decision),
        _ => return None,
    }
    Some(Ok(Opaque::Authorization(next).into_value()))
}

fn about(function: &str, decision: &AuthorizationDecision) -> Option<Outcome> {
    Some(Ok(match function {
        "allowed" => Value::Bool(decision.allowed),
        "reason" => Value::from(decision.reason.as_str()),
        "errored" => Value::Bool(decision.error.is_some()),
        "error" => Value::from(decision.error.as_deref().unwrap_or_default()),
        _ => return None,
    }))
}
