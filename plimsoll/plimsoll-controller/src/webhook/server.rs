//! Listens for reviews.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{CapabilityRules, PATH, answer};
use crate::serving;

/// Most bytes of a review: two objects, of which none can be larger in a cluster.
const SIZE_MAX: usize = 8 << 20;

/// Serves reviews until it is stopped.
pub(super) async fn serve(
    listener: TcpListener,
    acceptors: watch::Receiver<TlsAcceptor>,
    rules: watch::Receiver<CapabilityRules>,
    stop: CancellationToken,
) {
    let respond = move |request| respond(request, rules.clone());
    let acceptor = || Some(acceptors.borrow().clone());
    serving::serve(listener, "the webhook", acceptor, respond, stop).await;
}

async fn respond(
    request: Request<Incoming>,
    rules: watch::Receiver<CapabilityRules>,
) -> Response<Full<Bytes>> {
    if request.method() != Method::POST || request.uri().path() != PATH {
        return text(StatusCode::NOT_FOUND, "reviews are posted to /capabilities");
    }
    let Ok(body) = Limited::new(request.into_body(), SIZE_MAX).collect().await else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large or broke off");
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return text(StatusCode::BAD_REQUEST, "the review is not JSON");
    };
    let answered = answer(&review, &rules.borrow());
    let mut response = text(StatusCode::OK, &answered.to_string());
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

fn text(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = status;
    response
}
