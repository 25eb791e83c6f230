//! A validating admission webhook that refuses mistakes in `spec.capabilities` when they are made
//! (CAP-11).
//!
//! It is a convenience: what it refuses the controller would not act on either. So a webhook that
//! cannot be reached lets everything pass.

pub(crate) mod certificate;
mod server;

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus};
use plimsoll_plan::capabilities::{SpecChange, review};
use plimsoll_plan::reconciler::desired::CapabilityRules;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use certificate::Certificate;
pub(crate) use certificate::SECRET as CERTIFICATE_SECRET;

use crate::bootstrap::retry_until_ok;
use crate::clock::SharedClock;
use crate::error::Error;
use crate::write::{Writer, chain};

/// Name of the ValidatingWebhookConfiguration.
pub(crate) const CONFIGURATION: &str = "plimsoll-capabilities";
/// Name of the webhook in it, which rejections begin with.
const WEBHOOK: &str = "capabilities.plimsoll.io";
/// Path that reviews are sent to.
const PATH: &str = "/capabilities";
/// How long an API server waits for an answer, in seconds.
const TIMEOUT: u32 = 10;

/// Where to listen for reviews, and how API servers get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityWebhook {
    /// Where to listen.
    pub listen: SocketAddr,
    /// How API servers get there.
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
    fn name(&self) -> String {
        match self {
            Self::Host(host) => host.clone(),
            Self::Service { namespace, name } => format!("{name}.{namespace}.svc"),
        }
    }

    fn client_config(&self, port: u16, certificate: &str) -> Value {
        let bundle = STANDARD.encode(certificate);
        match self {
            Self::Host(host) => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                json!({ "url": format!("https://{host}:{port}{PATH}"), "caBundle": bundle })
            }
            Self::Service { namespace, name } => json!({
                "service": { "namespace": namespace, "name": name, "path": PATH },
                "caBundle": bundle,
            }),
        }
    }
}

/// How often the certificate and the configuration are looked at: both come back when somebody
/// deletes them, and the certificate is replaced before it ends.
const CHECK_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Serves reviews and registers the webhook with the cluster's API servers; ends with `stop`.
///
/// # Errors
///
/// When the address cannot be listened on, or the certificate or the configuration cannot be made.
pub(crate) async fn start(
    client: &Client,
    writer: &Writer,
    webhook: &CapabilityWebhook,
    clock: SharedClock,
    rules: watch::Receiver<CapabilityRules>,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let address = webhook.listen;
    let listener =
        TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })?;
    let port = listener.local_addr().map_err(|source| Error::Listen { address, source })?.port();
    let registration = Registration {
        client: client.clone(),
        writer: writer.clone(),
        reached: webhook.reached.clone(),
        port,
        clock,
    };
    let certificate = retry_until_ok(stop, || registration.renew(None)).await?;
    let (acceptor, acceptors) = watch::channel(certificate.acceptor()?);
    tokio::spawn(server::serve(listener, acceptors, rules, stop.clone()));
    tracing::info!(%address, "answering reviews of spec.capabilities");
    tokio::spawn(registration.keep(certificate, acceptor, stop.clone()));
    Ok(())
}

/// How the webhook is registered with the API servers of a cluster.
struct Registration {
    client: Client,
    writer: Writer,
    reached: Reached,
    port: u16,
    clock: SharedClock,
}

impl Registration {
    /// Keeps the registration and the certificate until stopped.
    async fn keep(
        self,
        mut certificate: Certificate,
        acceptor: watch::Sender<TlsAcceptor>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = sleep(CHECK_INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            let renewed = match self.renew(Some(&certificate)).await {
                Ok(renewed) => renewed,
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(error, "the capability webhook cannot be kept; trying again");
                    continue;
                }
            };
            if renewed == certificate {
                continue;
            }
            match renewed.acceptor() {
                Ok(fresh) => {
                    acceptor.send_replace(fresh);
                    tracing::info!("the certificate of the capability webhook was replaced");
                    certificate = renewed;
                }
                Err(error) => tracing::warn!(%error, "the new certificate cannot be used"),
            }
        }
    }

    /// The certificate to be served now, registered with the API servers, which take the one before
    /// as well until it is replaced.
    async fn renew(&self, before: Option<&Certificate>) -> Result<Certificate, Error> {
        let (client, name) = (&self.client, self.reached.name());
        let now = self.clock.now();
        let certificate = certificate::of_cluster(client, &self.writer, &name, now).await?;
        let mut trusted = certificate.certificate.clone();
        if let Some(before) = before.filter(|before| **before != certificate) {
            trusted.push_str(&before.certificate);
        }
        let configuration = configuration(&self.reached.client_config(self.port, &trusted));
        self.writer
            .apply_own(&configurations(), CONFIGURATION, &configuration)
            .await
            .map_err(|source| Error::Webhook { source })?;
        Ok(certificate)
    }
}

