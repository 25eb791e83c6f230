//! What a request asks for.
//!
//! It is read once from the method and the decoded URL, before anything else looks at the request:
//! authorization, audit, metrics and the handlers all decide on the same values.
use std::borrow::Cow;

use http::Method;
use http::request::Parts;
use k8s_schema::NameRule;
use percent_encoding::percent_decode_str;

use super::parameters::{OptionsKind, Parameters, flag};
use super::path::{self, ResourcePath, Route};
use super::query::Query;
use super::selector::{FieldSelector, LabelSelector};

/// The verb of watches.
pub(crate) const WATCH: &str = "watch";

/// What a request asks for.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    /// The endpoint.
    pub(crate) route: Route,
    /// The path, decoded.
    pub(crate) path: String,
    /// The query, decoded.
    pub(crate) query: Query,
    /// The verb of authorization, such as `get`, `list` or `create`; for a non-resource path, the
    /// HTTP method in lowercase; empty for a method that no verb belongs to.
    pub(crate) verb: Cow<'static, str>,
    /// The name that the field selector of a list or watch restricts it to; empty if there is none.
    pub(crate) selected_name: String,
}

impl RequestInfo {
    /// Reads a request.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: NewRequestInfo
    pub(crate) fn of(parts: &Parts) -> Self {
        Self::read(&parts.method, &parts.uri)
    }

    /// Reads a request with this method and URL.
    pub(crate) fn read(method: &Method, uri: &http::Uri) -> Self {
        let path = percent_decode_str(uri.path()).decode_utf8_lossy().into_owned();
        let route = path::parse(&path);
        let query = Query::parse(uri.query().unwrap_or_default());
        let (verb, selected_name) = match &route {
            Route::Resource(target) => verb(method, target, &query),
            _ => (method.as_str().to_ascii_lowercase().into(), String::new()),
        };
        Self { route, path, query, verb, selected_name }
    }

    /// Whether it is a watch.
    pub(crate) fn is_watch(&self) -> bool {
        matches!(self.route, Route::Resource(_)) && self.verb == WATCH
    }
}

/// The verb of a request for a resource, and the name that its field selector restricts it to.
fn verb(method: &Method, target: &ResourcePath, query: &Query) -> (Cow<'static, str>, String) {
    let verb = match *method {
        _ if target.watch => WATCH,
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if target.name.is_none() => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if target.name.is_some() => "get",
        Method::GET | Method::HEAD => return list_verb(query),
        _ => "",
    };
    (verb.into(), String::new())
}

/// The verb of a read of a collection, and the name that its field selector restricts it to.
///
/// Where a parameter is malformed, only `watch` counts: the handler rejects the request.
fn list_verb(query: &Query) -> (Cow<'static, str>, String) {
    let read = Parameters::read(query, OptionsKind("ListOptions")).and_then(|parameters| {
        LabelSelector::parse(&parameters.label_selector)?;
        let selector = FieldSelector::parse(&parameters.field_selector)?;
        Ok((parameters.watch, selector.exact("metadata.name").unwrap_or_default().to_owned()))
    });
    let (is_watch, name) =
        read.unwrap_or_else(|_| (query.get("watch").is_some_and(flag), String::new()));
    let is_segment = NameRule::PathSegment.problems()(&name).is_empty();
    let name = if is_segment { name } else { String::new() };
    (if is_watch { WATCH } else { "list" }.into(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let (method, uri) = line.split_once(' ').expect("a method and a path");
        let info = RequestInfo::read(&method.parse().unwrap(), &uri.parse().unwrap());
        let shown = format!("{} {}", info.verb, info.selected_name);
        assert_eq!(shown.trim_end(), expected, "{line}");
    }

    #[test]
    fn the_verb_follows_from_the_decoded_request() {
        for (line, expected) in [
            ("GET /api/v1/pods?watch", "watch"),
            ("GET /api/v1/pods?watch=FALSE", "list"),
            ("GET /api/v1/pods?watch=0", "list"),
            ("GET /api/v1/pods?wat%63h=true", "watch"),
            ("GET /api/v1/pods?watch=%66alse", "list"),
            ("GET /api/v1/pods?watch=false&watch=true", "list"),
            ("GET /api/v1/pods?watch=%zz&watch=true", "watch"),
            ("GET /api/v1/pods?limit=x&watch=true", "watch"),
            ("GET /api/v1/%77atch/pods", "watch"),
            ("GET /api%2Fv1/pods/x?watch=true", "get"),
            ("DELETE /api/v1/watch/namespaces/a/pods/b", "watch"),
            ("POST /api/v1/pods?watch=true", "create"),
            ("BREW /api/v1/pods", ""),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn a_name_is_selected_only_where_the_handler_selects_it_too() {
        for (query, expected) in [
            ("fieldSelector=metadata.name%3Dx", "list x"),
            ("fieldSelector=a%3Db%2Cmetadata.name%3D%3Dx", "list x"),
            ("field%53elector=metadata.name%3Dx", "list x"),
            ("field%53elector=&fieldSelector=metadata.name%3Dx", "list"),
            ("fieldSelector=&fieldSelector=metadata.name%3Dx", "list"),
            ("fieldSelector=metadata.name%3Dx&fieldSelector=", "list x"),
            ("fieldSelector=metadata.name!%3Dx", "list"),
            ("fieldSelector=a%3Db%5C%2Cmetadata.name%3Dx", "list"),
            ("fieldSelector=metadata.name%3Da%252Fb", "list"),
            ("fieldSelector=metadata.name%3D..", "list"),
            ("limit=x&fieldSelector=metadata.name%3Dx", "list"),
            ("fieldSelector=metadata.name%3Dx,z", "list"),
        ] {
            check(&format!("GET /api/v1/pods?{query}"), expected);
        }
        check("DELETE /api/v1/pods?fieldSelector=metadata.name%3Dx", "deletecollection");
        check("GET /api/v1/watch/pods?fieldSelector=metadata.name%3Dx", "watch");
    }
}
