//! Which requests a fault is for.
use http::header::USER_AGENT;
use http::{Method, Request};

use super::{Chance, chance};
use crate::request::path::{self, ResourcePath, Route};

/// Which requests meet a fault, and which of them in their order.
///
/// Everything said must hold; what is not said does not matter. Unless told otherwise, the fault
/// meets the next such request only.
#[derive(Clone, Debug)]
pub struct Requests {
    line: Option<String>,
    verb: Option<String>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user_agent: Option<String>,
    skip: u64,
    times: Option<u64>,
    share: Option<Chance>,
}

impl Requests {
    /// All requests.
    pub fn any() -> Self {
        Self {
            line: None,
            verb: None,
            resource: None,
            namespace: None,
            name: None,
            user_agent: None,
            skip: 0,
            times: Some(1),
            share: None,
        }
    }

    /// Those whose line (`PATCH /api/v1/namespaces/a?fieldManager=b`) contains this.
    #[must_use]
    pub fn containing(self, text: &str) -> Self {
        Self { line: Some(text.to_owned()), ..self }
    }

    /// Those of this verb, as authorization has them: `get`, `list`, `watch`, `create`, `update`,
    /// `patch`, `delete` or `deletecollection`.
    #[must_use]
    pub fn verb(self, verb: &str) -> Self {
        Self { verb: Some(verb.to_owned()), ..self }
    }

    /// Those to this resource: `pods`, `pods/status`, or `deployments.apps` of that group only.
    #[must_use]
    pub fn resource(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Those to this namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Those to the object of this name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Those of a client whose user agent contains this.
    #[must_use]
    pub fn user_agent(self, text: &str) -> Self {
        Self { user_agent: Some(text.to_owned()), ..self }
    }

    /// Not the first `count` of them.
    #[must_use]
    pub fn skip(self, count: u64) -> Self {
        Self { skip: count, ..self }
    }

    /// So many of them.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self { times: Some(count), ..self }
    }

    /// All of them, for good.
    #[must_use]
    pub fn always(self) -> Self {
        Self { times: None, ..self }
    }

    /// A share of them (0.1 is one in ten), for good; which ones depends on the seed and on their
    /// order only.
    #[must_use]
    pub fn share(self, seed: u64, share: f64) -> Self {
        Self { share: Some(Chance { seed, share }), times: None, ..self }
    }

    /// Whether everything that is said holds for a request.
    pub(super) fn matches(&self, seen: &SeenRequest<'_>) -> bool {
        let target = seen.target.as_ref();
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        self.line.as_deref().is_none_or(|text| seen.line.contains(text))
            && self.user_agent.as_deref().is_none_or(|text| seen.user_agent.contains(text))
            && is(&self.verb, target.map(|_| seen.verb))
            && is(&self.namespace, target.and_then(|target| target.namespace.as_deref()))
            && is(&self.name, target.and_then(|target| target.name.as_deref()))
            && self
                .resource
                .as_deref()
                .is_none_or(|wanted| target.is_some_and(|target| is_resource(target, wanted)))
    }

    /// Whether the request at a position among those that match is meant.
    pub(super) fn is_due(&self, position: u64) -> bool {
        position >= self.skip
            && self.share.is_none_or(|chance| chance::hits(chance.seed, position, chance.share))
    }

    /// Whether none is meant any more after so many.
    pub(super) fn is_over(&self, fired: u64) -> bool {
        self.times.is_some_and(|times| fired >= times)
    }
}

impl From<&str> for Requests {
    fn from(text: &str) -> Self {
        Self::any().containing(text)
    }
}

fn is_resource(target: &ResourcePath, wanted: &str) -> bool {
    let (wanted, subresource) = match wanted.split_once('/') {
        Some((wanted, subresource)) => (wanted, Some(subresource)),
        None => (wanted, None),
    };
    let (plural, group) = match wanted.split_once('.') {
        Some((plural, group)) => (plural, Some(group)),
        None => (wanted, None),
    };
    target.resource == plural
        && group.is_none_or(|group| target.group == group)
        && target.subresource.as_deref() == subresource
}

/// What is looked at of a request.
pub(super) struct SeenRequest<'a> {
    /// Method and target.
    pub(super) line: String,
    pub(super) is_write: bool,
    pub(super) is_watch: bool,
    verb: &'static str,
    target: Option<ResourcePath>,
    user_agent: &'a str,
}

impl<'a> SeenRequest<'a> {
    pub(super) fn of<B>(request: &'a Request<B>) -> Self {
        let uri = request.uri();
        let target = match path::parse(uri.path()) {
            Route::Resource(target) => Some(target),
            _ => None,
        };
        let is_watch = target.as_ref().is_some_and(|target| target.watch)
            || uri
                .query()
                .unwrap_or_default()
                .split('&')
                .any(|pair| matches!(pair, "watch" | "watch=true" | "watch=1"));
        let is_named = target.as_ref().is_some_and(|target| target.name.is_some());
        let user_agent = request.headers().get(USER_AGENT);
        Self {
            line: format!(
                "{} {}",
                request.method(),
                uri.path_and_query().map_or("/", |target| target.as_str())
            ),
            is_write: !request.method().is_safe(),
            is_watch,
            verb: verb(request.method(), is_watch, is_named),
            target,
            user_agent: user_agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
        }
    }
}

fn verb(method: &Method, is_watch: bool, is_named: bool) -> &'static str {
    match *method {
        Method::GET | Method::HEAD if is_watch => "watch",
        Method::GET | Method::HEAD if is_named => "get",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if is_named => "delete",
        Method::DELETE => "deletecollection",
        _ => "",
    }
}
