//! The service: requests in, responses out.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::StateSource;
use super::access::{Access, Authority};
use super::failure::Failure;
use super::packages::Summaries;
use super::reply::{Form, Query, Reply};
use crate::clock::{SharedClock, run_beside};
use crate::serving::PATIENCE;

/// Most bytes of a query: a thousand packages with their ranges.
const SIZE_MAX: usize = 64 << 10;
/// Most bytes of a path, which the API server reviews: the name of a package has at most 253.
const PATH_MAX: usize = 1 << 10;
/// How long the body of a query may take to arrive.
const READING: Duration = Duration::from_secs(5);
/// How long a query may take altogether: less than the connection waits for an answer.
const ANSWERING: Duration = PATIENCE.saturating_sub(Duration::from_secs(1));
/// The number of queries that are answered at the same time: each may keep a processor busy.
pub(super) const RUNNING_MAX: usize = 8;

/// A service that answers queries.
pub struct QueryService<S, A> {
    shared: Arc<Shared<S, A>>,
}

impl<S, A> Clone for QueryService<S, A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct Shared<S, A> {
    state: S,
    access: Access<A>,
    clock: SharedClock,
    summaries: Arc<Summaries>,
    running: Arc<Semaphore>,
}

impl<S: StateSource, A: Authority> QueryService<S, A> {
    /// Returns a service that answers from a state, to clients whom an authority knows.
    pub fn new(state: S, authority: A, clock: SharedClock) -> Self {
        let access = Access::new(authority, Arc::clone(&clock));
        let (summaries, running) = (Arc::default(), Arc::new(Semaphore::new(RUNNING_MAX)));
        Self { shared: Arc::new(Shared { state, access, clock, summaries, running }) }
    }

    /// Answers a request.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let answered = timeout(ANSWERING, self.answer(&parts, body)).await;
        let answered = answered.unwrap_or_else(|_| Err(Failure::not_in_time(ANSWERING)));
        answered.unwrap_or_else(|failure| failure.response())
    }

    async fn answer<B>(&self, parts: &Parts, body: B) -> Result<Response<Full<Bytes>>, Failure>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let Shared { state, access, clock, summaries, running } = &*self.shared;
        let (path, verb) = (parts.uri.path(), parts.method.as_str().to_ascii_lowercase());
        if path.len() > PATH_MAX {
            return Err(Failure::too_long(PATH_MAX));
        }
        access.admit(&parts.headers, path, &verb).await?;
        let body = match parts.method {
            Method::POST => received(&parts.headers, body).await?,
            _ => Bytes::new(),
        };
        let parameters = parts.uri.query().unwrap_or_default();
        let wants_text = wants_text(&parts.headers);
        let query = Query::read(&parts.method, path, parameters, &body, wants_text)?;
        // Neither who may not ask nor who sends a body slowly keeps others from being answered.
        let permit = Arc::clone(running).try_acquire_owned();
        let permit = permit.map_err(|_| Failure::too_many_requests())?;
        let state = state.state().await.ok_or_else(|| {
            Failure::unavailable(
                "the Operators and catalogs of the cluster are not known here: they are being read, or \
                 another replica leads",
            )
        })?;
        let known = known_tags(&parts.headers);
        let summaries = Arc::clone(summaries);
        // The client may be gone before the work is done.
        let work = move || -> Result<_, Failure> {
            let reply = query.reply(&state, &summaries, &known)?;
            Ok(response(reply, permit))
        };
        let replied = run_beside(&**clock, work).await;
        replied.map_err(|error| Failure::internal(error.to_string()))?
    }
}

/// Returns the body of a query.
async fn received<B>(headers: &HeaderMap, body: B) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let is_plain = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Err(Failure::encoded());
    }
    let collected = timeout(READING, Limited::new(body, SIZE_MAX).collect()).await;
    let collected = collected.map_err(|_| Failure::too_slow(READING))?;
    match collected {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failure::too_large(SIZE_MAX)),
        Err(error) => Err(Failure::bad_request(format!("the query did not arrive: {error}"))),
    }
}

/// The text of a reply, which counts as running until the client has read it: texts may be large.
struct SentText {
    text: String,
    _running: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for SentText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Returns whether a client accepts text and not JSON.
fn wants_text(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let accepted = accepted.flat_map(|it| it.split(','));
    let kinds = accepted.map(|it| it.split(';').next().unwrap_or_default().trim());
    let kinds: Vec<&str> = kinds.collect();
    let accepts = |kind: &str| kinds.iter().any(|it| it.eq_ignore_ascii_case(kind));
    accepts("text/plain") && !accepts("application/json")
}

/// Returns the tags of the replies that a client has.
fn known_tags(headers: &HeaderMap) -> Vec<String> {
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let tags = tags.flat_map(|it| it.split(',')).map(str::trim);
    tags.map(|it| it.strip_prefix("W/").unwrap_or(it).trim_matches('"').to_owned()).collect()
}

fn response(reply: Reply, running: OwnedSemaphorePermit) -> Response<Full<Bytes>> {
    let Reply { tag, content } = reply;
    let (status, form, text) = match content {
        Some((form, text)) => (StatusCode::OK, Some(form), text),
        None => (StatusCode::NOT_MODIFIED, None, String::new()),
    };
    let body = Bytes::from_owner(SentText { text, _running: running });
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        headers.insert(ETAG, tag);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept, authorization"));
    let kind = match form {
        Some(Form::Json) => "application/json",
        Some(Form::Text) => "text/plain; charset=utf-8",
        None => return response,
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
