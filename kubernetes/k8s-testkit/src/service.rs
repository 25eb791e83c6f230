//! A client as the innermost service under layers.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use tower::{BoxError, Service};

/// The body of an answer on its way through the layers.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// The future of every service here.
pub(crate) type Answer =
    Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, BoxError>> + Send>>;

/// Sends requests through a client, so that layers can be put around it whatever it runs on.
#[derive(Clone)]
pub(crate) struct Through(pub(crate) kube::Client);

impl Service<Request<Body>> for Through {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let client = self.0.clone();
        Box::pin(async move {
            let response = client.send(request).await?;
            Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        })
    }
}

/// Locks what the clones of a layer share; a test that panicked meanwhile is no reason to fail
/// another.
pub(crate) fn lock<T>(shared: &Arc<Mutex<T>>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What follows the host in a request.
pub(crate) fn target(request: &Request<Body>) -> &str {
    request.uri().path_and_query().map_or("/", |target| target.as_str())
}

/// Whether a request opens a watch.
pub(crate) fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}
