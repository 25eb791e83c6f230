//! Each defect and what is said about it.

mod refused;

use std::collections::BTreeMap;

use super::{lint, lint_included, lint_update};
use crate::Manifest;
use crate::diagnostic::{FindingCode, has_errors};
use crate::payload::{Directory, SourceFile, TemplateContext};

const METADATA: &str = r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0"}"#;
const IMAGES: &str =
    r#"{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"1.0.0"}}"#;
const ANNOTATIONS: &str = "annotations: {include.release.openshift.io/p: 'true'}";

fn findings(files: &[(&str, String)]) -> String {
    let special = [("release-metadata", METADATA), ("image-references", IMAGES)];
    let special = special.map(|(name, text)| (name, text.to_owned()));
    let files: Vec<SourceFile> = files
        .iter()
        .chain(&special)
        .map(|(name, text)| SourceFile {
            directory: Directory::ReleaseManifests,
            name: (*name).to_owned(),
            bytes: text.clone().into(),
        })
        .collect();
    let findings = lint(&files, &TemplateContext::default());
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What is said about a file, without its name.
fn check(text: &str, expected: &str) {
    let text = text.replace("ANNOTATIONS", ANNOTATIONS);
    let found = findings(&[("0000_10_a_b.yaml", text)]);
    assert_eq!(found.replace("release-manifests/0000_10_a_b.yaml:", ""), expected);
}

#[test]
fn a_payload_in_order_has_no_findings() {
    check(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n  ANNOTATIONS\n",
        "",
    );
}

#[test]
fn documents_need_no_profile_where_the_metadata_say_so() {
    let metadata =
        METADATA.replace("\"1.0.0\"", "\"1.0.0\",\"metadata\":{\"plimsoll.io/profiles\":\"any\"}");
    let config = |annotations: &str| {
        let head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n";
        format!("{head}{annotations}")
    };
    // What no cluster would include otherwise is checked as well.
    let found = findings(&[
        ("0000_10_a_a.yaml", config("").replace("  namespace: default\n", "")),
        ("release-metadata", metadata.clone()),
    ]);
    assert!(found.contains("[missing-namespace]"), "{found}");
    let found = findings(&[
        ("0000_10_a_a.yaml", config("")),
        ("0000_10_a_b.yaml", config("  annotations: {a: b}\n")),
        ("release-metadata", metadata),
    ]);
    assert_eq!(
        found,
        "release-manifests/0000_10_a_b.yaml:4 (document 0): warning [duplicate-object]: \
         configmap/a -n default is in 0000_10_a_a.yaml, too: both are applied, in order"
    );
}

#[test]
fn errors_in_what_a_cluster_does_not_include_are_warnings() {
    let operator = |name: &str| {
        format!(
            "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {{name: {name}, \
             {ANNOTATIONS}}}\n---\n"
        )
    };
    let text = ["a", "b"].map(operator).concat();
    let files = [("0000_10_a_b.yaml", text.as_str()), ("release-metadata", METADATA)];
    let files: Vec<SourceFile> = files
        .into_iter()
        .chain([("image-references", IMAGES)])
        .map(|(name, text)| SourceFile {
            directory: Directory::ReleaseManifests,
            name: name.to_owned(),
            bytes: text.to_owned().into(),
        })
        .collect();
    let left_out = |manifest: &Manifest| (manifest.document == 1).then(|| "WHY".to_owned());
    let context = TemplateContext::default();
    let found = lint_included(&files, &BTreeMap::new(), &context, &left_out);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let said = |severity: &str, end: &str| {
        let mark = format!("{severity} [operator-versions]: ");
        found.iter().filter(|it| it.contains(&mark) && it.ends_with(end)).count()
    };
    assert_eq!(said("error", ""), 1, "{found:?}");
    let end = "; the cluster does not include the document: WHY";
    assert_eq!(said("warning", end), 1, "{found:?}");
}

#[test]
fn changes_that_no_update_makes_are_errors() {
    let manifest = |app: &str, annotations: &str| {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  namespace: ns\n  \
             annotations: {{{annotations}}}\nspec:\n  replicas: 1\n  selector: {{matchLabels: {{app: {app}}}}}\n"
        );
        SourceFile {
            directory: Directory::ReleaseManifests,
            name: "0000_10_a_b.yaml".to_owned(),
            bytes: text.into(),
        }
    };
    let check = |app: &str, annotations: &str, expected: &str| {
        let earlier = [manifest("one", "a: b")];
        let files = [manifest(app, annotations)];
        let found = lint_update(&earlier, &files, &BTreeMap::new(), &TemplateContext::default());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.join("\n"), expected);
    };
    check("one", "a: b", "");
    check(
        "two",
        "a: b",
        "release-manifests/0000_10_a_b.yaml:9 (document 0): error [immutable-field]: \
         deployment.apps/a -n ns: spec.selector is changed, which no update can: keep it, or set \
         the annotation plimsoll.io/replace to \"true\": the object is deleted and, once it is \
         gone, created again",
    );
    check("two", "plimsoll.io/replace: 'true'", "");
    check("two", "release.openshift.io/create-only: 'true'", "");
    check("two", "release.openshift.io/delete: 'true'", "");
}

