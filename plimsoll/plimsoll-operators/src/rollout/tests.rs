//! Tests of the order of a rollout.

use plimsoll_plan::apply::prepare;
use plimsoll_plan::plan::{Action, Readiness};
use plimsoll_plan::progress::Scope;
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
    let plan = rollout(&bundle, objects, []);
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
    let plan = rollout(&BundleReference::default(), objects, []);
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

/// Returns a definition with versions, the first of which is stored; with `converted` a service converts its
/// objects.
fn definition(versions: &[&str], converted: bool) -> Manifest {
    let version = |(index, name): (usize, &&str)| json!({ "name": name, "served": true, "storage": index == 0 });
    let versions: Vec<Value> = versions.iter().enumerate().map(version).collect();
    let service = json!({ "namespace": "kettle", "name": "kettle" });
    let conversion = match converted {
        true => json!({
            "strategy": "Webhook", "webhook": { "clientConfig": { "service": service } },
        }),
        false => json!({ "strategy": "None" }),
    };
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "kettles.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Kettle", "plural": "kettles" },
            "versions": versions,
            "conversion": conversion,
        },
    });
    Manifest::read("bundle".into(), 0, &object).unwrap()
}

#[test]
fn a_conversion_webhook_is_set_once_its_workload_is_ready() {
    let none = json!({});
    let check = |after: &Manifest, installed: &[&Manifest], expected: &[&str]| {
        let objects = [
            manifest("apps/v1", "Deployment", "kettle", &none),
            manifest("monitoring.coreos.com/v1", "ServiceMonitor", "kettle", &none),
            after.clone(),
        ];
        let plan = rollout(&BundleReference::default(), objects, installed.iter().copied());
        let nodes = plan.graph.nodes.iter().flat_map(|node| &node.tasks);
        let nodes = nodes.filter(|at| plan.steps[**at].action != Action::Migrate);
        let steps = nodes.map(|at| {
            let step = &plan.steps[*at];
            let applied = prepare::object(step, Scope::Cluster);
            let converted = &applied["spec"]["conversion"]["strategy"];
            let converted = if converted == "Webhook" { " with its webhook" } else { "" };
            format!("{}{converted}", step.manifest.key.kind)
        });
        assert_eq!(steps.collect::<Vec<String>>(), expected);
    };
    let first = "CustomResourceDefinition";
    let last = "CustomResourceDefinition with its webhook";
    let (deployment, monitor) = ("Deployment", "ServiceMonitor");
    let webhook = definition(&["v1", "v2"], true);
    check(&webhook, &[], &[first, deployment, last, monitor]);
    // What was served before is, and nothing else, until objects can be converted.
    check(&webhook, &[&definition(&["v1"], false)], &[deployment, last, monitor]);
    check(&webhook, &[&definition(&["v2", "v1"], false)], &[deployment, last, monitor]);
    check(&webhook, &[&definition(&["v1", "v2"], false)], &[first, deployment, last, monitor]);
    // The webhook of the installed version answers.
    check(&webhook, &[&definition(&["v1"], true)], &[last, deployment, monitor]);
    check(&definition(&["v1", "v2"], false), &[], &[first, deployment, monitor]);
    // Whatever converts the objects meanwhile, it stays until ours does.
    let mut other = definition(&["v1"], true).object();
    other["spec"]["conversion"]["webhook"]["clientConfig"] =
        json!({ "url": "https://example.com" });
    let other = Manifest::read("live".into(), 0, &other).unwrap();
    check(&webhook, &[&other], &[last, deployment, monitor]);
}

#[test]
fn objects_of_definitions_with_several_versions_are_migrated_after_all_else() {
    let none = json!({});
    let check = |definition: &Manifest, expected: &[&str]| {
        let webhook = "MutatingWebhookConfiguration";
        let objects = [
            manifest("apps/v1", "Deployment", "kettle", &none),
            manifest("admissionregistration.k8s.io/v1", webhook, "kettle", &none),
            definition.clone(),
        ];
        let plan = rollout(&BundleReference::default(), objects, []);
        let nodes = plan.graph.nodes.iter().map(|node| {
            let step = &plan.steps[node.tasks[0]];
            format!("{:?} {} after {:?}", step.action, step.manifest.key.kind, node.after)
        });
        assert_eq!(nodes.collect::<Vec<String>>(), expected);
        assert_eq!(plan.of_release().len(), plan.steps.len());
    };
    let only = [
        "Apply CustomResourceDefinition after []",
        "Apply Deployment after [0]",
        "Apply MutatingWebhookConfiguration after [1]",
    ];
    check(&definition(&["v1"], false), &only);
    let several = [
        "Apply CustomResourceDefinition after []",
        "Apply Deployment after [0]",
        "Apply CustomResourceDefinition after [1]",
        "Apply MutatingWebhookConfiguration after [2]",
        "Migrate CustomResourceDefinition after [0, 1, 2, 3]",
    ];
    check(&definition(&["v1", "v1alpha1"], true), &several);
}

