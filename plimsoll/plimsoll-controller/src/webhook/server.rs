//! Listens for reviews.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::Reviewer;
use crate::serving;

/// Most bytes of a review: two objects, of which none can be larger in a cluster.
const SIZE_MAX: usize = 8 << 20;

/// Serves reviews until it is stopped.
pub(super) async fn serve<R: Reviewer>(
    listener: TcpListener,
    acceptors: watch::Receiver<TlsAcceptor>,
    reviewer: R,
    stop: CancellationToken,
) {
    let respond = move |request| respond(request, reviewer.clone());
    let acceptor = || Some(acceptors.borrow().clone());
    serving::serve(listener, "the webhook", acceptor, respond, stop).await;
}

async fn respond(request: Request<Incoming>, reviewer: impl Reviewer) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "reviews are posted");
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, SIZE_MAX).collect().await else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large or broke off");
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return text(StatusCode::BAD_REQUEST, "the review is not JSON");
    };
    let request = &review["request"];
    let Some(mut answered) = reviewer.review(parts.uri.path(), request).await else {
        return text(StatusCode::NOT_FOUND, "no reviews are answered here");
    };
    answered["uid"] = request["uid"].clone();
    let answered = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answered,
    });
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
