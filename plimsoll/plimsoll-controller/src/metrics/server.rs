//! Serves `/metrics`, `/healthz` and `/readyz`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_file};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{readiness, text};
use crate::serving;
use crate::view::{OperatorsView, View};

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The address cannot be listened on.
    #[error("failed to listen on {address} for metrics; name another with --metrics-listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A file of the certificate cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The files hold no certificate with its key.
    #[error("`{}` and `{}` are no certificate with its key: {message}", files.certificate.display(), files.key.display())]
    Certificate {
        /// The files.
        files: TlsFiles,
        /// What is wrong.
        message: String,
    },
}

/// The files of a certificate. They are read for each connection, so that a new certificate
/// is used from the next one on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and its authority, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
}

/// What the files held when they were last in order.
struct Tls {
    files: TlsFiles,
    held: [Vec<u8>; 2],
    acceptor: TlsAcceptor,
}

impl Tls {
    fn load(files: TlsFiles) -> Result<Self, MetricsError> {
        let held = files.read()?;
        let acceptor = files.acceptor(&held)?;
        Ok(Self { files, held, acceptor })
    }

    /// Returns the acceptor of handshakes for now. Files that are not in order, perhaps since they are just
    /// being replaced, leave everything as it was.
    fn current(&mut self) -> TlsAcceptor {
        let fresh = self.files.read().and_then(|held| {
            let is_new = held != self.held;
            Ok(if is_new { Some((self.files.acceptor(&held)?, held)) } else { None })
        });
        match fresh {
            Ok(Some((acceptor, held))) => {
                tracing::info!("the certificate for metrics was replaced");
                (self.acceptor, self.held) = (acceptor, held);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(
                error = crate::write::chain(&error),
                "the new certificate for metrics cannot be used; the old one stays"
            ),
        }
        self.acceptor.clone()
    }
}

impl TlsFiles {
    fn read(&self) -> Result<[Vec<u8>; 2], MetricsError> {
        let read = |path: &Path| {
            read_file(path, WRITTEN_SIZE_MAX)
                .map_err(|source| MetricsError::Read { path: path.to_owned(), source })
        };
        Ok([read(&self.certificate)?, read(&self.key)?])
    }

    fn acceptor(&self, [certificate, key]: &[Vec<u8>; 2]) -> Result<TlsAcceptor, MetricsError> {
        let failed = |message: String| MetricsError::Certificate { files: self.clone(), message };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| failed(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| failed(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| failed(error.to_string()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Serves what a controller shows of itself.
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    shown: Shown,
}

#[derive(Clone)]
struct Shown {
    release: Option<watch::Receiver<View>>,
    operators: Option<watch::Receiver<OperatorsView>>,
    stopping: CancellationToken,
}

impl MetricsServer {
    /// Listens. What is served is of the `release` and of the `operators`, each if this process controls
    /// it; with `stopping` the process is no longer ready.
    ///
    /// # Errors
    ///
    /// When the address is taken, or the certificate's files are not in order.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<TlsFiles>,
        release: Option<watch::Receiver<View>>,
        operators: Option<watch::Receiver<OperatorsView>>,
        stopping: CancellationToken,
    ) -> Result<Self, MetricsError> {
        let tls = tls.map(Tls::load).transpose()?;
        let failed = |source| MetricsError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, tls, shown: Shown { release, operators, stopping } })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `ended`.
    pub async fn serve(self, ended: CancellationToken) {
        let Self { listener, mut tls, shown, .. } = self;
        let acceptor = || tls.as_mut().map(Tls::current);
        let respond = move |request| std::future::ready(respond(&request, &shown));
        serving::serve(listener, "metrics", acceptor, respond, ended).await;
    }
}

fn respond(request: &Request<Incoming>, shown: &Shown) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "this can only be read".to_owned());
    }
    match request.uri().path() {
        "/metrics" => {
            let release = shown.release.as_ref().map(|it| it.borrow().clone());
            let operators = shown.operators.as_ref().map(|it| it.borrow().clone());
            plain(StatusCode::OK, text(release.as_ref(), operators.as_ref()))
        }
        "/healthz" => plain(StatusCode::OK, "ok".to_owned()),
        "/readyz" => readiness(shown, request.uri().query().unwrap_or_default()),
        _ => plain(
            StatusCode::NOT_FOUND,
            "there is nothing here but /metrics, /healthz and /readyz".to_owned(),
        ),
    }
}

/// Answers whether the process is ready. A standby is: it takes over when the leader ends.
fn readiness(shown: &Shown, query: &str) -> Response<Full<Bytes>> {
    let release = shown.release.as_ref().map(|it| it.borrow());
    let operators = shown.operators.as_ref().map(|it| it.borrow());
    let checks =
        readiness::checks(shown.stopping.is_cancelled(), release.as_deref(), operators.as_deref());
    let is_verbose = query.split('&').any(|it| it == "verbose" || it.starts_with("verbose="));
    let status = match checks.iter().all(|(_, failure)| failure.is_none()) {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    plain(status, readiness::text(&checks, is_verbose))
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
