//! The certificate of a webhook: of our own making, kept in a Secret so that it outlives a process and
//! is the same for all of them. It is valid for [`LIFETIME_DAYS`] and replaced [`RENEWED_DAYS`] before
//! its end, or when the Secret is deleted or broken.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use crate::error::Error;
use crate::write::Writer;

const NAMESPACE: &str = "kube-system";
/// Annotation of the Secret: the name that the certificate is for.
const NAME: &str = "plimsoll.io/webhook-name";
/// Annotation of the Secret: when the certificate ends to be valid (RFC 3339).
const NOT_AFTER: &str = "plimsoll.io/webhook-not-after";
/// How long a certificate is valid: a key that leaks is of use for no longer.
const LIFETIME_DAYS: i64 = 90;
/// How long before its end a certificate is replaced: a controller that is down for some weeks still
/// finds one that is valid.
const RENEWED_DAYS: i64 = 30;

/// The Secret that a certificate is kept in.
#[derive(Clone, Copy)]
pub(crate) struct KeptIn {
    /// Its name, in `kube-system`.
    pub(crate) secret: &'static str,
    /// Returns the error that it cannot be read or written.
    pub(crate) failed: fn(kube::Error) -> Error,
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(super) certificate: String,
    key: String,
}

/// The cluster's certificate for a name; made and kept if there is none.
pub(crate) async fn of_cluster(
    client: &Client,
    writer: &Writer,
    kept_in: KeptIn,
    name: &str,
    now: Timestamp,
) -> Result<Certificate, Error> {
    let KeptIn { secret: secret_name, failed } = kept_in;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let found = secrets.get_opt(secret_name).await.map_err(failed)?;
    if let Some(kept) = found.and_then(|secret| kept(&secret, name, now)) {
        return Ok(kept);
    }
    let (made, not_after) = made(name, now)?;
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Secret"), "secrets");
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": secret_name, "namespace": NAMESPACE, "annotations": { NAME: name, NOT_AFTER: not_after.to_string() } },
        "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": made.certificate, "tls.key": made.key },
    });
    writer.apply_own_in(NAMESPACE, &resource, secret_name, &secret).await.map_err(failed)?;
    Ok(made)
}

/// A new certificate for a name, and when it ends.
fn made(name: &str, now: Timestamp) -> Result<(Certificate, Timestamp), Error> {
    let failed = |message: String| Error::Certificate { message };
    let not_after = now + SignedDuration::from_hours(24 * LIFETIME_DAYS);
    let parameters = parameters(vec![name.to_owned()], now, LIFETIME_DAYS)
        .map_err(|error| failed(error.to_string()))?;
    let key = KeyPair::generate().map_err(|error| failed(error.to_string()))?;
    let certificate =
        parameters.self_signed(&key).map_err(|error| failed(error.to_string()))?.pem();
    Ok((Certificate { certificate, key: key.serialize_pem() }, not_after))
}

/// A certificate for some names that is valid for a number of days from now.
pub(crate) fn parameters(
    names: Vec<String>,
    now: Timestamp,
    days: i64,
) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(names)?;
    let day = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        let small = |number: i8| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(date.year().into(), small(date.month()), small(date.day()))
    };
    // A day earlier: the clocks of API servers differ.
    parameters.not_before = day(now - SignedDuration::from_hours(24));
    parameters.not_after = day(now + SignedDuration::from_hours(24 * days));
    Ok(parameters)
}

fn kept(secret: &Secret, name: &str, now: Timestamp) -> Option<Certificate> {
    let annotations = secret.metadata.annotations.as_ref()?;
    // One without an end is of an earlier version, which made them for ever.
    let not_after: Timestamp = annotations.get(NOT_AFTER)?.parse().ok()?;
    let is_renewed = not_after - SignedDuration::from_hours(24 * RENEWED_DAYS) <= now;
    if annotations.get(NAME)? != name || is_renewed {
        return None;
    }
    let text = |key: &str| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
    let kept = Certificate { certificate: text("tls.crt")?, key: text("tls.key")? };
    // A Secret that is not valid is written again.
    kept.acceptor().is_ok().then_some(kept)
}

impl Certificate {
    /// Returns the acceptor of TLS handshakes with it.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Error> {
        let failed = |message: String| Error::Certificate { message };
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|error| failed(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| failed(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config.with_no_client_auth().with_single_cert(vec![certificate], key)
            })
            .map_err(|error| failed(error.to_string()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    //! When a certificate is replaced.

    use k8s_openapi::ByteString;

    use super::*;

    #[test]
    fn a_certificate_is_bounded_and_replaced_before_its_end() {
        let day = |number: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * number);
        let (made, not_after) = made("harbour", day(1000)).expect("a certificate");
        assert_eq!(not_after, day(1090));
        let secret = |annotations: &[(&str, &str)]| {
            let named = annotations.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
            let data = [("tls.crt", bytes(&made.certificate)), ("tls.key", bytes(&made.key))];
            Secret {
                metadata: kube::core::ObjectMeta {
                    annotations: Some(named.collect()),
                    ..Default::default()
                },
                data: Some(data.map(|(name, value)| (name.to_owned(), value)).into()),
                ..Secret::default()
            }
        };
        let end = not_after.to_string();
        let good = [(NAME, "harbour"), (NOT_AFTER, end.as_str())];
        let check = |annotations: &[(&str, &str)], now: Timestamp, is_kept: bool| {
            assert_eq!(kept(&secret(annotations), "harbour", now).is_some(), is_kept, "{now}");
        };
        check(&good, day(1000), true);
        check(&good, day(1059), true);
        check(&good, day(1060), false);
        check(&good, day(2000), false);
        check(&[(NAME, "pier"), good[1]], day(1000), false);
        check(&[good[0]], day(1000), false);
        check(&[good[0], (NOT_AFTER, "never")], day(1000), false);
    }
}
