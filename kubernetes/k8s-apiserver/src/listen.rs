//! Listeners: HTTP/1.1 and HTTP/2, without or with TLS.
use std::future::Future;
use std::io;
use std::net::SocketAddr;
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
use crate::access::certificates;
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
    let acceptor = TlsAcceptor::from(Arc::new(tls(&server, listener.local_addr()?)?));
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

fn tls(server: &ApiServer, address: SocketAddr) -> Result<rustls::ServerConfig, ServeError> {
    let certificates = server.shared().access.certificates();
    let identity = certificates.server(address.ip())?;
    let provider = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| ServeError::Tls(error);
    roots.add(certificates.authority_der().clone()).map_err(|error| failed(error.into()))?;
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|error| failed(error.into()))?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.into()))?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![identity.certificate], identity.key)
        .map_err(|error| failed(error.into()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
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