#[test]
fn load_errors_are_findings() {
    check("a: [\n", "1 (document 0): error [load]: invalid YAML: unclosed bracket '[', column 4");
    check(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default, ANNOTATIONS}\ndata:\n  a: b\n  a: c\n",
        "6 (document 0): warning [duplicate-key]: key \"a\" occurs twice, the last one counts",
    );
}

#[test]
fn annotations_must_mean_something() {
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n";
    let with = |annotations: &str| {
        format!("{head}  annotations:\n    include.release.openshift.io/p: 'true'\n{annotations}")
    };
    check(
        head,
        "3 (document 0): warning [no-annotations]: no annotations: no cluster includes the document",
    );
    check(
        &format!("{head}  annotations: {{a: b}}\n"),
        "6 (document 0): warning [no-profile]: no annotation include.release.openshift.io/…: no cluster includes the document",
    );
    check(
        &with("    a: 1\n    exclude.release.openshift.io/x: 'True'\n"),
        "8 (document 0): error [annotation-type]: the annotation a is not a string but 1: quote it\n\
         9 (document 0): warning [profile-value]: exclude.release.openshift.io/x=True counts as if it were not there: only `true` counts",
    );
    check(
        &with(
            "    release.openshift.io/feature-set: Tech\n    release.openshift.io/feature-gate: A\n",
        ),
        "8 (document 0): error [annotation-value]: unknown feature set \"Tech\": no cluster includes the document\n\
         9 (document 0): error [feature-set-and-gate]: release.openshift.io/feature-set and release.openshift.io/feature-gate exclude each other: no cluster includes the document",
    );
    check(
        &with(
            "    release.openshift.io/major-version: '4'\n    capability.openshift.io/name: Console+console\n",
        ),
        "8 (document 0): error [major-version]: release.openshift.io/major-version is only allowed on CustomResourceDefinition and FeatureGate\n\
         9 (document 0): error [unknown-capability]: unknown capability \"console\": no cluster can enable it, did you mean \"Console\"?",
    );
    check(
        &with(
            "    release.openshift.io/delete: 'True'\n    release.openshift.io/create-only: 'yes'\n",
        ),
        "8 (document 0): error [delete-value]: release.openshift.io/delete=True is refused: only `true` is valid\n\
         9 (document 0): error [annotation-value]: release.openshift.io/create-only=yes has no effect: only `true` has",
    );
}

