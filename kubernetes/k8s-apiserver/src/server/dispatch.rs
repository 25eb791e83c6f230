//! Dispatch of requests to verbs and documents.
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, USER_AGENT, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use k8s_cel::go::{parse_duration, quote};

use crate::access;
use crate::clock::rfc3339_seconds;
use crate::http::body::Body;
use crate::http::discovery::{self, AggregatedDiscovery};
use crate::http::{health, openapi, respond};
use crate::json::to_indented_bytes;
use crate::request::accept::{Accept, wants_aggregated_discovery};
use crate::request::info::RequestInfo;
use crate::request::parameters::{OptionsKind, Parameters};
use crate::request::path::{ResourcePath, Route};
use crate::request::strict::StrictErrors;
use crate::semantics::context::RequestContext;
use crate::semantics::webhook::replay::WebhookReplay;
use crate::server::Shared;
use crate::status::{ApiError, Result};
use crate::user::UserInfo;

mod objects;

/// Longest name of a field manager that is taken from a user agent.
const MANAGER_LEN_MAX: usize = 128;

/// How often a request is replayed with webhook responses: each mutating webhook is one round, and
/// so is each change of the object or its resource in between.
const ROUNDS_MAX: usize = 64;

/// Handles a request.
///
/// A request that calls webhooks runs again for each response that it needs; see
/// [`crate::semantics::webhook::replay`]. So does one whose resource was replaced meanwhile.
pub(crate) async fn handle(
    shared: &Arc<Shared>,
    parts: &Parts,
    info: &RequestInfo,
    body: &Bytes,
) -> Response<Body> {
    if let Err(error) = check_timeout(info) {
        return respond::error(&error);
    }
    let admitted = access::admit(&shared.access, &shared.cluster, parts, info, body);
    let mut admitted = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    let mut replay = WebhookReplay::default();
    for _ in 0..ROUNDS_MAX {
        let answered = answer(shared, parts, info, body, &admitted.user, &mut replay);
        if replay.take_outdated() {
            continue;
        }
        if !replay.is_pending() {
            admitted.annotate(&replay.annotations);
            return admitted.complete(answered.unwrap_or_else(|error| respond::error(&error)));
        }
        if let Err(error) = shared.cluster.call_webhooks(&mut replay).await {
            return admitted.complete(respond::error(&error));
        }
    }
    let error = ApiError::internal("the object changed too often while webhooks were called");
    admitted.complete(respond::error(&error))
}

/// Checks the parameter `timeout`, which clients send for requests that end. What it says has no
/// effect: nothing here takes so long.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go: parseTimeout
fn check_timeout(info: &RequestInfo) -> Result<()> {
    let Some(given) = info.query.get("timeout").filter(|given| !given.is_empty()) else {
        return Ok(());
    };
    if info.is_watch() || parse_duration(given).is_some() {
        return Ok(());
    }
    let unit = given.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let why = match unit {
        "" => "missing unit in duration".to_owned(),
        _ if unit.len() == given.len() => "invalid duration".to_owned(),
        _ => format!("unknown unit {} in duration", quote(unit)),
    };
    Err(ApiError::bad_request(format!(
        "invalid timeout specified in the request URL - time: {why} {}",
        quote(given)
    )))
}

