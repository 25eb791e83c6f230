//! Serving over a socket: plain HTTP/1.1, and HTTP/2 by prior knowledge.
use std::io;
use std::time::Duration;

use bytes::Buf;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::{BoxError, Service};

mod drain;

use drain::Drain;

/// How many requests one HTTP/2 connection may have under way, watches included: as many as a
/// kube-apiserver admits.
const STREAMS_MAX: u32 = 1_000;

/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// How long requests under way may take after the end was asked for.
const GRACE: Duration = Duration::from_secs(10);

/// How long to wait with new connections when there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `service`, an [`ApiServer`](crate::ApiServer) or one with layers around it, on
/// `listener` until `shutdown` completes.
///
/// Then watches end, as they do when a kube-apiserver ends: clients open them again. Other
/// requests that are under way are answered, for as long as ten seconds. An error of the service
/// ends the connection without an answer.
///
/// # Errors
/// When the listener fails for good; an error of one connection only ends that connection.
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
    let (stop, stopped) = watch::channel(());
    let service = Drain::new(service, stopped.clone());
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, service.clone(), stopped.clone()));
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_exhaustion(&error) => tokio::time::sleep(ACCEPT_PAUSE).await,
                Err(error) => return Err(error),
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    drop(stop);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

/// Serves one connection until it ends, or until its requests are answered after `stopped`.
async fn connection<S, R>(stream: TcpStream, service: S, mut stopped: watch::Receiver<()>)
where
    S: Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    R: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    // A small answer must not wait for the acknowledgement of the one before it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not turn off Nagle's algorithm");
    }
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    let service = TowerToHyperService::new(service);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
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
