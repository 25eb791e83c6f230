//! Permissions for bundles, and no others.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::operator_permissions;

/// Returns whether a rule allows a verb on a resource.
fn allows(rules: &[PolicyRule], verb: &str, group: &str, resource: &str) -> bool {
    let has = |list: &Option<Vec<String>>, item: &str| {
        list.iter().flatten().any(|it| it == item || it == "*")
    };
    rules.iter().any(|rule| {
        has(&Some(rule.verbs.clone()), verb)
            && has(&rule.api_groups, group)
            && has(&rule.resources, resource)
    })
}

#[test]
fn permissions_follow_from_the_objects_of_bundles() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "beacons.lantern.example.com" },
        "spec": {
            "group": "lantern.example.com",
            "names": { "kind": "Beacon", "plural": "beacons" },
        },
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": "lantern" },
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "lantern" },
        "roleRef": { "kind": "ClusterRole", "name": "lantern" },
    });
    let deployment =
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "lantern" } });
    let bundle: Vec<Value> = vec![definition, role, binding, deployment];
    let permissions = operator_permissions(&[bundle]);
    let rules = &permissions.cluster;
    for verb in ["get", "list", "watch", "create", "patch", "delete"] {
        assert!(allows(rules, verb, "apps", "deployments"), "{verb}");
    }
    assert!(allows(rules, "delete", "lantern.example.com", "beacons"));
    assert!(!allows(rules, "create", "lantern.example.com", "beacons"));
    assert!(!allows(rules, "get", "", "secrets"));
    for verb in ["escalate", "bind"] {
        let named = rules.iter().filter(|it| it.verbs.iter().any(|it| it == verb));
        let names: Vec<_> = named.filter_map(|it| it.resource_names.clone()).collect();
        assert_eq!(names, [["lantern".to_owned()]], "{verb}");
    }
}

#[test]
fn the_provider_of_certificates_may_do_what_it_does() {
    let webhook = |annotations: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "lantern", "annotations": annotations },
        })
    };
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "lantern-cert",
            "namespace": "lantern",
            "annotations": { plimsoll_bundle::SERVING_ANNOTATION: "lantern" },
        },
    });
    let trusting = webhook(json!({ plimsoll_bundle::CA_ANNOTATION: "lantern/lantern-cert" }));
    let rules = operator_permissions(&[vec![secret, trusting]]).cluster;
    let (group, plural) = ("admissionregistration.k8s.io", "validatingwebhookconfigurations");
    for (verb, group, resource) in [
        // Those to renew are listed; one is read before it is filled.
        ("list", "", "secrets"),
        ("get", "", "secrets"),
        ("create", "", "secrets"),
        ("patch", "", "secrets"),
        // Who calls a service is listed, and replaced.
        ("list", group, plural),
        ("update", group, plural),
        ("list", "apiregistration.k8s.io", "apiservices"),
        // An administrator may choose cert-manager instead.
        ("create", "cert-manager.io", "issuers"),
        ("patch", "cert-manager.io", "certificates"),
        ("delete", "cert-manager.io", "certificates"),
        ("watch", "cert-manager.io", "certificates"),
    ] {
        assert!(allows(&rules, verb, group, resource), "{verb} {resource}");
    }
    let rules = operator_permissions(&[vec![webhook(json!({}))]]).cluster;
    assert!(!allows(&rules, "get", "cert-manager.io", "certificates"), "it needs no certificate");
    assert!(
        !allows(&rules, "update", group, plural),
        "it calls no service with a certificate of ours"
    );
}

#[test]
fn the_status_of_a_cluster_operator_may_be_filled_in() {
    let operator = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": { "name": "lantern" },
    });
    let rules = operator_permissions(&[vec![operator]]).cluster;
    assert!(allows(&rules, "patch", "config.openshift.io", "clusteroperators/status"));
}

#[test]
fn without_bundles_the_controller_writes_only_what_is_its_own() {
    let permissions = operator_permissions(&[]);
    assert!(allows(&permissions.cluster, "patch", "olm.io", "operators/status"));
    assert!(!allows(&permissions.cluster, "create", "apps", "deployments"));
    assert!(!allows(&permissions.cluster, "patch", "olm.io", "catalogs"));
    let names = permissions.lease_namespace.iter().filter_map(|it| it.resource_names.clone());
    let names: Vec<Vec<String>> = names.collect();
    assert_eq!(names, [["plimsoll-operators"], ["plimsoll-revisions"]]);
}
