//! `plimsoll rbac` and `plimsoll manifests`: what runs the controller in a cluster.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, value_parser};
use plimsoll_api::config::CapabilitiesSpec;
use plimsoll_api::crd::{action_manifests, operator_manifests};
use plimsoll_api::policies::{action_policies, operator_policies};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_controller::permissions::{
    Permissions, Purpose, action_permissions, operator_permissions, permissions,
    resolver_client_permissions, resolver_permissions,
};
use serde_json::{Value, json};

use super::bundle::rendered;
use crate::arguments::catalog::CATALOGS_PATH;
use crate::arguments::installation::InstallationArguments;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::resolver::{RESOLVER, RESOLVER_LABEL, RESOLVER_LABELLED};
use crate::arguments::{name, store};
use crate::exit;

/// The port that metrics are served on in a pod.
const METRICS_PORT: u16 = 9099;
/// Where the release lies in a pod.
const RELEASE_PATH: &str = "/release";
/// Name of all that belongs to the controller.
const NAME: &str = "plimsoll";
/// Name of the roles for Operators.
const OPERATORS: &str = "plimsoll-operators";
/// Name of the Service by which API servers ask for reviews, and the port in a pod.
const WEBHOOK: &str = "plimsoll-webhook";
const WEBHOOK_PORT: u16 = 9443;
/// Name of the roles for Actions.
const ACTIONS: &str = "plimsoll-actions";
/// The same for the webhooks of Actions.
const ACTION_WEBHOOK: &str = "plimsoll-action-webhook";
const ACTION_WEBHOOK_PORT: u16 = 9444;
/// The port of the resolver in a pod.
const RESOLVER_PORT: u16 = 9445;
/// Name of the role of those who may ask it.
const RESOLVER_CLIENT: &str = "plimsoll-resolver-client";
/// Label by which rules and dashboards know the controller, as they know the upstream one.
const JOB: &str = "cluster-version-operator";

/// What permissions are needed for.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("purpose").args(["release", "operators"]).required(true).multiple(true))]
pub struct RbacArguments {
    /// The directory of a release payload, or a reference to its image; give all those between which
    /// the cluster is to be updated, the one to install first
    #[arg(long, value_name = "DIR|REFERENCE", value_parser = store::parse)]
    pub release: Vec<store::Location>,
    /// How registries are reached
    #[command(flatten)]
    pub registry: RegistryArguments,
    /// For which Operators.
    #[command(flatten)]
    pub operators: OperatorRbacArguments,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster, for good; without it, the controller follows the FeatureGate
    /// `cluster` and needs the permissions of all feature sets
    #[arg(long)]
    pub feature_set: Option<String>,
    /// Include the permissions to delete orphans
    #[arg(long, requires = "release")]
    pub prune: bool,
    /// Include the permissions of the capability webhook
    #[arg(long, requires = "release")]
    pub capability_webhook: bool,
    /// Namespace of the controller
    #[arg(long, default_value = NAME, value_parser = name::namespace)]
    pub namespace: String,
}

/// For which Operators permissions are needed.
#[derive(Debug, Default, Args)]
pub struct OperatorRbacArguments {
    /// Include what Operators need: what the controller of Operators itself does, and what the bundles
    /// that are named here need
    #[arg(long)]
    pub operators: bool,
    /// Include what the controller of Actions needs
    #[arg(long, requires = "operators")]
    pub actions: bool,
    /// Include what the webhooks of Actions need
    #[arg(long, requires = "actions")]
    pub action_webhook: bool,
    /// Include what the resolver needs, and a role for its clients, which is bound to none
    #[arg(long, requires = "operators")]
    pub resolver: bool,
    /// Directory of a bundle that may be installed; repeatable. What its roles allow, the controller must
    /// be allowed to grant
    #[arg(long, value_name = "DIR", requires = "operators")]
    pub bundle: Vec<PathBuf>,
    /// Catalog with packages that may be installed
    #[arg(long, value_name = "CATALOG", requires_all = ["operators", "package"])]
    pub catalog: Option<PathBuf>,
    /// Package of the catalog, in all its versions; repeatable
    #[arg(long, value_name = "NAME", requires = "catalog")]
    pub package: Vec<String>,
}

