//! What keeps a bundle that can be read from being installed (BUN-1, BUN-3, BUN-4, BUN-10).
//!
//! Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/registryv1/validators/validator.go: BundleValidator

use std::collections::{BTreeMap, BTreeSet};

use k8s_cel::names;
use plimsoll_content::bundle::KINDS;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_content::ready_when::{self, READY_WHEN};
use serde_json::Value;

use crate::bundle::{Bundle, BundleContent, BundleObject, RegistryContent, finished, object_key};
use crate::csv::{ClusterServiceVersion, InstallMode, WebhookDescription, WebhookKind};

/// The group whose objects the add-on layer of a cluster consists of.
const OPERATORS_GROUPS: &[&str] = &["olm.operatorframework.io", "olm.io"];
const ADMISSION_GROUP: &str = "admissionregistration.k8s.io";
/// Resources that no webhook may be called for: it could keep itself from being mended. Compared
/// without regard to case.
const WEBHOOK_RESOURCES: &[&str] = &[
    "*",
    "*/*",
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations",
];

/// Everything that keeps a bundle from being installed, sorted by where it stands.
pub fn validate(bundle: &Bundle) -> Vec<Diagnostic> {
    let mut defects = Vec::new();
    if bundle.package.is_empty() {
        let message = "the name of the package is missing: write it as the annotation \
                       operators.operatorframework.io.bundle.package.v1";
        defects.push(DefectCode::BundleAnnotation.diagnostic("metadata", message));
    }
    match &bundle.content {
        BundleContent::Registry(content) => {
            registry(content, &mut defects);
            nameless(content.definitions.iter().chain(&content.others), &mut defects);
            gates(content.definitions.iter().chain(&content.others), &mut defects);
        }
        BundleContent::Plain(objects) => {
            nameless(objects.iter(), &mut defects);
            gates(objects.iter(), &mut defects);
        }
    }
    finished(defects, &bundle.package)
}

fn nameless<'c>(objects: impl Iterator<Item = &'c BundleObject>, defects: &mut Vec<Diagnostic>) {
    for object in objects.filter(|object| object.name().is_empty()) {
        let message = format!("a {} without a name", object.kind());
        defects.push(object.defect(DefectCode::BundleFile, message));
    }
}

/// Finds conditions that no object fulfils: a rollout would wait for them without end.
fn gates<'c>(objects: impl Iterator<Item = &'c BundleObject>, defects: &mut Vec<Diagnostic>) {
    for object in objects {
        let value = object.value["metadata"]["annotations"][READY_WHEN].as_str();
        let Some(value) = value else { continue };
        if let Some(problem) = ready_when::problem(&object_key(&object.value), value) {
            let (kind, name) = (object.kind(), object.name());
            let message = format!("{kind} `{name}`: {READY_WHEN}={value:?} {problem}");
            defects.push(object.defect(DefectCode::BundleAnnotation, message));
        }
    }
}

fn registry(content: &RegistryContent, defects: &mut Vec<Diagnostic>) {
    deployments(&content.csv, defects);
    definitions(content, defects);
    for object in &content.others {
        if !KINDS.contains(&object.kind()) {
            let message = format!(
                "a bundle may not bring objects of kind {}: remove `{}`, or let the operator \
                 create it",
                object.kind(),
                object.name()
            );
            defects.push(object.defect(DefectCode::BundleKind, message));
        }
    }
    webhooks(&content.csv, defects);
    conversions(content, defects);
    api_services(&content.csv, defects);
}

fn deployments(csv: &ClusterServiceVersion, defects: &mut Vec<Diagnostic>) {
    let mut seen = BTreeSet::new();
    for (index, deployment) in csv.deployments.iter().enumerate() {
        let name = deployment.name.as_str();
        let mut report = |message: String| {
            let field = ClusterServiceVersion::deployment_field(index);
            defects.push(csv.defect(&field, DefectCode::BundleDeployment, message));
        };
        if let Some(error) = names::subdomain(name).into_iter().next() {
            report(format!("`{name}` is not the name of a deployment: {error}"));
        }
        if !seen.insert(name) {
            report(format!("two deployments are named `{name}`"));
        }
    }
}

fn definitions(content: &RegistryContent, defects: &mut Vec<Diagnostic>) {
    let mut seen = BTreeSet::new();
    for definition in &content.definitions {
        if !seen.insert(definition.name()) {
            let message =
                format!("a second CustomResourceDefinition `{}`: remove one", definition.name());
            defects.push(definition.defect(DefectCode::BundleDefinition, message));
        }
    }
    for (index, name) in content.csv.owned_definitions.iter().enumerate() {
        if !seen.contains(name.as_str()) {
            let field = format!("spec.customresourcedefinitions.owned[{index}]");
            let message = format!(
                "it owns the CustomResourceDefinition `{name}`, which the bundle does not bring"
            );
            defects.push(content.csv.defect(&field, DefectCode::OwnedApi, message));
        }
    }
}

