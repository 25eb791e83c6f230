//! What an installation is made of, and what a bundle may not make the controller write.

use plimsoll_content::bundle::{BundleFile, KINDS};
use serde_json::{Value, json};

use super::permitted::GROUPS;
use super::{InstallRequest, RevisionObjects, revision_objects};
use crate::render::serving_certificates;
use crate::{Bundle, CertificateProvider, load};

const CSV: &str = "kind: ClusterServiceVersion
metadata: {name: crane.v1, annotations: ANNOTATIONS}
spec:
  installModes: [{type: MODE, supported: true}]
  install: {spec: {deployments: [{name: crane, spec: {template: {spec: {containers: [{name: a}]}}}}]}}
";

/// A bundle of package `crane` with a media type and these files.
fn bundle(media_type: &str, files: &[(&str, &str)]) -> Bundle {
    let prefix = "operators.operatorframework.io.bundle";
    let annotations =
        format!("annotations: {{{prefix}.package.v1: crane, {prefix}.mediatype.v1: {media_type}}}");
    let mut all = vec![("metadata/annotations.yaml", annotations.as_str())];
    all.extend(files);
    let file = |(path, text): &(&str, &str)| BundleFile {
        path: (*path).to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    load(&all.iter().map(file).collect::<Vec<_>>()).expect("it can be read")
}

/// A registry+v1 bundle with annotations of its ClusterServiceVersion, one install mode, and
/// another file.
fn registry(annotations: &Value, mode: &str, other: &str) -> Bundle {
    let csv = CSV.replace("ANNOTATIONS", &annotations.to_string()).replace("MODE", mode);
    bundle("registry+v1", &[("manifests/csv.yaml", &csv), ("manifests/other.yaml", other)])
}

fn plain(objects: &str) -> Bundle {
    bundle("plain+v0", &[("manifests/all.yaml", objects)])
}

fn install(
    bundle: &Bundle,
    namespace: &str,
    config: Option<&Value>,
) -> Result<RevisionObjects, String> {
    let certificates = CertificateProvider::BuiltIn;
    let request = InstallRequest { operator: "crane", namespace, config, certificates };
    revision_objects(bundle, &request).map_err(|defects| {
        let texts: Vec<String> = defects.iter().map(ToString::to_string).collect();
        texts.join("\n").replace(": package crane", "")
    })
}

#[test]
fn the_namespace_comes_first_and_is_as_the_bundle_wants_it() {
    let template = json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": {
        "name": "dock",
        "labels": { "pod-security.kubernetes.io/enforce": "privileged",
            "kubernetes.io/metadata.name": "other" },
        "annotations": { "openshift.io/node-selector": "" },
    } });
    let name = "operatorframework.io/suggested-namespace";
    let whole = "operatorframework.io/suggested-namespace-template";
    let monitored = "operatorframework.io/cluster-monitoring";
    let privileged = json!({ "pod-security.kubernetes.io/enforce": "privileged" });
    let watched = json!({ "openshift.io/cluster-monitoring": "true" });
    for (annotations, given, expected, labels) in [
        (json!({}), "", "crane", json!({})),
        (json!({}), "pier", "pier", json!({})),
        (json!({ name: "harbour" }), "", "harbour", json!({})),
        (json!({ name: "harbour" }), "pier", "pier", json!({})),
        (json!({ whole: template.to_string() }), "", "dock", privileged.clone()),
        (json!({ whole: template.to_string() }), "pier", "pier", privileged.clone()),
        (json!({ name: "harbour", whole: template.to_string() }), "", "harbour", privileged),
        (json!({ monitored: "true" }), "", "crane", watched),
        (json!({ monitored: "false" }), "", "crane", json!({})),
    ] {
        let bundle = registry(&annotations, "AllNamespaces", "");
        let revision = install(&bundle, given, None).expect("it can be installed");
        let mut labels = labels.clone();
        labels["olm.io/operator"] = "crane".into();
        let first = &revision.objects[0];
        assert_eq!(first["kind"], "Namespace");
        assert_eq!(first["metadata"]["name"], expected, "{annotations}");
        assert_eq!(first["metadata"]["labels"], labels, "{annotations}");
        assert_eq!(revision.namespace, expected);
        assert_eq!(revision.objects[1]["metadata"]["namespace"], expected);
    }
    for (text, problem) in [
        ("{", "is not a Namespace: EOF while parsing an object at line 1 column 1"),
        (r#"{"kind":"Pod","metadata":{}}"#, "is a Pod, no Namespace"),
        (
            r#"{"kind":"Namespace","metadata":{"labels":{"olm.io/operator":"x"}}}"#,
            "has `olm.io/operator`: it is set by the controller",
        ),
    ] {
        let bundle = registry(&json!({ whole: text }), "AllNamespaces", "");
        let error = install(&bundle, "", None).expect_err("it is refused");
        let at = "manifests/csv.yaml:2: error [bundle-annotation]: the annotation";
        assert_eq!(error, format!("{at} {whole} {problem}"));
    }
}

