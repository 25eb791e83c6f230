//! The record of what processes wrote, and of the cluster at that moment, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use kube::client::Body;
use plimsoll_api::olm::OPERATOR_LABEL;
use serde_json::Value;
use tokio::time::Instant;
use tower::{BoxError, Service};

use crate::gateway::{Gateway, GatewayBody};
use crate::release::WRITTEN_BY;

pub(crate) const CLUSTER_VERSION: &str = "/apis/config.openshift.io/v1/clusterversions/version";
pub(crate) const OPERATORS: &str = "/apis/config.openshift.io/v1/clusteroperators";
/// The API of the add-on layer.
pub(crate) const ADD_ONS: &str = "/apis/olm.io/v1";
/// The Operators of the add-on layer.
pub(crate) const INSTALLED: &str = "/apis/olm.io/v1/operators";
pub(crate) const REVISIONS: &str = "/apis/olm.io/v1/operatorrevisions";
pub(crate) const PROGRESS: &str = "/apis/plimsoll.io/v1alpha1/releaseprogresses/version";

/// A request that changes something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    /// When, since the beginning.
    pub(crate) at: Duration,
    /// Number of the process.
    pub(crate) process: usize,
    /// Whether the process was dead by then: what it sent cannot be held back by anybody.
    pub(crate) is_late: bool,
    pub(crate) method: String,
    pub(crate) path: String,
    /// How often the server had gone back to an earlier state by then.
    pub(crate) rollbacks: usize,
    /// The HTTP status of the answer.
    pub(crate) status: u16,
    /// The release whose manifest it writes; empty for all else.
    pub(crate) release: String,
    /// The versions that operators reported right before a write of a release or of its progress, by name.
    pub(crate) operators: BTreeMap<String, String>,
    /// The capabilities and releases that had been asked for.
    pub(crate) requested: BTreeSet<String>,
    /// The run level that updates were held before; 0 for the next one, whichever that is.
    pub(crate) held: Option<u32>,
    /// The versions that were installed of Operators right before a revision was created, by name.
    pub(crate) installed: BTreeMap<String, String>,
    /// What was sent, if it was about the add-on layer or an object of an Operator, but for statuses.
    pub(crate) sent: Value,
    /// The status of the ClusterVersion or ReleaseProgress after it, if it was about that; the whole
    /// Action, CronAction or EventAction after a write of its status.
    pub(crate) reported: Value,
}

impl Write {
    /// Returns whether it changes more than a lease.
    pub(crate) fn changes_content(&self) -> bool {
        self.status < 300 && !self.path.starts_with("/apis/coordination.k8s.io/")
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, process, method, path, status, .. } = self;
        let late = if self.is_late { ", late" } else { "" };
        write!(f, "{:.3} process {process}{late}: {method} {path}: {status}", at.as_secs_f64())?;
        let mut bodies = [&self.sent, &self.reported].into_iter().filter(|it| !it.is_null());
        bodies.try_for_each(|body| write!(f, " {body}"))
    }
}

/// A process that is to die at a write.
#[derive(Debug, Clone, Copy)]
struct KillOrder {
    writes_left: u64,
    last: LastWrite,
}

/// What becomes of the write that a process dies of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastWrite {
    /// It never reaches the server.
    Lost,
    /// The server carries it out.
    Applied,
    /// The server carries it out some time later, when another process may be at work.
    Late(Duration),
}

#[derive(Debug, Default)]
struct RecordedRun {
    writes: Vec<Write>,
    requested: BTreeSet<String>,
    held: Option<u32>,
    kill: Option<KillOrder>,
    dead: BTreeSet<usize>,
    paused_until: Option<Instant>,
    /// Until when what processes send is on its way.
    stalled: BTreeMap<usize, Instant>,
}

/// Returns whether a path is that of the status of an Action, a CronAction or an EventAction.
fn is_status_of_action(path: &str) -> bool {
    let is_action =
        ["/actions/", "/cronactions/", "/eventactions/"].iter().any(|it| path.contains(it));
    path.starts_with(ADD_ONS) && is_action && path.ends_with("/status")
}

/// An API server that records writes; clones share the record.
#[derive(Clone)]
pub(crate) struct Recorder {
    gateway: Gateway,
    began: Instant,
    process: usize,
    log: Arc<Mutex<RecordedRun>>,
}

