//! The server as a `tower::Service`.
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tower::Service;

use crate::access::Access;
use crate::access::options::AccessOptions;
use crate::admission::AdmissionChain;
use crate::clock::{Clock, SystemClock, rfc3339_seconds};
use crate::controllers::Controllers;
use crate::controllers::bootstrap::bootstrap;
use crate::http::body::Body;
use crate::http::openapi::DocumentCache;
use crate::http::render::ResponseForm;
use crate::http::respond;
use crate::metrics::Metrics;
use crate::request::info::RequestInfo;
use crate::semantics::cluster::Cluster;
use crate::semantics::settings::ClusterSettings;
use crate::shared_cluster::SharedCluster;
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::History;
use crate::webhooks::Webhooks;

mod dispatch;

/// An extension of a request: the history is compacted before the request is handled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactFirst;

/// Largest body of a request, in bytes.
const BODY_LEN_MAX: usize = 3 << 20;

/// The configuration of a server.
#[derive(Clone)]
pub struct Options {
    /// The clock of all times that the server writes.
    pub clock: Arc<dyn Clock>,
    /// The seed of uids and generated names: the same seed gives the same ones.
    ///
    /// Keys do not follow from it; see [`AccessOptions::keys`].
    pub seed: u64,
    /// How many past events are kept for watches and for lists at earlier revisions.
    pub history: History,
    /// How webhooks are called.
    pub webhooks: Webhooks,
    /// Authentication, authorization and audit.
    pub access: AccessOptions,
    /// What kube-apiserver's flags set for the whole cluster.
    pub settings: ClusterSettings,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            seed: 0,
            history: History::default(),
            webhooks: Webhooks::new(),
            access: AccessOptions::default(),
            settings: ClusterSettings::default(),
        }
    }
}

/// An API server in memory; clones share the same cluster.
///
/// It is a `tower::Service` of HTTP requests, so a client can run on it directly. A write is
/// complete before its response is sent, controllers included: the same requests in the same order
/// give the same cluster.
///
/// A panic inside a write may leave the write half done. The server then answers every request with
/// `500 InternalError`, and [`ApiServer::snapshot`] fails.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

/// What all clones of a server share.
pub(crate) struct Shared {
    pub(crate) cluster: Arc<SharedCluster>,
    pub(crate) access: Access,
    pub(crate) metrics: Metrics,
    /// The OpenAPI documents that were built so far.
    pub(crate) documents: DocumentCache,
}

impl ApiServer {
    /// A server with a new cluster, which contains the objects that every cluster has.
    pub fn new(options: Options) -> Self {
        let cluster = Cluster::new(options.seed, options.history);
        Self::prepared(cluster, options, bootstrap)
    }

    /// A server with an existing cluster.
    pub(crate) fn with_cluster(cluster: Cluster, options: Options) -> Self {
        Self::prepared(cluster, options, |_, _, _| {})
    }

    fn prepared(
        mut cluster: Cluster,
        options: Options,
        prepare: impl FnOnce(&mut Cluster, &str, &str),
    ) -> Self {
        let Options { clock, webhooks, access, seed, settings, .. } = options;
        cluster.settings = settings;
        let access = Access::new(access, seed);
        let authority = access.certificates().authority();
        prepare(&mut cluster, authority, &rfc3339_seconds(clock.now()));
        cluster.admission = Arc::new(AdmissionChain::new(Arc::clone(access.authorizer())));
        let controllers = Controllers::new(authority);
        let cluster = Arc::new(SharedCluster::new(cluster, controllers, clock, webhooks));
        let (metrics, documents) = (Metrics::new(), DocumentCache::default());
        Self { shared: Arc::new(Shared { cluster, access, metrics, documents }) }
    }

    /// Drops the events up to and including `revision`, as a compaction of etcd does.
    ///
    /// Watches and lists at earlier revisions get `410 Expired` from now on; continue tokens of
    /// such lists get one with a token that continues the list inconsistently. The objects stay.
    pub fn compact(&self, revision: u64) {
        self.shared.cluster.compact(revision);
    }

    /// The state that all clones share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The resource version of the last write; a cheap way to see whether anything changed.
    pub fn resource_version(&self) -> u64 {
        self.shared.cluster.revision()
    }
}

impl<B> Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, std::result::Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let info = RequestInfo::of(&parts);
            let observed = shared.metrics.begin(&parts, &info);
            let form = ResponseForm::negotiate(&shared.cluster, &mut parts, &info);
            let answer =
                AssertUnwindSafe(answer(&shared, &parts, &info, body)).catch_unwind().await;
            let response = answer.unwrap_or_else(|_| {
                // A read that panics has changed nothing; a write may be half done.
                let is_poisoned = shared.cluster.is_poisoned();
                respond::error(&if is_poisoned {
                    ApiError::poisoned()
                } else {
                    ApiError::panicked()
                })
            });
            Ok(observed.answered(&shared.cluster, form.render(response)))
        })
    }
}

async fn answer<B>(
    shared: &Arc<Shared>,
    parts: &Parts,
    info: &RequestInfo,
    body: B,
) -> Response<Body>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if shared.cluster.is_poisoned() {
        return respond::error(&ApiError::poisoned());
    }
    if parts.extensions.get::<CompactFirst>().is_some() {
        shared.cluster.compact(u64::MAX);
    }
    match read_body(body).await {
        Ok(body) => dispatch::handle(shared, parts, info, &body).await,
        Err(error) => respond::error(&error),
    }
}

async fn read_body<B>(body: B) -> Result<bytes::Bytes>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, BODY_LEN_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::new(
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {BODY_LEN_MAX}"),
        )),
        Err(error) => Err(ApiError::bad_request(format!(
            "the body of the request could not be read: {error}"
        ))),
    }
}

#[cfg(test)]
mod tests;
