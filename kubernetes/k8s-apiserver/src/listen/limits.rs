//! Limits of connections in time: slow requests and idle connections.
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::watch;
use tower::{BoxError, Service};

/// Timeout for a response to begin, the body of the request included: kube-apiserver's
/// `--request-timeout`. Watches begin at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A service that counts its open requests, and whose responses begin in time.
#[derive(Clone)]
pub(super) struct Limits<S> {
    inner: S,
    open: watch::Sender<usize>,
}

/// The open requests of a connection.
pub(super) struct Activity(watch::Receiver<usize>);

/// An open request.
struct OpenRequest(watch::Sender<usize>);

impl OpenRequest {
    fn new(open: &watch::Sender<usize>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(open.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl<S> Limits<S> {
    /// Limits `inner`.
    pub(super) fn new(inner: S) -> (Self, Activity) {
        let (open, seen) = watch::channel(0);
        (Self { inner, open }, Activity(seen))
    }
}

impl Activity {
    /// Completes when there has been no open request for `limit`.
    pub(super) async fn idle_for(mut self, limit: Duration) {
        loop {
            let is_open = *self.0.borrow_and_update() > 0;
            if is_open {
                // The sender lives as long as the connection.
                let _ = self.0.changed().await;
            } else if tokio::time::timeout(limit, self.0.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl<S, B, R> Service<Request<B>> for Limits<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<CountedBody<R::Data>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let open = OpenRequest::new(&self.open);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response =
                tokio::time::timeout(ANSWER_WITHIN, answer).await?.map_err(Into::into)?;
            Ok(response.map(|body| CountedBody {
                inner: body.map_err(Into::into).boxed_unsync(),
                _open: open,
            }))
        })
    }
}

/// The body of a response, whose request is open until it is sent.
pub(super) struct CountedBody<D> {
    inner: UnsyncBoxBody<D, BoxError>,
    _open: OpenRequest,
}

impl<D: bytes::Buf> Body for CountedBody<D> {
    type Data = D;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D>, BoxError>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_while_no_request_is_open() {
        let (limits, activity) = Limits::new(());
        let idle = tokio::spawn(activity.idle_for(Duration::from_secs(90)));
        tokio::time::sleep(Duration::from_secs(80)).await;
        let open = OpenRequest::new(&limits.open);
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        assert!(!idle.is_finished(), "a watch is open");
        drop(open);
        let began = tokio::time::Instant::now();
        idle.await.expect("it ends");
        assert_eq!(began.elapsed(), Duration::from_secs(90));
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_does_not_begin_is_given_up() {
        let never = tower::service_fn(|_: Request<()>| async {
            std::future::pending::<Result<Response<String>, BoxError>>().await
        });
        let (mut limits, _activity) = Limits::new(never);
        let began = tokio::time::Instant::now();
        assert!(limits.call(Request::new(())).await.is_err());
        assert_eq!(began.elapsed(), ANSWER_WITHIN);
    }
}