/// How the controller is to run.
#[derive(Debug, Args)]
pub struct ManifestsArguments {
    /// What the permissions are for.
    #[command(flatten)]
    pub rbac: RbacArguments,
    /// Image of this program
    #[arg(long, value_name = "PULLSPEC")]
    pub image: String,
    /// Image of the release payload, with release-manifests/ at its root; mounted as a volume
    #[arg(
        long,
        value_name = "PULLSPEC",
        required_unless_present = "operators",
        requires = "release"
    )]
    pub release_image: Option<String>,
    /// Image of a catalog, mounted as a volume at /catalogs/NAME; repeatable
    #[arg(long, value_name = "NAME=PULLSPEC", requires = "operators", value_parser = catalog_image)]
    pub catalog_image: Vec<(String, String)>,
    /// What the ClusterVersion is created with
    #[command(flatten)]
    pub installation: InstallationArguments,
    /// Number of controller replicas; one leads, the others stand by
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub replicas: u32,
    /// Add a ServiceMonitor for the Prometheus operator
    #[arg(long)]
    pub service_monitor: bool,
}

/// Prints the permissions.
///
/// # Errors
///
/// When a payload is defective, or the output cannot be written.
pub fn rbac(arguments: &RbacArguments, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    write(&roles(arguments, &payloads(arguments)?, &bundles(&arguments.operators)?), out)
}

/// Prints everything.
///
/// # Errors
///
/// When a payload is defective, or the output cannot be written.
pub fn manifests(arguments: &ManifestsArguments, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        arguments.rbac.release.is_empty() || arguments.release_image.is_some(),
        "the controller is to have the permissions for a release, but no release: add --release-image"
    );
    let namespace = &arguments.rbac.namespace;
    let mut objects = vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(namespace) }),
    ];
    let payloads = payloads(&arguments.rbac)?;
    if arguments.rbac.operators.operators {
        objects.extend(operator_manifests());
        objects.extend(operator_policies());
    }
    if arguments.rbac.operators.actions {
        // First: without them, nothing may be requested.
        objects.extend(action_policies());
        objects.extend(action_manifests());
    }
    objects.extend(roles(&arguments.rbac, &payloads, &bundles(&arguments.rbac.operators)?));
    objects.push(deployment(arguments, requested(arguments, &payloads)?.as_ref()));
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(namespace),
        "spec": {
            "selector": { "app.kubernetes.io/name": NAME },
            "ports": [{ "name": "metrics", "port": METRICS_PORT, "targetPort": "metrics" }],
        },
    }));
    for (is_served, name, port) in [
        (arguments.rbac.capability_webhook, WEBHOOK, WEBHOOK_PORT),
        (arguments.rbac.operators.action_webhook, ACTION_WEBHOOK, ACTION_WEBHOOK_PORT),
    ] {
        if is_served {
            objects.push(json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": { "name": name, "namespace": namespace },
                "spec": {
                    "selector": { "app.kubernetes.io/name": NAME },
                    "ports": [{ "name": "webhook", "port": 443, "targetPort": port }],
                },
            }));
        }
    }
    if arguments.rbac.operators.resolver {
        objects.push(resolver_service(namespace));
    }
    if arguments.service_monitor {
        objects.push(json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": metadata(namespace),
            "spec": {
                "jobLabel": "k8s-app",
                "selector": { "matchLabels": { "k8s-app": JOB } },
                "endpoints": [{ "port": "metrics", "interval": "30s" }],
            },
        }));
    }
    write(&objects, out)
}

/// Returns the Service of the resolver, with the label that clients find it by.
fn resolver_service(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": RESOLVER,
            "namespace": namespace,
            "labels": { (RESOLVER_LABEL): RESOLVER_LABELLED },
        },
        "spec": {
            "selector": { "app.kubernetes.io/name": NAME },
            "ports": [{ "name": "https", "port": 443, "targetPort": RESOLVER_PORT }],
        },
    })
}

fn payloads(arguments: &RbacArguments) -> anyhow::Result<Vec<Payload>> {
    let feature_set = arguments.feature_set.as_deref();
    let load = |it: &store::Location| it.load(&arguments.registry, &arguments.profile, feature_set);
    arguments.release.iter().map(load).collect()
}

