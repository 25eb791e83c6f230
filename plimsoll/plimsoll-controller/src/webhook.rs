//! Admission webhooks that a controller serves itself: with a certificate of its own making that is
//! replaced in time, and registered with the API servers of a cluster as long as it runs.
//!
//! What they decide is up to each [`Reviewer`].

pub(crate) mod capabilities;
pub(crate) mod certificate;
mod server;

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::ApiKind;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use certificate::{Certificate, KeptIn};

use crate::bootstrap::retry_until_ok;
use crate::clock::{SharedClock, sleep_by};
use crate::error::Error;
use crate::resources::api_resource;
use crate::write::{Writer, chain};

/// Where to listen for reviews or queries, and how clients get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// How clients get there: API servers, for reviews.
    pub reached: Reached,
}

/// How API servers get to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// By an address or a name that resolves, at the port that is listened on.
    Host(String),
    /// By a Service of the cluster, at its port 443.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl Reached {
    /// The name that the certificate is for.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Host(host) => host.clone(),
            Self::Service { namespace, name } => format!("{name}.{namespace}.svc"),
        }
    }
}

/// The kind of configurations of webhooks that only allow or refuse.
pub(crate) const VALIDATING: ApiKind = ApiKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
};
/// The kind of configurations of webhooks that may change objects.
pub(crate) const MUTATING: ApiKind = ApiKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "MutatingWebhookConfiguration",
    plural: "mutatingwebhookconfigurations",
};

/// How API servers get to the paths of a server, and whom they trust there.
#[derive(Debug, Clone)]
pub(crate) struct ClientConfig {
    reached: Reached,
    port: u16,
    certificates: String,
}

impl ClientConfig {
    /// The `clientConfig` of a webhook at a path.
    pub(crate) fn at(&self, path: &str) -> Value {
        let bundle = STANDARD.encode(&self.certificates);
        match &self.reached {
            Reached::Host(host) => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                let url = format!("https://{host}:{}{path}", self.port);
                json!({ "url": url, "caBundle": bundle })
            }
            Reached::Service { namespace, name } => json!({
                "service": { "namespace": namespace, "name": name, "path": path },
                "caBundle": bundle,
            }),
        }
    }
}

/// How long an API server waits for an answer, in seconds.
const TIMEOUT: u32 = 10;

/// A webhook of a configuration, with what all of ours have in common.
pub(crate) fn webhook(name: &str, failure_policy: &str, config: &Value, rules: &Value) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": failure_policy,
        "timeoutSeconds": TIMEOUT,
        "clientConfig": config,
        "rules": rules,
    })
}

