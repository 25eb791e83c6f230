//! Clusters that kube-apiserver's flags would have set up otherwise.
use std::collections::BTreeSet;

use k8s_apiserver::{AdmissionPlugin, ClusterSettings, Options};

use crate::cluster::TestCluster;

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str =
    r#"{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;

fn cluster(settings: ClusterSettings) -> TestCluster {
    TestCluster::with_options(Options { seed: 1, settings, ..Options::default() }, None)
}

#[test]
fn a_pod_is_replaced_with_what_its_file_says_if_admission_adds_nothing() {
    use AdmissionPlugin::{DefaultTolerationSeconds, ServiceAccount};
    let disabled_plugins = BTreeSet::from([DefaultTolerationSeconds, ServiceAccount]);
    let cluster = cluster(ClusterSettings { disabled_plugins, ..ClusterSettings::default() });
    let made = cluster.check(&format!("POST {PODS}"), POD, 201, "");
    for added in ["volumes", "tolerations", "serviceAccountName"] {
        assert!(made["spec"].get(added).is_none(), "{added}");
    }
    let replaced = cluster.check(&format!("PUT {PODS}/a"), POD, 200, "");
    assert_eq!(replaced["spec"], made["spec"], "with the priority that it had");
}

#[test]
fn a_volume_may_be_without_protection() {
    let disabled_plugins = BTreeSet::from([AdmissionPlugin::StorageObjectInUseProtection]);
    let cluster = cluster(ClusterSettings { disabled_plugins, ..ClusterSettings::default() });
    let volume = r#"{
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"}}
    }"#;
    let made = cluster.check("POST /api/v1/persistentvolumes", volume, 201, "");
    assert!(made["metadata"].get("finalizers").is_none(), "{made}");
}

#[test]
fn services_have_addresses_of_their_range() {
    let settings = ClusterSettings {
        service_range: "10.0.0.0/24".parse().unwrap(),
        ..ClusterSettings::default()
    };
    let cluster = cluster(settings);
    let services = "/api/v1/namespaces/default/services";
    let own = cluster.check(&format!("GET {services}/kubernetes"), "", 200, "");
    assert_eq!(own["spec"]["clusterIP"], "10.0.0.1");
    let service = r#"{"metadata": {"name": "s"}, "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 1}]}}"#;
    let refused = cluster.check(&format!("POST {services}"), service, 422, "");
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with("The range of valid IPs is 10.0.0.0/24"), "{message}");
}

#[test]
fn namespaces_are_as_empty_as_the_cluster_has_them() {
    for empty_namespaces in [false, true] {
        let cluster = cluster(ClusterSettings { empty_namespaces, ..ClusterSettings::default() });
        cluster.check("POST /api/v1/namespaces", r#"{"metadata": {"name": "n"}}"#, 201, "");
        let expected = usize::from(!empty_namespaces);
        for namespace in ["n", "default", "kube-system"] {
            for plural in ["serviceaccounts", "configmaps"] {
                let path = format!("GET /api/v1/namespaces/{namespace}/{plural}");
                let found = cluster.check(&path, "", 200, "");
                let items = found["items"].as_array().unwrap();
                let content = ["default", "kube-root-ca.crt"];
                let is_content = |item: &&serde_json::Value| {
                    content.iter().any(|name| item["metadata"]["name"] == *name)
                };
                assert_eq!(items.iter().filter(is_content).count(), expected, "{path}: {items:?}");
            }
        }
    }
}
