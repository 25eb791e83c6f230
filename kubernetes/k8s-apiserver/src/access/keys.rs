//! The keys of a cluster, which follow from its seed.
//!
//! The same seed gives the same authority and the same tokens, as it gives the same uids. Anybody
//! who knows the seed can therefore make credentials, so the seed of a cluster that has to be
//! protected must be secret.
use ring::digest::{SHA256, digest};

/// The beginning of an Ed25519 key in PKCS#8; the 32 bytes of its secret follow.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The purpose of a key; each purpose has its own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Signs certificates.
    Authority,
    /// Serves TLS.
    Server,
    /// Authenticates the administrator.
    Administrator,
    /// Signs the tokens of service accounts.
    ServiceAccounts,
}

/// The secret of the key for a purpose, in PKCS#8.
pub(crate) fn pkcs8(seed: u64, purpose: Purpose) -> Vec<u8> {
    let label = match purpose {
        Purpose::Authority => "authority",
        Purpose::Server => "server",
        Purpose::Administrator => "administrator",
        Purpose::ServiceAccounts => "service-accounts",
    };
    let secret = digest(&SHA256, format!("embedded-apiserver/{label}/{seed}").as_bytes());
    [&PKCS8_PREFIX, secret.as_ref()].concat()
}