/// Runs a request once; it may leave pending webhook calls.
fn answer(
    shared: &Arc<Shared>,
    parts: &Parts,
    info: &RequestInfo,
    body: &Bytes,
    user: &Arc<UserInfo>,
    replay: &mut WebhookReplay,
) -> Result<Response<Body>> {
    let route = &info.route;
    if let Route::Resource(target) = route {
        // That nothing is served under the path is reported before a malformed parameter.
        let read = Parameters::read(&info.query, options_kind(&parts.method, target));
        let (mut parameters, malformed) = match read {
            Ok(parameters) => (parameters, None),
            Err(error) => (Parameters::default(), Some(error)),
        };
        parameters.watch = info.is_watch();
        let mut context = RequestContext {
            manager: manager(&parameters, &parts.headers),
            now: replay.started_at(|| rfc3339_seconds(shared.cluster.now())),
            warnings: Vec::new(),
            user: Arc::clone(user),
            replay: std::mem::take(replay),
            annotations: BTreeMap::new(),
            parameters,
            strict_errors: StrictErrors::default(),
        };
        let answered = objects::answer(shared, parts, target, malformed, &mut context, body);
        *replay = context.replay;
        replay.annotations = context.annotations;
        let mut response = answered.unwrap_or_else(|error| respond::error(&error));
        respond::warn(&mut response, &context.warnings);
        return Ok(response);
    }
    // kube-apiserver serves these under any method.
    let is_for_all = matches!(
        route,
        Route::Unknown
            | Route::Root
            | Route::Groups
            | Route::Group(_)
            | Route::Health
            | Route::Metrics
            | Route::OpenApi
    );
    if !is_for_all && parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    if route.is_raw() {
        Accept::only_json(&parts.headers)?;
    }
    match route {
        Route::OpenApi => openapi::answer(&shared.cluster, &shared.documents, parts, info),
        Route::Health => Ok(health::answer(info)),
        Route::Issuer(document) => Ok(access::issuer::answer(*document, &shared.access)),
        _ => describe(shared, route, &parts.headers),
    }
}

/// The kind of the options that the parameters of a request are.
fn options_kind(method: &Method, target: &ResourcePath) -> OptionsKind {
    OptionsKind(match *method {
        Method::GET if target.watch => "ListOptions",
        // No method but GET is answered on the old watch paths.
        _ if target.watch => "GetOptions",
        Method::GET | Method::HEAD if target.name.is_some() => "GetOptions",
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => "ListOptions",
    })
}

/// The field manager: that of the query, or the beginning of the user agent.
fn manager(parameters: &Parameters, headers: &HeaderMap) -> String {
    if let Some(manager) = parameters.field_manager.as_deref().filter(|name| !name.is_empty()) {
        return manager.to_owned();
    }
    headers
        .get(USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .map(|agent| agent.split('/').next().unwrap_or_default())
        .filter(|name| !name.is_empty())
        .map_or_else(|| "unknown".to_owned(), |name| name.chars().take(MANAGER_LEN_MAX).collect())
}

/// Serves discovery and the other documents about the server.
fn describe(shared: &Shared, route: &Route, headers: &HeaderMap) -> Result<Response<Body>> {
    let is_about_groups = matches!(route, Route::CoreVersions | Route::Groups | Route::Group(_));
    if matches!(route, Route::CoreVersions | Route::Groups) && wants_aggregated_discovery(headers) {
        let is_core = *route == Route::CoreVersions;
        let found =
            shared.cluster.read(|cluster| Ok(discovery::aggregated(&cluster.registry, is_core)))?;
        return Ok(aggregated(headers, found));
    }
    if is_about_groups {
        Accept::negotiate(headers, false, false)?;
    }
    let found = shared.cluster.read(|cluster| {
        let registry = &cluster.registry;
        Ok(match route {
            Route::CoreVersions => Some(discovery::core_versions()),
            Route::Groups => Some(discovery::group_list(registry)),
            Route::Group(name) => discovery::one_group(registry, name),
            Route::Version { group, version } => discovery::resource_list(registry, group, version),
            Route::ServerVersion => Some(to_indented_bytes(&discovery::server_version())),
            Route::Root => Some(to_indented_bytes(&discovery::paths(registry))),
            Route::Issuer(_)
            | Route::OpenApi
            | Route::Health
            | Route::Metrics
            | Route::Unknown
            | Route::Resource(_) => None,
        })
    })?;
    match (route, found) {
        (Route::Metrics, _) => shared.cluster.read(|cluster| Ok(shared.metrics.answer(cluster))),
        (_, Some(document)) => Ok(respond::bytes(StatusCode::OK, document)),
        (Route::Group(_) | Route::Unknown, None) => Ok(health::not_found()),
        (_, None) => Err(ApiError::no_such_path()),
    }
}

/// The response with aggregated discovery; `304` if the client has it.
fn aggregated(headers: &HeaderMap, found: AggregatedDiscovery) -> Response<Body> {
    let mut response = respond::tagged(headers, &found.tag, || {
        let mut response = respond::compressed(headers, StatusCode::OK, found.text);
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(discovery::MEDIA_TYPE));
        response
    });
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}