/// Something that answers reviews, and how it is registered.
pub(crate) trait Reviewer: Clone + Send + Sync + 'static {
    /// What logs, errors and options call it: the `NAME webhook`, `--NAME-webhook`.
    const NAME: &'static str;
    /// Name of the Secret in `kube-system` with its certificate.
    const SECRET: &'static str;
    /// The configurations that it is registered by: their kinds, and their names.
    const CONFIGURATIONS: &'static [(ApiKind, &'static str)];

    /// The webhooks of its configuration of a kind.
    fn webhooks(&self, kind: ApiKind, config: &ClientConfig) -> Vec<Value>;

    /// The response to a request that was posted to a path, without its uid; `None` if nothing is
    /// served there.
    fn review(&self, path: &str, request: &Value) -> impl Future<Output = Option<Value>> + Send;

    /// Returns when [`Self::webhooks`] are others than they were.
    fn changed(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// How often the certificate and the configurations are looked at: they come back when they are
/// deleted, and the certificate is replaced before it ends.
const CHECK_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Serves reviews and registers the webhooks with the cluster's API servers; ends with `stop`.
///
/// # Errors
///
/// When the address cannot be listened on, or the certificate or a configuration cannot be made.
pub(crate) async fn start<R: Reviewer>(
    client: &Client,
    writer: &Writer,
    settings: &WebhookSettings,
    clock: SharedClock,
    reviewer: R,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let address = settings.listen;
    let failed = |source| Error::Listen { webhook: R::NAME, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let registration = Registration {
        client: client.clone(),
        writer: writer.clone(),
        reached: settings.reached.clone(),
        port,
        clock,
        reviewer: reviewer.clone(),
    };
    let certificate = retry_until_ok(stop, || registration.certificate()).await?;
    let (acceptor, acceptors) = watch::channel(certificate.acceptor()?);
    // Served before it is registered: a webhook that does not answer may refuse everything.
    tokio::spawn(server::serve(listener, acceptors, reviewer, stop.clone()));
    retry_until_ok(stop, || registration.register(&certificate, None)).await?;
    tracing::info!(%address, "answering reviews of the {} webhook", R::NAME);
    tokio::spawn(registration.keep(certificate, acceptor, stop.clone()));
    Ok(())
}

/// How webhooks are registered with the API servers of a cluster.
struct Registration<R> {
    client: Client,
    writer: Writer,
    reached: Reached,
    port: u16,
    clock: SharedClock,
    reviewer: R,
}

impl<R: Reviewer> Registration<R> {
    /// Keeps the registration and the certificate until stopped.
    async fn keep(
        mut self,
        mut certificate: Certificate,
        acceptor: watch::Sender<TlsAcceptor>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.reviewer.changed() => {}
                () = sleep_by(&*self.clock, CHECK_INTERVAL) => {}
            }
            let renewed = match retry_until_ok(&stop, || self.renew(&certificate)).await {
                Ok(renewed) => renewed,
                Err(Error::Stopped) => return,
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(error, "the {} webhook cannot be kept; trying again", R::NAME);
                    continue;
                }
            };
            if renewed == certificate {
                continue;
            }
            match renewed.acceptor() {
                Ok(fresh) => {
                    acceptor.send_replace(fresh);
                    tracing::info!("the certificate of the {} webhook was replaced", R::NAME);
                    certificate = renewed;
                }
                Err(error) => tracing::warn!(%error, "the new certificate cannot be used"),
            }
        }
    }

    /// The certificate to be served now, registered with the API servers, which take the one before
    /// as well until it is replaced.
    async fn renew(&self, before: &Certificate) -> Result<Certificate, Error> {
        let certificate = self.certificate().await?;
        self.register(&certificate, Some(before)).await?;
        Ok(certificate)
    }

    /// The cluster's certificate.
    async fn certificate(&self) -> Result<Certificate, Error> {
        let (name, now) = (self.reached.name(), self.clock.now());
        let failed = |source| Error::Webhook { webhook: R::NAME, source };
        let kept_in = KeptIn { secret: R::SECRET, failed };
        certificate::of_cluster(&self.client, &self.writer, kept_in, &name, now).await
    }

    /// Applies the configurations.
    async fn register(
        &self,
        certificate: &Certificate,
        before: Option<&Certificate>,
    ) -> Result<(), Error> {
        let mut certificates = certificate.certificate.clone();
        if let Some(before) = before.filter(|before| *before != certificate) {
            certificates.push_str(&before.certificate);
        }
        let config = ClientConfig { reached: self.reached.clone(), port: self.port, certificates };
        for (kind, name) in R::CONFIGURATIONS {
            let configuration = json!({
                "apiVersion": kind.api_version(),
                "kind": kind.kind,
                "metadata": { "name": name },
                "webhooks": self.reviewer.webhooks(*kind, &config),
            });
            self.writer
                .apply_own(&api_resource(*kind), name, &configuration)
                .await
                .map_err(|source| Error::Webhook { webhook: R::NAME, source })?;
        }
        Ok(())
    }
}

/// Removes what an earlier process with a webhook left: no process answers any more.
pub(crate) async fn remove<R: Reviewer>(client: &Client, writer: &Writer) -> Result<(), Error> {
    let failed = |source| Error::Webhook { webhook: R::NAME, source };
    for (kind, name) in R::CONFIGURATIONS {
        let resource = api_resource(*kind);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        if api.get_metadata_opt(name).await.map_err(failed)?.is_some() {
            writer.delete_own(&resource, name).await.map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Where reviews are sent.

    use super::*;

    #[test]
    fn api_servers_get_to_hosts_and_services() {
        let config = |reached: &Reached| {
            let (reached, certificates) = (reached.clone(), "x".to_owned());
            ClientConfig { reached, port: 8443, certificates }.at("/capabilities")
        };
        let host = |host: &str| config(&Reached::Host(host.to_owned()));
        assert_eq!(host("127.0.0.1")["url"], "https://127.0.0.1:8443/capabilities");
        assert_eq!(host("::1")["url"], "https://[::1]:8443/capabilities");
        let service = Reached::Service { namespace: "ns".to_owned(), name: "plimsoll".to_owned() };
        assert_eq!(config(&service)["service"]["path"], "/capabilities");
        assert_eq!(service.name(), "plimsoll.ns.svc");
    }
}