#[test]
fn gates_by_condition_must_be_rules() {
    let object = |kind: &str, value: &str| {
        format!(
            "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: a\n{}  annotations:\n    include.release.openshift.io/p: 'true'\n    plimsoll.io/ready-when: {value}\n",
            if kind == "Namespace" { "" } else { "  namespace: default\n" }
        )
    };
    check(&object("ConfigMap", "conditions"), "");
    check(&object("ConfigMap", "self.data.a == 'b'"), "");
    check(
        &object("ConfigMap", "1 + 1"),
        "8 (document 0): error [annotation-value]: plimsoll.io/ready-when=\"1 + 1\" is neither `conditions` nor a rule such as `self.status.phase == 'Ready'`: its type is int, not bool",
    );
    check(
        &object("Namespace", "conditions"),
        "7 (document 0): error [annotation-value]: plimsoll.io/ready-when=\"conditions\" has no effect on objects of kind Namespace",
    );
    for (other, value) in [("create-only", "'True'"), ("delete", "'true'")] {
        check(
            &format!(
                "{}    release.openshift.io/{other}: {value}\n",
                object("ConfigMap", "conditions")
            ),
            &format!(
                "8 (document 0): error [annotation-value]: plimsoll.io/ready-when=\"conditions\" has no effect with release.openshift.io/{other}, since such an object is not awaited: remove one of the two"
            ),
        );
    }
    check(
        &format!(
            "{}    release.openshift.io/create-only: 'false'\n",
            object("ConfigMap", "conditions")
        ),
        "",
    );
}

#[test]
fn objects_must_be_what_their_kinds_allow() {
    check(
        "kind: ConfigMap\nmetadata: {name: a, namespace: default, ANNOTATIONS}\n",
        "1 (document 0): error [missing-api-version]: the ConfigMap has no apiVersion",
    );
    check(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, ANNOTATIONS}\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  namespace: default\n  ANNOTATIONS\n",
        "3 (document 0): error [missing-namespace]: objects of kind ConfigMap need a namespace\n\
         9 (document 1): warning [unexpected-namespace]: objects of kind Namespace have no namespace: \"default\" is ignored, remove it",
    );
    check(
        "apiVersion: x.io/v1\nkind: A\nmetadata: {name: a, ANNOTATIONS}\n---\napiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a, namespace: default, ANNOTATIONS}\n",
        "2 (document 0): warning [unknown-kind]: neither Kubernetes nor a CustomResourceDefinition of the payload defines A.x.io\n\
         5 (document 1): warning [unknown-kind]: version v1beta1 of Deployment.apps is not served",
    );
    check(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: default, ANNOTATIONS}\nspec:\n  selector: {}\n  extra: 1\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: a\n        image: b\n        inage: b\n",
        "5 (document 0): error [job-selector]: a Job that is to be applied again must leave its selector to the API server\n\
         6 (document 0): warning [unknown-field]: Job.batch has no field spec.extra: it is dropped\n\
         13 (document 0): warning [unknown-field]: Job.batch has no field spec.template.spec.containers[0].inage: it is dropped",
    );
}

#[test]
fn kinds_that_the_payload_defines_are_known() {
    check(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x.io, ANNOTATIONS}\nspec: {group: x.io, scope: Namespaced, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n---\napiVersion: x.io/v1\nkind: A\nmetadata: {name: a, ANNOTATIONS}\n",
        "8 (document 1): error [missing-namespace]: objects of kind A.x.io need a namespace",
    );
}

#[test]
fn cluster_operators_gate_after_their_deployment() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: clusteroperators.config.openshift.io, ANNOTATIONS}\nspec: {group: config.openshift.io, scope: Cluster, names: {kind: ClusterOperator, plural: clusteroperators}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object}}, x-kubernetes-preserve-unknown-fields: true}}}]}\n";
    let operator = "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: o, ANNOTATIONS}\n";
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: default, ANNOTATIONS}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: d, image: d}]}}}\n";
    check(
        &format!("{crd}---\n{operator}---\n{deployment}"),
        "6 (document 1): error [operator-versions]: the ClusterOperator o names no versions: its gate cannot pass\n\
         6 (document 1): warning [operator-related-objects]: the related objects of ClusterOperator o: there are none; name a namespace and at least one other object\n\
         7 (document 1): warning [operator-order]: the ClusterOperator o comes before deployment.apps/d -n default of its own component, which waits for it",
    );
    let full = format!(
        "{operator}status: {{versions: [{{name: operator, version: 1.0.0}}], relatedObjects: [{{group: '', resource: namespaces, name: ns}}, {{group: apps, resource: deployments, namespace: default, name: d}}]}}\n"
    );
    check(&format!("{crd}---\n{deployment}---\n{full}"), "");
}

