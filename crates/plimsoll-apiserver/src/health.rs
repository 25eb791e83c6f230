//! `/healthz`, `/livez`, `/readyz` and the single checks below them: all is well from the start.
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode, Uri};

use crate::body::Body;
use crate::respond;

/// What is checked; clients know the names from kube-apiserver.
const CHECKS: [&str; 10] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "autoregister-completion",
];
/// Checked besides by `/readyz`.
const READY_CHECKS: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let more: &[&str] = if endpoint == "readyz" { &READY_CHECKS } else { &[] };
    CHECKS.iter().chain(more).copied()
}

/// The paths that exist, for `/`.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    ["healthz", "livez", "readyz"].into_iter().flat_map(|endpoint| {
        std::iter::once(format!("/{endpoint}"))
            .chain(checks(endpoint).map(move |check| format!("/{endpoint}/{check}")))
    })
}

/// Answers a question about the server's health.
pub(crate) fn answer(uri: &Uri) -> Response<Body> {
    let path = uri.path().trim_matches('/');
    let (endpoint, check) = path.split_once('/').unwrap_or((path, ""));
    if !check.is_empty() {
        return match checks(endpoint).any(|known| known == check) {
            true => respond::text("ok"),
            false => not_found(),
        };
    }
    let parameters: Vec<(&str, &str)> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    if !parameters.iter().any(|(name, _)| *name == "verbose") {
        return respond::text("ok");
    }
    let excluded = |check: &str| parameters.contains(&("exclude", check));
    let mut text: String = checks(endpoint)
        .map(|check| {
            let excluded = if excluded(check) { "excluded: " } else { "" };
            format!("[+]{check} {excluded}ok\n")
        })
        .collect();
    text.push_str(&format!("{endpoint} check passed\n"));
    plain(StatusCode::OK, text.into())
}

/// The answer for a path that nobody knows.
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
