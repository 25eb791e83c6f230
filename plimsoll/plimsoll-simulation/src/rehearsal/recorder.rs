//! What the controller writes in a rehearsal, and when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_apiserver::ApiServer;
use kube::Client;
use kube::client::Body;
use kube::discovery::Discovery;
use plimsoll_api::ObjectKey;
use tokio::time::Instant;
use tower::Service;

/// A request that changes something, or tries to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// When, since the update began.
    pub(super) at: Duration,
    /// The path, without its query.
    pub(super) path: String,
    /// The HTTP status of the answer.
    pub(super) status: u16,
}

/// An API server that takes note of what is written to it; clones share their notes.
#[derive(Clone)]
pub(super) struct Recorder {
    server: ApiServer,
    began: Instant,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Recorder {
    /// Puts itself before a server; its time begins now.
    pub(super) fn new(server: ApiServer) -> Self {
        Self { server, began: Instant::now(), requests: Arc::default() }
    }

    /// Everything that was written, in order.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Service<http::Request<Body>> for Recorder {
    type Response = http::Response<k8s_apiserver::Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.server, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.method().is_safe() {
            return self.server.call(request);
        }
        let (path, at) = (request.uri().path().to_owned(), self.began.elapsed());
        let requests = Arc::clone(&self.requests);
        let answer = self.server.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let status = response.status().as_u16();
            let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(Request { at, path, status });
            drop(requests);
            Ok(response)
        })
    }
}

/// The kinds of a server by group and plural name.
pub(super) type Names = BTreeMap<(String, String), String>;

/// Asks a server for the names of its kinds.
pub(super) async fn names(client: &Client) -> Result<Names, kube::Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut names = Names::new();
    for group in discovery.groups() {
        for version in group.versions() {
            for (resource, _) in group.versioned_resources(version) {
                names.insert((resource.group, resource.plural), resource.kind);
            }
        }
    }
    Ok(names)
}

/// The object that a path names, but for subresources.
pub(super) fn object(path: &str, names: &Names) -> Option<ObjectKey> {
    let mut parts = path.trim_matches('/').split('/');
    let group = match parts.next()? {
        "api" => String::new(),
        _ => parts.next()?.to_owned(),
    };
    let rest: Vec<&str> = parts.skip(1).collect();
    let (namespace, plural, name) = match rest[..] {
        ["namespaces", namespace, plural, name] => (namespace, plural, name),
        [plural, name] => ("", plural, name),
        _ => return None,
    };
    Some(ObjectKey {
        kind: names.get(&(group.clone(), plural.to_owned()))?.clone(),
        group,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    //! Paths of the API and the objects that they name.

    use super::{Names, object};

    #[test]
    fn paths_name_objects() {
        let names = Names::from([
            ((String::new(), "configmaps".to_owned()), "ConfigMap".to_owned()),
            ((String::new(), "namespaces".to_owned()), "Namespace".to_owned()),
            (("apps".to_owned(), "deployments".to_owned()), "Deployment".to_owned()),
        ]);
        let check = |path: &str, expected: Option<&str>| {
            let found = object(path, &names).map(|key| key.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        };
        check("/api/v1/namespaces/a/configmaps/b", Some("configmap \"a/b\""));
        check("/apis/apps/v1/namespaces/a/deployments/b", Some("deployment.apps \"a/b\""));
        check("/api/v1/namespaces/a", Some("namespace \"a\""));
        check("/apis/apps/v1/namespaces/a/deployments/b/status", None);
        check("/api/v1/namespaces/a/configmaps", None);
        check("/api/v1/pods/x", None);
    }
}
