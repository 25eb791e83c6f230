//! What a bundle may make the controller write: objects of the kinds it may contain, in the
//! namespace of the installation, and nothing that the controller itself goes by.

use plimsoll_api::{ACTION_CLASS, classes};
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use serde_json::Value;

use crate::bundle::{Bundle, BundleContent, BundleObject};
use crate::render::{CA_ANNOTATION, SERVING_ANNOTATION, is_cluster_scoped, object_key};

/// The group of CustomResourceDefinitions.
const DEFINITIONS_GROUP: &str = "apiextensions.k8s.io";
/// The API version of CustomResourceDefinitions.
const DEFINITIONS_API_VERSION: &str = "apiextensions.k8s.io/v1";
/// The group whose objects say what is installed.
const OPERATORS_GROUP: &str = "olm.io";
/// What labels and annotations begin with that the controller sets.
pub(super) const RESERVED: &str = "olm.io/";
/// The API groups of the kinds that a registry+v1 bundle may contain beside definitions.
pub(super) const GROUPS: &[(&str, &str)] = &[
    ("ActionClass", OPERATORS_GROUP),
    ("ClusterRole", "rbac.authorization.k8s.io"),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io"),
    ("ConfigMap", ""),
    ("ConsoleCLIDownload", "console.openshift.io"),
    ("ConsoleLink", "console.openshift.io"),
    ("ConsolePlugin", "console.openshift.io"),
    ("ConsoleQuickStart", "console.openshift.io"),
    ("ConsoleYAMLSample", "console.openshift.io"),
    ("NetworkPolicy", "networking.k8s.io"),
    ("PodDisruptionBudget", "policy"),
    ("PodMonitor", "monitoring.coreos.com"),
    ("PriorityClass", "scheduling.k8s.io"),
    ("PrometheusRule", "monitoring.coreos.com"),
    ("Role", "rbac.authorization.k8s.io"),
    ("RoleBinding", "rbac.authorization.k8s.io"),
    ("Secret", ""),
    ("Service", ""),
    ("ServiceAccount", ""),
    ("ServiceMonitor", "monitoring.coreos.com"),
    ("VerticalPodAutoscaler", "autoscaling.k8s.io"),
];

/// What of a bundle the controller does not write.
pub(super) fn defects(bundle: &Bundle, namespace: &str) -> Vec<Diagnostic> {
    let mut defects = Vec::new();
    let mut report = |object: &BundleObject, code: DefectCode, message: String| {
        let name = format!("{} `{}`", object.kind(), object.name());
        defects.push(object.defect(code, format!("{name}: {message}")));
    };
    match &bundle.content {
        BundleContent::Registry(content) => {
            for object in &content.others {
                report_all(object, other(object), &mut report);
            }
            for object in &content.definitions {
                report_all(object, registry_definition(object), &mut report);
            }
        }
        BundleContent::Plain(objects) => {
            for object in objects {
                let problem = plain(object, namespace).or_else(|| definition(object));
                report_all(object, problem, &mut report);
            }
        }
    }
    defects
}

fn report_all(
    object: &BundleObject,
    problem: Option<String>,
    report: &mut dyn FnMut(&BundleObject, DefectCode, String),
) {
    let problems = problem.into_iter().chain(reserved(object));
    problems.for_each(|message| report(object, DefectCode::BundleKind, message));
}

/// Of a registry+v1 bundle. Kinds that it may not contain at all are found by the validation.
fn other(object: &BundleObject) -> Option<String> {
    let (_, group) = GROUPS.iter().find(|(kind, _)| *kind == object.kind())?;
    let found = object_key(&object.value).group;
    if found != *group {
        return Some(format!(
            "its API group is `{found}`, and a bundle may contain the kind of `{group}` only"
        ));
    }
    class(object)
}

/// Of an ActionClass: it takes the place of no built-in one. Policies go by names of classes.
fn class(object: &BundleObject) -> Option<String> {
    if object.kind() != ACTION_CLASS.kind {
        return None;
    }
    let names = |class: &Value| {
        let aliases = class["spec"]["aliases"].as_array().cloned().unwrap_or_default();
        let names = aliases.into_iter().chain([class["metadata"]["name"].clone()]);
        names.filter_map(|it| it.as_str().map(str::to_owned)).collect::<Vec<String>>()
    };
    let own = names(&object.value);
    for built_in in classes::built_in() {
        let controller = &built_in["spec"]["controller"];
        if object.value["spec"]["controller"] == *controller {
            let controller = controller.as_str().unwrap_or_default();
            return Some(format!(
                "its spec.controller is `{controller}`, which serves the built-in classes alone: name \
                 that of the bundle"
            ));
        }
        if let Some(name) = names(&built_in).into_iter().find(|it| own.contains(it)) {
            return Some(format!("`{name}` is a built-in class: choose another name"));
        }
    }
    None
}

/// Of a registry+v1 bundle: what is a definition by its kind is one by its group.
fn registry_definition(object: &BundleObject) -> Option<String> {
    let found = object_key(&object.value).group;
    if found == DEFINITIONS_GROUP {
        return definition(object);
    }
    Some(format!(
        "its API group is `{found}`, and a bundle may contain the kind of `{DEFINITIONS_GROUP}` only"
    ))
}

fn definition(object: &BundleObject) -> Option<String> {
    let found = object_key(&object.value).group;
    if object.kind() != "CustomResourceDefinition" || found != DEFINITIONS_GROUP {
        return None;
    }
    let api_version = object.value["apiVersion"].as_str().unwrap_or_default();
    if api_version != DEFINITIONS_API_VERSION {
        return Some(format!(
            "Kubernetes 1.22 and later do not serve `{api_version}`: write the definition in \
             `{DEFINITIONS_API_VERSION}`"
        ));
    }
    let group = object.value["spec"]["group"].as_str().unwrap_or_default();
    (group == OPERATORS_GROUP)
        .then(|| format!("the API group `{group}` is that of Operators: choose another one"))
}

fn plain(object: &BundleObject, namespace: &str) -> Option<String> {
    let key = object_key(&object.value);
    if key.group == ACTION_CLASS.group && key.kind == ACTION_CLASS.kind {
        return class(object);
    }
    if key.group == OPERATORS_GROUP {
        return Some("a bundle may not contain Operators and what belongs to them".to_owned());
    }
    if key.kind == "Namespace" && key.group.is_empty() {
        return (key.name != namespace).then(|| {
            format!(
                "a bundle may not contain other namespaces than the one it is installed into: set \
                 spec.namespace of the Operator to `{}`",
                key.name
            )
        });
    }
    let is_elsewhere = !key.namespace.is_empty()
        && key.namespace != namespace
        && !is_cluster_scoped(&key.group, &key.kind);
    is_elsewhere.then(|| {
        format!(
            "it is in the namespace `{}`, and the bundle is installed into `{namespace}`: set \
             spec.namespace of the Operator",
            key.namespace
        )
    })
}

/// What of an object's metadata the controller sets itself.
fn reserved(object: &BundleObject) -> Option<String> {
    let names = ["labels", "annotations"]
        .into_iter()
        .filter_map(|field| object.value["metadata"][field].as_object())
        .flat_map(|entries| entries.keys());
    let mut names = names.filter(|name| {
        name.starts_with(RESERVED) || [CA_ANNOTATION, SERVING_ANNOTATION].contains(&name.as_str())
    });
    names.next().map(|name| format!("remove `{name}`, which the controller sets"))
}
