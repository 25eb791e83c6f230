//! What an installation configures: the namespace to watch, and what deployments get on top
//! (BUN-19).
//!
//! Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/config/config.go: UnmarshalConfig

mod schema;

use std::collections::BTreeSet;

use k8s_cel::names;
use k8s_schema::builtin;
use plimsoll_content::diagnostic::FieldProblem;
use serde_json::{Map, Value, json};

use crate::bundle::{Bundle, BundleContent};
use crate::csv::{InstallMode, drop_nulls, shortened};

pub use schema::config_schema;

/// Fields of the configuration.
const WATCH_NAMESPACE: &str = "watchNamespace";
const DEPLOYMENT_CONFIG: &str = "deploymentConfig";

/// A field of a deployment's configuration, and where in a pod it belongs.
const DEPLOYMENT_FIELDS: &[(&str, &str)] = &[
    ("affinity", "/spec"),
    ("annotations", "/metadata"),
    ("env", "/spec/containers/0"),
    ("envFrom", "/spec/containers/0"),
    ("nodeSelector", "/spec"),
    ("resources", "/spec/containers/0"),
    ("tolerations", "/spec"),
    ("volumeMounts", "/spec/containers/0"),
    ("volumes", "/spec"),
];

/// What an installation configures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BundleConfig {
    /// The namespace that the operator watches; absent for all of them.
    pub watch_namespace: Option<String>,
    /// What its deployments get on top.
    pub deployment: DeploymentConfig,
}

/// What deployments get on top of what the bundle says, in the form that Go gives it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeploymentConfig {
    /// Takes the place of what pods have, kind by kind; absent to keep it, empty to remove it.
    pub affinity: Option<Map<String, Value>>,
    /// Added to deployments and pods that have no such annotation.
    pub annotations: Map<String, Value>,
    /// Variables of all containers; they replace those of the same name.
    pub env: Vec<Value>,
    /// Sources of variables of all containers.
    pub env_from: Vec<Value>,
    /// Takes the place of what pods have; absent to keep it.
    pub node_selector: Option<Value>,
    /// Takes the place of what containers have; absent to keep it.
    pub resources: Option<Value>,
    /// Added to those of pods.
    pub tolerations: Vec<Value>,
    /// Mounts of all containers; they replace those of the same name.
    pub volume_mounts: Vec<Value>,
    /// Volumes of pods; they replace those of the same name.
    pub volumes: Vec<Value>,
}

/// Whether a configuration says which namespace to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchNamespace {
    /// It must not: the operator watches all.
    Unknown,
    /// It may: the operator can watch all.
    Optional,
    /// It has to.
    Required,
}

/// Which namespace a configuration may name, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllowedNamespace {
    Any,
    /// Only the one that the operator runs in.
    Own,
    /// Any but that one.
    Other,
}

fn watch_namespace_rules(modes: &BTreeSet<InstallMode>) -> (WatchNamespace, AllowedNamespace) {
    let can = |mode| modes.contains(&mode);
    let (own, single) = (can(InstallMode::OwnNamespace), can(InstallMode::SingleNamespace));
    let presence = match (can(InstallMode::AllNamespaces), own || single) {
        (true, false) => WatchNamespace::Unknown,
        (true, true) => WatchNamespace::Optional,
        (false, _) => WatchNamespace::Required,
    };
    let allowed = match (own, single) {
        (true, false) => AllowedNamespace::Own,
        (false, true) => AllowedNamespace::Other,
        (true, true) | (false, false) => AllowedNamespace::Any,
    };
    (presence, allowed)
}

/// The namespace that the operator has to watch, if there is only one that it can: its own.
pub(crate) fn sole_namespace(bundle: &Bundle, install_namespace: &str) -> Option<String> {
    let BundleContent::Registry(content) = &bundle.content else { return None };
    let rules = watch_namespace_rules(&content.csv.install_modes);
    let is_only = rules == (WatchNamespace::Required, AllowedNamespace::Own);
    is_only.then(|| install_namespace.to_owned())
}

/// Reads the configuration of a bundle that is installed into a namespace. Null configures nothing.
///
/// # Errors
/// Everything that is wrong with it, by field.
pub fn read_config(
    bundle: &Bundle,
    install_namespace: &str,
    config: &Value,
) -> Result<BundleConfig, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let empty = Map::new();
    let fields = match config {
        Value::Null => &empty,
        Value::Object(fields) => fields,
        other => {
            let message = format!("a configuration is a mapping, not {}", shortened(other));
            return Err(vec![FieldProblem::new("", message)]);
        }
    };
    let BundleContent::Registry(content) = &bundle.content else {
        for field in fields.keys() {
            let message = "a bundle of plain manifests cannot be configured: remove it";
            problems.push(FieldProblem::new(field.clone(), message));
        }
        return if problems.is_empty() { Ok(BundleConfig::default()) } else { Err(problems) };
    };
    let modes = &content.csv.install_modes;
    let (presence, allowed) = watch_namespace_rules(modes);
    let supported =
        [InstallMode::AllNamespaces, InstallMode::OwnNamespace, InstallMode::SingleNamespace];
    if !supported.iter().any(|mode| modes.contains(mode)) {
        let message = "the operator supports neither AllNamespaces nor OwnNamespace nor \
                       SingleNamespace: give the namespaces that it watches by other means";
        return Err(vec![FieldProblem::new("", message)]);
    }
    let known: &[&str] = match presence {
        WatchNamespace::Unknown => &[DEPLOYMENT_CONFIG],
        WatchNamespace::Optional | WatchNamespace::Required => {
            &[DEPLOYMENT_CONFIG, WATCH_NAMESPACE]
        }
    };
    for field in fields.keys().filter(|field| !known.contains(&field.as_str())) {
        let message = format!("unknown field: there are {}", known.join(" and "));
        problems.push(FieldProblem::new(field.clone(), message));
    }
    let mut watch_namespace = None;
    if presence != WatchNamespace::Unknown {
        let given = fields.get(WATCH_NAMESPACE).unwrap_or(&Value::Null);
        match namespace(given, presence, allowed, install_namespace) {
            Ok(namespace) => watch_namespace = namespace,
            Err(message) => problems.push(FieldProblem::new(WATCH_NAMESPACE, message)),
        }
    }
    let given = fields.get(DEPLOYMENT_CONFIG).unwrap_or(&Value::Null);
    let deployment = read_deployment_config(given).unwrap_or_else(|found| {
        problems.extend(found);
        DeploymentConfig::default()
    });
    problems.sort();
    if problems.is_empty() {
        Ok(BundleConfig { watch_namespace, deployment })
    } else {
        Err(problems)
    }
}

