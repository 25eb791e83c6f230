//! A cluster for a test, of either kind.

use std::fmt;
use std::path::Path;
use std::sync::Once;

use http::{HeaderValue, Request};
use k8s_apiserver::faults::Faults;
use k8s_apiserver::{ApiServer, Options};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower::Layer;
use tower::util::MapRequest;

use crate::audit::{self, AuditTrail};
use crate::control_plane::{ASSETS_VARIABLE, AuditLog, ControlPlane, assets};
use crate::error::StartError;
use crate::prerequisites;
use crate::request_log::RequestLog;
use crate::service::Through;

/// The namespace that clients use where none is named.
const DEFAULT_NAMESPACE: &str = "default";

/// What a test cluster is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterKind {
    /// The embedded API server, in process.
    Embedded,
    /// The real etcd, kube-apiserver and kube-controller-manager.
    ControlPlane,
}

impl ClusterKind {
    /// Starts a cluster of this kind.
    ///
    /// # Errors
    /// When a real control plane cannot be started; the embedded server always can.
    pub async fn start(self) -> Result<TestCluster, StartError> {
        match self {
            Self::Embedded => Ok(TestCluster::embedded()),
            Self::ControlPlane => TestCluster::control_plane().await,
        }
    }
}

impl fmt::Display for ClusterKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Embedded => "embedded",
            Self::ControlPlane => "control plane",
        })
    }
}

/// The clusters that this run tests against: always the embedded one, a real control plane too if
/// `KUBEBUILDER_ASSETS` is set.
pub fn clusters() -> Vec<ClusterKind> {
    let mut kinds = vec![ClusterKind::Embedded];
    if prerequisites::required(ASSETS_VARIABLE).is_some() {
        kinds.push(ClusterKind::ControlPlane);
    }
    kinds
}

/// A running, empty cluster that ends when it is dropped.
///
/// # Caveats
/// Processes of a real control plane are killed by `Drop`, hence also when a test panics; a test
/// that is itself killed leaves them behind.
pub struct TestCluster {
    server: Server,
}

enum Server {
    Embedded(ApiServer, AuditTrail),
    ControlPlane(Box<ControlPlane>),
}

impl TestCluster {
    /// A cluster in process, without a port.
    pub fn embedded() -> Self {
        Self::embedded_with(Options::default())
    }

    /// A cluster in process that is set up otherwise, such as with a clock of the test's own.
    ///
    /// It keeps the audit log for [`Self::audit`], unless it is told to keep another one.
    pub fn embedded_with(mut options: Options) -> Self {
        let trail = AuditTrail::default();
        options.access.audit.get_or_insert_with(|| trail.audit());
        Self { server: Server::Embedded(ApiServer::new(options), trail) }
    }

    /// A control plane of the programs that `KUBEBUILDER_ASSETS` points at, on free ports of
    /// loopback.
    ///
    /// Of the controllers, those run that need no nodes to be of use: garbage collection, the end
    /// of namespaces, service accounts, aggregated cluster roles. Nothing plays Deployments.
    ///
    /// # Errors
    /// When the programs are not there, or one of them ends or does not become ready.
    pub async fn control_plane() -> Result<Self, StartError> {
        Self::control_plane_with(AuditLog::Kept).await
    }

    /// The same without an audit log, for measurements beside an embedded server that keeps none.
    ///
    /// # Errors
    /// When the programs are not there, or one of them ends or does not become ready.
    pub async fn control_plane_without_audit() -> Result<Self, StartError> {
        Self::control_plane_with(AuditLog::Absent).await
    }

    async fn control_plane_with(audit: AuditLog) -> Result<Self, StartError> {
        install_cryptography();
        let assets = assets().ok_or(StartError::AssetsUnset)?;
        let control_plane = ControlPlane::start(&assets, audit).await?;
        Ok(Self { server: Server::ControlPlane(Box::new(control_plane)) })
    }

    /// The programs of a real control plane by name, with their process ids, the API server first;
    /// empty for an embedded one, which is part of this process.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        match &self.server {
            Server::Embedded(..) => Vec::new(),
            Server::ControlPlane(control_plane) => control_plane.processes().to_vec(),
        }
    }

    /// What this cluster is made of.
    pub fn kind(&self) -> ClusterKind {
        match self.server {
            Server::Embedded(..) => ClusterKind::Embedded,
            Server::ControlPlane(_) => ClusterKind::ControlPlane,
        }
    }

    /// A client that neither throttles nor repeats what fails. Call it within a runtime.
    pub fn client(&self) -> Client {
        match &self.server {
            Server::Embedded(server, _) => Client::new(server.clone(), DEFAULT_NAMESPACE),
            Server::ControlPlane(control_plane) => control_plane.client(),
        }
    }

    /// A client, and the log of what it sends.
    pub fn client_with_log(&self) -> (Client, RequestLog) {
        let log = RequestLog::default();
        let service = log.layer(Through(self.client()));
        (Client::new(service, DEFAULT_NAMESPACE), log)
    }

    /// A client that acts as a user of some groups, with no more rights than they have.
    ///
    /// # Panics
    /// When a name cannot be told in a header.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        let value = |text: &str| HeaderValue::from_str(text).expect("names are plain text");
        let user = value(user);
        let groups: Vec<HeaderValue> = groups.iter().map(|group| value(group)).collect();
        let act = move |mut request: Request<Body>| {
            let headers = request.headers_mut();
            headers.insert("impersonate-user", user.clone());
            for group in &groups {
                headers.append("impersonate-group", group.clone());
            }
            request
        };
        Client::new(MapRequest::new(Through(self.client()), act), DEFAULT_NAMESPACE)
    }

    /// A client whose requests meet `faults`.
    #[expect(clippy::needless_pass_by_value, reason = "clones are handles of the same script")]
    pub fn client_with_faults(&self, faults: Faults) -> Client {
        Client::new(faults.layer(Through(self.client())), DEFAULT_NAMESPACE)
    }

    /// A client whose requests meet `faults`, and the log of what it sends, failures included.
    #[expect(clippy::needless_pass_by_value, reason = "clones are handles of the same script")]
    pub fn client_with_faults_and_log(&self, faults: Faults) -> (Client, RequestLog) {
        let log = RequestLog::default();
        let service = log.layer(faults.layer(Through(self.client())));
        (Client::new(service, DEFAULT_NAMESPACE), log)
    }

    /// The audit log: an `Event` of `audit.k8s.io/v1` for each write that was answered, in the
    /// order of the answers, without bodies.
    pub fn audit(&self) -> Vec<Value> {
        match &self.server {
            Server::Embedded(_, trail) => trail.events(),
            Server::ControlPlane(control_plane) => audit::read(&control_plane.audit_log()),
        }
    }

    /// The kubeconfig of a real control plane, with every right in it; none of an embedded one.
    pub fn kubeconfig(&self) -> Option<&Path> {
        match &self.server {
            Server::Embedded(..) => None,
            Server::ControlPlane(control_plane) => Some(control_plane.kubeconfig()),
        }
    }

    /// The embedded server, to serve it on a port or to look into it; none of a real control plane.
    pub fn server(&self) -> Option<&ApiServer> {
        match &self.server {
            Server::Embedded(server, _) => Some(server),
            Server::ControlPlane(_) => None,
        }
    }
}

/// TLS wants one cryptography provider chosen for the whole process.
fn install_cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails if the test has chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
