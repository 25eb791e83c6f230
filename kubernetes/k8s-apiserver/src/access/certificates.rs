//! The certificates of a cluster: its authority, its server, its administrator.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use ring::digest::{SHA256, digest};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::oid::db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME};
use x509_cert::ext::pkix::name::DirectoryString;
use x509_cert::name::Name;

use super::keys::{Purpose, RootSecret};
use crate::user::{AUTHENTICATED, MASTERS, UserInfo};

/// The names under which a server is reached within a cluster, and on its own machine.
const NAMES: [&str; 5] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
];

/// The certificate authority of a cluster.
pub(crate) struct Certificates {
    secret: RootSecret,
    issuer: Issuer<'static, KeyPair>,
    authority: String,
    authority_der: CertificateDer<'static>,
}

/// A certificate and its private key, in DER.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Certificates {
    /// The authority of a cluster whose keys are derived from `secret`.
    ///
    /// # Errors
    /// When a certificate cannot be signed.
    pub(crate) fn new(secret: RootSecret) -> Result<Self, rcgen::Error> {
        let mut params = parameters("kubernetes");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = key(&secret, Purpose::Authority)?;
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            secret,
            authority: certificate.pem(),
            authority_der: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        })
    }

    /// The certificate of the authority, in PEM.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The certificate of the authority.
    pub(crate) fn authority_der(&self) -> &CertificateDer<'static> {
        &self.authority_der
    }

    /// The serving certificate of a server that listens at `address`, and that its clients inside
    /// the cluster reach at `service`.
    ///
    /// # Errors
    /// When the certificate cannot be signed.
    pub(crate) fn server(
        &self,
        address: IpAddr,
        service: Ipv4Addr,
    ) -> Result<Identity, rcgen::Error> {
        let mut params = parameters("kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in NAMES {
            params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        let mut addresses: Vec<IpAddr> =
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into(), service.into()];
        if !addresses.contains(&address) {
            addresses.push(address);
        }
        params.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
        let key = key(&self.secret, Purpose::Server)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }

    /// The client certificate of the administrator and its key, both in PEM.
    ///
    /// # Errors
    /// When the certificate cannot be signed.
    pub(crate) fn administrator(&self) -> Result<(String, String), rcgen::Error> {
        let mut params = parameters("system:admin");
        params.distinguished_name.push(DnType::OrganizationName, MASTERS);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = key(&self.secret, Purpose::Administrator)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

/// The parameters of a certificate for a name, with a validity longer than any simulation.
fn parameters(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2100, 1, 1);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

fn key(secret: &RootSecret, purpose: Purpose) -> Result<KeyPair, rcgen::Error> {
    let pkcs8 = PrivatePkcs8KeyDer::from(secret.pkcs8(purpose));
    KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &rcgen::PKCS_ED25519)
}

/// The user of a client certificate: the common name is the user, each organization a group.
///
/// None if it has no common name. The caller has verified the certificate.
///
/// Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go: CommonNameUserConversion
pub(crate) fn user_of(certificate: &[u8]) -> Option<UserInfo> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let subject = parsed.tbs_certificate().subject();
    let name = texts(subject, COMMON_NAME).next()?;
    let groups = texts(subject, ORGANIZATION_NAME).chain([AUTHENTICATED.to_owned()]);
    let mut user = UserInfo::new(name, groups);
    let fingerprint: String =
        digest(&SHA256, certificate).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    user.extra.insert(
        "authentication.kubernetes.io/credential-id".to_owned(),
        vec![format!("X509SHA256={fingerprint}")],
    );
    Some(user)
}

/// The values of an attribute of a subject that are text.
fn texts(subject: &Name, attribute: ObjectIdentifier) -> impl Iterator<Item = String> {
    let values = subject.iter().filter(move |found| found.oid == attribute);
    values.filter_map(|found| Some(found.value.decode_as::<DirectoryString>().ok()?.value().into()))
}

/// The base64 encoding of kubeconfig data.
pub(crate) fn encode(text: &str) -> String {
    STANDARD.encode(text)
}
