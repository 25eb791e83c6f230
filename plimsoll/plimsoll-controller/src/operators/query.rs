//! The cluster's resolver over HTTP (OPR-22): lists of packages, resolutions and snapshots, answered from the state
//! of the control loop.
//!
//! The API server says who a client is (TokenReview) and what it may ask (SubjectAccessReview on the path of the
//! URL). Only the leader has a state; a standby answers that the service is unavailable.

mod access;
mod failure;
mod packages;
mod reply;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use plimsoll_content::catalog::CatalogIndex;
use plimsoll_content::hash::sha256;
use plimsoll_operators::inventory::OperatorInventory;
use plimsoll_source::catalog::{Bytes, CatalogRoots};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use self::access::{Authority, Caller};
pub use self::service::QueryService;
use crate::actions::inventory::{CatalogInventory, InventoryRequest};
use crate::bootstrap::retry_until_ok;
use crate::clock::{SharedClock, sleep_by};
use crate::error::Error;
use crate::serving;
use crate::webhook::WebhookSettings;
use crate::webhook::certificate::{self, Certificate, KeptIn};
use crate::write::{Writer, chain};

/// Name of the Secret in `kube-system` with the certificate.
pub(crate) const SECRET: &str = "plimsoll-resolver";
/// The number of queries that wait for the control loop.
const WAITING_MAX: usize = 16;
/// The number of connections that are served at the same time: the controller itself needs files for its own.
const CONNECTIONS_MAX: usize = 256;
/// How often the certificate is looked at: it is made again when it is deleted, and replaced before it ends.
const CHECK_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// When it is looked at first: replicas that start together may each have made one, of which one is kept.
const FIRST_CHECK: Duration = Duration::from_secs(10);

/// A catalog that is served.
#[derive(Debug, Clone)]
pub struct QueriedCatalog {
    /// Its name.
    pub name: String,
    /// Its weight; lower values are preferred.
    pub weight: i64,
    /// The digest of its content.
    pub digest: String,
    /// Its content.
    pub index: Arc<CatalogIndex<Bytes>>,
}

/// The state that queries are answered from.
pub struct QueryState {
    content: CatalogInventory,
}

impl QueryState {
    /// Returns the state of Operators and catalogs.
    pub fn new(inventory: OperatorInventory, catalogs: Vec<QueriedCatalog>) -> Self {
        let (mut served, mut indexes, mut digests) = (Vec::new(), Vec::new(), Vec::new());
        for QueriedCatalog { name, weight, digest, index } in catalogs {
            served.push((name.clone(), weight));
            indexes.push((name.clone(), index));
            digests.push((name, digest));
        }
        let (indexes, digests) = (indexes.into_iter().collect(), digests.into_iter().collect());
        let (sources, roots) = (BTreeMap::new(), CatalogRoots::default());
        Self { content: CatalogInventory { inventory, served, indexes, digests, sources, roots } }
    }

    /// Returns the catalogs that are served, the most preferred first.
    fn catalogs(&self) -> Vec<QueriedCatalog> {
        let CatalogInventory { served, indexes, digests, .. } = &self.content;
        let catalogs = served.iter().filter_map(|(name, weight)| {
            let (index, digest) = (Arc::clone(indexes.get(name)?), digests.get(name)?.clone());
            Some(QueriedCatalog { name: name.clone(), weight: *weight, digest, index })
        });
        let mut catalogs: Vec<QueriedCatalog> = catalogs.collect();
        catalogs.sort_by(|a, b| (a.weight, &a.name).cmp(&(b.weight, &b.name)));
        catalogs
    }

    /// Returns a digest of everything that answers depend on.
    fn digest(&self) -> String {
        let CatalogInventory { inventory, served, digests, .. } = &self.content;
        let owned = inventory.operators.values().map(|it| format!("{:?}", it.owned));
        let state = json!({
            "operators": inventory.operators,
            // It is not a part of what is written of an Operator.
            "owned": owned.collect::<Vec<_>>(),
            "unavailable": inventory.unavailable,
            "facts": inventory.facts,
            "served": served,
            "digests": digests,
        });
        sha256([state.to_string().as_bytes()])
    }
}

/// A source of the state that queries are answered from.
pub trait StateSource: Send + Sync + 'static {
    /// Returns the present state; `None` if it is not known, or another process leads.
    fn state(&self) -> impl Future<Output = Option<Arc<QueryState>>> + Send;
}

impl StateSource for Arc<QueryState> {
    async fn state(&self) -> Option<Arc<QueryState>> {
        Some(Self::clone(self))
    }
}

