//! The requests that a rule applies to.
use http::Request;
use http::header::USER_AGENT;

use super::{Chance, chance};
use crate::request::info::RequestInfo;
use crate::request::path::{ResourcePath, Route};

/// Selects the requests that get a fault.
///
/// All criteria have to match. By default only the next matching request gets the fault.
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

    /// Requests whose request line (`PATCH /api/v1/namespaces/a?fieldManager=b`) contains this.
    #[must_use]
    pub fn containing(self, text: &str) -> Self {
        Self { line: Some(text.to_owned()), ..self }
    }

    /// Requests with this authorization verb: `get`, `list`, `watch`, `create`, `update`, `patch`,
    /// `delete` or `deletecollection`.
    #[must_use]
    pub fn verb(self, verb: &str) -> Self {
        Self { verb: Some(verb.to_owned()), ..self }
    }

    /// Requests for this resource: `pods`, `pods/status`, or `deployments.apps` with its group.
    #[must_use]
    pub fn resource(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Requests in this namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Requests for objects of this name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Requests whose user agent contains this.
    #[must_use]
    pub fn user_agent(self, text: &str) -> Self {
        Self { user_agent: Some(text.to_owned()), ..self }
    }

    /// Skips the first `count` matching requests.
    #[must_use]
    pub fn skip(self, count: u64) -> Self {
        Self { skip: count, ..self }
    }

    /// Applies to this number of matching requests; by default one.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self { times: Some(count), ..self }
    }

    /// Applies to all matching requests.
    #[must_use]
    pub fn always(self) -> Self {
        Self { times: None, ..self }
    }

    /// Applies to a share of the matching requests (0.1 is one in ten); which ones depends only on
    /// the seed and on their order.
    #[must_use]
    pub fn share(self, seed: u64, share: f64) -> Self {
        Self { share: Some(Chance { seed, share }), times: None, ..self }
    }

    /// Whether a request matches.
    pub(super) fn matches(&self, seen: &SeenRequest<'_>) -> bool {
        let target = seen.target.as_ref();
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        self.line.as_deref().is_none_or(|text| seen.line.contains(text))
            && self.user_agent.as_deref().is_none_or(|text| seen.user_agent.contains(text))
            && is(&self.verb, target.map(|_| seen.verb.as_str()))
            && is(&self.namespace, target.and_then(|target| target.namespace.as_deref()))
            && is(&self.name, target.and_then(|target| target.name.as_deref()))
            && self
                .resource
                .as_deref()
                .is_none_or(|wanted| target.is_some_and(|target| is_resource(target, wanted)))
    }

    /// Whether the rule applies to the matching request at a position.
    pub(super) fn is_due(&self, position: u64) -> bool {
        position >= self.skip
            && self.share.is_none_or(|chance| chance::hits(chance.seed, position, chance.share))
    }

    /// Whether the rule no longer applies after this number of faults.
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

/// The properties of a request that rules match.
pub(super) struct SeenRequest<'a> {
    /// The request line: method and target.
    pub(super) line: String,
    pub(super) is_write: bool,
    pub(super) is_watch: bool,
    verb: String,
    target: Option<ResourcePath>,
    user_agent: &'a str,
}

impl<'a> SeenRequest<'a> {
    pub(super) fn of<B>(request: &'a Request<B>) -> Self {
        let uri = request.uri();
        let info = RequestInfo::read(request.method(), uri);
        let is_watch = info.is_watch();
        let target = match info.route {
            Route::Resource(target) => Some(target),
            _ => None,
        };
        let user_agent = request.headers().get(USER_AGENT);
        Self {
            line: format!(
                "{} {}",
                request.method(),
                uri.path_and_query().map_or("/", |target| target.as_str())
            ),
            is_write: !request.method().is_safe(),
            is_watch,
            verb: info.verb.into_owned(),
            target,
            user_agent: user_agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
        }
    }
}
