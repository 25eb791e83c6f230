//! Serving over a socket: HTTP/1.1 and HTTP/2, plain or with TLS.
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, Shared};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
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
use tower::{Service as _, service_fn};

use crate::access::authenticate::Connection;
use crate::access::certificates;
use crate::access::options::Unidentified;
use crate::{ApiServer, Body};

/// How long requests may go on once a listener is to end. Watches end at once, and all other
/// requests take milliseconds: who is not done by then does not read.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// How long a client may take to agree on TLS.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Why a listener ended, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener failed for good.
    #[error("the listener failed")]
    Listen(#[from] io::Error),
    /// The certificate for its address could not be made.
    #[error("could not sign the certificate of the server")]
    Certificate(#[from] rcgen::Error),
    /// TLS could not be set up.
    #[error("could not set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Completes once a listener is to end.
type Stop = Shared<BoxFuture<'static, ()>>;

/// Serves `server` on `listener` without TLS until `shutdown` completes.
///
/// Who sends no credentials is whoever [`AccessOptions::plain`](crate::AccessOptions::plain)
/// says: the administrator, unless set otherwise. Listen on loopback only.
///
/// When it ends, watches are cut short, as by a kube-apiserver that ends, and requests that were
/// begun are answered.
///
/// # Errors
/// When the listener fails for good; an error of one connection only ends that connection.
pub async fn serve(
    server: ApiServer,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let unidentified = server.shared().access.plain();
    accept(listener, shutdown, move |stream, peer, stop| {
        let connection = Connection { certificate: None, unidentified, address: peer.ip() };
        answer(server.clone(), stream, connection, stop)
    })
    .await
}

/// Serves `server` on `listener` over TLS until `shutdown` completes.
///
/// The certificate is signed by the authority of the cluster, which the server's
/// [`kubeconfig`](ApiServer::kubeconfig) contains. Clients may show certificates of that authority:
/// the common name is the user, organizations are groups. Who shows neither that nor a token is
/// anonymous. It ends as [`serve`] does.
///
/// # Errors
/// When TLS cannot be set up or the listener fails for good; an error of one connection only ends
/// that connection.
pub async fn serve_tls(
    server: ApiServer,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let acceptor = TlsAcceptor::from(Arc::new(tls(&server, listener.local_addr()?)?));
    accept(listener, shutdown, move |stream, peer, stop| {
        let (acceptor, server) = (acceptor.clone(), server.clone());
        async move {
            let stream = match tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await {
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
                unidentified: Unidentified::Anonymous,
                address: peer.ip(),
            };
            answer(server, stream, connection, stop).await;
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

/// Takes connections until `shutdown` completes, then waits for those that are open.
async fn accept<F>(
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
    handle: impl Fn(TcpStream, SocketAddr, Stop) -> F,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (ending, mut ended) = watch::channel(());
    let stop: Stop = async move {
        // An error says that the sender is gone, which is what it is waited for.
        let _ = ended.changed().await;
    }
    .boxed()
    .shared();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) => return Err(error),
            },
            _ = connections.join_next(), if !connections.is_empty() => continue,
            () = &mut shutdown => break,
        };
        // A small answer must not wait for the acknowledgement of the one before it.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not turn off Nagle's algorithm");
        }
        connections.spawn(handle(stream, peer, stop.clone()));
    }
    drop((ending, listener));
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_MAX, drained).await.is_err() {
        tracing::debug!("connections were cut that did not end by themselves");
        connections.shutdown().await;
    }
    Ok(())
}

/// Answers the requests of one connection.
async fn answer<S>(server: ApiServer, stream: S, connection: Connection, stop: Stop)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ending = stop.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        let answered = server.clone().call(request);
        let ending = ending.clone();
        async move { answered.await.map(|response| until(response, ending)) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let service = TowerToHyperService::new(service);
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The same answer, whose body, if it is that of a watch, ends when the listener does.
fn until(response: Response<Body>, stop: Stop) -> Response<Body> {
    if response.body().as_whole().is_some() {
        return response;
    }
    response.map(|body| Body::stream(body.into_stream().take_until(stop)))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
