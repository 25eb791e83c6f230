//! A bundle, its configuration and the namespaces that it watches, as objects in the order they are
//! applied (BUN-13 to BUN-18).
//!
//! Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/registryv1/generators/generators.go: BundleCSVDeploymentGenerator

mod certificates;
mod deployments;
mod lists;
mod names;
mod override_deployment;
mod permissions;
mod services;
mod serving;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ACTION_CLASS;
use plimsoll_api::olm::CertificateProvider;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use serde_json::{Map, Value, json};

use crate::bundle::{Bundle, BundleContent, BundleObject, RegistryContent, finished};
use crate::config::DeploymentConfig;
use crate::targets::target_namespaces;
use crate::validate::validate;

pub use crate::bundle::object_key;
pub use certificates::{
    CA_ANNOTATION, SERVING_ANNOTATION, ServingCertificate, serving_certificates,
};

/// Where and how a bundle is installed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RenderOptions {
    /// The namespace that the operator runs in.
    pub install_namespace: String,
    /// The namespaces that it watches; empty for all, if it can. One empty name is all of them.
    pub target_namespaces: Vec<String>,
    /// Who issues the certificates of its webhooks.
    pub certificates: CertificateProvider,
    /// What its deployments get on top.
    pub deployment_config: DeploymentConfig,
}

/// The objects of a bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RenderedBundle {
    /// In the order they are applied.
    pub objects: Vec<Value>,
    /// What the built-in provider has to issue; empty with any other provider.
    pub certificates: Vec<ServingCertificate>,
}

/// The objects that install a bundle.
///
/// # Errors
/// Everything that keeps it from being installed so: see [`validate`], or namespaces that its
/// install modes do not allow.
pub fn render(bundle: &Bundle, options: &RenderOptions) -> Result<RenderedBundle, Vec<Diagnostic>> {
    let defects = validate(bundle);
    if !defects.is_empty() {
        return Err(defects);
    }
    match &bundle.content {
        BundleContent::Registry(content) => {
            let csv = &content.csv;
            let targets = target_namespaces(
                &csv.install_modes,
                &options.install_namespace,
                &options.target_namespaces,
            )
            .map_err(|message| {
                let defect = csv.defect("spec.installModes", DefectCode::TargetNamespaces, message);
                finished(vec![defect], &bundle.package)
            })?;
            let installation = Installation { options, targets };
            let rendered = registry(content, &installation);
            let objects = distinct(rendered.objects, &content.others, &bundle.package)?;
            Ok(RenderedBundle { objects, certificates: rendered.certificates })
        }
        BundleContent::Plain(objects) => {
            let rendered = plain(objects, &options.install_namespace);
            let objects = distinct(rendered, objects, &bundle.package)?;
            Ok(RenderedBundle { objects, certificates: Vec::new() })
        }
    }
}

/// What a bundle is rendered for, decided.
struct Installation<'o> {
    options: &'o RenderOptions,
    /// One empty name for all namespaces.
    targets: Vec<String>,
}

impl Installation<'_> {
    fn namespace(&self) -> &str {
        &self.options.install_namespace
    }

    fn watches_all(&self) -> bool {
        self.targets.iter().any(String::is_empty)
    }
}

fn registry(content: &RegistryContent, installation: &Installation<'_>) -> RenderedBundle {
    let csv = &content.csv;
    let serving = serving::serving_deployments(csv);
    let mut objects = permissions::service_accounts(content, installation);
    objects.extend(permissions::roles(csv, installation));
    objects.extend(permissions::cluster_roles(csv, installation));
    objects.extend(webhooks::definitions(content, installation));
    let mut merged = BTreeSet::new();
    let others = content.others.iter().filter(|object| {
        // It becomes a part of the generated one, unless another one of its name already has.
        !services::is_generated(object, &serving) || !merged.insert(object.name())
    });
    objects.extend(others.map(|object| other(object, installation.namespace())));
    objects.extend(deployments::deployments(csv, &serving, installation));
    objects.extend(webhooks::configurations(csv, installation));
    objects.extend(services::services(&serving, &content.others, installation));
    objects.extend(services::api_services(csv, installation));
    objects.extend(certificates::objects(&serving, installation));
    let certificates = serving_certificates(&objects);
    RenderedBundle { objects, certificates }
}

/// The group of kinds that are not built in and live in no namespace.
const CONSOLE_GROUP: &str = "console.openshift.io";
/// Kinds of other objects that live in no namespace.
const CLUSTER_KINDS: &[&str] = &[
    "ActionClass",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "PriorityClass",
];

/// Whether objects of a kind live in no namespace, as far as that is known: of built-in kinds, and of
/// those that a bundle may contain.
pub(crate) fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    let mut builtin = k8s_schema::builtin::resources().iter();
    builtin.any(|it| !it.namespaced && it.kind == kind && it.group == group)
        || (group == ACTION_CLASS.group && kind == ACTION_CLASS.kind)
        || (group == CONSOLE_GROUP && CLUSTER_KINDS.contains(&kind))
}

fn other(object: &BundleObject, namespace: &str) -> Value {
    let mut value = object.value.clone();
    if !CLUSTER_KINDS.contains(&object.kind()) {
        set_namespace(&mut value, namespace);
    }
    value
}

fn set_namespace(value: &mut Value, namespace: &str) {
    if !value["metadata"].is_object() {
        value["metadata"] = json!({});
    }
    value["metadata"]["namespace"] = namespace.into();
}

/// Plain manifests as they are; those of built-in kinds that need a namespace and have none get
/// the one of the installation.
fn plain(objects: &[BundleObject], namespace: &str) -> Vec<Value> {
    let namespaced = |object: &BundleObject| {
        let api_version = object.value["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        k8s_schema::builtin::resources().iter().any(|resource| {
            resource.namespaced
                && resource.kind == object.kind()
                && resource.group == group
                && resource.version == version
        })
    };
    let mut rendered = Vec::new();
    for object in objects {
        let mut value = object.value.clone();
        let has_namespace =
            value["metadata"]["namespace"].as_str().is_some_and(|it| !it.is_empty());
        if !has_namespace && namespaced(object) {
            set_namespace(&mut value, namespace);
        }
        rendered.push(value);
    }
    rendered
}

/// Equal objects once: the same permissions twice make the same role twice. Two that differ and are
/// the same to an API server are an error.
fn distinct(
    objects: Vec<Value>,
    written: &[BundleObject],
    package: &str,
) -> Result<Vec<Value>, Vec<Diagnostic>> {
    let mut kept: Vec<Value> = Vec::with_capacity(objects.len());
    let mut places = BTreeMap::new();
    let mut conflicts = BTreeSet::new();
    for object in objects {
        let mut key = object_key(&object);
        if is_cluster_scoped(&key.group, &key.kind) {
            key.namespace.clear();
        }
        match places.get(&key) {
            Some(place) if kept[*place] == object => {}
            Some(_) => {
                conflicts.insert(key);
            }
            None => {
                places.insert(key, kept.len());
                kept.push(object);
            }
        }
    }
    if conflicts.is_empty() {
        return Ok(kept);
    }
    let defects = conflicts.into_iter().map(|key| {
        let message =
            format!("{key} is there twice, and not the same: remove one, or give it another name");
        match written.iter().rfind(|it| it.kind() == key.kind && it.name() == key.name) {
            Some(object) => object.defect(DefectCode::BundleFile, message),
            None => DefectCode::BundleFile.diagnostic("manifests", message),
        }
    });
    Err(finished(defects.collect(), package))
}

/// The metadata of a generated object.
fn metadata(name: &str, namespace: &str) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    metadata
}
