//! The layer that injects the faults of a script.
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full, StreamBody};
use tower::{BoxError, Layer, Service};

use super::stream::{FaultyBody, StreamFault, WatchBody, connection_lost};
use super::{Fault, Faults};
use crate::server::CompactFirst;

type ResponseFuture = BoxFuture<'static, Result<Response<FaultyBody>, BoxError>>;

impl<S> Layer<S> for Faults {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty { inner, faults: self.clone() }
    }
}

/// A service whose requests get the faults of a script.
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    inner: S,
    faults: Faults,
}

impl<S, B, R> Service<Request<B>> for Faulty<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<FaultyBody>;
    type Error = BoxError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> ResponseFuture {
        // The service that is ready handles the request; its clone replaces it.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let Some(fault) = self.faults.draw(&request) else {
            return answer(inner.call(request));
        };
        match fault {
            Fault::Refused(refusal) => Box::pin(async move {
                let body = |text| Full::new(Bytes::from(text)).map_err(|never| match never {});
                Ok(refusal.answer().map(|text: String| body(text).boxed_unsync()))
            }),
            Fault::ConnectionLost => Box::pin(async { Err(connection_lost()) }),
            Fault::AnswerLost => {
                let answer = answer(inner.call(request));
                Box::pin(async move { answer.await.and(Err(connection_lost())) })
            }
            Fault::AnswerTruncated => halved(inner.call(request), true),
            Fault::AnswerCorrupted => halved(inner.call(request), false),
            Fault::Delayed(time) => delayed(inner, request, time),
            Fault::Stale(as_of) => {
                request.extensions_mut().insert(as_of);
                answer(inner.call(request))
            }
            Fault::Compacted => {
                request.extensions_mut().insert(CompactFirst);
                answer(inner.call(request))
            }
            Fault::WatchClosed(after) => changed(inner.call(request), StreamFault::Closed, after),
            Fault::WatchBroken(after) => changed(inner.call(request), StreamFault::Broken, after),
            Fault::WatchExpired(after) => changed(inner.call(request), StreamFault::Expired, after),
            Fault::WatchDuplicated => {
                changed(inner.call(request), StreamFault::Duplicated, Duration::MAX)
            }
        }
    }
}

fn answer<R, E>(
    called: impl Future<Output = Result<Response<R>, E>> + Send + 'static,
) -> ResponseFuture
where
    E: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    Box::pin(async move {
        let response = called.await.map_err(Into::into)?;
        Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
    })
}

/// The first half of a complete response, and the loss of the connection after it if asked for.
fn halved<R, E>(
    called: impl Future<Output = Result<Response<R>, E>> + Send + 'static,
    is_lost: bool,
) -> ResponseFuture
where
    E: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let answer = answer(called);
    Box::pin(async move {
        let (mut parts, body) = answer.await?.into_parts();
        if body.size_hint().exact().is_none() {
            return Ok(Response::from_parts(parts, body));
        }
        let bytes = body.collect().await?.to_bytes();
        let half = Frame::data(bytes.slice(..bytes.len() / 2));
        let end = is_lost.then(|| Err(connection_lost()));
        parts.headers.remove(CONTENT_LENGTH);
        let frames = futures::stream::iter(std::iter::once(Ok(half)).chain(end));
        Ok(Response::from_parts(parts, StreamBody::new(frames).boxed_unsync()))
    })
}

fn delayed<S, B, R>(mut inner: S, request: Request<B>, time: Duration) -> ResponseFuture
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    Box::pin(async move {
        tokio::time::sleep(time).await;
        answer(inner.call(request)).await
    })
}

/// The response with a fault in its stream; complete responses are not changed.
fn changed<R, E>(
    called: impl Future<Output = Result<Response<R>, E>> + Send + 'static,
    change: StreamFault,
    after: Duration,
) -> ResponseFuture
where
    E: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let answer = answer(called);
    Box::pin(async move {
        let response = answer.await?;
        if response.body().size_hint().exact().is_some() {
            return Ok(response);
        }
        Ok(response.map(|body| WatchBody::new(body, change, after).boxed_unsync()))
    })
}
