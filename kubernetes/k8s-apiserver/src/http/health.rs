//! `/healthz`, `/livez`, `/readyz` and the single checks below them, which all pass.
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use crate::http::body::Body;
use crate::http::respond;
use crate::request::info::RequestInfo;

/// The names of the checks, in the order of kube-apiserver.
const CHECKS: [&str; 35] = [
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/max-in-flight-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "shutdown",
];
/// Checked only by `/readyz`.
const READY_CHECKS: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let is_ready = endpoint == "readyz";
    CHECKS.into_iter().filter(move |check| is_ready || !READY_CHECKS.contains(check))
}

/// The paths of all checks, for `/`.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    ["healthz", "livez", "readyz"].into_iter().flat_map(|endpoint| {
        std::iter::once(format!("/{endpoint}"))
            .chain(checks(endpoint).map(move |check| format!("/{endpoint}/{check}")))
    })
}

/// Handles a health check.
///
/// Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go: handleRootHealth
pub(crate) fn answer(info: &RequestInfo) -> Response<Body> {
    let path = info.path.trim_matches('/');
    let (endpoint, check) = path.split_once('/').unwrap_or((path, ""));
    if !check.is_empty() {
        return match checks(endpoint).any(|known| known == check) {
            true => respond::text("ok"),
            false => not_found(),
        };
    }
    if info.query.get("verbose").is_none() {
        return respond::text("ok");
    }
    let excluded = |check: &str| info.query.all("exclude").any(|found| found == check);
    let mut text: String = checks(endpoint)
        .map(|check| {
            let excluded = if excluded(check) { "excluded: " } else { "" };
            format!("[+]{check} {excluded}ok\n")
        })
        .collect();
    text.push_str(&format!("{endpoint} check passed\n"));
    plain(StatusCode::OK, text.into())
}

/// The plain text response for unknown paths.
pub(crate) fn not_found() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, Bytes::from_static(b"404 page not found\n"))
}

fn plain(status: StatusCode, text: Bytes) -> Response<Body> {
    let mut response = respond::bytes(status, text);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
