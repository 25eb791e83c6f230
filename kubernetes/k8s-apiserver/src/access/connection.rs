//! The connection that a request came in on.

use crate::user::UserInfo;

/// How a request came in over a socket; an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Whose certificate the client showed, if it showed one.
    pub(crate) certificate: Option<UserInfo>,
    /// Which kind of listener it is.
    pub(crate) transport: Transport,
    /// Where the client is.
    pub(crate) address: std::net::IpAddr,
}

/// A kind of listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Without TLS.
    Plain,
    /// With TLS.
    Tls,
}
