//! An API server that has a bad day.

mod broken_body;
mod choice;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use serde_json::json;
use tower::{BoxError, Layer, Service};

use crate::service::{Answer, AnswerBody, is_watch, lock, target};

use broken_body::BrokenBody;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The server refuses with this status (409, 429, 500, 503 and the like) and does nothing.
    Refused(u16),
    /// The connection fails before the server has seen the request.
    ConnectionLost,
    /// The server does what it was asked to; the connection fails before it has answered.
    AnswerLost,
    /// The server ends the stream of its answer after this time. Concerns watches only: others
    /// are not touched.
    WatchClosed(Duration),
    /// The connection fails under the stream of the answer after this time. Concerns watches only.
    WatchBroken(Duration),
}

/// Makes some requests fail; clones share the same script.
#[derive(Clone, Debug)]
pub struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    script: VecDeque<Step>,
    chance: Option<Chance>,
    seen: u64,
    fired: Vec<(String, Fault)>,
}

#[derive(Debug)]
struct Step {
    pattern: String,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
struct Chance {
    seed: u64,
    share: f64,
}

impl Faults {
    /// Nothing goes wrong, until [`Faults::add`].
    pub fn none() -> Self {
        Self::new(None)
    }

    /// A share of the requests (0.1 is one in ten) fails, in all the ways that there are. Which
    /// and how depends on the seed and on the position of the request, on nothing else.
    pub fn seeded(seed: u64, share: f64) -> Self {
        Self::new(Some(Chance { seed, share }))
    }

    fn new(chance: Option<Chance>) -> Self {
        let state = State { script: VecDeque::new(), chance, seen: 0, fired: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The next request whose line (`PATCH /api/v1/namespaces/a?fieldManager=b`) contains
    /// `pattern` meets `fault`, once. Faults of one pattern come in the order of their addition,
    /// and before those of chance.
    pub fn add(&self, pattern: &str, fault: Fault) {
        lock(&self.state).script.push_back(Step { pattern: pattern.to_owned(), fault });
    }

    /// Nothing goes wrong any more: the script is dropped, and so is chance.
    pub fn stop(&self) {
        let mut state = lock(&self.state);
        state.script.clear();
        state.chance = None;
    }

    /// What went wrong so far: the lines of the requests and what they met.
    pub fn fired(&self) -> Vec<(String, Fault)> {
        lock(&self.state).fired.clone()
    }

    /// Decides what a request meets.
    fn draw(&self, request: &Request<Body>) -> Option<Fault> {
        let line = format!("{} {}", request.method(), target(request));
        let mut state = lock(&self.state);
        let position = state.seen;
        state.seen += 1;
        let scripted = state.script.iter().position(|step| line.contains(&step.pattern));
        let fault = match scripted {
            Some(index) => state.script.remove(index).map(|step| step.fault),
            None => state.chance.and_then(|chance| {
                let writes = !request.method().is_safe();
                choice::choose(chance.seed, position, chance.share, writes, is_watch(request))
            }),
        }?;
        state.fired.push((line, fault));
        Some(fault)
    }
}

impl<S> Layer<S> for Faults {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty { inner, faults: self.clone() }
    }
}

/// The service that plays [`Faults`].
#[derive(Clone)]
pub struct Faulty<S> {
    inner: S,
    faults: Faults,
}

impl<S> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Response<AnswerBody>, Error = BoxError, Future = Answer>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let watch = is_watch(&request);
        let fault = self.faults.draw(&request);
        match fault {
            None => self.inner.call(request),
            Some(Fault::Refused(status)) => Box::pin(async move { Ok(refuse(status)) }),
            Some(Fault::ConnectionLost) => Box::pin(async { Err(connection_lost()) }),
            Some(Fault::AnswerLost) => {
                let answer = self.inner.call(request);
                Box::pin(async move { answer.await.and(Err(connection_lost())) })
            }
            Some(Fault::WatchClosed(after)) if watch => cut(self.inner.call(request), after, true),
            Some(Fault::WatchBroken(after)) if watch => cut(self.inner.call(request), after, false),
            Some(Fault::WatchClosed(_) | Fault::WatchBroken(_)) => self.inner.call(request),
        }
    }
}

/// Ends the body of an answer after a time.
fn cut(answer: Answer, after: Duration, cleanly: bool) -> Answer {
    Box::pin(async move {
        let response = answer.await?;
        Ok(response.map(|body| BrokenBody::new(body, after, cleanly).boxed_unsync()))
    })
}

/// The error of a connection that was reset.
fn connection_lost() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was lost, as the test wants it")
        .into()
}

/// The answer of a server that refuses.
fn refuse(code: u16) -> Response<AnswerBody> {
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("refused with {code}, as the test wants it"),
        "reason": reason,
        "code": code,
    });
    let body = Full::new(Bytes::from(status.to_string()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if code == 429 {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
