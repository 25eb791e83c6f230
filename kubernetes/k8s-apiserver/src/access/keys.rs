//! The private keys of a cluster.
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The beginning of an Ed25519 key in PKCS#8; the 32 bytes of its secret follow.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Where the private keys of a cluster come from: those of its certificates and its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// The random numbers of the system: each server has its own keys.
    #[default]
    Random,
    /// A seed: the same one gives the same authority and the same tokens.
    ///
    /// Anybody who knows the seed can make credentials, so a server with such keys must not be
    /// reachable by others than those who may do everything.
    Seed(u64),
}

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

/// The secret that the keys of a cluster are derived from.
#[derive(Clone)]
pub(crate) struct RootSecret(Vec<u8>);

impl RootSecret {
    /// The secret of a source.
    pub(crate) fn new(source: KeySource) -> Self {
        match source {
            KeySource::Random => {
                let mut secret = vec![0; 32];
                let filled = SystemRandom::new().fill(&mut secret);
                filled.expect("the system has random numbers");
                Self(secret)
            }
            KeySource::Seed(seed) => Self(seed.to_string().into_bytes()),
        }
    }

    /// The secret of the key for a purpose, in PKCS#8.
    pub(crate) fn pkcs8(&self, purpose: Purpose) -> Vec<u8> {
        let label = match purpose {
            Purpose::Authority => "authority",
            Purpose::Server => "server",
            Purpose::Administrator => "administrator",
            Purpose::ServiceAccounts => "service-accounts",
        };
        let text = [format!("embedded-apiserver/{label}/").as_bytes(), &self.0].concat();
        [&PKCS8_PREFIX, digest(&SHA256, &text).as_ref()].concat()
    }
}