#[test]
fn files_without_a_place_and_objects_in_two_files_are_named() {
    let text = |annotations: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  annotations:\n    include.release.openshift.io/p: 'true'\n{annotations}"
        )
    };
    assert_eq!(
        findings(&[("a.yaml", text("")), ("0000_10_a_b.yaml", text(""))]),
        "release-manifests/a.yaml: warning [file-name]: the name does not begin with `0000_<run level>_<component>_`: its manifests have no place in the order\n\
         release-manifests/a.yaml:4 (document 0): warning [duplicate-object]: namespace/a is in 0000_10_a_b.yaml, too: both are applied, in order"
    );
    let set = |name: &str| text(&format!("    release.openshift.io/feature-set: {name}\n"));
    assert_eq!(
        findings(&[("0000_10_a_a.yaml", set("Default")), ("0000_10_a_b.yaml", set("OKD"))]),
        ""
    );
    let gate = |name: &str| text(&format!("    release.openshift.io/feature-gate: {name}\n"));
    assert_eq!(findings(&[("0000_10_a_a.yaml", gate("A")), ("0000_10_a_b.yaml", gate("-A"))]), "");
    assert!(
        !findings(&[("0000_10_a_a.yaml", gate("A")), ("0000_10_a_b.yaml", gate("-B"))]).is_empty()
    );
}

#[test]
fn a_namespace_that_a_kind_does_not_have_makes_no_other_object() {
    let text = |namespace: &str, annotations: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: a\n{namespace}  annotations:\n    include.release.openshift.io/p: 'true'\n{annotations}"
        )
    };
    let found = |annotations: &str| {
        findings(&[
            ("0000_10_a_a.yaml", text("", "")),
            ("0000_10_a_b.yaml", text("  namespace: default\n", annotations)),
        ])
    };
    for (annotations, expected) in [
        (
            "",
            "warning [duplicate-object]: clusterrole.rbac.authorization.k8s.io/a is in 0000_10_a_a.yaml, too",
        ),
        (
            "    release.openshift.io/delete: 'true'\n",
            "error [deletes-created]: clusterrole.rbac.authorization.k8s.io/a would be deleted",
        ),
        (
            "",
            "warning [unexpected-namespace]: objects of kind ClusterRole.rbac.authorization.k8s.io have no namespace: \"default\" is ignored, remove it",
        ),
    ] {
        let found = found(annotations);
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn what_is_deleted_is_created_by_no_other_manifest() {
    let delete = "    release.openshift.io/delete: 'true'\n";
    let text = |kind: &str, place: &str, annotations: &str| {
        format!(
            "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: a\n{place}  annotations:\n    include.release.openshift.io/p: 'true'\n{annotations}"
        )
    };
    let map = |annotations: &str| text("ConfigMap", "  namespace: a\n", annotations);
    let space = |annotations: &str| text("Namespace", "", annotations);
    assert_eq!(
        findings(&[
            ("0000_00_a_a.yaml", space("")),
            ("0000_10_a_a.yaml", map("")),
            ("0000_10_a_b.yaml", map(delete))
        ]),
        "release-manifests/0000_10_a_b.yaml:4 (document 0): error [deletes-created]: configmap/a -n a would be deleted, and configmap/a -n a is created by 0000_10_a_a.yaml"
    );
    assert_eq!(
        findings(&[("0000_10_a_a.yaml", space(delete)), ("0000_10_a_b.yaml", map(""))]),
        "release-manifests/0000_10_a_a.yaml:4 (document 0): error [deletes-created]: namespace/a would be deleted, and configmap/a -n a is created by 0000_10_a_b.yaml"
    );
    assert_eq!(
        findings(&[("0000_10_a_a.yaml", space(delete)), ("0000_10_a_b.yaml", map(delete))]),
        ""
    );
}

#[test]
fn codes_are_unique_and_only_errors_fail() {
    let mut codes: Vec<&str> = FindingCode::ALL.iter().map(|code| code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), FindingCode::ALL.len());
    assert!(!has_errors(&[]));
}

