//! `/metrics`, with the metric names of kube-apiserver.
//!
//! Each server has its own registry. Durations are measured in tokio's time, which a paused runtime
//! stops.
//!
//! Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go: RecordRequestTermination
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use tokio::time::Instant;

use crate::http::body::Body;
use crate::http::{discovery, respond};
use crate::request::info::RequestInfo;
use crate::semantics::cluster::Cluster;
use crate::semantics::registry::ApiResource;
use crate::shared_cluster::SharedCluster;

mod labels;

use labels::Labels;

/// The labels of request metrics.
const REQUEST: [&str; 8] =
    ["verb", "group", "version", "resource", "subresource", "scope", "component", "dry_run"];

/// The labels of long-running requests and of response sizes.
const LONG: [&str; 7] =
    ["verb", "group", "version", "resource", "subresource", "scope", "component"];

/// The histogram buckets of durations, in seconds.
const SECONDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// The histogram buckets of response sizes, in bytes.
const BYTES: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// The metrics of one server.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    sizes: HistogramVec,
    inflight: IntGaugeVec,
    longrunning: IntGaugeVec,
    watch_events: IntCounterVec,
    resource_objects: IntGaugeVec,
    storage_objects: IntGaugeVec,
}

impl Metrics {
    /// Metrics without observations.
    pub(crate) fn new() -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).expect("constant names are valid")
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            IntGaugeVec::new(Opts::new(name, help), labels).expect("constant names are valid")
        };
        let histogram = |name: &str, help: &str, labels: &[&str], buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            HistogramVec::new(options, labels).expect("constant names and buckets are valid")
        };
        let with_code = [&REQUEST[..], &["code"]].concat();
        let metrics = Self {
            registry: Registry::new(),
            requests: counter(
                "apiserver_request_total",
                "Requests by what they were for and the HTTP status of their answers.",
                &with_code,
            ),
            durations: histogram(
                "apiserver_request_duration_seconds",
                "How long it took to answer; watches count when they end.",
                &REQUEST,
                &SECONDS,
            ),
            sizes: histogram(
                "apiserver_response_sizes",
                "Sizes of answers to reads in bytes.",
                &LONG,
                &BYTES,
            ),
            inflight: gauge(
                "apiserver_current_inflight_requests",
                "Requests being answered now, watches left out.",
                &["request_kind"],
            ),
            longrunning: gauge(
                "apiserver_longrunning_requests",
                "Requests that go on, such as watches.",
                &LONG,
            ),
            watch_events: counter(
                "apiserver_watch_events_total",
                "Events sent to watches.",
                &["group", "version", "resource"],
            ),
            resource_objects: gauge(
                "apiserver_resource_objects",
                "Stored objects of each resource.",
                &["group", "resource"],
            ),
            storage_objects: gauge(
                "apiserver_storage_objects",
                "Stored objects of each resource, under the older name of this metric.",
                &["resource"],
            ),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let build = build_info();
        let collectors: [Box<dyn prometheus::core::Collector>; 9] = [
            Box::new(self.requests.clone()),
            Box::new(self.durations.clone()),
            Box::new(self.sizes.clone()),
            Box::new(self.inflight.clone()),
            Box::new(self.longrunning.clone()),
            Box::new(self.watch_events.clone()),
            Box::new(self.resource_objects.clone()),
            Box::new(self.storage_objects.clone()),
            Box::new(build),
        ];
        for collector in collectors {
            self.registry.register(collector).expect("each name is registered once");
        }
        #[cfg(feature = "process-metrics")]
        self.registry
            .register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))
            .expect("each name is registered once");
    }

    /// Begins to observe a request.
    pub(crate) fn begin(&self, parts: &Parts, info: &RequestInfo) -> ObservedRequest {
        let labels = Labels::of(parts, info);
        let kind = if parts.method.is_safe() { "readOnly" } else { "mutating" };
        let running = if labels.is_long() {
            self.longrunning.with_label_values(&labels.long())
        } else {
            self.inflight.with_label_values(&[kind])
        };
        running.inc();
        ObservedRequest {
            metrics: self.clone(),
            labels,
            running,
            began: Instant::now(),
            code: None,
        }
    }

    /// The counter of watch events of a resource.
    pub(crate) fn watch_events(&self, resource: &ApiResource) -> IntCounter {
        let labels = [&*resource.group, &*resource.version, &*resource.plural];
        self.watch_events.with_label_values(&labels)
    }

    /// The response to `GET /metrics`.
    pub(crate) fn answer(&self, cluster: &Cluster) -> Response<Body> {
        self.resource_objects.reset();
        self.storage_objects.reset();
        for resource in cluster.registry.all() {
            let storage = &resource.storage;
            let count = i64::try_from(cluster.store.count(storage)).unwrap_or(i64::MAX);
            let labels = [&*resource.group, &*resource.plural];
            self.resource_objects.with_label_values(&labels).set(count);
            self.storage_objects.with_label_values(&[storage.as_str()]).set(count);
        }
        let mut text = String::new();
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::warn!(%error, "could not write the metrics");
        }
        let mut response = respond::bytes(StatusCode::OK, text.into());
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
        );
        response
    }
}

/// The version of Kubernetes that the server emulates.
fn build_info() -> IntGaugeVec {
    let options = Opts::new("kubernetes_build_info", "The version that is served, as a constant.");
    let version = discovery::server_version();
    let names = ["major", "minor", "git_version", "git_commit", "build_date", "platform"];
    let fields = ["major", "minor", "gitVersion", "gitCommit", "buildDate", "platform"];
    let values = fields.map(|field| version[field].as_str().unwrap_or_default());
    let gauge = IntGaugeVec::new(options, &names).expect("constant names are valid");
    gauge.with_label_values(&values).set(1);
    gauge
}

/// A request that is measured until its response is sent or its client is gone.
pub(crate) struct ObservedRequest {
    metrics: Metrics,
    labels: Labels,
    running: prometheus::IntGauge,
    began: Instant,
    code: Option<StatusCode>,
}

impl ObservedRequest {
    /// Records the response; that of a watch is measured until it ends.
    pub(crate) fn answered(
        mut self,
        cluster: &SharedCluster,
        response: Response<Body>,
    ) -> Response<Body> {
        let code = response.status();
        if code.is_client_error() {
            let known = cluster.read(|cluster| {
                self.labels.forget_unknown(&cluster.registry);
                Ok(())
            });
            if known.is_err() {
                self.labels.forget();
            }
        }
        self.code = Some(code);
        match http_body::Body::size_hint(response.body()).exact() {
            Some(size) => {
                if self.labels.is_read() {
                    let sizes = &self.metrics.sizes;
                    sizes.with_label_values(&self.labels.long()).observe(size as f64);
                }
                response
            }
            None => response.map(|body| body.with_guard(self)),
        }
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        self.running.dec();
        // Requests without a response are not counted.
        let Some(code) = self.code else {
            return;
        };
        let labels = self.labels.request();
        let elapsed = self.began.elapsed().as_secs_f64();
        self.metrics.durations.with_label_values(&labels).observe(elapsed);
        let mut with_code = [""; REQUEST.len() + 1];
        with_code[..REQUEST.len()].copy_from_slice(&labels);
        with_code[REQUEST.len()] = code.as_str();
        self.metrics.requests.with_label_values(&with_code).inc();
    }
}
