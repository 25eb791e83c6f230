//! Webhook configurations, and definitions whose objects a webhook converts.

use serde_json::{Map, Value, json};

use super::certificates::mark_caller;
use super::serving::port;
use super::{Installation, metadata, names};
use crate::bundle::RegistryContent;
use crate::csv::{ClusterServiceVersion, WebhookDescription, WebhookKind};

/// The definitions; those that a webhook converts say so.
pub(super) fn definitions(
    content: &RegistryContent,
    installation: &Installation<'_>,
) -> Vec<Value> {
    let conversion = |name: &str| {
        content.csv.webhooks.iter().find(|webhook| {
            webhook.kind == WebhookKind::Conversion
                && webhook.conversion_definitions.iter().any(|it| it == name)
        })
    };
    let mut objects = Vec::new();
    for definition in &content.definitions {
        let mut object = definition.value.clone();
        if let Some(webhook) = conversion(definition.name()) {
            let path = webhook.path.as_deref().unwrap_or("/");
            object["spec"]["conversion"] = json!({
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": client_config(webhook, Some(path), installation),
                    "conversionReviewVersions": &webhook.review_versions,
                },
            });
            mark_caller(&mut object, &names::service(&webhook.deployment), installation);
        }
        objects.push(object);
    }
    objects
}

fn client_config(
    webhook: &WebhookDescription,
    path: Option<&str>,
    installation: &Installation<'_>,
) -> Value {
    let mut service = json!({
        "name": names::service(&webhook.deployment),
        "namespace": installation.namespace(),
        "port": port(webhook.container_port),
    });
    if let Some(path) = path {
        service["path"] = path.into();
    }
    json!({ "service": service })
}

/// The configurations of the validating webhooks, then those of the mutating ones.
pub(super) fn configurations(
    csv: &ClusterServiceVersion,
    installation: &Installation<'_>,
) -> Vec<Value> {
    let of = |kind: WebhookKind, object_kind: &'static str| {
        let webhooks = csv.webhooks.iter().filter(move |webhook| webhook.kind == kind);
        webhooks.map(move |webhook| configuration(webhook, object_kind, installation))
    };
    let validating = of(WebhookKind::Validating, "ValidatingWebhookConfiguration");
    validating.chain(of(WebhookKind::Mutating, "MutatingWebhookConfiguration")).collect()
}

fn configuration(
    webhook: &WebhookDescription,
    kind: &str,
    installation: &Installation<'_>,
) -> Value {
    let mut written = webhook.admission.clone();
    if webhook.kind == WebhookKind::Validating {
        written.remove("reinvocationPolicy");
    }
    written.insert("name".to_owned(), webhook.name().into());
    let client_config = client_config(webhook, webhook.path.as_deref(), installation);
    written.insert("clientConfig".to_owned(), client_config);
    written.insert("admissionReviewVersions".to_owned(), json!(&webhook.review_versions));
    if !installation.watches_all() {
        written.insert("namespaceSelector".to_owned(), watched(&installation.targets));
    }
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(webhook.name(), installation.namespace()),
        "webhooks": [written],
    });
    round_trip(&mut object, kind);
    mark_caller(&mut object, &names::service(&webhook.deployment), installation);
    object
}

/// Writes an object as Go does. Its fields were found to fit when the bundle was loaded.
fn round_trip(object: &mut Value, kind: &str) {
    let schema = k8s_schema::builtin::schema("admissionregistration.k8s.io", "v1", kind);
    if let Some(schema) = schema {
        let written = k8s_schema::go_round_trip(&schema, object);
        debug_assert!(written.is_ok(), "the loader checks the fields: {written:?}");
    }
}

/// Selects the namespaces that are watched.
fn watched(targets: &[String]) -> Value {
    let mut selector = Map::new();
    let name = "kubernetes.io/metadata.name";
    let expression = json!([{ "key": name, "operator": "In", "values": targets }]);
    selector.insert("matchExpressions".to_owned(), expression);
    Value::Object(selector)
}
