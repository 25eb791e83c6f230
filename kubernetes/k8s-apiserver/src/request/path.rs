//! URL paths.
/// The endpoint of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Objects, or a subresource of one.
    Resource(ResourcePath),
    /// `/api`: versions of the core group.
    CoreVersions,
    /// `/apis`: all other groups.
    Groups,
    /// `/apis/GROUP`: versions of one group.
    Group(String),
    /// `/apis/GROUP/VERSION` or `/api/VERSION`: resources of one version.
    Version { group: String, version: String },
    /// `/version`: the version of the server.
    ServerVersion,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/openapi/v2` and `/openapi/v3` with all below it.
    OpenApi,
    /// `/metrics`.
    Metrics,
    /// A document about the issuer of tokens.
    Issuer(IssuerDocument),
    /// `/`: the list of paths.
    Root,
    /// No endpoint.
    Unknown,
}

impl Route {
    /// Whether the document has no registered kind: it is sent as the JSON that it is.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: WriteRawJSON
    pub(crate) fn is_raw(&self) -> bool {
        matches!(self, Self::ServerVersion | Self::Issuer(_))
    }
}

/// The path of the OpenID configuration of the token issuer.
pub(crate) const ISSUER_CONFIGURATION: &str = "/.well-known/openid-configuration";

/// The path of the public keys of the token issuer.
pub(crate) const ISSUER_KEYS: &str = "/openid/v1/jwks";

/// A document about the token issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssuerDocument {
    /// The OpenID configuration.
    Configuration,
    /// The public keys.
    Keys,
}

impl IssuerDocument {
    /// The document at a path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            ISSUER_CONFIGURATION => Some(Self::Configuration),
            ISSUER_KEYS => Some(Self::Keys),
            _ => None,
        }
    }
}

/// The resource part of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// API group, empty for the core group.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Namespace, if the path has one.
    pub(crate) namespace: Option<String>,
    /// Plural resource name.
    pub(crate) resource: String,
    /// Object name, if the path has one.
    pub(crate) name: Option<String>,
    /// Subresource of the object, if the path has one.
    pub(crate) subresource: Option<String>,
    /// Whether the path has the old `watch` prefix.
    pub(crate) watch: bool,
}

/// Subresources of a namespace, which look like resources in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// Reads a decoded path: an encoded slash separates segments too, as in kube-apiserver.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: NewRequestInfo
pub(crate) fn parse(path: &str) -> Route {
    let tidy = path.strip_prefix('/').unwrap_or(path);
    let tidy = tidy.strip_suffix('/').unwrap_or(tidy);
    let segments: Vec<&str> = if tidy.is_empty() { Vec::new() } else { tidy.split('/').collect() };
    match segments.as_slice() {
        // An empty namespace selects all namespaces.
        ["api", version, "namespaces", "", rest @ ..] if is_named(rest) => {
            return resource_route("", version, rest);
        }
        ["apis", group, version, "namespaces", "", rest @ ..] if is_named(rest) => {
            return resource_route(group, version, rest);
        }
        // Other empty segments are errors, which differ below known groups.
        ["api", rest @ ..] if rest.contains(&"") => return version_route("", ""),
        ["apis", group, rest @ ..] if !group.is_empty() && rest.contains(&"") => {
            return version_route("", "");
        }
        all if all.contains(&"") => return Route::Unknown,
        _ => {}
    }
    if let Some(document) = IssuerDocument::at(path) {
        return Route::Issuer(document);
    }
    match segments.as_slice() {
        [] => Route::Root,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => version_route("", version),
        ["apis", group, version] => version_route(group, version),
        ["api", version, rest @ ..] => resource_route("", version, rest),
        ["apis", group, version, rest @ ..] => resource_route(group, version, rest),
        ["version"] => Route::ServerVersion,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["metrics"] => Route::Metrics,
        ["openapi", "v2"] | ["openapi", "v3", ..] => Route::OpenApi,
        _ => Route::Unknown,
    }
}

/// Whether there are segments, and none is empty.
fn is_named(segments: &[&str]) -> bool {
    !segments.is_empty() && !segments.contains(&"")
}

fn version_route(group: &str, version: &str) -> Route {
    Route::Version { group: group.to_owned(), version: version.to_owned() }
}

fn resource_route(group: &str, version: &str, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    let (namespace, rest) = match rest {
        ["namespaces", _, subresource, ..] if NAMESPACE_SUBRESOURCES.contains(subresource) => {
            (None, rest)
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        _ => (None, rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, None, None),
        [resource, name] => (*resource, Some(*name), None),
        [resource, name, subresource @ ..] => (*resource, Some(*name), Some(subresource.join("/"))),
        [] => return Route::Unknown,
    };
    Route::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.map(str::to_owned),
        resource: resource.to_owned(),
        name: name.map(str::to_owned),
        subresource,
        watch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let shown = match parse(path) {
            Route::Resource(target) => format!(
                "{}/{} {} {} {} {}",
                target.group,
                target.version,
                target.namespace.as_deref().unwrap_or("-"),
                target.resource,
                target.name.as_deref().unwrap_or("-"),
                target.subresource.as_deref().unwrap_or("-"),
            ),
            other => format!("{other:?}"),
        };
        assert_eq!(shown, expected, "{path}");
    }

    #[test]
    fn paths_lead_to_resources_and_documents() {
        check("/api/v1/pods", "/v1 - pods - -");
        check("/api/v1/namespaces/a/pods/b", "/v1 a pods b -");
        check("/api/v1/namespaces/a/pods/b/status", "/v1 a pods b status");
        check("/api/v1/namespaces/a", "/v1 - namespaces a -");
        check("/api/v1/namespaces/a/status", "/v1 - namespaces a status");
        check("/api/v1/namespaces/a/finalize", "/v1 - namespaces a finalize");
        check("/apis/apps/v1/namespaces/a/deployments/b/scale", "apps/v1 a deployments b scale");
        check("/apis/apps/v1/deployments/", "apps/v1 - deployments - -");
        check(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
            "rbac.authorization.k8s.io/v1 - clusterroles system:node -",
        );
        check("/api/v1/namespaces//pods", "/v1 - pods - -");
        check("/apis/apps/v1/namespaces/a/deployments/b/scale", "apps/v1 a deployments b scale");
        check("/apis/apps/v1//deployments", "Version { group: \"\", version: \"\" }");
        check("/apis//apps", "Unknown");
        check("//api", "Unknown");
        check("/", "Root");
        check("/api", "CoreVersions");
        check("/apis/apps", "Group(\"apps\")");
        check("/healthz/etcd", "Health");
        check("/nothing", "Unknown");
    }
}