/// The requests to the control loop, while this process leads.
pub(super) type LeaderRequests = watch::Sender<Option<mpsc::Sender<InventoryRequest>>>;

/// The state of the control loop.
struct LeaderState(watch::Receiver<Option<mpsc::Sender<InventoryRequest>>>);

impl StateSource for LeaderState {
    async fn state(&self) -> Option<Arc<QueryState>> {
        let requests = self.0.borrow().clone()?;
        let (sender, answer) = oneshot::channel();
        requests.send(sender).await.ok()?;
        let content = answer.await.ok().flatten()?;
        Some(Arc::new(QueryState { content }))
    }
}

/// Returns the end of a channel that the control loop has; the other end is published.
pub(super) fn requests(leader: &LeaderRequests) -> mpsc::Receiver<InventoryRequest> {
    let (sender, requests) = mpsc::channel(WAITING_MAX);
    leader.send_replace(Some(sender));
    requests
}

/// The API server as the authority on clients.
struct ClusterAuthority(Writer);

impl Authority for ClusterAuthority {
    async fn authenticate(&self, token: &str) -> Result<Option<Caller>, kube::Error> {
        let user = self.0.authenticated(token).await?;
        Ok(user.map(|it| Caller {
            username: it.username.unwrap_or_default(),
            groups: it.groups.unwrap_or_default(),
            uid: it.uid.unwrap_or_default(),
            extra: it.extra.unwrap_or_default(),
        }))
    }

    async fn is_allowed(
        &self,
        caller: &Caller,
        path: &str,
        verb: &str,
    ) -> Result<bool, kube::Error> {
        let Caller { username, groups, uid, extra } = caller.clone();
        let user = UserInfo {
            username: Some(username),
            groups: Some(groups),
            uid: Some(uid).filter(|it| !it.is_empty()),
            extra: Some(extra).filter(|it| !it.is_empty()),
        };
        self.0.may_request(user, path, verb).await
    }
}

/// Serves queries until it is stopped.
///
/// # Errors
///
/// When the address cannot be listened on, or the certificate cannot be made.
pub(super) async fn serve(
    client: &Client,
    clock: &SharedClock,
    settings: &WebhookSettings,
    leader: &LeaderRequests,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let address = settings.listen;
    let failed = |source| Error::ListenForQueries { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let writer = Writer::new(client.clone());
    let name = settings.reached.name();
    let kept = KeptCertificate { client, writer: &writer, clock, name: &name };
    let certificate = match retry_until_ok(stop, || kept.read()).await {
        Err(Error::Stopped) => return Ok(()),
        read => read?,
    };
    let (acceptor, acceptors) = watch::channel(certificate.acceptor()?);
    let state = LeaderState(leader.subscribe());
    let authority = ClusterAuthority(writer.clone());
    let service = QueryService::new(state, authority, Arc::clone(clock));
    tracing::info!(%address, "answering queries");
    let respond = move |request: Request<Incoming>| {
        let service = service.clone();
        async move { service.respond(request).await }
    };
    let acceptor_now = move || Some(acceptors.borrow().clone());
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let answering =
        serving::serve_within(places, listener, "queries", acceptor_now, respond, stop.clone());
    tokio::join!(answering, kept.keep(certificate, acceptor, stop));
    Ok(())
}

/// The certificate of the service, kept in a Secret.
struct KeptCertificate<'a> {
    client: &'a Client,
    writer: &'a Writer,
    clock: &'a SharedClock,
    /// The name that it is for.
    name: &'a str,
}

impl KeptCertificate<'_> {
    async fn read(&self) -> Result<Certificate, Error> {
        let kept_in = KeptIn { secret: SECRET, failed: |source| Error::ServeQueries { source } };
        certificate::of_cluster(self.client, self.writer, kept_in, self.name, self.clock.now())
            .await
    }

    /// Replaces the certificate in time, until it is stopped.
    async fn keep(
        &self,
        mut current: Certificate,
        acceptor: watch::Sender<TlsAcceptor>,
        stop: &CancellationToken,
    ) {
        let mut interval = FIRST_CHECK;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep_by(&**self.clock, interval) => {}
            }
            interval = CHECK_INTERVAL;
            let renewed = self.read().await.and_then(|it| Ok((it.acceptor()?, it)));
            match renewed {
                Ok((_, renewed)) if renewed == current => {}
                Ok((fresh, renewed)) => {
                    acceptor.send_replace(fresh);
                    current = renewed;
                    tracing::info!("the certificate for queries was replaced");
                }
                Err(error) => tracing::warn!(
                    error = chain(&error),
                    "the certificate for queries cannot be kept; trying again"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests;
