//! What the author of a bundle should change, beyond what keeps it out of a catalog
//! (BUN-1 to BUN-10).

use std::collections::BTreeSet;

use plimsoll_resolve::version::{parse_strict, parse_tolerant};
use serde_json::Value;

use super::properties::{apis, definition_api, service_api};
use super::read::BundleManifest;
use crate::catalog::{Defect, DefectCode};

/// Kinds besides definitions and the ClusterServiceVersion that a bundle may bring.
pub const KINDS: &[&str] = &[
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PodMonitor",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

/// Checks the manifests of a bundle; `csv` is one of them.
pub(super) fn check(
    csv: &BundleManifest<'_>,
    manifests: &[BundleManifest<'_>],
    defects: &mut Vec<Defect>,
) {
    names(csv, defects);
    install_modes(csv, defects);
    minimum_kubernetes(csv, defects);
    examples(csv, defects);
    owned(csv, manifests, defects);
    webhooks(csv, defects);
    annotations(csv, defects);
    service_accounts(csv, manifests, defects);
    for (index, image) in csv.list("/spec/relatedImages").iter().enumerate() {
        if image["image"].as_str().unwrap_or_default().is_empty() {
            let field = format!("spec.relatedImages[{index}]");
            defects.push(csv.defect(
                &field,
                DefectCode::BundleFile,
                "a related image without an image",
            ));
        }
    }
    for manifest in manifests {
        let kind = manifest.kind();
        let known = ["ClusterServiceVersion", "CustomResourceDefinition"];
        if kind.is_empty() {
            defects.push(manifest.defect("", DefectCode::BundleFile, "a manifest without a kind"));
        } else if !known.contains(&kind) && !KINDS.contains(&kind) {
            let text = format!("a bundle may not bring objects of kind {kind}");
            defects.push(manifest.defect("kind", DefectCode::BundleFile, text));
        }
    }
}

fn names(csv: &BundleManifest<'_>, defects: &mut Vec<Defect>) {
    let name = csv.name();
    let version = name.split_once(".v").map(|(_, version)| version);
    if version.is_none_or(|version| parse_strict(version).is_err()) {
        let text = format!("the name {name} has not the form NAME.vVERSION");
        defects.push(csv.defect("metadata.name", DefectCode::BundleAdvice, text));
    }
    if csv.text("/spec/replaces") == name {
        defects.push(csv.defect("spec.replaces", DefectCode::BundleFile, "it replaces itself"));
    }
    let mut seen = BTreeSet::new();
    for deployment in csv.list("/spec/install/spec/deployments") {
        let name = deployment["name"].as_str().unwrap_or_default();
        if !seen.insert(name) {
            let text = format!("two deployments are named {name}");
            defects.push(csv.defect("spec.install.spec.deployments", DefectCode::BundleFile, text));
        }
    }
}

fn install_modes(csv: &BundleManifest<'_>, defects: &mut Vec<Defect>) {
    let modes = csv.list("/spec/installModes");
    let mut seen = BTreeSet::new();
    for (index, mode) in modes.iter().enumerate() {
        let kind = mode["type"].as_str().unwrap_or_default();
        if !seen.insert(kind) {
            let field = format!("spec.installModes[{index}]");
            let text = format!("the install mode {kind} occurs twice");
            defects.push(csv.defect(&field, DefectCode::BundleFile, text));
        }
    }
    if !modes.iter().any(|mode| mode["supported"] == true) {
        let text = "no install mode is supported: it can be installed nowhere";
        defects.push(csv.defect("spec.installModes", DefectCode::BundleFile, text));
    }
}

fn minimum_kubernetes(csv: &BundleManifest<'_>, defects: &mut Vec<Defect>) {
    let text = csv.text("/spec/minKubeVersion");
    let written = &csv.value["spec"]["minKubeVersion"];
    if !written.is_null() && !written.is_string() {
        let text = "minKubeVersion is not a text, put it in quotes";
        return defects.push(csv.defect("spec.minKubeVersion", DefectCode::BundleFile, text));
    }
    if text.is_empty() {
        let text = "no minKubeVersion: it may be installed where it does not run";
        defects.push(csv.defect("spec", DefectCode::BundleAdvice, text));
    } else if parse_strict(text).is_err() {
        let hint = parse_tolerant(text.strip_prefix('v').unwrap_or(text))
            .map_or_else(|_| String::new(), |it| format!(", write {it}"));
        let text = format!("minKubeVersion `{text}` is not a full version{hint}");
        defects.push(csv.defect("spec.minKubeVersion", DefectCode::BundleFile, text));
    }
}

fn examples(csv: &BundleManifest<'_>, defects: &mut Vec<Defect>) {
    let text = csv.text("/metadata/annotations/alm-examples");
    if text.is_empty() {
        return;
    }
    let mut report = |code: DefectCode, text: String| {
        defects.push(csv.defect("metadata.annotations.alm-examples", code, text));
    };
    let examples: Vec<Value> = match serde_json::from_str(text) {
        Ok(examples) => examples,
        Err(error) => {
            return report(
                DefectCode::BundleFile,
                format!("alm-examples is not a JSON list: {error}"),
            );
        }
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let definitions = csv.list("/spec/customresourcedefinitions/owned").iter();
    let services = csv.list("/spec/apiservicedefinitions/owned").iter();
    let owned: BTreeSet<(String, String)> = definitions
        .filter_map(definition_api)
        .chain(services.filter_map(service_api))
        .map(|(group, version, kind)| (format!("{group}/{version}"), kind))
        .collect();
    for example in examples {
        let (api_version, kind) = (text(&example["apiVersion"]), text(&example["kind"]));
        if !owned.contains(&(api_version.clone(), kind.clone())) {
            let text = format!(
                "alm-examples has a {kind} of {api_version}, which the bundle does not own"
            );
            report(DefectCode::BundleFile, text);
        }
    }
}

/// Annotations that are known by their exact names.
///
/// Upstream: github.com/operator-framework/api/pkg/validation/internal/annotations.go: ValidateAnnotationNames
const ANNOTATIONS: [&str; 5] = [
    "olm.operatorGroup",
    "olm.operatorNamespace",
    "olm.providedAPIs",
    "olm.skipRange",
    "olm.targetNamespaces",
];

fn annotations(csv: &BundleManifest<'_>, defects: &mut Vec<Defect>) {
    let written = csv.value.pointer("/metadata/annotations").and_then(Value::as_object);
    for name in written.into_iter().flat_map(|it| it.keys()) {
        let known = ANNOTATIONS.iter().find(|known| known.eq_ignore_ascii_case(name));
        if let Some(known) = known.filter(|known| *known != name) {
            let text = format!("the annotation {name} is not {known}, write it like this");
            defects.push(csv.defect("metadata.annotations", DefectCode::BundleFile, text));
        }
        if name == "olm.properties" {
            let text = "properties stand in the annotation olm.properties, write them in \
                        metadata/properties.yaml";
            defects.push(csv.defect("metadata.annotations", DefectCode::BundleAdvice, text));
        }
    }
}

/// The service accounts of deployments are created by what installs the bundle.
///
/// Upstream: github.com/operator-framework/api/pkg/validation/internal/bundle.go: validateServiceAccounts
fn service_accounts(
    csv: &BundleManifest<'_>,
    manifests: &[BundleManifest<'_>],
    defects: &mut Vec<Defect>,
) {
    let used: BTreeSet<&str> = csv
        .list("/spec/install/spec/deployments")
        .iter()
        .filter_map(|it| it.pointer("/spec/template/spec/serviceAccountName")?.as_str())
        .collect();
    for manifest in manifests.iter().filter(|it| it.text("/apiVersion") == "v1") {
        let name = manifest.name();
        if manifest.kind() == "ServiceAccount" && used.contains(name) {
            let text = format!(
                "the service account {name} is that of a deployment, for which it is created: \
                 remove the manifest, or rename it"
            );
            defects.push(manifest.defect("metadata.name", DefectCode::BundleFile, text));
        }
    }
}

/// What the bundle says it owns and what it brings must be the same.
fn owned(csv: &BundleManifest<'_>, manifests: &[BundleManifest<'_>], defects: &mut Vec<Defect>) {
    let definitions = manifests.iter().filter(|it| it.kind() == "CustomResourceDefinition");
    let defined: Vec<_> = definitions.map(|it| (it, apis(it))).collect();
    let mut claimed = BTreeSet::new();
    for (index, value) in csv.list("/spec/customresourcedefinitions/owned").iter().enumerate() {
        let field = format!("spec.customresourcedefinitions.owned[{index}]");
        let Some(api) = definition_api(value) else {
            let text = "an owned definition needs a name (plural.group), a version and a kind";
            defects.push(csv.defect(&field, DefectCode::OwnedApi, text));
            continue;
        };
        if !defined.iter().any(|(_, apis)| apis.contains(&api)) {
            let (group, version, kind) = &api;
            let text = format!("it owns {group}/{version} {kind}, but brings no definition of it");
            defects.push(csv.defect(&field, DefectCode::OwnedApi, text));
        }
        claimed.insert((api.0, api.2));
    }
    for (definition, apis) in &defined {
        let Some((group, _, kind)) = apis.first() else {
            let text = "the definition has no versions";
            defects.push(definition.defect("spec", DefectCode::OwnedApi, text));
            continue;
        };
        if !claimed.contains(&(group.clone(), kind.clone())) {
            let text = format!("{} does not say that it owns {kind}.{group}", csv.name());
            defects.push(definition.defect("", DefectCode::BundleAdvice, text));
        }
        if definition.text("/apiVersion") == "apiextensions.k8s.io/v1beta1" {
            let text = "Kubernetes 1.22 and later do not serve apiextensions.k8s.io/v1beta1; \
                        write the definition in v1";
            defects.push(definition.defect("apiVersion", DefectCode::BundleAdvice, text));
        }
        if definition.value["spec"]["preserveUnknownFields"] == true {
            let text = "preserveUnknownFields is not supported any more";
            let field = "spec.preserveUnknownFields";
            defects.push(definition.defect(field, DefectCode::BundleFile, text));
        }
    }
}

fn webhooks(csv: &BundleManifest<'_>, defects: &mut Vec<Defect>) {
    let deployments: BTreeSet<&str> = csv
        .list("/spec/install/spec/deployments")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    let only_all = csv
        .list("/spec/installModes")
        .iter()
        .all(|mode| (mode["type"] == "AllNamespaces") == (mode["supported"] == true));
    for (index, webhook) in csv.list("/spec/webhookdefinitions").iter().enumerate() {
        let field = format!("spec.webhookdefinitions[{index}]");
        let deployment = webhook["deploymentName"].as_str().unwrap_or_default();
        if !deployments.contains(deployment) {
            let text = format!("the webhook needs deployment `{deployment}`, which is not there");
            defects.push(csv.defect(&field, DefectCode::BundleFile, text));
        }
        if webhook["type"] == "ConversionWebhook" && !only_all {
            let text = "a conversion webhook needs AllNamespaces to be the only install mode";
            defects.push(csv.defect(&field, DefectCode::BundleFile, text));
        }
    }
}
