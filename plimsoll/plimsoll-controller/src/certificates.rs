//! The built-in provider of certificates: it fills the Secrets that bundles need for their webhooks
//! and API services, renews them, and sets the CA bundle in the objects that call these (BUN-18).
//!
//! Each Secret has its own certificate authority, which signs nothing else. A certificate is
//! renewed under the same authority, so that its callers do not have to change. When the authority
//! itself is replaced, the previous one stays trusted until all callers have the new one.

mod issue;
mod kept;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::Reason;
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_bundle::{CA_ANNOTATION, SERVING_ANNOTATION};
use plimsoll_plan::apply::prepare::set_ca_bundles;
use plimsoll_plan::plan::{Action, Step};
use plimsoll_plan::progress::{StepOutcome, Transience, TryError};
use serde_json::Value;

use self::kept::{KeptCertificate, Renewal};
use crate::clock::{SharedClock, sleep_by};
use crate::write::{self, Writer, chain};

/// The interval at which certificates and CA bundles are checked. Certificates are renewed weeks
/// before they expire.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(12 * 60 * 60);
/// The delay before a check that failed is repeated.
const RENEWAL_RETRY: Duration = Duration::from_secs(5 * 60);
/// The kinds of objects that call services: group, version, kind, plural.
const CALLERS: [[&str; 4]; 4] = [
    [
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ],
    [
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ],
    ["apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"],
    ["apiregistration.k8s.io", "v1", "APIService", "apiservices"],
];

/// The reason why a certificate cannot be provided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The Secret or an object that trusts it cannot be read.
    #[error("cannot read {object}")]
    Read {
        /// The object, or the kind of objects.
        object: String,
        /// The error of the client.
        source: kube::Error,
    },
    /// The Secret or an object that trusts it cannot be written.
    #[error("cannot write {object}")]
    Write {
        /// The object that cannot be written.
        object: String,
        /// The error of the client.
        source: kube::Error,
    },
    /// A certificate cannot be made.
    #[error("cannot make the certificate of service {service}: {message}")]
    Make {
        /// The service, as `NAMESPACE/NAME`.
        service: String,
        /// The error of the certificate library.
        message: String,
    },
}

impl CertificateError {
    /// Returns the error of the client; `None` if the cause is another one.
    fn client_error(&self) -> Option<&kube::Error> {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => Some(source),
            Self::Make { .. } => None,
        }
    }
}

/// Returns the outcome of a step whose certificate cannot be provided.
pub(crate) fn outcome(step: &Step, error: &CertificateError) -> StepOutcome {
    match error.client_error() {
        Some(source) => write::outcome(step, source),
        None => StepOutcome::Failed(TryError {
            reason: Reason::UpdatePayloadFailed,
            cause: error.to_string(),
            transience: Transience::Lasting,
            retry_after: None,
        }),
    }
}

/// A Secret for which a bundle requires a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServingSecret {
    namespace: String,
    name: String,
    /// Name of the Service that the certificate is for.
    service: String,
    /// Name of the Operator.
    operator: String,
}

impl ServingSecret {
    /// Returns the Secret that is applied by a step of an Operator's plan; `None` if the step
    /// applies no Secret that requires a certificate.
    fn of(step: &Step) -> Option<Self> {
        let key = &step.manifest.key;
        let service = step.manifest.annotations.get(SERVING_ANNOTATION)?.clone();
        if key.kind != "Secret" || !key.group.is_empty() || step.action == Action::Delete {
            return None;
        }
        let object = step.manifest.object();
        let operator = object["metadata"]["labels"][OPERATOR_LABEL].as_str()?.to_owned();
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        Some(Self { namespace, name, service, operator })
    }

    /// Returns what a Secret of the cluster requires; `None` if it requires no certificate.
    fn of_secret(secret: &Secret) -> Option<Self> {
        Some(Self {
            namespace: secret.namespace()?,
            name: secret.name_any(),
            service: secret.annotations().get(SERVING_ANNOTATION)?.clone(),
            operator: secret.labels().get(OPERATOR_LABEL)?.clone(),
        })
    }

    /// Returns the name of the Secret as annotations have it: `NAMESPACE/NAME`.
    fn reference(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns the DNS names of the Service.
    fn names(&self) -> Vec<String> {
        let host = format!("{}.{}", self.service, self.namespace);
        vec![host.clone(), format!("{host}.svc"), format!("{host}.svc.cluster.local")]
    }
}

/// The provider of certificates.
#[derive(Clone)]
pub(crate) struct Certificates {
    client: Client,
    writer: Writer,
    clock: SharedClock,
}

impl Certificates {
    pub(crate) fn new(client: Client, writer: Writer, clock: SharedClock) -> Self {
        Self { client, writer, clock }
    }

