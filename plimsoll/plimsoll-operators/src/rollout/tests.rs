//! Tests of the order of a rollout.

use plimsoll_plan::plan::{Action, Readiness};
use serde_json::{Value, json};

use super::*;

fn manifest(api_version: &str, kind: &str, name: &str, annotations: &Value) -> Manifest {
    let object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "annotations": annotations},
    });
    Manifest::read("bundle".into(), 0, &object).unwrap()
}

#[test]
fn objects_are_applied_phase_by_phase() {
    let none = json!({});
    let objects = [
        manifest("apps/v1", "Deployment", "kettle", &none),
        manifest("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "w", &none),
        manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "r", &none),
        manifest("v1", "ConfigMap", "b", &none),
        manifest("v1", "Secret", "a", &none),
        manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "kettles.x", &none),
        manifest("v1", "Service", "kettle", &none),
        manifest("monitoring.coreos.com/v1", "ServiceMonitor", "kettle", &none),
        manifest("v1", "ServiceAccount", "kettle", &none),
        manifest("v1", "Namespace", "kettle", &none),
        manifest("example.com/v1", "Whatever", "it", &none),
    ];
    let bundle = BundleReference {
        name: "kettle.v1.0.0".into(),
        version: "1.0.0".into(),
        ..BundleReference::default()
    };
    let plan = rollout(&bundle, objects);
    assert_eq!(
        (plan.release.version.as_str(), plan.release.image.as_str()),
        ("1.0.0", "kettle.v1.0.0")
    );
    // Each node with the number of its predecessors.
    let order: Vec<String> = plan
        .graph
        .nodes
        .iter()
        .map(|node| {
            let steps: Vec<&str> =
                node.tasks.iter().map(|at| plan.steps[*at].manifest.key.kind.as_str()).collect();
            format!("{} after {:?}", steps.join(" "), node.after)
        })
        .collect();
    let expected = [
        "Namespace after []",
        "ServiceAccount after [0]",
        "ConfigMap after [1]",
        "Secret after [1]",
        "CustomResourceDefinition after [2, 3]",
        "ClusterRole after [4]",
        "Service after [5]",
        "Deployment after [6]",
        "Whatever after [6]",
        "ServiceMonitor after [7, 8]",
        "MutatingWebhookConfiguration after [9]",
    ];
    assert_eq!(order, expected);
}

#[test]
fn a_bundle_deletes_nothing_by_annotations_of_releases() {
    let delete = json!({"release.openshift.io/delete": "true"});
    let odd = json!({"release.openshift.io/delete": "perhaps"});
    let once = json!({"release.openshift.io/create-only": "true"});
    let objects = [
        manifest("apps/v1", "Deployment", "a", &delete),
        manifest("apps/v1", "Deployment", "b", &odd),
        manifest("apps/v1", "Deployment", "c", &once),
    ];
    let plan = rollout(&BundleReference::default(), objects);
    for step in &plan.steps {
        assert_eq!((&step.action, step.readiness), (&Action::Apply, Readiness::RolledOut));
    }
}

#[test]
fn phases_are_in_their_order() {
    assert!(Phase::ALL.is_sorted());
    let kind = |group: &str, kind: &str| Phase::of(&GroupKind::new(group, kind)).as_str();
    assert_eq!(kind("", "ResourceQuota"), "Policies");
    assert_eq!(kind("storage.k8s.io", "StorageClass"), "Storage");
    assert_eq!(kind("apiregistration.k8s.io", "APIService"), "Publishing");
    assert_eq!(kind("batch", "Job"), "Workloads");
}
