//! What a client sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Method, Request};
use kube::client::Body;
use tower::{Layer, Service};

use crate::service::{is_watch, lock, target};

/// Every request of a client, in order; clones share the same log.
///
/// A watch is one request, logged when it is opened. What a layer further in repeats is not seen.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    entries: Arc<Mutex<Vec<Entry>>>,
}

#[derive(Clone, Debug)]
struct Entry {
    method: Method,
    target: String,
    watch: bool,
}

impl RequestLog {
    /// A line for each request: the method and what follows the host, as in
    /// `GET /api/v1/nodes?watch=true`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.entries)
            .iter()
            .map(|entry| format!("{} {}", entry.method, entry.target))
            .collect()
    }

    /// How many requests there were to each method and path, without their queries.
    pub fn counts(&self) -> BTreeMap<(String, String), usize> {
        let mut counts = BTreeMap::new();
        for entry in lock(&self.entries).iter() {
            let path = entry.target.split('?').next().unwrap_or_default();
            *counts.entry((entry.method.to_string(), path.to_owned())).or_default() += 1;
        }
        counts
    }

    /// How many requests there were, watches included.
    pub fn count(&self) -> usize {
        lock(&self.entries).len()
    }

    /// How many requests there were that change something.
    pub fn count_writes(&self) -> usize {
        lock(&self.entries).iter().filter(|entry| !entry.method.is_safe()).count()
    }

    /// How many watches were opened.
    pub fn count_watches(&self) -> usize {
        lock(&self.entries).iter().filter(|entry| entry.watch).count()
    }

    /// Forgets what was logged so far.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }
}

impl<S> Layer<S> for RequestLog {
    type Service = Logged<S>;

    fn layer(&self, inner: S) -> Logged<S> {
        Logged { inner, log: self.clone() }
    }
}

/// The service that keeps a [`RequestLog`].
#[derive(Clone)]
pub struct Logged<S> {
    inner: S,
    log: RequestLog,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Logged<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        lock(&self.log.entries).push(Entry {
            method: request.method().clone(),
            target: target(&request).to_owned(),
            watch: is_watch(&request),
        });
        self.inner.call(request)
    }
}
