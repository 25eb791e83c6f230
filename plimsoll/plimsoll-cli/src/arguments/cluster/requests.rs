//! Requests to an API server that may be dead, silent or endless.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::WARNING;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use kube::client::{Body, DynBody};
use plimsoll_resolve::printable::on_one_line;
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
    /// The answer to a watch has to begin, as it does at once, and may go on for ever; every other one is
    /// read to its end.
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
    /// Whether the warnings of the API server about what is created are printed.
    pub(super) shows_warnings: bool,
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
        let body = if is_stream(request.uri()) { self.body } else { ResponseBody::Whole };
        let shows_warnings = self.shows_warnings && request.method() == Method::POST;
        let answer = self.inner.call(request);
        let (url, limit) = (self.url.clone(), self.limit);
        Box::pin(async move {
            let server = url.clone();
            let whole = async move {
                let answer = answer.await;
                if let Some(response) = answer.as_ref().ok().filter(|_| shows_warnings) {
                    // That they cannot be printed is no failure of the request.
                    let _ = print_warnings(response.headers(), &mut io::stderr());
                }
                match (answer, body) {
                    (Err(error), _) => Err(unreachable(&server, error)),
                    (Ok(response), ResponseBody::Streamed) => {
                        Ok(response.map(|inner| -> Box<DynBody> {
                            Box::new(BoundedLines { inner, line: 0, url: server })
                        }))
                    }
                    (Ok(response), ResponseBody::Whole) => read(response, &server).await,
                }
            };
            let answered = timeout(limit, whole).await;
            answered.unwrap_or_else(|_| Err(UnansweredRequest::Silent { url, limit }.into()))
        })
    }
}

/// Prints the warnings of an answer as kubectl does, each once.
fn print_warnings(headers: &HeaderMap, out: &mut dyn Write) -> io::Result<()> {
    let mut printed = BTreeSet::new();
    for value in headers.get_all(WARNING) {
        let text = std::str::from_utf8(value.as_bytes()).ok().and_then(warning);
        if let Some(text) = text.filter(|it| printed.insert(it.clone())) {
            writeln!(out, "Warning: {}", on_one_line(&text))?;
        }
    }
    Ok(())
}

/// Returns the text of a warning header, such as `299 - "text"`; `None` if it has another form.
fn warning(value: &str) -> Option<String> {
    let quoted = value.splitn(3, ' ').nth(2)?;
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    Some(text)
}

/// Whether the answer to a request goes on for ever: that to a watch, and a log that is followed.
fn is_stream(uri: &Uri) -> bool {
    let parameters = uri.query().unwrap_or_default().split('&');
    parameters.into_iter().any(|it| matches!(it, "watch=true" | "watch=1" | "follow=true"))
}

/// A stream of lines, of which each is bounded: the client keeps a line until it is complete.
struct BoundedLines {
    inner: Box<DynBody>,
    /// Bytes of the line so far.
    line: usize,
    /// The URL of the server.
    url: Uri,
}

impl http_body::Body for BoundedLines {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        let next = ready!(Pin::new(&mut *self.inner).poll_frame(context));
        if let Some(Ok(frame)) = &next
            && let Some(data) = frame.data_ref()
        {
            self.line = match data.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => data.len() - end - 1,
                None => self.line + data.len(),
            };
            if self.line > ANSWER_MAX {
                let url = self.url.clone();
                return Poll::Ready(Some(Err(UnansweredRequest::TooLong { url }.into())));
            }
        }
        Poll::Ready(next)
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
            let bounded =
                Bounded { inner, url, limit, body: ResponseBody::Whole, shows_warnings: false };
            let request = Request::new(Body::empty());
            let error = bounded.oneshot(request).await.map(drop).unwrap_err();
            assert_eq!(error.to_string(), expected);
        });
    }

    #[test]
    fn warnings_are_printed_as_kubectl_does() {
        let mut headers = HeaderMap::new();
        for text in ["299 - \"a \\\"b\\\" \\u001b\"", "299 - \"c\"", "299 - \"c\"", "none"] {
            headers.append(WARNING, text.parse().unwrap());
        }
        let mut out = Vec::new();
        print_warnings(&headers, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "Warning: a \"b\" u001b\nWarning: c\n");
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
            || async { Err(io::Error::other("connection refused").into()) },
            "the API server at https://harbour.example:6443/ cannot be reached: connection refused",
        );
    }

    #[tokio::test]
    async fn only_watches_go_on_for_ever_and_no_line_of_theirs() {
        let too_long =
            "the API server at https://harbour.example:6443/ answers with more than 256 MiB";
        for path in ["/api/v1/pods", "/api/v1/pods?watch=false", "/api/v1/pods?&watch=true&a=b"] {
            let inner = service_fn(|_: Request<Body>| async {
                Ok::<_, BoxError>(Response::new(endless()))
            });
            let url = Uri::from_static("https://harbour.example:6443");
            let (limit, body) = (Duration::from_secs(60), ResponseBody::Streamed);
            let shows_warnings = false;
            let bounded = Bounded { inner, url, limit, body, shows_warnings };
            let request = Request::get(path).body(Body::empty()).unwrap();
            let error = match bounded.oneshot(request).await {
                Err(error) => error,
                Ok(response) => {
                    assert!(path.contains("watch=true"), "{path}");
                    response.into_body().collect().await.map(drop).unwrap_err()
                }
            };
            assert_eq!(error.to_string(), too_long, "{path}");
        }
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
