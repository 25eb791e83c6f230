//! Prevention of privilege escalation: roles and bindings may only grant permissions that their
//! writer has.
use serde_json::Value;

use super::attributes::{AuthorizationAttributes, ResourceAttributes};
use super::rbac::{Authorizer, Rule, compact, quoted, uncovered};
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::metadata;
use crate::semantics::registry::{ApiResource, RBAC_GROUP};
use crate::status::{ApiError, Result};
use crate::user::{MASTERS, UserInfo};

/// Sets and checks the fields of an object that depend on the writer.
///
/// `live` is the object before an update, and `in_url` whether the URL names the object, so that
/// rules with resource names apply.
///
/// # Errors
/// When the object grants permissions that the user does not have.
pub(crate) fn prepare(
    authorizer: &Authorizer,
    cluster: &Cluster,
    context: &RequestContext,
    resource: &ApiResource,
    live: Option<&Value>,
    in_url: bool,
    object: &mut Value,
) -> Result<()> {
    if resource.is("certificates.k8s.io", "CertificateSigningRequest") {
        sign_request(&context.user, live, object);
    }
    if resource.group != RBAC_GROUP
        || resource.custom().is_some()
        || !is_checked(authorizer, &context.user)
    {
        return Ok(());
    }
    if live.is_some_and(|live| is_only_collected(live, object)) {
        return Ok(());
    }
    let writer =
        EscalationCheck { authorizer, cluster, user: &context.user, resource, in_url, object };
    match resource.kind.as_str() {
        "Role" | "ClusterRole" => writer.check_role(live),
        "RoleBinding" | "ClusterRoleBinding" => writer.check_binding(),
        _ => Ok(()),
    }
}

/// Sets the requesting user in a CertificateSigningRequest.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/certificates/certificates/strategy.go: PrepareForCreate
fn sign_request(user: &UserInfo, live: Option<&Value>, object: &mut Value) {
    if live.is_some() || !object["spec"].is_object() || user.username.is_empty() {
        return;
    }
    let Some(spec) = object["spec"].as_object_mut() else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    let info = user.to_value();
    for (field, value) in info.as_object().into_iter().flatten() {
        spec.insert(field.clone(), value.clone());
    }
}

/// Whether a user is checked: the server itself and administrators are not.
fn is_checked(authorizer: &Authorizer, user: &UserInfo) -> bool {
    !user.username.is_empty() && !user.is_in(MASTERS) && !authorizer.allows_everything()
}

/// Whether an update only changes the metadata that garbage collection writes.
fn is_only_collected(live: &Value, object: &Value) -> bool {
    let without = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "managedFields"] {
                metadata.remove(field);
            }
        }
        value
    };
    without(live) == without(object)
}

struct EscalationCheck<'a> {
    authorizer: &'a Authorizer,
    cluster: &'a Cluster,
    user: &'a UserInfo,
    resource: &'a ApiResource,
    in_url: bool,
    object: &'a Value,
}

impl EscalationCheck<'_> {
    fn name(&self) -> &str {
        metadata::text(self.object, "name")
    }

    fn namespace(&self) -> &str {
        metadata::text(self.object, "namespace")
    }

    fn may(&self, verb: &'static str, resource: &str, name: &str) -> bool {
        let about = ResourceAttributes {
            group: RBAC_GROUP,
            version: "*",
            resource,
            namespace: self.namespace(),
            name: name.into(),
            ..Default::default()
        };
        self.authorizer
            .authorize(self.cluster, self.user, &AuthorizationAttributes::on(verb, about))
            .allowed
    }

    /// Upstream: k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased/storage.go: Create
    fn check_role(&self, live: Option<&Value>) -> Result<()> {
        // Rules with resource names do not apply to an object that the URL does not name.
        let name = if self.in_url { self.name() } else { "" };
        if self.may("escalate", &self.resource.plural, name) {
            return Ok(());
        }
        self.confirm(&Rule::all_of(self.object))?;
        let aggregates = |role: &Value| {
            role["aggregationRule"]["clusterRoleSelectors"]
                .as_array()
                .is_some_and(|selectors| !selectors.is_empty())
        };
        if aggregates(self.object) || live.is_some_and(aggregates) {
            // What it will gather is not known yet, so it may be anything.
            self.confirm(&Rule::everything()).map_err(|_| {
                self.forbidden("must have cluster-admin privileges to use the aggregationRule")
            })?;
        }
        Ok(())
    }

    /// Upstream: k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/policybased/storage.go: Create
    fn check_binding(&self) -> Result<()> {
        let reference = &self.object["roleRef"];
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let resource = match text("kind") {
            "Role" => "roles",
            "ClusterRole" => "clusterroles",
            _ => "",
        };
        if !resource.is_empty() && self.may("bind", resource, text("name")) {
            return Ok(());
        }
        let rules =
            self.authorizer.rules_of(self.cluster, text("kind"), text("name"), self.namespace())?;
        self.confirm(&rules)
    }

    /// Whether the user has all rights in `rules`.
    ///
    /// Upstream: k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go: ConfirmNoEscalation
    fn confirm(&self, rules: &[Rule]) -> Result<()> {
        let (held, missing) = self.authorizer.rules_for(self.cluster, self.user, self.namespace());
        let lacking = uncovered(&held, rules);
        if lacking.is_empty() {
            return Ok(());
        }
        let mut listed: Vec<String> = compact(lacking).iter().map(ToString::to_string).collect();
        listed.sort();
        listed.dedup();
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.username,
            quoted(&self.user.groups),
            listed.join("\n")
        );
        if !missing.is_empty() {
            why.push_str(&format!("; resolution errors: {missing}"));
        }
        Err(self.forbidden(&why))
    }

    fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.resource.subject(), self.name(), why)
    }
}