impl Recorder {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self { gateway, began: Instant::now(), process: 0, log: Arc::default() }
    }

    /// The same for another process.
    pub(crate) fn of(&self, process: usize) -> Self {
        Self { process, ..self.clone() }
    }

    pub(crate) fn writes(&self) -> Vec<Write> {
        self.lock().writes.clone()
    }

    /// The time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns how long nothing but leases was written.
    pub(crate) fn quiet_for(&self) -> Duration {
        let log = self.lock();
        let last = log.writes.iter().rev().find(|write| write.changes_content());
        self.elapsed().saturating_sub(last.map(|write| write.at).unwrap_or_default())
    }

    /// Records that a capability or a release is requested.
    pub(crate) fn ask(&self, name: &str) {
        self.lock().requested.insert(name.to_owned());
    }

    /// Records that updates are held before a run level, or resumed.
    pub(crate) fn hold(&self, level: Option<u32>) {
        self.lock().held = level;
    }

    /// Whoever makes the write that is so many away dies of it.
    pub(crate) fn kill(&self, writes_left: u64, last: LastWrite) {
        self.lock().kill = Some(KillOrder { writes_left, last });
    }

    pub(crate) fn cancel_kill(&self) {
        self.lock().kill = None;
    }

    /// A process ends.
    pub(crate) fn end(&self, process: usize) {
        self.lock().dead.insert(process);
    }

    pub(crate) fn is_dead(&self, process: usize) -> bool {
        self.lock().dead.contains(&process)
    }

    pub(crate) fn pause(&self, lasts: Duration) {
        self.lock().paused_until = Some(Instant::now() + lasts);
    }

    /// What a process sends, and has sent, arrives a while later.
    pub(crate) fn stall(&self, process: usize, lasts: Duration) {
        self.lock().stalled.insert(process, Instant::now() + lasts);
    }

    fn lock(&self) -> MutexGuard<'_, RecordedRun> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the cluster has at a path.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Body::empty()).expect("it is a request");
        let answer = self.gateway.clone().call(request).await.expect("the server answers");
        let body = answer.into_body().collect().await.expect("the answer ends").to_bytes();
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// The version that each operator reports.
    async fn operators(&self) -> BTreeMap<String, String> {
        self.versions(OPERATORS, "/status/versions/0/version").await
    }

    /// Returns what objects have in a field, by their names.
    async fn versions(&self, path: &str, field: &str) -> BTreeMap<String, String> {
        let list = self.read(path).await;
        let operators = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let reported = operators.iter().map(|operator| {
            let version = operator.pointer(field).and_then(Value::as_str);
            let name = operator["metadata"]["name"].as_str().unwrap_or_default();
            (name.to_owned(), version.unwrap_or_default().to_owned())
        });
        reported.collect()
    }

    /// Returns what becomes of this write if the process dies of it; `None` if it does not.
    fn kill_order(&self) -> Option<LastWrite> {
        let mut log = self.lock();
        let kill = log.kill.as_mut()?;
        if kill.writes_left > 0 {
            kill.writes_left -= 1;
            return None;
        }
        let last = kill.last;
        log.kill = None;
        log.dead.insert(self.process);
        Some(last)
    }

    async fn serve(
        self,
        request: http::Request<Body>,
    ) -> Result<http::Response<GatewayBody>, BoxError> {
        if self.is_dead(self.process) {
            return std::future::pending().await;
        }
        if request.method().is_safe() {
            self.wait_for_pause().await;
            return self.gateway.of(self.process).call(request).await;
        }
        // What is on its way arrives, whatever becomes of who sent it.
        match self.kill_order() {
            None => tokio::spawn(self.write(request)).await?,
            Some(LastWrite::Lost) => std::future::pending().await,
            Some(LastWrite::Applied) => {
                tokio::spawn(self.write(request));
                std::future::pending().await
            }
            Some(LastWrite::Late(delay)) => {
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    self.write(request).await
                });
                std::future::pending().await
            }
        }
    }

    async fn wait_for_pause(&self) {
        let until = {
            let log = self.lock();
            log.paused_until.max(log.stalled.get(&self.process).copied())
        };
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Has the server carry out a write, and records it.
    async fn write(
        self,
        request: http::Request<Body>,
    ) -> Result<http::Response<GatewayBody>, BoxError> {
        self.wait_for_pause().await;
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let sent: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let (path, method) = (parts.uri.path().to_owned(), parts.method.to_string());
        let release = sent["metadata"]["annotations"][WRITTEN_BY].as_str().unwrap_or_default();
        let is_progress = path.trim_end_matches("/status") == PROGRESS;
        let operators = match release {
            "" if !is_progress => BTreeMap::new(),
            _ => self.operators().await,
        };
        let installed = match (&*path, &*method) {
            (REVISIONS, "POST") => {
                let mut installed = self.versions(INSTALLED, "/status/bundle/version").await;
                installed.retain(|_, version| !version.is_empty());
                installed
            }
            _ => BTreeMap::new(),
        };
        let request = http::Request::from_parts(parts, Body::from(bytes.to_vec()));
        let response = self.gateway.of(self.process).call(request).await?;
        let reported = match path.trim_end_matches("/status") {
            about @ (CLUSTER_VERSION | PROGRESS) => self.read(about).await["status"].take(),
            about if is_status_of_action(&path) => self.read(about).await,
            _ => Value::Null,
        };
        let release = release.to_owned();
        let is_of_add_ons = path.starts_with(ADD_ONS) && !path.ends_with("/status")
            || sent["metadata"]["labels"][OPERATOR_LABEL].is_string();
        let sent = if is_of_add_ons { sent } else { Value::Null };
        let (at, status) = (self.began.elapsed(), response.status().as_u16());
        let (process, is_late) = (self.process, self.is_dead(self.process));
        let (requested, held) = {
            let log = self.lock();
            (log.requested.clone(), log.held)
        };
        self.lock().writes.push(Write {
            at,
            process,
            is_late,
            method,
            path,
            rollbacks: self.gateway.rollbacks(),
            status,
            release,
            operators,
            requested,
            held,
            installed,
            sent,
            reported,
        });
        Ok(response)
    }
}

impl Service<http::Request<Body>> for Recorder {
    type Response = http::Response<GatewayBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.clone().serve(request))
    }
}
