//! The controller's small HTTP services: connections are accepted one by one, and answered side by
//! side.

mod patience;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::patience::TimedWrites;

/// How long a handshake or the head of a request may take, and the rest of it with its answer: as long as
/// an API server waits for a webhook by default.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The number of bytes of a head that is not complete from which on a request is refused: clients that are not
/// known yet may send many of them.
const UNREAD_MAX: usize = 128 << 10;
/// How long to wait when no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is stopped. `acceptor` is called for each connection, and without one it is plain
/// HTTP; `purpose` is what logs call the service. Any number of connections is served at the same time.
pub(crate) async fn serve<F: Future<Output = Response<Full<Bytes>>> + Send>(
    listener: TcpListener,
    purpose: &'static str,
    acceptor: impl FnMut() -> Option<TlsAcceptor>,
    respond: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    serve_within(places, listener, purpose, acceptor, respond, stop).await;
}

/// Does the same as [`serve`], with one of some places for each connection; clients wait for a place.
pub(crate) async fn serve_within<F: Future<Output = Response<Full<Bytes>>> + Send>(
    places: Arc<Semaphore>,
    listener: TcpListener,
    purpose: &'static str,
    mut acceptor: impl FnMut() -> Option<TlsAcceptor>,
    respond: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok(Accepted { stream, place }) => {
                let (acceptor, respond, stop) = (acceptor(), respond.clone(), stop.clone());
                tokio::spawn(async move {
                    let _place = place;
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

/// A connection and its place.
struct Accepted {
    stream: TcpStream,
    place: OwnedSemaphorePermit,
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Result<Accepted, std::io::Error> {
    let place = Arc::clone(places).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok(Accepted { stream, place })
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
        let response = timeout(PATIENCE, respond(request));
        async { Ok::<_, Infallible>(response.await.unwrap_or_else(|_| too_slow())) }
    });
    let ended = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(UNREAD_MAX)
        .serve_connection(TokioIo::new(TimedWrites::new(stream)), service)
        .await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection for {purpose} ended early");
    }
}

/// The answer to a request whose body does not arrive, as an API server words it; the connection is closed after
/// it.
fn too_slow() -> Response<Full<Bytes>> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the request took too long",
        "reason": "Timeout",
        "code": StatusCode::REQUEST_TIMEOUT.as_u16(),
    });
    let mut response = Response::new(Full::new(Bytes::from(format!("{status}\n"))));
    *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    //! Clients that stop halfway are not waited for. On a paused clock.

    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    /// Sends what there is of a request and says nothing more; the first line of the answer.
    async fn check(sent: &str, expected: &str) {
        let (mut client, server) = duplex(1 << 10);
        let begun = Instant::now();
        let serving = tokio::spawn(answer(server, "a test", async |request: Request<Incoming>| {
            let body = request.into_body().collect().await.map(|body| body.to_bytes());
            Response::new(Full::new(body.unwrap_or_default()))
        }));
        client.write_all(sent.as_bytes()).await.expect("it is read");
        let mut answered = String::new();
        client.read_to_string(&mut answered).await.expect("the connection ends");
        serving.await.expect("no panic");
        assert_eq!(answered.lines().next().unwrap_or_default(), expected, "{sent:?}");
        let is_refused = expected.contains("408");
        assert_eq!(answered.contains(r#""kind":"Status""#), is_refused, "{answered}");
        assert!(begun.elapsed() <= 2 * PATIENCE, "{sent:?}: {:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_end_is_given_up() {
        let post = "POST / HTTP/1.1\r\nHost: x\r\n";
        check(post, "").await;
        check(&format!("{post}Content-Length: 8\r\n\r\nhalf"), "HTTP/1.1 408 Request Timeout")
            .await;
        let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
        check(&chunked, "HTTP/1.1 408 Request Timeout").await;
        check(&format!("{post}Content-Length: 4\r\n\r\nfull"), "HTTP/1.1 200 OK").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_head_is_refused() {
        let large = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(4 * UNREAD_MAX));
        let (mut client, server) = duplex(8 * UNREAD_MAX);
        let serving = tokio::spawn(answer(server, "a test", async |_: Request<Incoming>| {
            Response::new(Full::default())
        }));
        client.write_all(large.as_bytes()).await.expect("there is space");
        let mut answered = String::new();
        client.read_to_string(&mut answered).await.expect("the connection ends");
        serving.await.expect("no panic");
        let expected = "HTTP/1.1 431 Request Header Fields Too Large";
        assert_eq!(answered.lines().next().unwrap_or_default(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_read_is_given_up() {
        const SIZE: usize = 1 << 20;
        let (mut client, server) = duplex(1 << 10);
        let serving = tokio::spawn(answer(server, "a test", async |_: Request<Incoming>| {
            Response::new(Full::new(Bytes::from(vec![b'x'; SIZE])))
        }));
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("it is read");
        let ended = timeout(10 * patience::READING, serving).await;
        ended.expect("it is given up").expect("no panic");
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.expect("the connection ends");
        assert!(read.len() < SIZE, "{} bytes", read.len());
    }

    #[tokio::test]
    async fn a_connection_waits_for_a_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let places = Arc::new(Semaphore::new(1));
        let first = TcpStream::connect(address).await.expect("it listens");
        let second = TcpStream::connect(address).await.expect("it listens");
        let served = accept(&listener, &places).await.expect("there is a place");
        tokio::select! {
            biased;
            _ = accept(&listener, &places) => unreachable!("the only place is taken"),
            () = std::future::ready(()) => {}
        }
        drop(served);
        accept(&listener, &places).await.expect("there is a place again");
        drop((first, second));
    }
}
