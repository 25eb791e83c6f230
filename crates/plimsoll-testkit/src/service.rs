//! A client as the innermost service under layers.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::client::Body;
use kube::core::Status;
use tower::{BoxError, Service};

/// The future of every service here.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

/// Sends requests through a client, so that layers can be put around it whatever it runs on.
#[derive(Clone)]
pub(crate) struct Through(pub(crate) kube::Client);

impl Service<Request<Body>> for Through {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await.map_err(BoxError::from) })
    }
}

/// Locks what is shared between the clones of a layer; a test that panicked meanwhile is no reason
/// to fail another.
pub(crate) fn lock<T>(shared: &Arc<Mutex<T>>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What follows the host in a request line.
pub(crate) fn target(request: &Request<Body>) -> &str {
    request.uri().path_and_query().map_or("/", |target| target.as_str())
}

/// Whether a request opens a watch.
pub(crate) fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// Answers as an API server does when it refuses.
pub(crate) fn refusal(status: &Status) -> Response<Body> {
    let body = serde_json::to_vec(status).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        http::StatusCode::from_u16(status.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}