fn namespace(
    given: &Value,
    presence: WatchNamespace,
    allowed: AllowedNamespace,
    install_namespace: &str,
) -> Result<Option<String>, String> {
    let name = match given {
        Value::Null if presence == WatchNamespace::Required => {
            return Err("missing: the operator cannot watch all namespaces".to_owned());
        }
        Value::Null => return Ok(None),
        Value::String(name) => name,
        other => return Err(format!("not text but {}", shortened(other))),
    };
    if let Some(error) = names::label(name).into_iter().next() {
        return Err(format!("`{name}` is not the name of a namespace: {error}"));
    }
    let is_own = name == install_namespace;
    match allowed {
        AllowedNamespace::Own if !is_own => Err(format!(
            "the operator can only watch the namespace that it runs in, `{install_namespace}`, \
             not `{name}`"
        )),
        AllowedNamespace::Other if is_own => Err(format!(
            "the operator cannot watch the namespace that it runs in, `{install_namespace}`"
        )),
        AllowedNamespace::Any | AllowedNamespace::Own | AllowedNamespace::Other => {
            Ok(Some(name.clone()))
        }
    }
}

/// Reads what deployments get on top. Null is nothing.
///
/// # Errors
/// Unknown fields, missing ones, and values of another type, by field.
pub fn read_deployment_config(given: &Value) -> Result<DeploymentConfig, Vec<FieldProblem>> {
    let fields = match given {
        Value::Null => return Ok(DeploymentConfig::default()),
        Value::Object(fields) => fields,
        other => {
            let message = format!("not a mapping but {}", shortened(other));
            return Err(vec![FieldProblem::new(DEPLOYMENT_CONFIG, message)]);
        }
    };
    let mut problems = Vec::new();
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {},
        "spec": { "containers": [{ "name": "all" }] },
    });
    for (field, value) in fields {
        match DEPLOYMENT_FIELDS.iter().find(|(name, _)| name == field) {
            Some((_, place)) => {
                let mut value = value.clone();
                drop_nulls(&mut value);
                if let Some(place) = pod.pointer_mut(place) {
                    place[field] = value;
                }
            }
            None => {
                let known: Vec<&str> = DEPLOYMENT_FIELDS.iter().map(|(name, _)| *name).collect();
                let message = format!("unknown field: there are {}", known.join(", "));
                problems.push(FieldProblem::new(format!("{DEPLOYMENT_CONFIG}.{field}"), message));
            }
        }
    }
    let Some(schema) = builtin::schema("", "v1", "Pod") else { return Err(problems) };
    for path in k8s_schema::unknown_fields(&schema, &pod) {
        problems.push(FieldProblem::new(given_field(&path), "unknown field: remove it"));
    }
    for error in k8s_schema::validate(&schema, &pod) {
        let message = error.to_string();
        let message = message.strip_prefix(&format!("{}: ", error.path)).unwrap_or(&message);
        problems.push(FieldProblem::new(given_field(&error.path), message));
    }
    if problems.is_empty()
        && let Err(error) = k8s_schema::go_round_trip(&schema, &mut pod)
    {
        problems.push(FieldProblem::new(DEPLOYMENT_CONFIG, error));
    }
    if !problems.is_empty() {
        problems.sort();
        return Err(problems);
    }
    Ok(taken(&mut pod, fields))
}

/// The field of the configuration that a field of the pod was made of.
fn given_field(path: &str) -> String {
    let places = ["spec.containers[0].", "spec.", "metadata."];
    let field = places.iter().find_map(|place| path.strip_prefix(place)).unwrap_or(path);
    format!("{DEPLOYMENT_CONFIG}.{field}")
}

fn taken(pod: &mut Value, given: &Map<String, Value>) -> DeploymentConfig {
    let mut take = |field: &str| {
        let place = DEPLOYMENT_FIELDS.iter().find(|(name, _)| *name == field);
        let place = place.and_then(|(_, place)| pod.pointer_mut(place));
        place.map_or(Value::Null, |place| place[field].take())
    };
    let list = |value: Value| match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let map = |value: Value| match value {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    let is_given = |field: &str| given.get(field).is_some_and(|value| !value.is_null());
    DeploymentConfig {
        affinity: is_given("affinity").then(|| map(take("affinity"))),
        annotations: map(take("annotations")),
        env: list(take("env")),
        env_from: list(take("envFrom")),
        node_selector: is_given("nodeSelector").then(|| map(take("nodeSelector")).into()),
        resources: is_given("resources").then(|| map(take("resources")).into()),
        tolerations: list(take("tolerations")),
        volume_mounts: list(take("volumeMounts")),
        volumes: list(take("volumes")),
    }
}

#[cfg(test)]
mod tests;
