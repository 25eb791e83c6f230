//! The connection of a request.

use crate::user::UserInfo;

/// The connection of a request from a listener; an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// The user of the client certificate; none without one.
    pub(crate) certificate: Option<UserInfo>,
    /// The kind of listener.
    pub(crate) transport: Transport,
    /// The address of the client.
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
