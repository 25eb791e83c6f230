//! The `authorizer` library: expressions ask the host who may do what.
use std::fmt;
use std::sync::Arc;

use super::{Opaque, Outcome, failed, named_format};
use crate::Value;

/// Answers whether the user of the request may do something. The host provides it.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides about one request.
    fn authorize(&self, question: &AuthorizationQuestion) -> AuthorizationDecision;
}

/// What an expression asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationQuestion {
    /// The namespace and name of the service account asked about, instead of the user of the
    /// request.
    pub service_account: Option<(String, String)>,
    /// The path, for requests that are not about resources.
    pub path: Option<String>,
    /// The verb.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The plural name of the kind.
    pub resource: String,
    /// The subresource; empty for none.
    pub subresource: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name; empty for none.
    pub name: String,
    /// The field selector as written; empty for none.
    pub field_selector: String,
    /// The label selector as written; empty for none.
    pub label_selector: String,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationDecision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong while deciding.
    pub error: Option<String>,
}

/// `authorizer` or a step of a question to it.
#[derive(Clone, Debug)]
pub struct Check {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) stage: Stage,
    pub(crate) question: AuthorizationQuestion,
}

/// How far a question is put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Start,
    Path,
    Group,
    Resource,
    Decided(AuthorizationDecision),
}

impl Check {
    /// The value of the `authorizer` variable.
    pub(crate) fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, stage: Stage::Start, question: AuthorizationQuestion::default() }
    }

    /// The value of `authorizer.requestResource`, which asks about a resource.
    pub(crate) fn about_resource(
        authorizer: Arc<dyn Authorizer>,
        question: AuthorizationQuestion,
    ) -> Self {
        Self { authorizer, stage: Stage::Resource, question }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Start => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decided(_) => "kubernetes.authorization.Decision",
        }
    }
}

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
            if !named_format::is_subdomain(name) {
                return failed("Invalid service account name");
            }
            if !named_format::is_label(namespace) {
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
