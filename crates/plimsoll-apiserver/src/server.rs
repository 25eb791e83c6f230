//! The server as a `tower::Service`.
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tower::Service;

use crate::body::Body;
use crate::clock::{Clock, SystemClock};

/// How a server is set up.
#[derive(Clone)]
pub struct Options {
    /// Where times come from.
    pub clock: Arc<dyn Clock>,
    /// Where uids and generated names come from: the same seed gives the same ones.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            seed: 0,
        }
    }
}

/// An API server in memory; clones share the same cluster.
#[derive(Clone)]
pub struct ApiServer {
    _options: Arc<Options>,
}

impl ApiServer {
    /// A new, empty cluster.
    pub fn new(options: Options) -> Self {
        Self {
            _options: Arc::new(options),
        }
    }
}

impl<B> Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<B>) -> Self::Future {
        Box::pin(async move {
            let mut response = Response::new(Body::whole(
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not implemented","reason":"NotFound","code":404}"#,
            ));
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            Ok(response)
        })
    }
}
