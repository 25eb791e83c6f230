//! Who issues the certificates of webhooks and API services, and what each provider needs.

use plimsoll_api::ObjectKey;
use plimsoll_api::olm::CertificateProvider;
use serde_json::{Value, json};

use super::names;
use super::serving::ServingDeployment;
use super::{Installation, metadata, object_key};

/// On a Secret that the built-in provider fills: the service that the certificate is for.
pub const SERVING_ANNOTATION: &str = "plimsoll.io/serving-certificate";
/// On an object whose `caBundle` the built-in provider fills: the Secret with the certificate, as
/// `NAMESPACE/NAME`.
pub const CA_ANNOTATION: &str = "plimsoll.io/inject-ca-from";

/// A certificate that the built-in provider issues and rotates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingCertificate {
    /// The namespace of the service and of the Secret.
    pub namespace: String,
    /// The service whose names the certificate has.
    pub service: String,
    /// The Secret that it is put into, as `tls.crt` and `tls.key`.
    pub secret: String,
    /// The objects whose `caBundle` the CA of the certificate is put into.
    pub callers: Vec<ObjectKey>,
}

/// The Secret that a deployment's volumes take its certificate from; absent without a provider.
pub(super) fn secret(service: &str, installation: &Installation<'_>) -> Option<String> {
    (installation.options.certificates != CertificateProvider::None)
        .then(|| names::certificate(service))
}

/// Marks an object that calls a service, so that the provider tells it whom to trust.
pub(super) fn mark_caller(object: &mut Value, service: &str, installation: &Installation<'_>) {
    let certificate = || format!("{}/{}", installation.namespace(), names::certificate(service));
    match installation.options.certificates {
        CertificateProvider::None => {}
        CertificateProvider::CertManager => {
            annotate(object, "cert-manager.io/inject-ca-from", &certificate());
        }
        CertificateProvider::ServiceCa => {
            annotate(object, "service.beta.openshift.io/inject-cabundle", "true");
        }
        CertificateProvider::BuiltIn => annotate(object, CA_ANNOTATION, &certificate()),
    }
}

/// Marks a service that the provider issues a certificate for.
pub(super) fn mark_service(object: &mut Value, service: &str, installation: &Installation<'_>) {
    if installation.options.certificates == CertificateProvider::ServiceCa {
        let secret = names::certificate(service);
        annotate(object, "service.beta.openshift.io/serving-cert-secret-name", &secret);
    }
}

fn annotate(object: &mut Value, key: &str, text: &str) {
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[key] = text.into();
}

/// The objects that a provider needs, by the names of the certificates.
pub(super) fn objects(
    serving: &[ServingDeployment<'_>],
    installation: &Installation<'_>,
) -> Vec<Value> {
    let mut services: Vec<&str> = serving.iter().map(|it| it.service.as_str()).collect();
    services.sort_by_cached_key(|service| names::certificate(service));
    services.dedup();
    let namespace = installation.namespace();
    match installation.options.certificates {
        CertificateProvider::None | CertificateProvider::ServiceCa => Vec::new(),
        CertificateProvider::CertManager => {
            services.into_iter().flat_map(|service| cert_manager(service, namespace)).collect()
        }
        CertificateProvider::BuiltIn => {
            services.into_iter().map(|service| built_in(service, namespace)).collect()
        }
    }
}

fn cert_manager(service: &str, namespace: &str) -> [Value; 2] {
    let certificate = names::certificate(service);
    let issuer = names::issuer(&certificate);
    let host = format!("{service}.{namespace}");
    [
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": metadata(&issuer, namespace),
            "spec": { "selfSigned": {} },
            "status": {},
        }),
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": metadata(&certificate, namespace),
            "spec": {
                "secretName": &certificate,
                "usages": ["server auth"],
                "commonName": &host,
                "dnsNames": [&host, format!("{host}.svc"), format!("{host}.svc.cluster.local")],
                "issuerRef": { "name": &issuer },
                "duration": "17520h0m0s",
                "renewBefore": "24h0m0s",
            },
            "status": {},
        }),
    ]
}

/// A Secret without data: whoever fills it owns the data, and applying the object again leaves it.
/// Pods that mount the certificate wait until it is there.
fn built_in(service: &str, namespace: &str) -> Value {
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(&names::certificate(service), namespace),
        "type": "Opaque",
    });
    annotate(&mut secret, SERVING_ANNOTATION, service);
    secret
}

/// What the built-in provider has to issue, and who calls the services, as the annotations of an
/// installation's objects say.
pub fn serving_certificates(objects: &[Value]) -> Vec<ServingCertificate> {
    let annotation = |object: &Value, name: &str| {
        object["metadata"]["annotations"][name].as_str().map(str::to_owned)
    };
    let certificate = |object: &Value| {
        let service = annotation(object, SERVING_ANNOTATION)?;
        let key = object_key(object);
        let wanted = format!("{}/{}", key.namespace, key.name);
        let calls = |it: &&Value| annotation(it, CA_ANNOTATION).is_some_and(|it| it == wanted);
        let callers = objects.iter().filter(calls).map(caller).collect();
        let is_secret = key.kind == "Secret" && key.group.is_empty();
        is_secret.then_some(ServingCertificate {
            namespace: key.namespace,
            service,
            secret: key.name,
            callers,
        })
    };
    objects.iter().filter_map(certificate).collect()
}

/// Everything that calls a service lives in no namespace, whatever upstream writes into it.
fn caller(object: &Value) -> ObjectKey {
    ObjectKey { namespace: String::new(), ..object_key(object) }
}
