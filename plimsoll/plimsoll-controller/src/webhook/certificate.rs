//! The webhook's certificate: of our own making, kept in a Secret so that it outlives a process and
//! is the same for all of them. Whoever deletes the Secret gets a new one at the next start.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use crate::error::Error;
use crate::write::Writer;

const NAMESPACE: &str = "kube-system";
pub(crate) const SECRET: &str = "plimsoll-capability-webhook";
/// Annotation of the Secret: the name that the certificate is for.
const NAME: &str = "plimsoll.io/webhook-name";

/// A certificate and its key, as PEM.
pub(super) struct Certificate {
    pub(super) certificate: String,
    key: String,
}

/// The cluster's certificate for a name; made and kept if there is none.
pub(super) async fn of_cluster(
    client: &Client,
    writer: &Writer,
    name: &str,
) -> Result<Certificate, Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let found = secrets.get_opt(SECRET).await.map_err(|source| Error::Webhook { source })?;
    if let Some(kept) = found.and_then(|secret| kept(&secret, name)) {
        return Ok(kept);
    }
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()])
        .map_err(|error| Error::Certificate { message: error.to_string() })?;
    let made = Certificate { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() };
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Secret"), "secrets");
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": SECRET, "namespace": NAMESPACE, "annotations": { NAME: name } },
        "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": made.certificate, "tls.key": made.key },
    });
    writer
        .apply_own_in(NAMESPACE, &resource, SECRET, &secret)
        .await
        .map_err(|source| Error::Webhook { source })?;
    Ok(made)
}

fn kept(secret: &Secret, name: &str) -> Option<Certificate> {
    if secret.metadata.annotations.as_ref()?.get(NAME)? != name {
        return None;
    }
    let text = |key: &str| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
    let kept = Certificate { certificate: text("tls.crt")?, key: text("tls.key")? };
    // What somebody broke is made anew.
    kept.acceptor().is_ok().then_some(kept)
}

impl Certificate {
    /// What answers TLS handshakes with it.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, Error> {
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
