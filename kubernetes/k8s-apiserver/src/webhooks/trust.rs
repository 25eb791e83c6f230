//! Which certificates of webhooks are trusted.
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// A client configuration that trusts `ca_bundle`, or the authorities of the system if it is empty.
///
/// # Errors
/// When the bundle contains no certificate, or one that cannot be read.
pub(super) fn trust(ca_bundle: &[u8]) -> Result<ClientConfig, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if ca_bundle.trim_ascii().is_empty() {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(config.with_root_certificates(roots).with_no_client_auth());
    }
    let verifier = Arc::new(BundleVerifier::read(ca_bundle)?);
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Trusts the authorities of a bundle, and each certificate that the bundle itself contains: what
/// is only the certificate of a webhook, or an authority that serves under its own certificate.
///
/// Upstream: k8s.io/apiserver/pkg/util/webhook/client.go: HookClient
#[derive(Debug)]
struct BundleVerifier {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl BundleVerifier {
    fn read(ca_bundle: &[u8]) -> Result<Self, String> {
        let unreadable =
            || "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(ca_bundle)
            .collect::<Result<_, _>>()
            .map_err(|_| unreadable())?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|_| unreadable())?;
        }
        let provider = Arc::new(default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let authorities = authorities.build().map_err(|_| unreadable())?;
        Ok(Self { authorities, certificates })
    }
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.certificates.contains(end_entity) {
            return self.authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        let parsed = Certificate::from_der(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let validity = parsed.tbs_certificate().validity();
        if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
            return Err(CertificateError::NotValidYet.into());
        }
        if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
            return Err(CertificateError::Expired.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

    use super::*;

    /// A time within the validity of the certificates, and one before and after it.
    const WITHIN: u64 = 1_600_000_000;
    const BEFORE: u64 = 900_000_000;
    const AFTER: u64 = 2_000_000_000;

    fn params(name: &str, is_ca: IsCa) -> CertificateParams {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.not_before = date_time_ymd(2010, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 1);
        params.is_ca = is_ca;
        params
    }

    #[test]
    fn the_bundle_has_authorities_or_the_certificates_themselves() {
        let ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let authority_params = params("authority.test", ca);
        let authority = authority_params.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority_params, authority_key);
        let issued = params("hooks.test", IsCa::NoCa);
        let issued = issued.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        let [alone, own_authority] = [IsCa::NoCa, ca]
            .map(|is_ca| params("hooks.test", is_ca).self_signed(&KeyPair::generate().unwrap()));
        let [alone, own_authority] = [alone.unwrap(), own_authority.unwrap()];

        let cases = [
            (&authority, &issued, "hooks.test", WITHIN, Ok(())),
            (&authority, &issued, "other.test", WITHIN, Err("NotValidForName")),
            (&authority, &issued, "hooks.test", AFTER, Err("Expired")),
            (&authority, &alone, "hooks.test", WITHIN, Err("UnknownIssuer")),
            (&issued, &issued, "hooks.test", WITHIN, Ok(())),
            (&issued, &issued, "other.test", WITHIN, Err("NotValidForName")),
            (&issued, &issued, "hooks.test", BEFORE, Err("NotValidYet")),
            (&issued, &issued, "hooks.test", AFTER, Err("Expired")),
            (&issued, &authority, "authority.test", WITHIN, Err("CaUsedAsEndEntity")),
            (&alone, &alone, "hooks.test", WITHIN, Ok(())),
            (&own_authority, &own_authority, "hooks.test", WITHIN, Ok(())),
        ];
        for (number, (bundle, shown, name, now, expected)) in cases.into_iter().enumerate() {
            let verifier = BundleVerifier::read(bundle.pem().as_bytes()).unwrap();
            let verified = verifier.verify_server_cert(
                shown.der(),
                &[],
                &ServerName::try_from(name).unwrap(),
                &[],
                UnixTime::since_unix_epoch(Duration::from_secs(now)),
            );
            match (verified, expected) {
                (Ok(_), Ok(())) => {}
                (Err(error), Err(expected)) => {
                    let error = format!("{error:?}");
                    assert!(error.contains(expected), "{number}: {error}");
                }
                (verified, expected) => panic!("{number}: {verified:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_bundle_without_certificates_is_refused() {
        for bundle in ["nothing", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            assert!(trust(bundle.as_bytes()).unwrap_err().contains("unable to parse bytes as PEM"));
        }
    }
}
