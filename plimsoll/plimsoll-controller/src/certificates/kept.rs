//! The content of a Secret with a certificate, and the decision whether it has to be renewed at a
//! given time.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use rcgen::KeyPair;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;

/// The number of days before its expiry at which a certificate is renewed. A controller that was
/// down for some weeks still finds a valid one.
const RENEWED_DAYS: i64 = 30;
/// The number of days before its expiry at which an authority is replaced.
const AUTHORITY_REPLACED_DAYS: i64 = 365;

/// Keys of the Secret's data.
pub(super) const CERTIFICATE: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";
pub(super) const AUTHORITIES: &str = "ca.crt";
pub(super) const AUTHORITY_KEY: &str = "ca.key";
/// Annotation of the Secret: the time at which its authority expires (RFC 3339).
pub(super) const AUTHORITY_NOT_AFTER: &str = "plimsoll.io/ca-not-after";

/// The content of a Secret, as PEM; a field is empty if the Secret lacks it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeptCertificate {
    pub(super) certificate: String,
    pub(super) key: String,
    /// The trusted authorities: the one that signs, followed by the previous one if there is one.
    pub(super) authorities: String,
    pub(super) authority_key: String,
    /// The time at which the authority expires; `None` if it is not known.
    pub(super) authority_not_after: Option<Timestamp>,
}

/// The part of the content that has to be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    /// Nothing.
    NotDue,
    /// The certificate; the authority stays.
    Certificate,
    /// The certificate and the authority.
    Authority,
}

impl KeptCertificate {
    /// Reads the content of a Secret.
    pub(super) fn of(secret: &Secret) -> Self {
        let text = |key: &str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(key));
            bytes.and_then(|it| String::from_utf8(it.0.clone()).ok()).unwrap_or_default()
        };
        let not_after = secret.annotations().get(AUTHORITY_NOT_AFTER);
        Self {
            certificate: text(CERTIFICATE),
            key: text(KEY),
            authorities: text(AUTHORITIES),
            authority_key: text(AUTHORITY_KEY),
            authority_not_after: not_after.and_then(|it| it.parse().ok()),
        }
    }

    /// Returns what has to be renewed so that the certificate is valid for some names. That
    /// includes what another client has broken.
    pub(super) fn renewal(&self, names: &[String], now: Timestamp) -> Renewal {
        let days = |days: i64| now + SignedDuration::from_hours(24 * days);
        let is_lasting =
            self.authority_not_after.is_some_and(|end| days(AUTHORITY_REPLACED_DAYS) < end);
        if !is_lasting || self.roots().is_none() || KeyPair::from_pem(&self.authority_key).is_err()
        {
            return Renewal::Authority;
        }
        let is_valid = self.serves(names, now) && self.serves(names, days(RENEWED_DAYS));
        if is_valid { Renewal::NotDue } else { Renewal::Certificate }
    }

    /// Returns whether the key belongs to the certificate, and a client that trusts the authorities
    /// accepts the certificate for every name at the given time.
    pub(super) fn serves(&self, names: &[String], at: Timestamp) -> bool {
        self.check(names, at).is_some()
    }

    fn check(&self, names: &[String], at: Timestamp) -> Option<()> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect();
        let (chain, key) = (chain.ok()?, PrivateKeyDer::from_pem_slice(self.key.as_bytes()).ok()?);
        let (end, intermediates) = chain.split_first()?;
        matching(&chain, key, &provider)?;
        let roots = Arc::new(self.roots()?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build().ok()?;
        let seconds = u64::try_from(at.as_second()).ok()?;
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        for name in names {
            let name = ServerName::try_from(name.as_str()).ok()?;
            verifier.verify_server_cert(end, intermediates, &name, &[], at).ok()?;
        }
        Some(())
    }

    /// Returns the authorities; `None` if there is none, or one cannot be read.
    fn roots(&self) -> Option<RootCertStore> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.authorities.as_bytes()) {
            roots.add(certificate.ok()?).ok()?;
        }
        (!roots.is_empty()).then_some(roots)
    }
}

/// Checks that a key belongs to a certificate; `None` if it does not.
fn matching(
    chain: &[CertificateDer<'static>],
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Option<()> {
    CertifiedKey::from_der(chain.to_vec(), key, provider).ok().map(|_| ())
}

#[cfg(test)]
mod tests;
