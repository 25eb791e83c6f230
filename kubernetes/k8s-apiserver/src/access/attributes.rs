//! The attributes of a request that authorization decides on.
use std::borrow::Cow;

use http::Method;
use http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::request::path::{ResourcePath, Route};

/// A verb on a resource or on a non-resource path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuthorizationAttributes<'a> {
    /// The verb, such as `get`, `list` or `create`; for a non-resource path, the HTTP method in
    /// lowercase.
    pub(crate) verb: Cow<'a, str>,
    /// The resource; none for a non-resource path.
    pub(crate) resource: Option<ResourceAttributes<'a>>,
    /// The path of the URL.
    pub(crate) path: &'a str,
}

/// The resource of a request; missing parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceAttributes<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: Cow<'a, str>,
}

impl<'a> AuthorizationAttributes<'a> {
    /// The attributes of a request.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: NewRequestInfo
    /// Upstream: k8s.io/apiserver/pkg/endpoints/filters/authorization.go: GetAuthorizerAttributes
    pub(crate) fn of(parts: &'a Parts, route: &'a Route) -> Self {
        match route {
            Route::Resource(target) => Self {
                verb: verb(&parts.method, target, parts.uri.query().unwrap_or_default()).into(),
                resource: Some(ResourceAttributes::of(parts, target)),
                path: parts.uri.path(),
            },
            _ => Self {
                verb: parts.method.as_str().to_ascii_lowercase().into(),
                resource: None,
                path: parts.uri.path(),
            },
        }
    }

    /// The attributes of a verb on a resource, without a request.
    pub(crate) fn on(verb: impl Into<Cow<'a, str>>, resource: ResourceAttributes<'a>) -> Self {
        Self { verb: verb.into(), resource: Some(resource), path: "" }
    }

    /// The namespace; empty for cluster-scoped resources and paths.
    pub(crate) fn namespace(&self) -> &str {
        self.resource.as_ref().map_or("", |resource| resource.namespace)
    }
}

impl<'a> ResourceAttributes<'a> {
    fn of(parts: &Parts, target: &'a ResourcePath) -> Self {
        let name = match target.name.as_deref() {
            Some(name) => Cow::Borrowed(name),
            None if is_read(&parts.method) && !target.watch => {
                named_by_selector(parts.uri.query().unwrap_or_default()).into()
            }
            None => Cow::default(),
        };
        // Requests for a namespace count as in that namespace, so that its roles apply.
        let namespace = match target.namespace.as_deref() {
            None if target.resource == "namespaces" => target.name.as_deref().unwrap_or_default(),
            namespace => namespace.unwrap_or_default(),
        };
        let subresource = target.subresource.as_deref().unwrap_or_default();
        Self {
            group: &target.group,
            version: &target.version,
            resource: &target.resource,
            subresource: subresource.split('/').next().unwrap_or_default(),
            namespace,
            name,
        }
    }

    /// The resource with its subresource, in the form of rules.
    pub(crate) fn combined(&self) -> Cow<'a, str> {
        if self.subresource.is_empty() {
            self.resource.into()
        } else {
            format!("{}/{}", self.resource, self.subresource).into()
        }
    }
}

fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

fn verb(method: &Method, target: &ResourcePath, query: &str) -> &'static str {
    match *method {
        _ if target.watch => "watch",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if target.name.is_none() => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if target.name.is_some() => "get",
        Method::GET | Method::HEAD if is_watch(query) => "watch",
        Method::GET | Method::HEAD => "list",
        _ => "",
    }
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        (found == name).then_some(value)
    })
}

fn is_watch(query: &str) -> bool {
    parameter(query, "watch").is_some_and(|value| !matches!(value, "false" | "False" | "0"))
}

/// The name that a field selector restricts a list to; empty if there is none.
fn named_by_selector(query: &str) -> String {
    let selector = parameter(query, "fieldSelector").unwrap_or_default();
    let selector = percent_decode_str(selector).decode_utf8_lossy();
    selector
        .split(',')
        .find_map(|term| {
            let value = term.strip_prefix("metadata.name=")?;
            let value = value.strip_prefix('=').unwrap_or(value);
            let is_segment = !value.is_empty() && !value.contains(['/', '%']);
            is_segment.then(|| value.to_owned())
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::path;

    fn check(line: &str, expected: &str) {
        let (method, uri) = line.split_once(' ').expect("a method and a path");
        let request = http::Request::builder().method(method).uri(uri).body(()).unwrap();
        let parts = request.into_parts().0;
        let route = path::parse(parts.uri.path());
        let attributes = AuthorizationAttributes::of(&parts, &route);
        let shown = match &attributes.resource {
            Some(about) => format!(
                "{} {}.{} {} {}",
                attributes.verb,
                about.combined(),
                about.group,
                if about.namespace.is_empty() { "-" } else { about.namespace },
                if about.name.is_empty() { "-" } else { &about.name },
            ),
            None => format!("{} {}", attributes.verb, attributes.path),
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn requests_have_the_verbs_that_rules_know() {
        check("GET /api/v1/pods", "list pods. - -");
        check("HEAD /api/v1/pods", "list pods. - -");
        check("GET /api/v1/pods?watch=1", "watch pods. - -");
        check("GET /api/v1/pods?watch=false", "list pods. - -");
        check("GET /api/v1/watch/pods", "watch pods. - -");
        check("GET /api/v1/namespaces/a/pods/b", "get pods. a b");
        check("GET /api/v1/namespaces/a/pods/b/log", "get pods/log. a b");
        check("GET /api/v1/namespaces/a/pods/b/proxy/x/y", "get pods/proxy. a b");
        check("GET /api/v1/namespaces/a", "get namespaces. a a");
        check("PUT /api/v1/namespaces/a/finalize", "update namespaces/finalize. a a");
        check("POST /apis/apps/v1/namespaces/a/deployments", "create deployments.apps a -");
        check("PATCH /apis/apps/v1/namespaces/a/deployments/b", "patch deployments.apps a b");
        check("DELETE /apis/apps/v1/namespaces/a/deployments/b", "delete deployments.apps a b");
        check(
            "DELETE /apis/apps/v1/namespaces/a/deployments",
            "deletecollection deployments.apps a -",
        );
        check("GET /api/v1/pods?fieldSelector=a%3Db%2Cmetadata.name%3Dx", "list pods. - x");
        check("DELETE /api/v1/pods?fieldSelector=metadata.name%3Dx", "deletecollection pods. - -");
        check("OPTIONS /api/v1/pods", " pods. - -");
        check("GET /healthz", "get /healthz");
        check("POST /foo/bar?x=y", "post /foo/bar");
    }
}