#[test]
fn every_code_is_documented_and_nothing_else() {
    let page = include_str!("../../../../docs/authoring.md");
    let (_, section) = page.split_once("\n## What lint finds\n").expect("a section about codes");
    let row = |line: &str| {
        let (code, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((code.to_owned(), rest.split(' ').next().unwrap_or_default().to_owned()))
    };
    let documented: Vec<(String, String)> = section.lines().filter_map(row).collect();
    let codes = FindingCode::ALL.iter();
    let listed: Vec<(String, String)> =
        codes.map(|code| (code.to_string(), code.severity().to_string())).collect();
    assert_eq!(documented, listed);
}

const DECLARATION: &str =
    "apiVersion: plimsoll.io/v1alpha1\nkind: ReleaseCapabilities\nmetadata: {name: capabilities}\n";

#[test]
fn declared_capabilities_are_known_and_used() {
    let with = |spec: &str, name: &str| {
        format!(
            "{DECLARATION}spec:\n{spec}---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n  annotations:\n    include.release.openshift.io/p: 'true'\n    capability.openshift.io/name: {name}\n"
        )
    };
    check(&with("  capabilities: [{name: Lights}]\n", "Lights"), "");
    check(
        &with("  capabilities: [{name: Lights}]\n", "Light+Console"),
        "5 (document 0): warning [unused-capability]: no manifest belongs to capability Lights\n\
         14 (document 1): error [unknown-capability]: unknown capability \"Light\": no cluster can enable it, did you mean \"Lights\"?",
    );
    check(
        &with(
            "  capabilities: [{name: Lights, requires: [Console]}]\n  sets: [{name: dark, capabilities: [Lights]}]\n",
            "Lights",
        ),
        "6 (document 0): warning [capability-requirement]: set dark has Lights but not what it requires: Console",
    );
    check(
        &with("  capabilities: [{names: Lights}]\n", "Console"),
        "1 (document 0): error [load]: spec: unknown field `names`, expected one of `name`, `description`, `requires`, `featureGates`",
    );
}

#[test]
fn what_belongs_to_a_capability_is_annotated_whole() {
    let object = |kind: &str, name: &str, namespace: &str, capability: &str| {
        format!(
            "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}  annotations:\n    include.release.openshift.io/p: 'true'\n{capability}"
        )
    };
    let console = "    capability.openshift.io/name: Console\n";
    let namespace = object("Namespace", "ns", "", console);
    let part = |capability| object("ConfigMap", "a", "  namespace: ns\n", capability);
    check(&format!("{namespace}---\n{}", part(console)), "");
    check(
        &format!(
            "{namespace}---\n{}",
            part("    capability.openshift.io/name: Insights+Console\n")
        ),
        "",
    );
    check(
        &format!("{namespace}---\n{}", part("    capability.openshift.io/name: Insights\n")),
        "14 (document 1): warning [capability-part]: its namespace is only there with Console: add that to capability.openshift.io/name",
    );
    let both = findings(&[
        ("0000_10_a_b.yaml", namespace),
        ("0000_10_a_c.yaml", object("Namespace", "ns", "", "")),
        ("0000_10_a_d.yaml", part("")),
    ]);
    assert!(!both.contains("capability-part"), "{both}");
}
