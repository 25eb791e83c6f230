//! How a server decides who may do what.
use super::audit::Audit;
use crate::user::UserInfo;

/// How a server finds out who asks, and whether they may.
#[derive(Clone, Default)]
pub struct AccessOptions {
    /// Who is allowed what.
    pub authorization: Authorization,
    /// Bearer tokens that are valid as long as the server runs, and whose they are.
    pub tokens: Vec<StaticToken>,
    /// Who asks in process, where a request says nothing of who it comes from.
    pub in_process: Unidentified,
    /// Who asks on a listener without TLS, where a request says nothing of who it comes from.
    ///
    /// The administrator unless set otherwise: `kubectl` and everything else made with client-go
    /// sends no credentials without TLS.
    pub plain: Unidentified,
    /// Where requests are recorded, if anywhere.
    pub audit: Option<Audit>,
}

/// How it is decided whether a user may do something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// By the roles and bindings of the cluster.
    #[default]
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
}

/// Who somebody is that does not say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unidentified {
    /// [`UserInfo::administrator`]
    #[default]
    Administrator,
    /// [`UserInfo::anonymous`]
    Anonymous,
}

/// A bearer token, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticToken {
    /// The token.
    pub token: String,
    /// Whose it is; `system:authenticated` is added to the groups.
    pub user: UserInfo,
}

impl Unidentified {
    /// The user that it stands for.
    pub(crate) fn user(self) -> UserInfo {
        match self {
            Self::Administrator => UserInfo::administrator(),
            Self::Anonymous => UserInfo::anonymous(),
        }
    }
}
