//! What the author of a bundle should change, beyond what keeps it out of a catalog
//! (BUN-1 to BUN-10).

use std::collections::BTreeSet;

use k8s_cel::names as name_rules;
use plimsoll_resolve::version::{number_for_text, parse_strict, parse_tolerant};
use serde_json::Value;

use super::properties::{apis, definition_api, service_api};
use super::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// Kinds besides definitions and the ClusterServiceVersion that a bundle may bring.
pub const KINDS: &[&str] = &[
    "ActionClass",
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
    defects: &mut Vec<Diagnostic>,
) {
    names(csv, defects);
    install_modes(csv, defects);
    minimum_kubernetes(csv, defects);
    numbers(csv, defects);
    examples(csv, defects);
    owned(csv, manifests, defects);
    webhooks(csv, defects);
    annotations(csv, defects);
    service_accounts(csv, manifests, defects);
    related_images(csv, defects);
    required_fields(csv, defects);
    for manifest in manifests.iter().filter(|it| it.kind() == "CustomResourceDefinition") {
        definition(manifest, defects);
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

fn names(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    let name = csv.name();
    let version = name.split_once(".v").map(|(_, version)| version);
    if version.is_none_or(|version| parse_strict(version).is_err()) {
        let text = format!("the name {name} has not the form NAME.vVERSION");
        defects.push(csv.defect("metadata.name", DefectCode::BundleAdvice, text));
    }
    for (field, name) in [("metadata.name", name), ("spec.replaces", csv.text("/spec/replaces"))] {
        // A name stands in labels too. That there is none is reported elsewhere.
        let mut errors = name_rules::subdomain(name);
        errors.extend(name_rules::label_value(name));
        if let Some(error) = errors.into_iter().next().filter(|_| !name.is_empty()) {
            let text = format!("{field} `{name}` is not that of a ClusterServiceVersion: {error}");
            defects.push(csv.defect(field, DefectCode::BundleFile, text));
        }
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

fn install_modes(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
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

/// Fields that hold versions or names, as pointers and as texts.
const TEXTS: [(&str, &str); 3] = [
    ("/spec/version", "spec.version"),
    ("/spec/replaces", "spec.replaces"),
    ("/metadata/annotations/olm.skipRange", "metadata.annotations.olm.skipRange"),
];

fn numbers(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    for (pointer, field) in TEXTS {
        if let Some(Value::Number(number)) = csv.value.pointer(pointer) {
            let text = format!("{field} {}", number_for_text(number));
            defects.push(csv.defect(field, DefectCode::BundleFile, text));
        }
    }
}

fn minimum_kubernetes(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
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

/// Names of the annotation with an example of each API, the one that counts first.
const EXAMPLES: [&str; 2] = ["alm-examples", "olm.examples"];

fn examples(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    let written = &csv.value["metadata"]["annotations"];
    let Some(name) = EXAMPLES.into_iter().find(|name| written[*name].is_string()) else {
        let text = "no annotation alm-examples: consoles have no example of its resources";
        defects.push(csv.defect("metadata", DefectCode::BundleAdvice, text));
        return;
    };
    let field = format!("metadata.annotations.{name}");
    let mut report = |code: DefectCode, text: String| {
        defects.push(csv.defect(&field, code, text));
    };
    if name == EXAMPLES[0] && written[EXAMPLES[1]].is_string() {
        let text = format!("{} counts and {} does not: remove one", EXAMPLES[0], EXAMPLES[1]);
        report(DefectCode::BundleAdvice, text);
    }
    let text = written[name].as_str().unwrap_or_default();
    let parsed = match text.trim() {
        "" => Ok(Vec::new()),
        text => serde_json::from_str::<Vec<Value>>(text),
    };
    let examples = match parsed {
        Ok(examples) => examples,
        Err(error) => {
            return report(DefectCode::BundleFile, format!("{name} is not a JSON list: {error}"));
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
    let shown: BTreeSet<(String, String)> = examples
        .iter()
        .map(|example| (text(&example["apiVersion"]), text(&example["kind"])))
        .collect();
    for (api_version, kind) in shown.difference(&owned) {
        let text = format!("{name} has a {kind} of {api_version}, which the bundle does not own");
        report(DefectCode::BundleFile, text);
    }
    for (api_version, kind) in owned.difference(&shown) {
        let text = format!("{name} has no example of {kind} of {api_version}");
        report(DefectCode::BundleAdvice, text);
    }
}

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/bundle.go: validateRelatedImages
fn related_images(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    for (index, image) in csv.list("/spec/relatedImages").iter().enumerate() {
        let image = image["image"].as_str().unwrap_or_default();
        let text = match image {
            "" => "a related image without an image".to_owned(),
            image if is_image(image) => continue,
            image => format!(
                "`{image}` is not a reference to an image: write REGISTRY/REPOSITORY@DIGEST or \
                 REGISTRY/REPOSITORY:TAG, the repository in lower case"
            ),
        };
        let field = format!("spec.relatedImages[{index}].image");
        defects.push(csv.defect(&field, DefectCode::BundleFile, text));
    }
}

/// Whether a text has the form `[HOST[:PORT]/]REPOSITORY[:TAG][@ALGORITHM:DIGEST]`.
///
/// Upstream: github.com/distribution/reference/regexp.go: ReferenceRegexp
fn is_image(text: &str) -> bool {
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    let is_digest = |digest: &str| {
        digest.split_once(':').is_some_and(|(algorithm, hex)| {
            algorithm.starts_with(|first: char| first.is_ascii_alphabetic())
                && hex.len() >= 32
                && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let (name, tag) = match name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        Some((name, tag)) => (name, Some(tag)),
        None => (name, None),
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_tag = |tag: &str| {
        (1..=128).contains(&tag.len())
            && tag.bytes().next().is_some_and(is_word)
            && tag.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
    };
    let path = match name.split_once('/') {
        // The first part is a host if it looks like one, and may then have capitals and a port.
        Some((host, path))
            if host.contains(['.', ':'])
                || host == "localhost"
                || host.bytes().any(|byte| byte.is_ascii_uppercase()) && path.contains('/') =>
        {
            path
        }
        _ => name,
    };
    let is_component = |component: &str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        component.bytes().next().is_some_and(is_inner)
            && component.bytes().last().is_some_and(is_inner)
            && component.bytes().all(|byte| is_inner(byte) || b"._-".contains(&byte))
    };
    name.len() <= 255
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/typecheck.go: checkEmptyFields
fn required_fields(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    for field in ["displayName", "install"] {
        let value = &csv.value["spec"][field];
        let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty || value == "" {
            let text = format!("the field spec.{field} is missing");
            defects.push(csv.defect("spec", DefectCode::BundleFile, text));
        }
    }
    // A release is part of the name of the bundle, which then has another form.
    let release = csv.text("/spec/release");
    let expected = format!("-v{}-{release}", csv.text("/spec/version"));
    if !release.is_empty() && !csv.name().ends_with(&expected) {
        let text = format!(
            "with the release {release} the name is PACKAGE{expected}, and not `{}`",
            csv.name()
        );
        defects.push(csv.defect("metadata.name", DefectCode::BundleFile, text));
    }
}

/// Whether API servers refuse a definition whatever its schema.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinition
fn definition(manifest: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    let spec = &manifest.value["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let mut report = |field: &str, text: String| {
        defects.push(manifest.defect(field, DefectCode::BundleFile, text));
    };
    let expected = format!("{plural}.{group}");
    if manifest.name() != expected {
        let text = format!("the name of the definition is `{expected}`: plural and group");
        report("metadata.name", text);
    }
    let annotation = &manifest.value["metadata"]["annotations"][APPROVAL];
    let is_protected = PROTECTED_GROUPS
        .iter()
        .any(|protected| group == *protected || group.ends_with(&format!(".{protected}")));
    if is_protected && annotation.as_str().is_none_or(str::is_empty) {
        let text = format!(
            "the group {group} belongs to Kubernetes: definitions in it need the annotation \
             {APPROVAL}, with the address of the approval or `unapproved`, and a reason"
        );
        report("metadata", text);
    }
    let versions = manifest.list("/spec/versions");
    let stored = versions.iter().filter(|it| it["storage"] == true).count();
    if !versions.is_empty() && stored != 1 {
        let text = format!("{stored} versions have `storage: true`: exactly one is stored");
        report("spec.versions", text);
    }
    for (index, version) in versions.iter().enumerate() {
        if version["deprecationWarning"].is_string() && version["deprecated"] != true {
            let field = format!("spec.versions[{index}].deprecationWarning");
            let text = "a version that is not deprecated has no deprecationWarning: add \
                        `deprecated: true`, or remove it";
            report(&field, text.to_owned());
        }
    }
}

/// The annotation that definitions in groups of Kubernetes need.
const APPROVAL: &str = "api-approved.kubernetes.io";
/// The domains whose groups belong to Kubernetes.
const PROTECTED_GROUPS: [&str; 2] = ["k8s.io", "kubernetes.io"];

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

fn annotations(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
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
    defects: &mut Vec<Diagnostic>,
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
fn owned(
    csv: &BundleManifest<'_>,
    manifests: &[BundleManifest<'_>],
    defects: &mut Vec<Diagnostic>,
) {
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
            defects.push(definition.defect("apiVersion", DefectCode::BundleFile, text));
        }
        let preserves = &definition.value["spec"]["preserveUnknownFields"];
        let is_default =
            preserves.is_null() && definition.text("/apiVersion") == "apiextensions.k8s.io/v1beta1";
        if *preserves == true || is_default {
            let text = "preserveUnknownFields is not supported any more: write false, which is not \
                        the default in v1beta1";
            let field = "spec.preserveUnknownFields";
            defects.push(definition.defect(field, DefectCode::BundleFile, text));
        }
    }
}

fn webhooks(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
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
