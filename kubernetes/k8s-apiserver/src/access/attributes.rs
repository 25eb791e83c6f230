//! The attributes of a request that authorization decides on.
use std::borrow::Cow;

use crate::request::info::RequestInfo;
use crate::request::path::{ResourcePath, Route};

/// A verb on a resource or on a non-resource path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuthorizationAttributes<'a> {
    /// The verb, such as `get`, `list` or `create`; for a non-resource path, the HTTP method in
    /// lowercase.
    pub(crate) verb: Cow<'a, str>,
    /// The resource; none for a non-resource path.
    pub(crate) resource: Option<ResourceAttributes<'a>>,
    /// The path of the URL, decoded.
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
    /// Upstream: k8s.io/apiserver/pkg/endpoints/filters/authorization.go: GetAuthorizerAttributes
    pub(crate) fn of(info: &'a RequestInfo) -> Self {
        let resource = match &info.route {
            Route::Resource(target) => Some(ResourceAttributes::of(target, &info.selected_name)),
            _ => None,
        };
        Self { verb: Cow::Borrowed(&info.verb), resource, path: &info.path }
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
    fn of(target: &'a ResourcePath, selected_name: &'a str) -> Self {
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
            name: target.name.as_deref().unwrap_or(selected_name).into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let (method, uri) = line.split_once(' ').expect("a method and a path");
        let info = RequestInfo::read(&method.parse().unwrap(), &uri.parse().unwrap());
        let attributes = AuthorizationAttributes::of(&info);
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