#[test]
fn fields_of_the_operator_are_named() {
    let all = registry(&json!({}), "AllNamespaces", "");
    let own = registry(&json!({}), "OwnNamespace", "");
    let single = registry(&json!({}), "SingleNamespace", "");
    let plain = plain("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    for (bundle, namespace, config, expected) in [
        (&all, "", json!({}), ""),
        (&all, "", json!(null), ""),
        (&own, "", json!({}), ""),
        (&own, "", json!({ "watchNamespace": "crane" }), ""),
        (&single, "", json!({ "watchNamespace": "pier" }), ""),
        (&plain, "", json!({}), ""),
        (
            &all,
            "Not A Name",
            json!({}),
            "spec.namespace: error [target-namespaces]: `Not A Name` is not the name of a namespace:",
        ),
        (
            &all,
            "",
            json!([]),
            "spec.config: error [bundle-config]: a configuration is a mapping, not []",
        ),
        (
            &all,
            "",
            json!({ "deploymentConfig": { "env": [{ "name": 1 }], "x": 1 } }),
            "spec.config.deploymentConfig.env[0].name: error [bundle-config]:",
        ),
        (
            &own,
            "",
            json!({ "watchNamespace": "pier" }),
            "spec.config.watchNamespace: error [bundle-config]: the operator can only watch",
        ),
        (
            &single,
            "",
            json!({}),
            "spec.config.watchNamespace: error [bundle-config]: missing: the operator cannot watch",
        ),
        (&plain, "", json!({ "env": 1 }), "spec.config.env: error [bundle-config]:"),
    ] {
        let error = install(bundle, namespace, Some(&config)).err().unwrap_or_default();
        assert_eq!(error.is_empty(), expected.is_empty(), "{config}: {error}");
        assert!(error.starts_with(expected), "{config}: {error}");
    }
    let watched = install(&own, "", None).expect("there is one choice");
    let deployment = watched.objects.iter().find(|it| it["kind"] == "Deployment");
    let annotations =
        &deployment.expect("there is one")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["olm.targetNamespaces"], "crane");
    for operator in ["pier", &"c".repeat(64)] {
        let request = InstallRequest {
            operator,
            namespace: "crane",
            config: None,
            certificates: CertificateProvider::BuiltIn,
        };
        assert!(revision_objects(&all, &request).is_err(), "{operator}");
    }
}

/// The beginning of a ConfigMap, whose metadata goes on.
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a";
/// The beginning of an ActionClass, whose name follows.
const CLASS: &str = "apiVersion: olm.io/v1\nkind: ActionClass\nmetadata: {name: ";

/// A definition in a version that API servers do not serve any more, and what is said of it.
const OLD_DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n\
     metadata: {name: lifts.example.com}\nspec: {group: example.com, version: v1}";
const OLD_DEFINITION_REFUSED: &str = "CustomResourceDefinition `lifts.example.com`: Kubernetes 1.22 and later \
     do not serve `apiextensions.k8s.io/v1beta1`: write the definition in `apiextensions.k8s.io/v1`";

/// Checks what is said of a bundle because of the objects in a file; nothing if it can be installed.
fn check(bundle: &Bundle, file: &str, objects: &str, expected: &str) {
    let error = install(bundle, "", None).err().unwrap_or_default();
    let at = format!("manifests/{file}:1: error [bundle-kind]: ");
    let error = error.strip_prefix(&at).unwrap_or(&error);
    assert_eq!(error.is_empty(), expected.is_empty(), "{objects}: {error}");
    assert!(error.starts_with(expected), "{objects}: {error}");
}

