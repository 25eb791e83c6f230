//! What a process wrote, and what the cluster was like at that moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use kube::client::Body;
use plimsoll_apiserver::ApiServer;
use serde_json::Value;
use tokio::time::Instant;
use tower::{BoxError, Service};

use crate::release::WRITTEN_BY;

pub(crate) const CLUSTER_VERSION: &str = "/apis/config.openshift.io/v1/clusterversions/version";
pub(crate) const OPERATORS: &str = "/apis/config.openshift.io/v1/clusteroperators";
pub(crate) const PROGRESS: &str = "/apis/plimsoll.io/v1alpha1/releaseprogresses/version";

/// A request that changes something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    /// When, since the beginning.
    pub(crate) at: Duration,
    /// Number of the process.
    pub(crate) process: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The HTTP status of the answer.
    pub(crate) status: u16,
    /// The release whose manifest it writes; empty for all else.
    pub(crate) release: String,
    /// The versions that operators reported right before, by name.
    pub(crate) operators: BTreeMap<String, String>,
    /// The capabilities that had been asked for.
    pub(crate) asked: BTreeSet<String>,
    /// The status of the ClusterVersion or ReleaseProgress after it, if it was about that.
    pub(crate) told: Value,
}

/// A process that is to die at a write.
#[derive(Debug, Clone, Copy)]
struct Doom {
    writes_left: u64,
    answered: bool,
}

#[derive(Debug, Default)]
struct Log {
    writes: Vec<Write>,
    asked: BTreeSet<String>,
    doom: Option<Doom>,
    dead: BTreeSet<usize>,
    paused_until: Option<Instant>,
}

/// An API server that takes note of what is written to it; clones share their notes.
#[derive(Clone)]
pub(crate) struct Recorder {
    server: ApiServer,
    began: Instant,
    process: usize,
    log: Arc<Mutex<Log>>,
}

impl Recorder {
    pub(crate) fn new(server: ApiServer) -> Self {
        Self { server, began: Instant::now(), process: 0, log: Arc::default() }
    }

    /// The same for another process.
    pub(crate) fn of(&self, process: usize) -> Self {
        Self { process, ..self.clone() }
    }

    pub(crate) fn writes(&self) -> Vec<Write> {
        self.lock().writes.clone()
    }

    /// Somebody asks for a capability.
    pub(crate) fn ask(&self, capability: &str) {
        self.lock().asked.insert(capability.to_owned());
    }

    /// Whoever makes the write that is so many away dies of it.
    pub(crate) fn doom(&self, writes_left: u64, answered: bool) {
        self.lock().doom = Some(Doom { writes_left, answered });
    }

    pub(crate) fn spare(&self) {
        self.lock().doom = None;
    }

    pub(crate) fn is_dead(&self, process: usize) -> bool {
        self.lock().dead.contains(&process)
    }

    pub(crate) fn pause(&self, lasts: Duration) {
        self.lock().paused_until = Some(Instant::now() + lasts);
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the cluster has at a path.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Body::empty()).expect("it is a request");
        let answer = self.server.clone().call(request).await.expect("the server answers");
        let body = answer.into_body().collect().await.expect("the answer ends").to_bytes();
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// The version that each operator reports.
    async fn operators(&self) -> BTreeMap<String, String> {
        let list = self.read(OPERATORS).await;
        let operators = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let reported = operators.iter().map(|operator| {
            let version = operator["status"]["versions"][0]["version"].as_str();
            let name = operator["metadata"]["name"].as_str().unwrap_or_default();
            (name.to_owned(), version.unwrap_or_default().to_owned())
        });
        reported.collect()
    }

    /// Whether the process dies of this write, and if so whether the server still hears it.
    fn strike(&self) -> Option<bool> {
        let mut log = self.lock();
        let doom = log.doom.as_mut()?;
        if doom.writes_left > 0 {
            doom.writes_left -= 1;
            return None;
        }
        let answered = doom.answered;
        log.doom = None;
        log.dead.insert(self.process);
        Some(answered)
    }

    async fn serve(
        mut self,
        request: http::Request<Body>,
    ) -> Result<http::Response<plimsoll_apiserver::Body>, BoxError> {
        let pause = self.lock().paused_until;
        if let Some(until) = pause {
            tokio::time::sleep_until(until).await;
        }
        if self.is_dead(self.process) {
            return std::future::pending().await;
        }
        if request.method().is_safe() {
            return Ok(self.server.call(request).await?);
        }
        let dies = self.strike();
        if dies == Some(false) {
            return std::future::pending().await;
        }
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let sent: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let (path, method) = (parts.uri.path().to_owned(), parts.method.to_string());
        let release = sent["metadata"]["annotations"][WRITTEN_BY].as_str().unwrap_or_default();
        let operators = match release {
            "" => BTreeMap::new(),
            _ => self.operators().await,
        };
        let request = http::Request::from_parts(parts, Body::from(bytes.to_vec()));
        let response = self.server.call(request).await?;
        let told = match path.trim_end_matches("/status") {
            about @ (CLUSTER_VERSION | PROGRESS) => self.read(about).await["status"].take(),
            _ => Value::Null,
        };
        let release = release.to_owned();
        let (at, status) = (self.began.elapsed(), response.status().as_u16());
        let (process, asked) = (self.process, self.lock().asked.clone());
        let write = Write { at, process, method, path, status, release, operators, asked, told };
        self.lock().writes.push(write);
        match dies {
            None => Ok(response),
            Some(_) => std::future::pending().await,
        }
    }
}

impl Service<http::Request<Body>> for Recorder {
    type Response = http::Response<plimsoll_apiserver::Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.clone().serve(request))
    }
}
