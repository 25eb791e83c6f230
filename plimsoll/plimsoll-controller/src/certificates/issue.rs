//! The creation of certificates and certificate authorities.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use plimsoll_api::olm::OPERATOR_LABEL;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::kept::{
    AUTHORITIES, AUTHORITY_KEY, AUTHORITY_NOT_AFTER, CERTIFICATE, KEY, KeptCertificate, Renewal,
};
use crate::webhook::certificate::parameters;

/// The lifetime of a certificate in days, which limits for how long a leaked key can be used.
const LIFETIME_DAYS: i64 = 90;
/// The lifetime of an authority in days. It is long because a replacement changes every object that
/// calls the Service.
const AUTHORITY_LIFETIME_DAYS: i64 = 10 * 365;

/// Renews a certificate for the names of a Service. Also replaces the authority if it cannot sign a
/// certificate that its callers accept.
pub(super) fn issue(
    kept: &KeptCertificate,
    renewal: Renewal,
    service: &str,
    names: &[String],
    now: Timestamp,
) -> Result<KeptCertificate, rcgen::Error> {
    if renewal != Renewal::Authority {
        let made = signed(kept.clone(), service, names, now)?;
        if made.serves(names, now) {
            return Ok(made);
        }
    }
    let key = KeyPair::generate()?;
    let mut made = KeptCertificate {
        authority_key: key.serialize_pem(),
        authority_not_after: Some(now + SignedDuration::from_hours(24 * AUTHORITY_LIFETIME_DAYS)),
        ..KeptCertificate::default()
    };
    made.authorities = authority(service, now)?.self_signed(&key)?.pem();
    made = signed(made, service, names, now)?;
    // Pods keep the previous certificate for a moment, and callers may not have the new authority
    // yet.
    if let Some(before) = first_authority(&kept.authorities) {
        made.authorities.push_str(&before);
    }
    Ok(made)
}

/// Replaces the certificate by a new one that the authority signs.
fn signed(
    mut made: KeptCertificate,
    service: &str,
    names: &[String],
    now: Timestamp,
) -> Result<KeptCertificate, rcgen::Error> {
    let authority_key = KeyPair::from_pem(&made.authority_key)?;
    let issuer = Issuer::new(authority(service, now)?, authority_key);
    let mut wanted = parameters(names.to_vec(), now, LIFETIME_DAYS)?;
    wanted.distinguished_name = named(service);
    wanted.use_authority_key_identifier_extension = true;
    wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    made.certificate = wanted.signed_by(&key, &issuer)?.pem();
    made.key = key.serialize_pem();
    Ok(made)
}

fn authority(service: &str, now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut wanted = parameters(Vec::new(), now, AUTHORITY_LIFETIME_DAYS)?;
    wanted.distinguished_name = named(&format!("authority of {service}"));
    wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    wanted.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(wanted)
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// Returns the authority that has signed until now, as PEM; `None` if there is none.
fn first_authority(authorities: &str) -> Option<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let end = authorities.find(END)? + END.len();
    let first = authorities.get(..end)?;
    CertificateDer::from_pem_slice(first.as_bytes()).ok()?;
    Some(format!("{first}\n"))
}

impl KeptCertificate {
    /// Returns the Secret that holds the certificate.
    pub(super) fn secret(&self, namespace: &str, name: &str, operator: &str) -> Secret {
        let not_after = self.authority_not_after.map(|end| end.to_string()).unwrap_or_default();
        let data = [
            (CERTIFICATE, &self.certificate),
            (KEY, &self.key),
            (AUTHORITIES, &self.authorities),
            (AUTHORITY_KEY, &self.authority_key),
        ];
        let bytes = |text: &String| ByteString(text.as_bytes().to_vec());
        let data = data.map(|(name, text)| (name.to_owned(), bytes(text)));
        Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                labels: Some(BTreeMap::from([(OPERATOR_LABEL.to_owned(), operator.to_owned())])),
                annotations: Some(BTreeMap::from([(AUTHORITY_NOT_AFTER.to_owned(), not_after)])),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            data: Some(data.into()),
            ..Secret::default()
        }
    }
}
