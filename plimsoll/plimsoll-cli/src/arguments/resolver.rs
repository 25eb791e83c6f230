//! Options of the service that answers queries to the resolver.

use std::net::SocketAddr;

use clap::Args;

use super::address;

/// Name of the Service of the resolver, and of its roles.
pub(crate) const RESOLVER: &str = "plimsoll-resolver";
/// Label of the Service of the resolver, by which clients find it, and its value.
pub(crate) const RESOLVER_LABEL: &str = "plimsoll.io/serves";
pub(crate) const RESOLVER_LABELLED: &str = "resolver";

/// Where queries to the resolver are answered.
#[derive(Debug, Args)]
pub struct ResolverArguments {
    /// Answer queries to the resolver here, over HTTPS, to clients that the API server knows and allows; their
    /// certificate is stored in Secret kube-system/plimsoll-resolver
    #[arg(long, value_name = "ADDRESS:PORT", requires = "operators", value_parser = address::parse)]
    pub resolver: Option<SocketAddr>,
    /// Host name or address of the resolver for clients; without it, the address that it listens on
    #[arg(long, value_name = "HOST", requires = "resolver")]
    pub resolver_host: Option<String>,
    /// Service of the resolver for clients, at port 443
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        requires = "resolver",
        conflicts_with = "resolver_host"
    )]
    pub resolver_service: Option<String>,
}