/// The objects of each bundle that may be installed.
fn bundles(arguments: &OperatorRbacArguments) -> anyhow::Result<Vec<Vec<Value>>> {
    let OperatorRbacArguments { bundle, catalog, package, .. } = arguments;
    let mut bundles: Vec<Vec<Value>> =
        bundle.iter().map(|path| rendered::of_directory(path)).collect::<anyhow::Result<_>>()?;
    if let Some(catalog) = catalog {
        for package in package {
            bundles.extend(rendered::of_package(catalog, package)?);
        }
    }
    Ok(bundles)
}

/// Parses `NAME=PULLSPEC`.
fn catalog_image(text: &str) -> Result<(String, String), String> {
    let (catalog, image) = text.split_once('=').ok_or("expected NAME=PULLSPEC")?;
    let is_label = !catalog.is_empty()
        && catalog.len() <= 56
        && catalog.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
        && !catalog.starts_with('-')
        && !catalog.ends_with('-');
    if !is_label || image.is_empty() {
        let wanted = "NAME has up to 56 lower case letters, digits and dashes, such as community";
        return Err(format!("expected NAME=PULLSPEC, where {wanted}"));
    }
    Ok((catalog.to_owned(), image.to_owned()))
}

/// The capabilities that the cluster requests; `None` for those of the default set.
fn requested(
    arguments: &ManifestsArguments,
    payloads: &[Payload],
) -> anyhow::Result<Option<CapabilitiesSpec>> {
    let RbacArguments { profile, feature_set, .. } = &arguments.rbac;
    let Some(first) = payloads.first() else { return Ok(None) };
    Ok(arguments.installation.of(first, profile, feature_set.as_deref())?.capabilities)
}

fn write(objects: &[Value], out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    for object in objects {
        write!(out, "---\n{}", serde_saphyr::to_string(object)?)?;
    }
    Ok(exit::SUCCESS.into())
}

fn metadata(namespace: &str) -> Value {
    json!({
        "name": NAME,
        "namespace": namespace,
        "labels": { "app.kubernetes.io/name": NAME, "k8s-app": JOB },
    })
}

/// The roles of a controller, and what binds its ServiceAccount to them: for releases, and for bundles,
/// each given by its objects.
pub fn roles(
    arguments: &RbacArguments,
    payloads: &[Payload],
    bundles: &[Vec<Value>],
) -> Vec<Value> {
    let mut roles = Vec::new();
    if !payloads.is_empty() {
        let purpose = Purpose {
            profile: arguments.profile.clone(),
            feature_set: arguments.feature_set.clone(),
            prune: arguments.prune,
            webhook: arguments.capability_webhook,
        };
        let payloads: Vec<&Payload> = payloads.iter().collect();
        let permissions = permissions(&payloads, &purpose);
        roles.extend(bound_roles(NAME, &permissions, &arguments.namespace));
    }
    if arguments.operators.operators {
        let permissions = operator_permissions(bundles);
        roles.extend(bound_roles(OPERATORS, &permissions, &arguments.namespace));
    }
    if arguments.operators.actions {
        let permissions = action_permissions(arguments.operators.action_webhook);
        roles.extend(bound_roles(ACTIONS, &permissions, &arguments.namespace));
    }
    if arguments.operators.resolver {
        roles.extend(bound_roles(RESOLVER, &resolver_permissions(), &arguments.namespace));
        roles.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": RESOLVER_CLIENT },
            "rules": resolver_client_permissions(),
        }));
    }
    roles
}

/// Roles of a name, bound to the ServiceAccount of the controller.
fn bound_roles(name: &str, permissions: &Permissions, namespace: &str) -> [Value; 4] {
    let role = |kind: &str, metadata: &Value, rules: Value| {
        let version = "rbac.authorization.k8s.io/v1";
        json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules })
    };
    let binding = |kind: &str, metadata: &Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": namespace }],
        })
    };
    let everywhere = json!({ "name": name });
    let by_the_lease = json!({ "name": name, "namespace": "kube-system" });
    [
        role("ClusterRole", &everywhere, json!(permissions.cluster)),
        binding("ClusterRole", &everywhere),
        role("Role", &by_the_lease, json!(permissions.lease_namespace)),
        binding("Role", &by_the_lease),
    ]
}