#[test]
fn an_object_in_a_version_that_waits_for_its_conversion_comes_after_it() {
    let none = json!({});
    let objects = [
        manifest("example.com/v2", "Kettle", "new", &none),
        manifest("example.com/v1", "Kettle", "old", &none),
        manifest("apps/v1", "Deployment", "workload", &none),
        definition(&["v1", "v2"], true),
    ];
    let check = |installed: &Manifest, expected: &[&str]| {
        let plan = rollout(&BundleReference::default(), objects.clone(), [installed]);
        let nodes = plan.graph.nodes.iter().flat_map(|node| &node.tasks);
        let names: Vec<&str> = nodes.map(|at| plan.steps[*at].manifest.key.name.as_str()).collect();
        assert_eq!(names, expected);
    };
    // The last step migrates its objects.
    let defined = "kettles.example.com";
    check(&definition(&["v1"], false), &["old", "workload", defined, "new", defined]);
    check(&definition(&["v1"], true), &[defined, "new", "old", "workload", defined]);
}

#[test]
fn a_cluster_operator_is_waited_for_if_it_names_versions() {
    let check = |status: &Value, expected: (Action, Readiness)| {
        let object = json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterOperator",
            "metadata": { "name": "kettle" },
            "status": status,
        });
        let manifest = Manifest::read("bundle".into(), 0, &object).unwrap();
        let plan = rollout(&BundleReference::default(), [manifest], []);
        let step = &plan.steps[0];
        assert_eq!((step.action.clone(), step.readiness), expected);
        let applied = prepare::object(step, Scope::Cluster);
        assert_eq!((&applied["spec"], &applied["status"]), (&json!({}), &Value::Null));
    };
    let versions = json!([{ "name": "operator", "version": "1.0.0" }]);
    check(&json!({ "versions": versions }), (Action::Gate, Readiness::Gate));
    check(&Value::Null, (Action::Apply, Readiness::Applied));
}

#[test]
fn claims_certificates_and_api_services_are_waited_for() {
    let none = json!({});
    let objects = [
        manifest("v1", "PersistentVolumeClaim", "kettle", &none),
        manifest("cert-manager.io/v1", "Certificate", "kettle", &none),
        manifest("apps/v1", "Deployment", "kettle", &none),
        manifest("apiregistration.k8s.io/v1", "APIService", "v1.kettle", &none),
    ];
    let plan = rollout(&BundleReference::default(), objects, []);
    let nodes = plan.graph.nodes.iter().flat_map(|node| &node.tasks);
    let steps = nodes.map(|at| &plan.steps[*at]);
    let steps: Vec<(&str, Readiness)> =
        steps.map(|it| (it.manifest.key.kind.as_str(), it.readiness)).collect();
    let expected = [
        ("PersistentVolumeClaim", Readiness::Applied),
        ("Certificate", Readiness::RolledOut),
        ("Deployment", Readiness::RolledOut),
        // One of a class with `WaitForFirstConsumer` is bound once a pod uses it.
        ("PersistentVolumeClaim", Readiness::RolledOut),
        ("APIService", Readiness::RolledOut),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn what_manifests_name_as_conditions_is_waited_for() {
    let gate = json!({ "plimsoll.io/ready-when": "self.data.ready == 'true'" });
    let check = |api_version: &str, kind: &str, expected: &[Readiness]| {
        let object = manifest(api_version, kind, "kettle", &gate);
        let plan = rollout(&BundleReference::default(), [object], []);
        let found: Vec<Readiness> = plan.steps.iter().map(|it| it.readiness).collect();
        assert_eq!(found, expected, "{kind}");
        let is_named = plan.steps.last().is_some_and(|it| it.ready_when().is_some());
        assert_eq!(is_named, kind != "Namespace", "{kind}");
    };
    check("v1", "ConfigMap", &[Readiness::RolledOut]);
    check("example.com/v1", "Whatever", &[Readiness::RolledOut]);
    check("apps/v1", "Deployment", &[Readiness::RolledOut]);
    // A claim is awaited where it is applied last.
    check("v1", "PersistentVolumeClaim", &[Readiness::Applied, Readiness::RolledOut]);
    check("v1", "Namespace", &[Readiness::Applied]);
}
