//! The certificates of a control plane.
//!
//! The API server would make one for itself: its RSA key takes a tenth of the processor time of a start.

use std::net::Ipv4Addr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

/// An authority, and a server that it vouches for; all in PEM.
pub(super) struct Certificates {
    /// The certificate of the authority.
    pub(super) authority: String,
    /// The certificate of the server.
    pub(super) server: String,
    /// The private key of the server.
    pub(super) private_key: String,
    /// The public key of the server.
    pub(super) public_key: String,
}

impl Certificates {
    /// Makes those of a server on loopback.
    ///
    /// # Errors
    /// When a key cannot be made or a certificate not be signed.
    pub(super) fn new() -> Result<Self, rcgen::Error> {
        let mut authority = parameters("kube-apiserver-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_key = KeyPair::generate()?;
        let certificate = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);

        let mut server = parameters("kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.subject_alt_names = vec![
            SanType::DnsName("localhost".try_into()?),
            SanType::IpAddress(Ipv4Addr::LOCALHOST.into()),
        ];
        let key = KeyPair::generate()?;
        Ok(Self {
            authority: certificate,
            server: server.signed_by(&key, &issuer)?.pem(),
            private_key: key.serialize_pem(),
            public_key: key.public_key_pem(),
        })
    }
}

fn parameters(common_name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.use_authority_key_identifier_extension = true;
    parameters
}