/// Removes what an earlier process with a webhook left: nobody answers any more.
pub(crate) async fn remove(client: &Client, writer: &Writer) -> Result<(), Error> {
    let api: Api<kube::core::DynamicObject> = Api::all_with(client.clone(), &configurations());
    let failed = |source| Error::Webhook { source };
    if api.get_metadata_opt(CONFIGURATION).await.map_err(failed)?.is_some() {
        writer.delete_own(&configurations(), CONFIGURATION).await.map_err(failed)?;
    }
    Ok(())
}

fn configurations() -> ApiResource {
    let gvk = GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    );
    ApiResource::from_gvk_with_plural(&gvk, "validatingwebhookconfigurations")
}

fn configuration(client_config: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": CONFIGURATION },
        "webhooks": [{
            "name": WEBHOOK,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "timeoutSeconds": TIMEOUT,
            "clientConfig": client_config,
            "rules": [{
                "apiGroups": [CLUSTER_VERSION.group],
                "apiVersions": [CLUSTER_VERSION.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [CLUSTER_VERSION.plural],
                "scope": "Cluster",
            }],
        }],
    })
}

/// Answers a review.
fn answer(requested: &Value, rules: &CapabilityRules) -> Value {
    let request = &requested["request"];
    let spec = |object: &Value| -> ClusterVersionSpec {
        serde_json::from_value(object["spec"].clone()).unwrap_or_default()
    };
    let old = request["oldObject"].is_object().then(|| spec(&request["oldObject"]));
    let status = request["oldObject"]["status"].clone();
    let status: ClusterVersionStatus = serde_json::from_value(status).unwrap_or_default();
    let mut enabled = status.capabilities.enabled_capabilities;
    if old.is_some() {
        // The status may lag, and may be unable to name all.
        enabled.extend(rules.enabled.iter().cloned());
    }
    let new = spec(&request["object"]);
    let change = SpecChange { old: old.as_ref(), new: &new, enabled: &enabled };
    let objections = review(&change, &rules.registry, &rules.gates);
    let mut response = json!({ "uid": request["uid"], "allowed": objections.is_empty() });
    if !objections.is_empty() {
        let said: Vec<String> = objections.iter().map(ToString::to_string).collect();
        response["status"] = json!({
            "status": "Failure", "code": 400, "reason": "BadRequest", "message": said.join("; "),
        });
    }
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

#[cfg(test)]
mod tests {
    //! Reviews are answered as API servers expect it.

    use super::*;

    #[test]
    fn a_review_is_answered_with_400_or_let_pass() {
        let cluster_version = |additional: &[&str]| {
            json!({ "spec": { "capabilities": {
                "baselineCapabilitySet": "None", "additionalEnabledCapabilities": additional,
            } }, "status": { "capabilities": { "enabledCapabilities": ["Console"] } } })
        };
        let ask = |old: Value, new: Value| {
            let request = json!({ "uid": "1", "oldObject": old, "object": new });
            answer(&json!({ "request": request }), &CapabilityRules::default())["response"].clone()
        };
        let refused = ask(cluster_version(&["Console"]), cluster_version(&[]));
        assert_eq!((&refused["uid"], &refused["allowed"]), (&json!("1"), &json!(false)));
        assert_eq!(refused["status"]["code"], 400);
        let said = refused["status"]["message"].as_str().unwrap();
        assert!(said.starts_with("spec.capabilities: Console is enabled"), "{said}");
        let allowed = ask(cluster_version(&["Console"]), cluster_version(&["Console", "Insights"]));
        assert_eq!(allowed, json!({ "uid": "1", "allowed": true }));
        assert_eq!(ask(Value::Null, cluster_version(&["Consle"]))["allowed"], false);
    }

    #[test]
    fn api_servers_get_to_hosts_and_services() {
        let host = |host: &str| Reached::Host(host.to_owned()).client_config(8443, "x");
        assert_eq!(host("127.0.0.1")["url"], "https://127.0.0.1:8443/capabilities");
        assert_eq!(host("::1")["url"], "https://[::1]:8443/capabilities");
        let service = Reached::Service { namespace: "ns".to_owned(), name: "plimsoll".to_owned() };
        assert_eq!(service.client_config(8443, "x")["service"]["path"], "/capabilities");
        assert_eq!(service.name(), "plimsoll.ns.svc");
    }
}
