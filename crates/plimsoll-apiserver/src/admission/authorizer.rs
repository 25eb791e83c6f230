//! `authorizer`: expressions ask who may do what.
use std::sync::Arc;

use plimsoll_cel::{
    AuthorizationDecision, AuthorizationQuestion, Authorizer, Bindings, Budget, Environment, Type,
    Value as CelValue,
};

use super::Attributes;
use crate::cluster::Call;

/// Answers for a server whose user may do everything.
#[derive(Debug)]
struct Everything;

impl Authorizer for Everything {
    fn authorize(&self, _question: &AuthorizationQuestion) -> AuthorizationDecision {
        AuthorizationDecision { allowed: true, ..AuthorizationDecision::default() }
    }
}

/// The authorizer of a request.
pub(super) fn of(_call: &Call) -> CelValue {
    CelValue::authorizer(Arc::new(Everything))
}

/// A check of the resource of a write, as `authorizer.requestResource` has it.
pub(super) fn request_resource(authorizer: &CelValue, attributes: &Attributes<'_>) -> CelValue {
    let mut check = format!(
        "authorizer.group({:?}).resource({:?})",
        attributes.resource.group, attributes.resource.plural
    );
    for (step, value) in [
        ("subresource", attributes.subresource),
        ("namespace", attributes.namespace.as_str()),
        ("name", attributes.name.as_str()),
    ] {
        if !value.is_empty() {
            check.push_str(&format!(".{step}({value:?})"));
        }
    }
    let environment =
        Environment::for_stored_expressions().with_variable("authorizer", Type::authorizer());
    let bindings = Bindings::new().with("authorizer", authorizer.clone());
    environment
        .compile(&check)
        .ok()
        .and_then(|program| program.evaluate(&bindings, &mut Budget::default()).ok())
        .unwrap_or(CelValue::Null)
}
