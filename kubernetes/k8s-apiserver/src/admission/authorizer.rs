//! `authorizer`: authorization checks in expressions.
//!
//! An evaluation has no access to the cluster. The checks of an expression are collected and at
//! first answered with "not allowed"; then they are decided, and the expression is evaluated again.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/authz.go: Authz
use std::sync::{Arc, Mutex, PoisonError};

use k8s_cel::{
    AuthorizationAttributes, AuthorizationDecision, Authorizer, Bindings, Budget, Environment,
    Type, Value as CelValue,
};

use crate::access::attributes::{AuthorizationAttributes as RequestAttributes, ResourceAttributes};
use crate::access::rbac::Authorizer as RoleAuthorizer;
use crate::access::service_account;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::WriteAttributes;
use crate::user::UserInfo;

/// The authorization checks of the expressions of one policy or webhook, with their decisions.
#[derive(Debug, Default)]
pub(super) struct AuthorizationCache {
    asked: Mutex<Vec<(AuthorizationAttributes, Option<AuthorizationDecision>)>>,
}

impl Authorizer for AuthorizationCache {
    fn authorize(&self, question: &AuthorizationAttributes) -> AuthorizationDecision {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, decision)) = asked.iter().find(|(known, _)| known == question) {
            return decision.clone().unwrap_or_default();
        }
        asked.push((question.clone(), None));
        AuthorizationDecision::default()
    }
}

impl AuthorizationCache {
    /// Decides the checks that have no decision yet; returns whether there were any.
    pub(super) fn look_up(
        &self,
        authorizer: &RoleAuthorizer,
        cluster: &Cluster,
        user: &UserInfo,
    ) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = false;
        for (question, decision) in asked.iter_mut().filter(|(_, decision)| decision.is_none()) {
            *decision = Some(decide(authorizer, cluster, user, question));
            found = true;
        }
        found
    }
}

fn decide(
    authorizer: &RoleAuthorizer,
    cluster: &Cluster,
    user: &UserInfo,
    question: &AuthorizationAttributes,
) -> AuthorizationDecision {
    let wanted = match &question.path {
        Some(path) => {
            RequestAttributes { verb: question.verb.as_str().into(), resource: None, path }
        }
        None => RequestAttributes::on(
            question.verb.as_str(),
            ResourceAttributes {
                group: &question.group,
                version: "*",
                resource: &question.resource,
                subresource: &question.subresource,
                namespace: &question.namespace,
                name: question.name.as_str().into(),
            },
        ),
    };
    let decision = match &question.service_account {
        Some((namespace, name)) => {
            let account = service_account::of_account(namespace, name);
            authorizer.authorize(cluster, &account, &wanted)
        }
        None => authorizer.authorize(cluster, user, &wanted),
    };
    AuthorizationDecision { allowed: decision.allowed, reason: decision.reason, error: None }
}

/// The value of `authorizer.requestResource`: a check of the resource of a write.
pub(super) fn request_resource(
    ledger: &Arc<AuthorizationCache>,
    attributes: &WriteAttributes<'_>,
) -> CelValue {
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
            check = format!("{check}.{step}({value:?})");
        }
    }
    let environment =
        Environment::for_stored_expressions().with_variable("authorizer", Type::authorizer());
    let authorizer: Arc<dyn Authorizer> = Arc::<AuthorizationCache>::clone(ledger);
    let bindings = Bindings::new().with("authorizer", CelValue::authorizer(authorizer));
    environment
        .compile(&check)
        .ok()
        .and_then(|program| program.evaluate(&bindings, &mut Budget::default()).ok())
        .unwrap_or(CelValue::Null)
}
