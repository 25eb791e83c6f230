//! The controller's small HTTP services: connections are accepted one by one, and answered side by
//! side.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How long a handshake or the head of a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is stopped. `acceptor` is called for each connection, and without one it is plain
/// HTTP; `purpose` is what logs call the service.
pub(crate) async fn serve<F: Future<Output = Response<Full<Bytes>>> + Send>(
    listener: TcpListener,
    purpose: &'static str,
    mut acceptor: impl FnMut() -> Option<TlsAcceptor>,
    respond: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (acceptor, respond, stop) = (acceptor(), respond.clone(), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = connection(stream, purpose, acceptor, respond) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection for {purpose}");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn connection<F: Future<Output = Response<Full<Bytes>>>>(
    stream: TcpStream,
    purpose: &'static str,
    acceptor: Option<TlsAcceptor>,
    respond: impl Fn(Request<Incoming>) -> F,
) {
    match acceptor {
        None => answer(stream, purpose, respond).await,
        Some(acceptor) => match timeout(PATIENCE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => answer(stream, purpose, respond).await,
            Ok(Err(error)) => tracing::debug!(%error, "a handshake for {purpose} failed"),
            Err(_) => tracing::debug!("a handshake for {purpose} took too long"),
        },
    }
}

async fn answer<F: Future<Output = Response<Full<Bytes>>>>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    purpose: &'static str,
    respond: impl Fn(Request<Incoming>) -> F,
) {
    let service = service_fn(move |request| {
        let response = respond(request);
        async { Ok::<_, Infallible>(response.await) }
    });
    let ended = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection for {purpose} ended early");
    }
}
