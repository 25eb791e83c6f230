//! Streams that end at shutdown.
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::watch;
use tower::{BoxError, Service};

/// A service whose responses of unknown length end at shutdown.
#[derive(Clone)]
pub(super) struct Drain<S> {
    inner: S,
    stopped: watch::Receiver<()>,
}

impl<S> Drain<S> {
    /// Ends the streams of `inner` once the sender of `stopped` is dropped.
    pub(super) fn new(inner: S, stopped: watch::Receiver<()>) -> Self {
        Self { inner, stopped }
    }
}

impl<S, B, R> Service<Request<B>> for Drain<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<UntilStopped<R::Data>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.inner.call(request);
        let mut stopped = self.stopped.clone();
        Box::pin(async move {
            let response = answer.await.map_err(Into::into)?;
            Ok(response.map(|body| {
                let stop: Option<BoxFuture<'static, ()>> = match body.size_hint().exact() {
                    Some(_) => None,
                    None => Some(Box::pin(async move {
                        // The channel never has a value; it only closes.
                        let _ = stopped.changed().await;
                    })),
                };
                UntilStopped { inner: body.map_err(Into::into).boxed_unsync(), stop, ended: false }
            }))
        })
    }
}

/// A body that ends at shutdown at the latest.
pub(super) struct UntilStopped<D> {
    inner: UnsyncBoxBody<D, BoxError>,
    stop: Option<BoxFuture<'static, ()>>,
    ended: bool,
}

impl<D: bytes::Buf> Body for UntilStopped<D> {
    type Data = D;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let Some(stop) = &mut self.stop else {
            return Poll::Pending;
        };
        ready!(stop.as_mut().poll(cx));
        self.ended = true;
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