fn webhooks(csv: &ClusterServiceVersion, defects: &mut Vec<Diagnostic>) {
    let deployments: BTreeSet<&str> = csv.deployments.iter().map(|it| it.name.as_str()).collect();
    let mut seen = BTreeMap::new();
    let mut targets: BTreeMap<(&str, i64), &Value> = BTreeMap::new();
    for (index, webhook) in csv.webhooks.iter().enumerate() {
        let mut messages = Vec::new();
        let (kind, name) = (webhook.kind.as_str(), webhook.generate_name.as_str());
        if let WebhookKind::Unknown(text) = &webhook.kind {
            messages.push(format!(
                "`{text}` is not a type of webhook: there are {}, {} and {}",
                WebhookKind::Validating.as_str(),
                WebhookKind::Mutating.as_str(),
                WebhookKind::Conversion.as_str()
            ));
        }
        if let Some(error) = names::subdomain(webhook.name()).into_iter().next() {
            messages.push(format!("`{name}` is not the name of a {kind}: {error}"));
        }
        if let Some(other) = seen.insert((&webhook.kind, webhook.name()), name) {
            messages.push(format!(
                "the webhooks `{other}` and `{name}` of type {kind} have the same name `{}`",
                webhook.name()
            ));
        }
        if !deployments.contains(webhook.deployment.as_str()) {
            messages.push(format!(
                "the webhook `{name}` is served by the deployment `{}`, which is not there",
                webhook.deployment
            ));
        }
        messages.extend(port_problem(webhook, &mut targets));
        if matches!(webhook.kind, WebhookKind::Validating | WebhookKind::Mutating) {
            messages.extend(forbidden_rules(webhook));
        }
        let field = ClusterServiceVersion::webhook_field(index);
        for message in messages {
            defects.push(csv.defect(&field, DefectCode::BundleWebhook, message));
        }
    }
}

/// A port that does not exist, or one of a deployment's service that would lead to two targets.
fn port_problem<'c>(
    webhook: &'c WebhookDescription,
    targets: &mut BTreeMap<(&'c str, i64), &'c Value>,
) -> Option<String> {
    let name = &webhook.generate_name;
    let port = webhook.container_port.filter(|port| *port != 0).unwrap_or(443);
    if !(1..=65_535).contains(&port) {
        return Some(format!("the webhook `{name}` has the port {port}: write one up to 65535"));
    }
    let target = webhook.target_port.as_ref().unwrap_or(&Value::Null);
    let first = *targets.entry((&webhook.deployment, port)).or_insert(target);
    let is_port = |target: &Value| if target.is_null() { port.into() } else { target.clone() };
    if is_port(first) == is_port(target) {
        return None;
    }
    Some(format!(
        "port {port} of the deployment `{}` leads to the ports {} and {}: give the webhook \
         `{name}` another containerPort",
        webhook.deployment,
        is_port(first),
        is_port(target)
    ))
}

/// Rules that would let a webhook keep the cluster from mending it.
fn forbidden_rules(webhook: &WebhookDescription) -> Vec<String> {
    let name = &webhook.generate_name;
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let items = rule[field].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut messages = Vec::new();
    for rule in webhook.admission.get("rules").and_then(Value::as_array).into_iter().flatten() {
        for group in texts(rule, "apiGroups") {
            if group == "*" || OPERATORS_GROUPS.contains(&group.as_str()) {
                messages.push(format!(
                    "the webhook `{name}` has a rule for the API group `{group}`: name the groups \
                     of its own resources"
                ));
            }
            if group != ADMISSION_GROUP {
                continue;
            }
            for resource in texts(rule, "resources") {
                if WEBHOOK_RESOURCES.contains(&resource.to_lowercase().as_str()) {
                    messages.push(format!(
                        "the webhook `{name}` has a rule for `{resource}` of the API group \
                         `{group}`: it could keep itself from being changed"
                    ));
                }
            }
        }
    }
    messages
}

fn conversions(content: &RegistryContent, defects: &mut Vec<Diagnostic>) {
    let csv = &content.csv;
    let owned: BTreeSet<&str> = csv.owned_definitions.iter().map(String::as_str).collect();
    let only_all = csv.install_modes.iter().eq([&InstallMode::AllNamespaces]);
    let mut converted: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, webhook) in csv.webhooks.iter().enumerate() {
        if webhook.kind != WebhookKind::Conversion {
            continue;
        }
        let name = webhook.generate_name.as_str();
        let field = ClusterServiceVersion::webhook_field(index);
        let mut report = |message: String| {
            defects.push(csv.defect(&field, DefectCode::BundleWebhook, message));
        };
        if !only_all {
            report(format!(
                "the webhook `{name}` converts objects of all namespaces: AllNamespaces has to be \
                 the only install mode"
            ));
        }
        for definition in &webhook.conversion_definitions {
            if !owned.contains(definition.as_str()) {
                report(format!(
                    "the webhook `{name}` converts `{definition}`, which the bundle does not own"
                ));
            }
            if let Some(other) = converted.insert(definition, name) {
                report(format!("the webhooks `{other}` and `{name}` both convert `{definition}`"));
            }
        }
    }
    for definition in &content.definitions {
        let is_converted = converted.contains_key(definition.name());
        if is_converted && definition.value["spec"]["preserveUnknownFields"] == true {
            let message = format!(
                "`{}` is converted by a webhook and has spec.preserveUnknownFields: set it to \
                 false",
                definition.name()
            );
            defects.push(definition.defect(DefectCode::BundleDefinition, message));
        }
    }
}

fn api_services(csv: &ClusterServiceVersion, defects: &mut Vec<Diagnostic>) {
    for (index, service) in csv.owned_api_services.iter().enumerate() {
        let field = format!("spec.apiservicedefinitions.owned[{index}]");
        let name = format!("{}.{}", service.version, service.group);
        let mut report = |message: String| {
            defects.push(csv.defect(&field, DefectCode::OwnedApi, message));
        };
        if service.group.is_empty() || names::subdomain(&name).into_iter().next().is_some() {
            report(format!("`{name}` is not the name of an API: write a group and a version"));
        }
        if !csv.deployments.iter().any(|it| it.name == service.deployment) {
            report(format!(
                "the API `{name}` is served by the deployment `{}`, which is not there",
                service.deployment
            ));
        }
    }
}