    /// Provides what the object of a step needs before it is applied: the certificate of a Secret,
    /// or that of the Secret whose authority the object trusts. Returns the CA bundle for the
    /// object, as base64; `None` if the object trusts no authority. Only Secrets of the same plan
    /// are considered.
    ///
    /// # Errors
    ///
    /// When the Secret cannot be read or written, or a certificate cannot be made.
    pub(crate) async fn provide(
        &self,
        steps: &[Step],
        step: &Step,
    ) -> Result<Option<String>, CertificateError> {
        if let Some(secret) = ServingSecret::of(step) {
            // If the Secret had been lost, it has another authority now, which callers may not
            // trust yet.
            let ca_bundle = self.ensure(&secret).await?;
            self.trust(&secret, &ca_bundle).await?;
            return Ok(None);
        }
        let Some(reference) = step.manifest.annotations.get(CA_ANNOTATION) else { return Ok(None) };
        let mut secrets = steps.iter().filter_map(ServingSecret::of);
        match secrets.find(|secret| secret.reference() == *reference) {
            Some(secret) => self.ensure(&secret).await.map(Some),
            None => Ok(None),
        }
    }

    /// Renews certificates; never returns.
    pub(crate) async fn keep(self) {
        loop {
            let renewed = self.renew_all().await;
            let interval = if renewed.is_ok() { RENEWAL_INTERVAL } else { RENEWAL_RETRY };
            sleep_by(&*self.clock, interval).await;
        }
    }

    /// Renews all certificates that are due, and updates the CA bundles of the objects that call
    /// their Services.
    ///
    /// # Errors
    ///
    /// The first error. The other certificates are renewed nevertheless.
    async fn renew_all(&self) -> Result<(), CertificateError> {
        let labelled = ListParams::default().labels(OPERATOR_LABEL);
        let secrets: Api<Secret> = Api::all(self.client.clone());
        let secrets = secrets.list(&labelled).await;
        let secrets = secrets
            .map_err(|source| CertificateError::Read { object: "Secrets".to_owned(), source })?;
        let mut result = Ok(());
        for found in &secrets.items {
            let is_going = found.metadata.deletion_timestamp.is_some();
            let Some(secret) = ServingSecret::of_secret(found).filter(|_| !is_going) else {
                continue;
            };
            let ensured = match self.renew(&secret, Some(found)).await {
                Ok(ca_bundle) => self.trust(&secret, &ca_bundle).await,
                Err(error) => Err(error),
            };
            if let Err(error) = ensured {
                tracing::warn!(error = %chain(&error), "could not renew a certificate");
                result = result.and(Err(error));
            }
        }
        result
    }

    /// Ensures that a Secret has a valid certificate. Returns the CA bundle, as base64.
    async fn ensure(&self, secret: &ServingSecret) -> Result<String, CertificateError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &secret.namespace);
        let found = api.get_opt(&secret.name).await;
        let found = found.map_err(|source| CertificateError::Read {
            object: format!("Secret {}", secret.reference()),
            source,
        })?;
        self.renew(secret, found.as_ref()).await
    }

    /// Renews the certificate of a Secret if that is due, and returns the CA bundle, as base64. A
    /// Secret that was found is not created again if it is deleted in the meantime.
    async fn renew(
        &self,
        secret: &ServingSecret,
        found: Option<&Secret>,
    ) -> Result<String, CertificateError> {
        let kept = found.map(KeptCertificate::of).unwrap_or_default();
        let now = self.clock.now();
        let names = secret.names();
        let renewal = kept.renewal(&names, now);
        if renewal == Renewal::NotDue {
            return Ok(STANDARD.encode(&kept.authorities));
        }
        let made = issue::issue(&kept, renewal, &secret.service, &names, now).map_err(|error| {
            let service = format!("{}/{}", secret.namespace, secret.service);
            CertificateError::Make { service, message: error.to_string() }
        })?;
        let mut filled = made.secret(&secret.namespace, &secret.name, &secret.operator);
        filled.metadata.uid = found.and_then(|it| it.metadata.uid.clone());
        self.writer.fill_secret(&secret.namespace, &secret.name, &filled).await.map_err(
            |source| CertificateError::Write {
                object: format!("Secret {}", secret.reference()),
                source,
            },
        )?;
        let ca_bundle = STANDARD.encode(&made.authorities);
        tracing::info!(secret = secret.reference(), service = secret.service, "made a certificate");
        // Objects that already call the Service have to trust the new authority at once.
        if made.authorities != kept.authorities {
            self.trust(secret, &ca_bundle).await?;
        }
        Ok(ca_bundle)
    }

    /// Sets the CA bundle in the existing objects that call the Service of a certificate.
    async fn trust(&self, secret: &ServingSecret, ca_bundle: &str) -> Result<(), CertificateError> {
        let own = ListParams::default().labels(&format!("{OPERATOR_LABEL}={}", secret.operator));
        for [group, version, kind, plural] in CALLERS {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let found = match api.list(&own).await {
                // Not every cluster serves APIServices.
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                found => found.map_err(|source| CertificateError::Read {
                    object: format!("objects of kind {kind}"),
                    source,
                })?,
            };
            for mut object in found.items {
                let trusted = object.annotations().get(CA_ANNOTATION);
                if trusted.is_none_or(|it| *it != secret.reference()) {
                    continue;
                }
                // The items of a list may have no kind.
                object.data["kind"] = Value::from(kind);
                let is_changed = set_ca_bundles(&mut object.data, ca_bundle);
                if let Some(fields) = object.data.as_object_mut() {
                    fields.remove("kind");
                }
                if !is_changed {
                    continue;
                }
                self.writer.replace_trusting(&resource, &object).await.map_err(|source| {
                    CertificateError::Write {
                        object: format!("{kind} {}", object.name_any()),
                        source,
                    }
                })?;
            }
        }
        Ok(())
    }
}
