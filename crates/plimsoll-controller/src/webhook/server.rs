//! Listens for reviews.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{PATH, Rules, answer};

/// Most bytes of a review: two objects, of which none can be larger in a cluster.
const SIZE_MAX: usize = 8 << 20;
/// How long a handshake or the head of a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until told to stop.
pub(super) async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    rules: watch::Receiver<Rules>,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (acceptor, rules, stop) = (acceptor.clone(), rules.clone(), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = connection(stream, acceptor, rules) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection to the webhook");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, rules: watch::Receiver<Rules>) {
    let Ok(Ok(stream)) = timeout(PATIENCE, acceptor.accept(stream)).await else { return };
    let service = service_fn(move |request| respond(request, rules.clone()));
    let ended = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the webhook ended early");
    }
}

async fn respond(
    request: Request<Incoming>,
    rules: watch::Receiver<Rules>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST || request.uri().path() != PATH {
        return Ok(text(StatusCode::NOT_FOUND, "reviews are posted to /capabilities"));
    }
    let Ok(body) = Limited::new(request.into_body(), SIZE_MAX).collect().await else {
        return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large or broke off"));
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Ok(text(StatusCode::BAD_REQUEST, "the review is not JSON"));
    };
    let answered = answer(&review, &rules.borrow());
    let mut response = text(StatusCode::OK, &answered.to_string());
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

fn text(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = status;
    response
}
