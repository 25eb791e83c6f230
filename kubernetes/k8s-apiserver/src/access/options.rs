//! The options of authentication, authorization and audit.
use super::audit::Audit;
use super::keys::KeySource;
use crate::user::UserInfo;

/// How a server authenticates, authorizes and records requests.
#[derive(Clone, Default)]
pub struct AccessOptions {
    /// How requests are authorized.
    pub authorization: Authorization,
    /// Bearer tokens that are valid as long as the server runs.
    pub tokens: Vec<StaticToken>,
    /// The user of requests in process that carry no credentials.
    pub in_process: FallbackUser,
    /// The user of requests without credentials on a listener without TLS.
    ///
    /// The administrator by default: `kubectl` and other clients based on client-go send no
    /// credentials without TLS. What a page in a browser may have sent is refused then: a `Host` that
    /// is a name other than `localhost`, another `Origin`, a POST without the content type of an
    /// API. So are credentials that are not a bearer token.
    pub plain: FallbackUser,
    /// Where the private keys of the cluster come from.
    pub keys: KeySource,
    /// The audit log; none if requests are not recorded.
    pub audit: Option<Audit>,
}

/// How requests are authorized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// By the roles and bindings of the cluster.
    #[default]
    Rbac,
    /// Every request is allowed.
    AlwaysAllow,
}

/// The user of requests without credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FallbackUser {
    /// [`UserInfo::administrator`]
    #[default]
    Administrator,
    /// [`UserInfo::anonymous`]
    Anonymous,
}

/// A bearer token and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticToken {
    /// The token, without the scheme `Bearer`.
    pub token: String,
    /// The user; the group `system:authenticated` is added.
    pub user: UserInfo,
}

impl FallbackUser {
    /// The user.
    pub(crate) fn user(self) -> UserInfo {
        match self {
            Self::Administrator => UserInfo::administrator(),
            Self::Anonymous => UserInfo::anonymous(),
        }
    }
}
