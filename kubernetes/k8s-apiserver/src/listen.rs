//! Listeners: HTTP/1.1 and HTTP/2, without or with TLS.
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::util::MapRequest;
use tower::{BoxError, Service};

mod drain;
mod limits;

use crate::ApiServer;
use crate::access::certificates::{self, Certificates};
use crate::access::connection::{Connection, Transport};
use drain::Drain;
use limits::Limits;

/// Largest number of concurrent requests on one HTTP/2 connection, watches included; that of
/// kube-apiserver.
const STREAMS_MAX: u32 = 1_000;

/// Timeout of the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Timeout for the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// How long a connection may be without a request.
///
/// Upstream: k8s.io/apiserver/pkg/server/secure_serving.go: Serve
const IDLE_MAX: Duration = Duration::from_secs(90);

/// Timeout for open requests at shutdown.
const GRACE: Duration = Duration::from_secs(10);

/// Pause before accepting new connections when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a listener failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Accepting connections failed.
    #[error("the listener failed")]
    Listen(#[from] io::Error),
    /// The serving certificate could not be issued.
    #[error("could not sign the certificate of the server")]
    Certificate(#[from] rcgen::Error),
    /// TLS could not be configured.
    #[error("could not set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Certificates from outside of a cluster, in PEM, for a listener over TLS.
///
/// What is absent comes from the authority of the cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsCertificates<'a> {
    /// The chain of the serving certificate and its private key.
    pub serving: Option<(&'a [u8], &'a [u8])>,
    /// The authorities that certificates of clients are verified against.
    pub client_authorities: Option<&'a [u8]>,
}

/// Serves `service`, an [`ApiServer`] or one with layers around it, on `listener` without TLS
/// until `shutdown` completes.
///
/// Requests without credentials come from the user in
/// [`AccessOptions::plain`](crate::AccessOptions::plain), which is the administrator by default.
/// Listen on loopback only.
///
/// At shutdown, watches end as they do when a kube-apiserver is stopped: clients reopen them. Other
/// open requests are completed for up to ten seconds. An error of the service closes the connection
/// without a response.
///
/// # Errors
/// When accepting connections fails; an error of one connection only ends that connection.
pub async fn serve<S, R>(
    service: S,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    R: http_body::Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
{
    accept(listener, shutdown, |stream, peer, stopped| {
        let connection =
            Connection { certificate: None, transport: Transport::Plain, address: peer.ip() };
        let service = Drain::new(service.clone(), stopped.clone());
        answer(stream, from(service, connection), stopped)
    })
    .await
}

/// Serves `server` on `listener` over TLS until `shutdown` completes.
///
/// The certificate is signed by the authority of the cluster, which the server's
/// [`kubeconfig`](ApiServer::kubeconfig) contains. Clients may authenticate with certificates of
/// that authority: the common name is the user, organizations are groups. Requests without a
/// certificate and a token are anonymous. It shuts down as [`serve`] does.
///
/// # Errors
/// When TLS cannot be configured or accepting connections fails; an error of one connection only
/// ends that connection.
pub async fn serve_tls(
    server: ApiServer,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    serve_tls_with(server, listener, TlsCertificates::default(), shutdown).await
}

/// Serves `server` on `listener` over TLS as [`serve_tls`] does, with certificates that others
/// issued.
///
/// # Errors
/// When a certificate cannot be read, TLS cannot be configured, or accepting connections fails; an
/// error of one connection only ends that connection.
pub async fn serve_tls_with(
    server: ApiServer,
    listener: TcpListener,
    outside: TlsCertificates<'_>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let certificates = server.shared().access.certificates();
    let settings = server.shared().cluster.read(|cluster| Ok(cluster.settings.clone()));
    let service = settings.unwrap_or_default().service_range.first();
    let config = tls(certificates, outside, listener.local_addr()?, service)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    accept(listener, shutdown, |stream, peer, stopped| {
        let (acceptor, server) = (acceptor.clone(), server.clone());
        async move {
            let agreed = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await;
            let stream = match agreed {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    tracing::debug!(%error, %peer, "a client did not agree on TLS");
                    return;
                }
                Err(_) => {
                    tracing::debug!(%peer, "a client took too long to agree on TLS");
                    return;
                }
            };
            let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
            let connection = Connection {
                certificate: shown.and_then(|shown| certificates::user_of(shown)),
                transport: Transport::Tls,
                address: peer.ip(),
            };
            let service = Drain::new(server, stopped.clone());
            answer(stream, from(service, connection), stopped).await;
        }
    })
    .await?;
    Ok(())
}

fn tls(
    own: &Certificates,
    outside: TlsCertificates<'_>,
    address: SocketAddr,
    service: Ipv4Addr,
) -> Result<rustls::ServerConfig, ServeError> {
    let provider = Arc::new(default_provider());
    let (chain, key) = match outside.serving {
        Some((chain, key)) => {
            (chain_of(chain)?, PrivateKeyDer::from_pem_slice(key).map_err(unusable)?)
        }
        None => {
            let identity = own.server(address.ip(), service)?;
            (vec![identity.certificate], identity.key)
        }
    };
    let authorities = match outside.client_authorities {
        Some(authorities) => chain_of(authorities)?,
        None => vec![own.authority_der().clone()],
    };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(unusable)?;
    }
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(unusable)?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificates of a PEM file, at least one.
fn chain_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(unusable)?;
    if chain.is_empty() {
        return Err(unusable("a file of certificates contains none"));
    }
    Ok(chain)
}

fn unusable(error: impl Into<BoxError>) -> ServeError {
    ServeError::Tls(error.into())
}

/// The service with the connection as an extension of each request.
fn from<S>(
    service: S,
    connection: Connection,
) -> MapRequest<S, impl FnMut(Request<Incoming>) -> Request<Incoming> + Clone> {
    MapRequest::new(service, move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        request
    })
}

/// Accepts connections until `shutdown` completes, then waits for the open ones.
async fn accept<F>(
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
    handle: impl Fn(TcpStream, SocketAddr, watch::Receiver<()>) -> F,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Small responses must not wait for the acknowledgement of earlier ones.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "could not turn off Nagle's algorithm");
                    }
                    connections.spawn(handle(stream, peer, stopped.clone()));
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_exhaustion(&error) => tokio::time::sleep(ACCEPT_PAUSE).await,
                Err(error) => return Err(error),
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
            () = &mut shutdown => break,
        }
    }
    drop((listener, stop));
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::debug!("connections were cut that did not end by themselves");
        connections.shutdown().await;
    }
    Ok(())
}

/// Serves one connection until it ends, or until its open requests are completed after `stopped`.
async fn answer<I, S, R>(stream: I, service: S, mut stopped: watch::Receiver<()>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    R: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    let (service, activity) = Limits::new(service);
    let service = TowerToHyperService::new(service);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = activity.idle_for(IDLE_MAX) => {
            connection.as_mut().graceful_shutdown();
            // The peer may never take note of it.
            match tokio::time::timeout(GRACE, connection).await {
                Ok(ended) => ended,
                Err(_) => Ok(()),
            }
        }
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

/// Whether the process or the machine has no file descriptor left (`EMFILE`, `ENFILE`).
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}
