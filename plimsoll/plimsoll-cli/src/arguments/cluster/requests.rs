//! Requests to an API server that may be dead, silent or endless.

use std::error::Error;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use kube::client::{Body, DynBody};
use tokio::time::timeout;
use tower::{BoxError, Service};

/// Most bytes of an answer: a list of 10,000 objects of 20 KiB each fits.
const ANSWER_MAX: usize = 256 << 20;

/// Why there is no answer to a request.
#[derive(Debug, thiserror::Error)]
pub enum UnansweredRequest {
    /// There is no connection.
    #[error("the API server at {url} cannot be reached: {reason}")]
    Unreachable {
        /// The URL of the server, of the kubeconfig.
        url: Uri,
        /// The innermost cause.
        reason: String,
    },
    /// There is a connection, and nothing comes.
    #[error(
        "the API server at {url} has not answered within {} s; --request-timeout allows for more",
        .limit.as_secs_f32()
    )]
    Silent {
        /// The URL of the server, of the kubeconfig.
        url: Uri,
        /// How long the answer was waited for.
        limit: Duration,
    },
    /// The answer does not end.
    #[error("the API server at {url} answers with more than {} MiB", ANSWER_MAX >> 20)]
    TooLong {
        /// The URL of the server, of the kubeconfig.
        url: Uri,
    },
}

/// What the limits of an answer are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseBody {
    /// The answer is read to its end.
    Whole,
    /// The answer has to begin, as that to a watch does at once.
    Streamed,
}

/// A client's requests within limits, with errors that name the server.
#[derive(Debug, Clone)]
pub(super) struct Bounded<S> {
    pub(super) inner: S,
    /// The URL of the server.
    pub(super) url: Uri,
    /// How long an answer may take.
    pub(super) limit: Duration,
    pub(super) body: ResponseBody,
}

impl<S> Service<Request<Body>> for Bounded<S>
where
    S: Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Box<DynBody>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.inner.call(request);
        let (url, limit, body) = (self.url.clone(), self.limit, self.body);
        Box::pin(async move {
            let server = url.clone();
            let whole = async move {
                match (answer.await, body) {
                    (Err(error), _) => Err(unreachable(&server, error)),
                    (Ok(response), ResponseBody::Streamed) => Ok(response),
                    (Ok(response), ResponseBody::Whole) => read(response, &server).await,
                }
            };
            let answered = timeout(limit, whole).await;
            answered.unwrap_or_else(|_| Err(UnansweredRequest::Silent { url, limit }.into()))
        })
    }
}

async fn read(
    response: Response<Box<DynBody>>,
    url: &Uri,
) -> Result<Response<Box<DynBody>>, BoxError> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Err(error) => return Err(unreachable(url, error)),
            Ok(Ok(data)) if bytes.len() + data.len() > ANSWER_MAX => {
                return Err(UnansweredRequest::TooLong { url: url.clone() }.into());
            }
            Ok(Ok(data)) => bytes.extend_from_slice(&data),
            // Trailers say nothing of interest.
            Ok(Err(_)) => {}
        }
    }
    Ok(Response::from_parts(head, whole(bytes.into())))
}

fn whole(bytes: Bytes) -> Box<DynBody> {
    Box::new(Full::new(bytes).map_err(|never| match never {}))
}

/// An error of the connection; what the client says of its own configuration stays as it is.
fn unreachable(url: &Uri, error: BoxError) -> BoxError {
    if error.is::<kube::Error>() {
        return error;
    }
    let mut cause: &(dyn Error + 'static) = &*error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    UnansweredRequest::Unreachable { url: url.clone(), reason: cause.to_string() }.into()
}

#[cfg(test)]
mod tests {
    //! Servers that do not answer as they should, by the clock of a paused runtime.

    use std::future::pending;

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    /// The error of a request to a server that answers with what `answer` makes.
    fn check<F>(limit: Duration, answer: fn() -> F, expected: &str)
    where
        F: Future<Output = Result<Response<Box<DynBody>>, BoxError>> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let inner = service_fn(move |_: Request<Body>| answer());
            let url = Uri::from_static("https://harbour.example:6443");
            let bounded = Bounded { inner, url, limit, body: ResponseBody::Whole };
            let request = Request::new(Body::empty());
            let error = bounded.oneshot(request).await.map(drop).unwrap_err();
            assert_eq!(error.to_string(), expected);
        });
    }

    #[test]
    fn a_request_ends_whatever_the_server_does() {
        let minute = Duration::from_secs(60);
        check(
            minute,
            pending,
            "the API server at https://harbour.example:6443/ has not answered within 60 s; \
             --request-timeout allows for more",
        );
        check(
            minute,
            || async { Ok(Response::new(silent())) },
            "the API server at https://harbour.example:6443/ has not answered within 60 s; \
             --request-timeout allows for more",
        );
        check(
            minute,
            || async { Ok(Response::new(endless())) },
            "the API server at https://harbour.example:6443/ answers with more than 256 MiB",
        );
        check(
            minute,
            || async { Err(std::io::Error::other("connection refused").into()) },
            "the API server at https://harbour.example:6443/ cannot be reached: connection refused",
        );
    }

    /// A body of which nothing comes.
    fn silent() -> Box<DynBody> {
        let frames = futures::stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>();
        Box::new(http_body_util::StreamBody::new(frames))
    }

    /// A body without an end.
    fn endless() -> Box<DynBody> {
        static MEBIBYTE: [u8; 1 << 20] = [0; 1 << 20];
        let frame = || Ok(http_body::Frame::data(Bytes::from_static(&MEBIBYTE)));
        let frames = futures::stream::repeat_with(frame);
        Box::new(http_body_util::StreamBody::new(Box::pin(frames)))
    }
}
