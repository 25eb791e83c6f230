//! The recorder of what the controller writes in a rehearsal, and when.

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

/// A write request of the controller, whether it succeeded or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedWrite {
    /// Time of the request, from the beginning of the update.
    pub(super) at: Duration,
    /// The path, without its query.
    pub(super) path: String,
    /// The HTTP status of the answer.
    pub(super) status: u16,
}

/// An API server that records write requests; clones share the record.
#[derive(Clone)]
pub(super) struct Recorder {
    server: ApiServer,
    began: Instant,
    writes: Arc<Mutex<Vec<RecordedWrite>>>,
}

impl Recorder {
    /// Wraps a server; its time begins now.
    pub(super) fn new(server: ApiServer) -> Self {
        Self { server, began: Instant::now(), writes: Arc::default() }
    }

    /// All recorded writes, in the order of their responses.
    pub(super) fn writes(&self) -> Vec<RecordedWrite> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let writes = Arc::clone(&self.writes);
        let answer = self.server.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let status = response.status().as_u16();
            let mut writes = writes.lock().unwrap_or_else(PoisonError::into_inner);
            writes.push(RecordedWrite { at, path, status });
            drop(writes);
            Ok(response)
        })
    }
}

/// Kinds of a server by group and plural name.
pub(super) type KindNames = BTreeMap<(String, String), String>;

/// Discovers the names of the kinds that a server serves.
pub(super) async fn kind_names(client: &Client) -> Result<KindNames, kube::Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut names = KindNames::new();
    for group in discovery.groups() {
        for version in group.versions() {
            for (resource, _) in group.versioned_resources(version) {
                names.insert((resource.group, resource.plural), resource.kind);
            }
        }
    }
    Ok(names)
}

/// The object that a path names; `None` for subresources and collections.
pub(super) fn object_of_path(path: &str, names: &KindNames) -> Option<ObjectKey> {
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

    use super::{KindNames, object_of_path};

    #[test]
    fn paths_name_objects() {
        let names = KindNames::from([
            ((String::new(), "configmaps".to_owned()), "ConfigMap".to_owned()),
            ((String::new(), "namespaces".to_owned()), "Namespace".to_owned()),
            (("apps".to_owned(), "deployments".to_owned()), "Deployment".to_owned()),
        ]);
        let check = |path: &str, expected: Option<&str>| {
            let found = object_of_path(path, &names).map(|key| key.to_string());
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
