//! What API servers refuse, and what they accept and cannot work.

use super::{ANNOTATIONS, findings};

/// A Deployment without fault, each field on a line of its own.
const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  ANNOTATIONS
spec:
  replicas: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: example.org/web:1
        resources:
          limits: {cpu: 500m}
";

/// Checks that a file has one finding, by how it begins, or none.
fn check(text: &str, expected: &str) {
    let found = findings(&[("0000_10_a_b.yaml", text.replace("ANNOTATIONS", ANNOTATIONS))]);
    let found = found.replace("release-manifests/0000_10_a_b.yaml:", "");
    let count = usize::from(!expected.is_empty());
    assert!(
        found.starts_with(expected) && found.lines().count() == count,
        "expected {expected}\nfound {found}"
    );
}

#[test]
fn a_workload_has_the_findings_of_its_fields() {
    for (from, to, expected) in [
        ("", "", ""),
        (
            "replicas: 3",
            "replicas: \"three\"",
            "8:3: error [invalid-field]: spec.replicas: Invalid value: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "matchLabels: {app: web}",
            "matchLabels: {app: other}",
            "13:7: error [invalid-field]: spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
        ),
        (
            "        image: example.org/web:1\n",
            "",
            "16:9: error [invalid-field]: spec.template.spec.containers[0].image: Required value",
        ),
        (
            "image: example.org/web:1",
            "image: ???",
            "17:9: warning [image-reference]: spec.template.spec.containers[0].image: \"???\" is not a reference to an image",
        ),
        (
            "image: example.org/web:1",
            "image: 'example.org/web:{{ .Values.tag }}'",
            "17:9: warning [template-left]: spec.template.spec.containers[0].image: the template {{ .Values.tag }} is left as it is",
        ),
        (
            "cpu: 500m",
            "cpu: lots",
            "19:20: error [invalid-field]: spec.template.spec.containers[0].resources.limits.cpu: Invalid value: quantities must match the regular expression",
        ),
        (
            "name: web\n  namespace",
            "name: Web_1\n  namespace",
            "4:3: error [invalid-field]: metadata.name: Invalid value: \"Web_1\": a lowercase RFC 1123 subdomain",
        ),
        (
            "namespace: default",
            "namespace: defalut",
            "5:3: warning [unknown-namespace]: no manifest creates the namespace \"defalut\": the object waits until it is there, did you mean \"default\"?",
        ),
    ] {
        check(&DEPLOYMENT.replace(from, to), expected);
    }
}

#[test]
fn what_refuses_a_document_does_not_depend_on_its_kind() {
    let head = |api_version: &str, kind: &str| {
        format!("apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: a\n  ANNOTATIONS\n")
    };
    let namespaced =
        |kind: &str| head("v1", kind).replace("name: a", "name: a\n  namespace: default");
    check(
        &(namespaced("Secret") + "data:\n  pin: not base64\n"),
        "8:3: error [invalid-field]: data.pin: Invalid value: illegal base64 data at input byte 3",
    );
    check(
        &(namespaced("ConfigMap") + "data:\n  a b: c\n"),
        "8:3: error [invalid-field]: data[a b]: Invalid value: \"a b\": a valid config key",
    );
    let binding = head("rbac.authorization.k8s.io/v1", "ClusterRoleBinding");
    check(
        &(binding
            + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}\nsubjects:\n- kind: ServiceAccount\n  name: a\n"),
        "8:3: error [invalid-field]: subjects[0].namespace: Required value",
    );
    check(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, ANNOTATIONS}\nspec: {replicas: {{ .Values.replicas }}}\n",
        "4 (document 0): error [load]: invalid YAML: ",
    );
}

#[test]
fn objects_are_checked_by_the_definitions_of_the_payload() {
    let definition = |maximum: u32| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: berths.quay.example, ANNOTATIONS}}\nspec:\n  group: quay.example\n  scope: Cluster\n  names: {{kind: Berth, plural: berths}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n              length: {{type: integer, maximum: {maximum}}}\n            x-kubernetes-validations:\n            - {{rule: self.length != 7, message: seven is taken}}\n"
        )
    };
    let berth = |length: &str| {
        format!(
            "---\napiVersion: quay.example/v1\nkind: Berth\nmetadata: {{name: a, ANNOTATIONS}}\nspec:\n  length: {length}\n"
        )
    };
    let with = |length: &str, expected: &str| check(&(definition(9) + &berth(length)), expected);
    with("8", "");
    with("10", "27:3: error [invalid-field]: spec.length: Invalid value: 10: ");
    with("7", "26:1: error [invalid-field]: spec: Invalid value: ");
    with(
        "8\n  width: 1",
        "28 (document 1): warning [unknown-field]: Berth.quay.example has no field spec.width: it is dropped",
    );
    // A definition for another feature set may admit the object.
    let files = [
        ("0000_10_a_a.yaml", definition(9)),
        ("0000_10_a_b.yaml", definition(20)),
        ("0000_10_a_c.yaml", berth("10")),
    ];
    let files = files.map(|(name, text)| (name, text.replace("ANNOTATIONS", ANNOTATIONS)));
    assert!(!findings(&files).contains("invalid-field"));
    let text = definition(9).replace("type: integer", "type: int");
    let found = findings(&[("0000_10_a_b.yaml", text.replace("ANNOTATIONS", ANNOTATIONS))]);
    assert!(found.contains(":19:24: error [invalid-field]: spec.validation."), "{found}");
}

#[test]
fn what_an_api_server_fills_in_is_not_required() {
    let constraints = |group: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: securitycontextconstraints.{group}, ANNOTATIONS}}\nspec:\n  group: {group}\n  scope: Cluster\n  names: {{kind: SecurityContextConstraints, plural: securitycontextconstraints}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema: {{type: object, required: [priority], properties: {{priority: {{type: integer}}}}}}\n---\napiVersion: {group}/v1\nkind: SecurityContextConstraints\nmetadata: {{name: a, ANNOTATIONS}}\n"
        )
    };
    check(&constraints("security.openshift.io"), "");
    check(
        &constraints("security.example.org"),
        "15:1: error [invalid-field]: priority: Required value",
    );
}

#[test]
fn texts_of_sensitive_objects_are_not_shown() {
    let sensitive =
        "annotations: {include.release.openshift.io/p: 'true', plimsoll.io/sensitive: 'true'}";
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: default, {sensitive}}}\ndata:\n  a: '{{{{ include \"b\" \"secret\" }}}}'\n"
    );
    let found = findings(&[("0000_10_a_b.yaml", text)]);
    assert!(found.contains("data.a: the template *** is left as it is"), "{found}");
}

#[test]
fn what_is_deleted_or_unknown_is_not_checked() {
    let delete = "annotations: {include.release.openshift.io/p: 'true', release.openshift.io/delete: 'true'}";
    let wrong = DEPLOYMENT.replace("replicas: 3", "replicas: three");
    check(&wrong.replace("ANNOTATIONS", delete), "");
    let found = findings(&[(
        "0000_10_a_b.yaml",
        wrong.replace("apps/v1", "apps.example/v1").replace("ANNOTATIONS", ANNOTATIONS),
    )]);
    assert!(found.contains("unknown-kind") && !found.contains("error"), "{found}");
}