#[test]
fn what_a_registry_bundle_may_not_contain_is_refused() {
    for (other, expected) in [
        (format!("{MAP}}}"), ""),
        (
            "apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a}".to_owned(),
            "Secret `a`: its API group is `example.com`, and a bundle may contain the kind of ``",
        ),
        (
            format!("{MAP}, labels: {{olm.io/operator: other}}}}"),
            "ConfigMap `a`: remove `olm.io/operator`, which the controller sets",
        ),
        (
            format!("{MAP}, annotations: {{plimsoll.io/inject-ca-from: a/b}}}}"),
            "ConfigMap `a`: remove `plimsoll.io/inject-ca-from`, which the controller sets",
        ),
        (format!("{MAP}, annotations: {{plimsoll.io/ready-when: conditions}}}}"), ""),
        (
            format!("{MAP}, annotations: {{plimsoll.io/ready-when: 1 + 1}}}}"),
            "manifests/other.yaml:1: error [bundle-annotation]: ConfigMap `a`: \
             plimsoll.io/ready-when=\"1 + 1\" is neither `conditions` nor a rule",
        ),
        (
            "apiVersion: example.com/v1\nkind: CustomResourceDefinition\n\
             metadata: {name: a, namespace: kube-system}"
                .to_owned(),
            "CustomResourceDefinition `a`: its API group is `example.com`, and a bundle may contain",
        ),
        (
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {name: operators.olm.io}\nspec: {group: olm.io, names: {kind: X, plural: x},\
             \n scope: Cluster, versions: []}"
                .to_owned(),
            "CustomResourceDefinition `operators.olm.io`: the API group `olm.io` is that of Operators",
        ),
        (OLD_DEFINITION.to_owned(), OLD_DEFINITION_REFUSED),
        (format!("{CLASS}seal}}\nspec: {{controller: example.com/seal}}"), ""),
        (
            format!("{CLASS}seal}}\nspec: {{controller: olm.io/plimsoll}}"),
            "ActionClass `seal`: its spec.controller is `olm.io/plimsoll`, which serves the built-in",
        ),
        (
            format!("{CLASS}autoremove}}\nspec: {{controller: example.com/seal}}"),
            "ActionClass `autoremove`: `autoremove` is a built-in class: choose another name",
        ),
        (
            format!("{CLASS}seal}}\nspec: {{controller: a.b/c, aliases: [operator-installation]}}"),
            "ActionClass `seal`: `operator-installation` is a built-in class",
        ),
    ] {
        check(&registry(&json!({}), "AllNamespaces", &other), "other.yaml", &other, expected);
    }
}

#[test]
fn what_a_plain_bundle_may_not_contain_is_refused() {
    for (objects, expected) in [
        (format!("{MAP}}}"), ""),
        (format!("{MAP}, namespace: crane}}"), ""),
        (OLD_DEFINITION.to_owned(), OLD_DEFINITION_REFUSED),
        (format!("{CLASS}seal}}\nspec: {{controller: example.com/seal}}"), ""),
        (
            format!("{CLASS}seal}}\nspec: {{controller: olm.io/plimsoll}}"),
            "ActionClass `seal`: its spec.controller is `olm.io/plimsoll`",
        ),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: crane}".to_owned(), ""),
        (
            "apiVersion: v1\nkind: Namespace\n\
             metadata: {name: crane, annotations: {plimsoll.io/ready-when: conditions}}"
                .to_owned(),
            "manifests/all.yaml:1: error [bundle-annotation]: Namespace `crane`: \
             plimsoll.io/ready-when=\"conditions\" has no effect on objects of kind Namespace",
        ),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: x}".to_owned(), ""),
        (
            format!("{MAP}, namespace: pier}}"),
            "ConfigMap `a`: it is in the namespace `pier`, and the bundle is installed into `crane`",
        ),
        (
            "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a, namespace: pier}".to_owned(),
            "X `a`: it is in the namespace `pier`",
        ),
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: pier}".to_owned(),
            "Namespace `pier`: a bundle may not contain other namespaces than the one",
        ),
        (
            "apiVersion: olm.io/v1\nkind: Operator\nmetadata: {name: other}".to_owned(),
            "Operator `other`: a bundle may not contain Operators",
        ),
    ] {
        check(&plain(&objects), "all.yaml", &objects, expected);
    }
}

#[test]
fn every_kind_has_a_group() {
    let kinds: Vec<&str> = GROUPS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, KINDS);
}

#[test]
fn objects_are_marked_and_can_be_applied_as_they_are() {
    let objects = "apiVersion: v1
kind: Namespace
metadata: {name: crane, labels: {own: label}, uid: 1-2}
---
apiVersion: v1
kind: Node
metadata: {name: a, namespace: x, creationTimestamp: null, resourceVersion: '1', managedFields: []}
spec: {unschedulable: null, taints: [{key: a, value: null}]}
status: {phase: Running}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lifts.example.com}
spec: {versions: [{schema: {openAPIV3Schema: {properties: {a: {default: null, title: null}}}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {template: {metadata: {labels: {app: a}}}}
---
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: a}
status: {versions: [{name: operator, version: 1.0.0}]}
";
    let revision = install(&plain(objects), "", None).expect("it can be installed");
    let mark = json!({ "olm.io/operator": "crane" });
    let expected = [
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "crane",
            "labels": { "own": "label", "olm.io/operator": "crane" } } }),
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a", "labels": mark },
            "spec": { "taints": [{ "key": "a" }] } }),
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "lifts.example.com", "labels": mark },
            "spec": { "versions": [{ "schema": { "openAPIV3Schema":
                { "properties": { "a": { "default": null } } } } }] } }),
        json!({ "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "a", "namespace": "crane", "labels": mark },
            "spec": { "template": { "metadata": { "labels": { "app": "a" } } } } }),
        json!({ "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": { "name": "a", "labels": mark },
            "status": { "versions": [{ "name": "operator", "version": "1.0.0" }] } }),
    ];
    assert_eq!(revision.objects, expected);
    assert_eq!(serving_certificates(&revision.objects), []);
}
