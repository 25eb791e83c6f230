//! What the `authorizer` variable stands for: the host's [`Authorizer`], the checks that expressions
//! put together, and its decisions.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/authz.go: Authz
//! Upstream: k8s.io/apiserver/pkg/authorization/authorizer/interfaces.go: Attributes
use std::fmt;
use std::sync::Arc;

/// Decides whether the user of the request may do something. The host implements it.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides about one request.
    fn authorize(&self, attributes: &AuthorizationAttributes) -> AuthorizationDecision;
}

/// The attributes of the request that an expression checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationAttributes {
    /// The namespace and name of the service account to check; absent for the user of the
    /// request.
    pub service_account: Option<(String, String)>,
    /// The path of a non-resource request; absent for resource requests.
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

/// The answer of an [`Authorizer`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationDecision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The reason that the authorizer gives; empty for none.
    pub reason: String,
    /// The error of the authorizer; absent if it made a decision.
    pub error: Option<String>,
}

/// `authorizer` or a step of a check.
#[derive(Clone, Debug)]
pub struct AuthorizationCheck {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) state: CheckState,
    pub(crate) attributes: AuthorizationAttributes,
}

/// How far a check is put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckState {
    Start,
    Path,
    Group,
    Resource,
    Decided(AuthorizationDecision),
}

impl AuthorizationCheck {
    /// The value of the `authorizer` variable.
    pub(crate) fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self {
            authorizer,
            state: CheckState::Start,
            attributes: AuthorizationAttributes::default(),
        }
    }

    /// The value of `authorizer.requestResource`, which asks about a resource.
    pub(crate) fn about_resource(
        authorizer: Arc<dyn Authorizer>,
        attributes: AuthorizationAttributes,
    ) -> Self {
        Self { authorizer, state: CheckState::Resource, attributes }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.state {
            CheckState::Start => "kubernetes.authorization.Authorizer",
            CheckState::Path => "kubernetes.authorization.PathCheck",
            CheckState::Group => "kubernetes.authorization.GroupCheck",
            CheckState::Resource => "kubernetes.authorization.ResourceCheck",
            CheckState::Decided(_) => "kubernetes.authorization.Decision",
        }
    }
}
