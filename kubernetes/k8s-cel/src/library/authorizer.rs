//! The `authorizer` library: expressions ask the host who may do what.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/authz.go: Authz
//! Upstream: k8s.io/apiserver/pkg/cel/library/authz.go: AuthzSelectors
use super::{EvaluationResult, failed};
use crate::Value;
use crate::names;
use crate::value::authorization::{AuthorizationDecision, CheckState};
use crate::value::opaque::Opaque;

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    let [Value::Opaque(of), rest @ ..] = arguments else { return None };
    let Opaque::Authorization(check) = &**of else { return None };
    let mut next = check.clone();
    let attributes = &mut next.attributes;
    match (&check.state, function, rest) {
        (CheckState::Start, "path", [Value::String(path)]) => {
            if path.trim().is_empty() {
                return failed("path must not be empty");
            }
            attributes.path = Some(path.to_string());
            next.state = CheckState::Path;
        }
        (CheckState::Start, "group", [Value::String(group)]) => {
            attributes.group = group.to_string();
            next.state = CheckState::Group;
        }
        (CheckState::Start, "serviceAccount", [Value::String(namespace), Value::String(name)]) => {
            if !names::subdomain(name).is_empty() {
                return failed("Invalid service account name");
            }
            if !names::label(namespace).is_empty() {
                return failed("Invalid service account namespace");
            }
            attributes.service_account = Some((namespace.to_string(), name.to_string()));
        }
        (CheckState::Group, "resource", [Value::String(resource)]) => {
            if resource.trim().is_empty() {
                return failed("resource must not be empty");
            }
            attributes.resource = resource.to_string();
            next.state = CheckState::Resource;
        }
        (CheckState::Resource, "subresource", [Value::String(text)]) => {
            attributes.subresource = text.to_string();
        }
        (CheckState::Resource, "namespace", [Value::String(text)]) => {
            attributes.namespace = text.to_string();
        }
        (CheckState::Resource, "name", [Value::String(text)]) => attributes.name = text.to_string(),
        (CheckState::Resource, "fieldSelector", [Value::String(text)]) => {
            attributes.field_selector = text.to_string();
        }
        (CheckState::Resource, "labelSelector", [Value::String(text)]) => {
            attributes.label_selector = text.to_string();
        }
        (CheckState::Path | CheckState::Resource, "check", [Value::String(verb)]) => {
            attributes.verb = verb.to_string();
            let decision = check.authorizer.authorize(attributes);
            next.state = CheckState::Decided(decision);
        }
        (CheckState::Decided(decision), _, []) => return decision_field(function, decision),
        _ => return None,
    }
    Some(Ok(Opaque::Authorization(next).into_value()))
}

fn decision_field(function: &str, decision: &AuthorizationDecision) -> Option<EvaluationResult> {
    Some(Ok(match function {
        "allowed" => Value::Bool(decision.allowed),
        "reason" => Value::from(decision.reason.as_str()),
        "errored" => Value::Bool(decision.error.is_some()),
        "error" => Value::from(decision.error.as_deref().unwrap_or_default()),
        _ => return None,
    }))
}
