//! One server under test, and `check`: a request, the status expected, and a part of the answer.
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::{Timestamp, ToSpan as _};
use k8s_apiserver::{AccessOptions, ApiServer, Body, Clock, KeySource, Options, Webhooks};
use serde_json::Value;
use tower::Service as _;

/// A clock that only advances on demand.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<Timestamp>>);

impl TestClock {
    /// Lets time pass.
    pub(crate) fn advance(&self, seconds: i64) {
        *self.0.lock().unwrap() += seconds.seconds();
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A server under test.
pub(crate) struct TestCluster {
    /// The server.
    pub(crate) server: ApiServer,
    /// Its clock, which begins at the start of 2026.
    pub(crate) clock: TestClock,
    /// Where requests wait for webhooks; without any, the server answers without waiting.
    runtime: Option<tokio::runtime::Runtime>,
}

/// A request in a few words.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    /// Method and path with query: `GET /api/v1/pods`.
    pub(crate) line: &'a str,
    /// Body.
    pub(crate) body: &'a str,
    /// `Content-Type`, if not JSON.
    pub(crate) content_type: &'a str,
    /// `Accept`, if any.
    pub(crate) accept: &'a str,
}

/// Access with keys that are always the same.
fn seeded() -> AccessOptions {
    AccessOptions { keys: KeySource::Seed(1), ..AccessOptions::default() }
}

impl TestCluster {
    /// A new cluster.
    pub(crate) fn new() -> Self {
        Self::with_options(Options { seed: 1, access: seeded(), ..Options::default() }, None)
    }

    /// A new cluster with webhooks; time goes on by itself where one is waited for.
    pub(crate) fn with_webhooks(webhooks: Webhooks) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        Self::with_options(
            Options { seed: 1, webhooks, access: seeded(), ..Options::default() },
            Some(runtime),
        )
    }

    /// A new cluster of a server with these options and a clock of its own.
    pub(crate) fn with_options(options: Options, runtime: Option<tokio::runtime::Runtime>) -> Self {
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = TestClock(Arc::new(Mutex::new(start)));
        let server = ApiServer::new(Options { clock: Arc::new(clock.clone()), ..options });
        Self { server, clock, runtime }
    }

    /// A cluster of a server that is there already.
    pub(crate) fn of(server: ApiServer, clock: TestClock) -> Self {
        Self { server, clock, runtime: None }
    }

    /// Sends a request; the answer to anything but a watch is there at once.
    pub(crate) fn send(&self, ask: Ask<'_>) -> Response<Body> {
        let (method, path) = ask.line.split_once(' ').expect("a method and a path");
        let content_type = match ask.content_type {
            "" => "application/json",
            other => other,
        };
        let mut request =
            Request::builder().method(method).uri(path).header("content-type", content_type);
        if !ask.accept.is_empty() {
            request = request.header("accept", ask.accept);
        }
        let body = Full::new(bytes::Bytes::copy_from_slice(ask.body.as_bytes()));
        let request = request.body(body).unwrap();
        let mut server = self.server.clone();
        let answered = match &self.runtime {
            Some(runtime) => runtime.block_on(server.call(request)),
            None => {
                server.call(request).now_or_never().expect("the server answers without waiting")
            }
        };
        answered.expect("the server does not fail")
    }

    /// Waits where webhooks are waited for.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("a cluster with webhooks").block_on(future)
    }

    /// Sends a request and reads its answer as JSON.
    pub(crate) fn ask(&self, ask: Ask<'_>) -> (u16, Value) {
        let response = self.send(ask);
        let status = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect()
            .now_or_never()
            .expect("the body is whole")
            .unwrap()
            .to_bytes();
        let value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        (status, value)
    }

    /// Sends a request and checks the status and a part of the answer; returns the answer.
    #[track_caller]
    pub(crate) fn check(&self, line: &str, body: &str, status: u16, expected: &str) -> Value {
        let content_type = match line.split_whitespace().next() {
            Some("PATCH") => "application/merge-patch+json",
            _ => "application/json",
        };
        self.check_with(Ask { line, body, content_type, accept: "" }, status, expected)
    }

    /// As [`Self::check`], of any request.
    #[track_caller]
    pub(crate) fn check_with(&self, ask: Ask<'_>, status: u16, expected: &str) -> Value {
        let (found_status, found) = self.ask(ask);
        assert_eq!(found_status, status, "{}: {found:#}", ask.line);
        if !expected.is_empty() {
            let expected: Value = serde_json::from_str(expected).expect("the expectation is JSON");
            if let Some(difference) = missing(&expected, &found, "") {
                panic!("{}: {difference}\n{found:#}", ask.line);
            }
        }
        found
    }

    /// Applies an object server-side as `manager`.
    #[track_caller]
    pub(crate) fn apply(
        &self,
        path: &str,
        manager: &str,
        body: &str,
        status: u16,
        expected: &str,
    ) -> Value {
        self.check_with(
            Ask {
                line: &format!("PATCH {path}?fieldManager={manager}"),
                body,
                content_type: "application/apply-patch+yaml",
                accept: "",
            },
            status,
            expected,
        )
    }
}

/// What of `expected` is not in `found`; texts may be given by their beginning with `...`.
fn missing(expected: &Value, found: &Value, path: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().find_map(|(key, value)| {
            let path = format!("{path}/{key}");
            match found.get(key) {
                Some(below) => missing(value, below, &path),
                None if value.is_null() => None,
                None => Some(format!("{path} is missing")),
            }
        }),
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => items
            .iter()
            .zip(others)
            .enumerate()
            .find_map(|(index, (item, other))| missing(item, other, &format!("{path}/{index}"))),
        (Value::String(text), Value::String(other))
            if text.strip_suffix("...").is_some_and(|start| other.starts_with(start)) =>
        {
            None
        }
        _ if expected == found => None,
        _ => Some(format!("{path} is {found}, not {expected}")),
    }
}
