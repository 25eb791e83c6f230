//! The labels of a request in kube-apiserver's metrics.
use http::Method;
use http::header::CONTENT_TYPE;
use http::request::Parts;

use crate::request::info::RequestInfo;
use crate::request::path::Route;
use crate::semantics::registry::Registry;

/// The labels of a request.
#[derive(Debug, Default)]
pub(super) struct Labels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    dry_run: &'static str,
}

impl Labels {
    pub(super) fn of(parts: &Parts, info: &RequestInfo) -> Self {
        let target = match &info.route {
            Route::Resource(target) => target,
            route => return Self::of_document(&parts.method, route, &info.path),
        };
        let is_watch = info.is_watch();
        let is_named = target.name.is_some();
        let is_apply = parts.headers.get(CONTENT_TYPE).is_some_and(|content_type| {
            content_type.as_bytes().starts_with(b"application/apply-patch")
        });
        let verb = match parts.method {
            Method::GET | Method::HEAD if is_watch => "WATCH",
            Method::GET | Method::HEAD if is_named => "GET",
            Method::GET | Method::HEAD => "LIST",
            Method::PATCH if is_apply => "APPLY",
            Method::DELETE if !is_named => "DELETECOLLECTION",
            ref method => name_of(method),
        };
        let scope = match (is_named || verb == "POST", target.namespace.is_some()) {
            (true, _) => "resource",
            (false, true) => "namespace",
            (false, false) => "cluster",
        };
        Self {
            verb,
            group: target.group.clone(),
            version: target.version.clone(),
            resource: target.resource.clone(),
            subresource: target.subresource.clone().unwrap_or_default(),
            scope,
            dry_run: if info.query.get("dryRun") == Some("All") { "All" } else { "" },
        }
    }

    /// The labels of a non-resource path; unknown paths share theirs.
    fn of_document(method: &Method, route: &Route, path: &str) -> Self {
        let subresource = match route {
            Route::Unknown | Route::Resource(_) => String::new(),
            Route::Health | Route::Metrics => {
                let first = path.split('/').find(|segment| !segment.is_empty());
                format!("/{}", first.unwrap_or_default())
            }
            Route::OpenApi if path.starts_with("/openapi/v3/") => "openapi/v3".to_owned(),
            _ => path.trim_matches('/').to_owned(),
        };
        Self { verb: name_of(method), subresource, ..Self::default() }
    }

    /// Drops unknown resources, which would make the number of labels unbounded.
    pub(super) fn forget_unknown(&mut self, registry: &Registry) {
        let is_known =
            registry.find(&self.group, &self.version, &self.resource).is_some_and(|found| {
                self.subresource.is_empty() || found.subresource(&self.subresource).is_some()
            });
        if !is_known {
            self.forget();
        }
    }

    /// Drops all labels but the verb.
    pub(super) fn forget(&mut self) {
        *self = Self { verb: self.verb, ..Self::default() };
    }

    pub(super) fn is_long(&self) -> bool {
        self.verb == "WATCH"
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(self.verb, "GET" | "LIST")
    }

    /// The labels of a long-running request.
    pub(super) fn long(&self) -> [&str; 7] {
        let [labels @ .., _] = self.request();
        labels
    }

    /// The labels of a request.
    pub(super) fn request(&self) -> [&str; 8] {
        [
            self.verb,
            &self.group,
            &self.version,
            &self.resource,
            &self.subresource,
            self.scope,
            if self.resource.is_empty() { "" } else { "apiserver" },
            self.dry_run,
        ]
    }
}

fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
