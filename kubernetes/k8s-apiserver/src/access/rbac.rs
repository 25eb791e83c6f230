//! Authorization by roles and bindings.
//!
//! The rules come from the Role, ClusterRole, RoleBinding and ClusterRoleBinding objects as they
//! are at the time of the request. There are no rules that deny: a request is denied if no rule
//! allows it.
mod index;
mod rule;

pub(crate) use index::Authorizer;
pub(crate) use rule::{Rule, compact, quoted, uncovered};

use std::collections::BTreeSet;

use super::attributes::AuthorizationAttributes;
use crate::semantics::cluster::Cluster;
use crate::semantics::registry::RBAC_GROUP;
use crate::status::{ApiError, Subject};
use crate::user::{MASTERS, UserInfo};

use index::Binding;

/// Whether a request is allowed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorizationDecision {
    /// Whether it is allowed.
    pub(crate) allowed: bool,
    /// The binding that allows it, or the roles that were not found; may be empty.
    pub(crate) reason: String,
}

impl Authorizer {
    /// Decides whether a user may make a request with these attributes.
    ///
    /// Upstream: k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go: Authorize
    pub(crate) fn authorize(
        &self,
        cluster: &Cluster,
        user: &UserInfo,
        attributes: &AuthorizationAttributes<'_>,
    ) -> AuthorizationDecision {
        if user.is_in(MASTERS) || self.allows_everything() {
            return AuthorizationDecision { allowed: true, reason: String::new() };
        }
        self.with(&cluster.store, |index| {
            let mut missing = MissingRoles::default();
            for (binding, subject) in index.bindings(user, attributes.namespace()) {
                match index.rules(binding) {
                    Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                        let reason = format!("RBAC: allowed by {}", binding.describe(subject));
                        return AuthorizationDecision { allowed: true, reason };
                    }
                    Ok(_) => {}
                    Err(error) => missing.add(&error),
                }
            }
            let reason = missing.to_string();
            let reason = if reason.is_empty() { reason } else { format!("rbac: RBAC: {reason}") };
            AuthorizationDecision { allowed: false, reason }
        })
    }

    /// All rules that a user has in a namespace, and a message about roles that were not found.
    ///
    /// Upstream: k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go: VisitRulesFor
    pub(crate) fn rules_for(
        &self,
        cluster: &Cluster,
        user: &UserInfo,
        namespace: &str,
    ) -> (Vec<Rule>, String) {
        self.with(&cluster.store, |index| {
            let mut found = Vec::new();
            let mut missing = MissingRoles::default();
            for (binding, _) in index.bindings(user, namespace) {
                match index.rules(binding) {
                    Ok(rules) => found.extend(rules.iter().cloned()),
                    Err(error) => missing.add(&error),
                }
            }
            (found, missing.to_string())
        })
    }

    /// The rules of the role that a new binding refers to.
    ///
    /// # Errors
    /// When there is no such role; the error names the resource of the binding, as in
    /// kube-apiserver.
    ///
    /// Upstream: k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go: RulesFor
    pub(crate) fn rules_of(
        &self,
        cluster: &Cluster,
        kind: &str,
        name: &str,
        namespace: &str,
    ) -> Result<Vec<Rule>, ApiError> {
        self.with(&cluster.store, |index| {
            let binding = Binding::to(kind, name, namespace);
            index.rules(&binding).map(<[Rule]>::to_vec).map_err(|_| {
                let noun =
                    if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
                ApiError::not_found(Subject { group: RBAC_GROUP, noun }, name)
            })
        })
    }
}

/// The errors about roles that bindings refer to and that do not exist.
#[derive(Default)]
struct MissingRoles {
    seen: BTreeSet<String>,
    listed: Vec<String>,
}

impl MissingRoles {
    fn add(&mut self, error: &str) {
        if self.seen.insert(error.to_owned()) {
            self.listed.push(error.to_owned());
        }
    }
}

impl std::fmt::Display for MissingRoles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.listed.as_slice() {
            [] => Ok(()),
            [one] => out.write_str(one),
            several => write!(out, "[{}]", several.join(", ")),
        }
    }
}