/// Returns the arguments of the controller in its pod.
fn command(arguments: &ManifestsArguments, requested: Option<&CapabilitiesSpec>) -> Vec<String> {
    let rbac = &arguments.rbac;
    let mut command = vec!["run".to_owned()];
    if let Some(image) = &arguments.release_image {
        command.extend([
            format!("--release={RELEASE_PATH}"),
            "--create".to_owned(),
            format!("--image={image}"),
            format!("--profile={}", rbac.profile),
        ]);
    }
    if rbac.operators.operators {
        command.push("--operators".to_owned());
    }
    if rbac.operators.actions {
        command.push("--actions".to_owned());
    }
    if rbac.operators.action_webhook {
        command.push(format!("--action-webhook=0.0.0.0:{ACTION_WEBHOOK_PORT}"));
        command.push(format!("--action-webhook-service={}/{ACTION_WEBHOOK}", rbac.namespace));
    }
    if rbac.operators.resolver {
        command.push(format!("--resolver=0.0.0.0:{RESOLVER_PORT}"));
        command.push(format!("--resolver-service={}/{RESOLVER}", rbac.namespace));
    }
    command.push(format!("--metrics-listen=0.0.0.0:{METRICS_PORT}"));
    command.push("--log-format=json".to_owned());
    command.extend(rbac.feature_set.as_ref().map(|set| format!("--feature-set={set}")));
    if let Some(CapabilitiesSpec { baseline_capability_set, additional_enabled_capabilities }) =
        requested
    {
        if !baseline_capability_set.is_empty() {
            command.push(format!("--baseline={baseline_capability_set}"));
        }
        let names = additional_enabled_capabilities.iter();
        command.extend(names.map(|name| format!("--capability={name}")));
    }
    if rbac.capability_webhook {
        command.push(format!("--capability-webhook=0.0.0.0:{WEBHOOK_PORT}"));
        command.push(format!("--capability-webhook-service={}/{WEBHOOK}", rbac.namespace));
    }
    command
}

/// Returns the volumes of the release and of the catalogs, as mounts and as volumes.
fn image_volumes(arguments: &ManifestsArguments) -> (Vec<Value>, Vec<Value>) {
    let (mut mounts, mut volumes) = (Vec::new(), Vec::new());
    let mut mount = |name: String, path: String, image: &str| {
        mounts.push(json!({ "name": name, "mountPath": path, "readOnly": true }));
        volumes.push(json!({ "name": name, "image": { "reference": image } }));
    };
    if let Some(image) = &arguments.release_image {
        mount("release".to_owned(), RELEASE_PATH.to_owned(), image);
    }
    for (catalog, image) in &arguments.catalog_image {
        mount(format!("catalog-{catalog}"), format!("{CATALOGS_PATH}/{catalog}"), image);
    }
    (mounts, volumes)
}

fn deployment(arguments: &ManifestsArguments, requested: Option<&CapabilitiesSpec>) -> Value {
    let rbac = &arguments.rbac;
    let labels = json!({ "app.kubernetes.io/name": NAME, "k8s-app": JOB });
    let (mounts, volumes) = image_volumes(arguments);
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "metrics" } });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(&rbac.namespace),
        "spec": {
            "replicas": arguments.replicas,
            "selector": { "matchLabels": { "app.kubernetes.io/name": NAME } },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 30,
                    "priorityClassName": "system-cluster-critical",
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 65532,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "tolerations": [{ "operator": "Exists" }],
                    "containers": [{
                        "name": NAME,
                        "image": arguments.image,
                        "args": command(arguments, requested),
                        "ports": [{ "name": "metrics", "containerPort": METRICS_PORT }],
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/readyz"),
                        "resources": { "requests": { "cpu": "20m", "memory": "64Mi" } },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": { "drop": ["ALL"] },
                        },
                        "volumeMounts": mounts,
                    }],
                    "volumes": volumes,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests;
