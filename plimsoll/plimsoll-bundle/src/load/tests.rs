//! What keeps files from being a bundle, and where it is said to be.

use plimsoll_content::bundle::BundleFile;

use super::load;
use crate::bundle::BundleContent;
use crate::validate::validate;

const ANNOTATIONS: &str = "annotations: {operators.operatorframework.io.bundle.package.v1: crane}";
const CSV: &str = "kind: ClusterServiceVersion\nmetadata: {name: crane.v1}\nspec: {}\n";

/// The defects of a bundle with these files, beside the annotations; those of a loaded bundle are
/// what the validation says.
#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let mut all = vec![("metadata/annotations.yaml", ANNOTATIONS)];
    all.retain(|(path, _)| files.iter().all(|(other, _)| other != path));
    all.extend(files);
    let file = |(path, text): &(&str, &str)| BundleFile {
        path: (*path).to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    let files: Vec<BundleFile> = all.iter().map(file).collect();
    let defects = load(&files).map_or_else(|defects| defects, |bundle| validate(&bundle));
    let texts: Vec<String> = defects.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected);
}

#[test]
fn files_hold_objects() {
    check(&[("manifests/csv.yaml", CSV), ("manifests/empty.yaml", "# nothing\n---\n")], &[]);
    check(
        &[("manifests/csv.yaml", CSV), ("manifests/a.yaml", "---\nx\n---\na: 1\n")],
        &[
            "manifests/a.yaml:2: error [bundle-file]: package crane: not an object but \"x\": every file of `manifests` holds objects",
            "manifests/a.yaml:4: error [bundle-file]: package crane: an object without a kind",
        ],
    );
    check(
        &[("manifests/csv.yaml", CSV), ("manifests/sub/a.yaml", "")],
        &[
            "manifests/sub/a.yaml: error [bundle-file]: package crane: a directory inside `manifests`: move its files there, or remove it",
        ],
    );
    let list = "kind: ConfigMapList\napiVersion: v1\nitems: [{metadata: {name: a}}, {metadata: {name: 1}}]";
    check(
        &[("manifests/csv.yaml", CSV), ("manifests/list.yaml", list)],
        &[
            "manifests/list.yaml:1: error [bundle-file]: package crane: ConfigMap ``: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        ],
    );
}

#[test]
fn there_is_one_cluster_service_version() {
    check(
        &[("manifests/cm.yaml", "kind: ConfigMap\nmetadata: {name: a}")],
        &[
            "manifests: error [bundle-file]: package crane: no ClusterServiceVersion: a bundle has exactly one",
        ],
    );
    check(
        &[("manifests/a.yaml", CSV), ("manifests/b.yaml", &format!("# another\n---\n{CSV}"))],
        &[
            "manifests/b.yaml:3: error [bundle-file]: package crane: a second ClusterServiceVersion: a bundle has exactly one",
        ],
    );
}

#[test]
fn values_fit_their_fields() {
    let csv = "kind: ClusterServiceVersion
metadata: {name: crane.v1}
spec:
  version: 1.0
  installModes: All
  install:
    spec:
      deployments:
      - name: crane
        spec: {replicas: many}
      permissions:
      - rules:
        - verbs: get
  webhookdefinitions:
  - containerPort: https
    sideEffects: [None]
";
    check(
        &[("manifests/csv.yaml", csv)],
        &[
            "manifests/csv.yaml:4: error [bundle-file]: package crane: spec.version is not text but 1: put it in quotes",
            "manifests/csv.yaml:5: error [bundle-file]: package crane: spec.installModes is not a list but \"All\"",
            "manifests/csv.yaml:9: error [bundle-file]: package crane: deployment `crane`: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            "manifests/csv.yaml:13: error [bundle-file]: package crane: spec.install.spec.permissions[0].rules[0] is not a rule of a role: invalid type: string \"get\", expected a sequence",
            "manifests/csv.yaml:15: error [bundle-file]: package crane: spec.webhookdefinitions[0].containerPort is not an integer but \"https\"",
            "manifests/csv.yaml:15: error [bundle-file]: package crane: spec.webhookdefinitions[0]: json: cannot unmarshal array into Go struct field MutatingWebhook.webhooks.sideEffects of type string",
        ],
    );
}

#[test]
fn the_metadata_says_what_the_bundle_is() {
    let media_type = "annotations: {operators.operatorframework.io.bundle.mediatype.v1: helm+v1}";
    check(
        &[("metadata/annotations.yaml", media_type), ("manifests/csv.yaml", CSV)],
        &[
            "metadata/annotations.yaml:1: error [bundle-file]: operators.operatorframework.io.bundle.mediatype.v1 is `helm+v1`: bundles of registry+v1 and plain+v0 can be installed",
        ],
    );
    check(
        &[("metadata/annotations.yaml", "annotations: {a: b}"), ("manifests/csv.yaml", CSV)],
        &[
            "metadata: error [bundle-annotation]: the name of the package is missing: write it as the annotation operators.operatorframework.io.bundle.package.v1",
        ],
    );
    check(
        &[("metadata/properties.yaml", "properties: [{type: 1}]"), ("manifests/csv.yaml", CSV)],
        &[
            "metadata/properties.yaml:1: error [property]: package crane: a property has a `type`, which is text, and a `value`",
        ],
    );
}

#[test]
fn a_file_without_properties_is_written_as_go_writes_it() {
    for (text, expected) in
        [("properties: []\n", Some("null")), ("# none\n", Some("null")), ("", None)]
    {
        let file = |path: &str, text: &str| BundleFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let files = [
            file("metadata/annotations.yaml", ANNOTATIONS),
            file("metadata/properties.yaml", text),
            file("manifests/csv.yaml", CSV),
        ];
        let bundle = load(&files).expect("it can be loaded");
        let BundleContent::Registry(content) = &bundle.content else { panic!("{text:?}") };
        let written = content.csv.annotations.get("olm.properties").map(String::as_str);
        assert_eq!(written, expected, "{text:?}");
    }
}

#[test]
fn what_cannot_be_served_is_refused() {
    let csv = "kind: ClusterServiceVersion
metadata: {name: crane.v1}
spec:
  install:
    spec:
      deployments:
      - name: crane
  webhookdefinitions:
  - {type: ValidatingAdmissionWebhook, generateName: a, deploymentName: crane, targetPort: 9443}
  - {type: ValidatingAdmissionWebhook, generateName: b, deploymentName: crane, targetPort: 9444}
  - {type: ValidatingAdmissionWebhook, generateName: c, deploymentName: derrick, containerPort: 70000}
  apiservicedefinitions:
    owned:
    - {group: loads.example.org, version: v1, deploymentName: derrick}
";
    check(
        &[("manifests/csv.yaml", csv), ("manifests/pod.yaml", "kind: Pod\nmetadata: {name: p}")],
        &[
            "manifests/csv.yaml:10: error [bundle-webhook]: package crane: port 443 of the deployment `crane` leads to the ports 9443 and 9444: give the webhook `b` another containerPort",
            "manifests/csv.yaml:11: error [bundle-webhook]: package crane: the webhook `c` has the port 70000: write one up to 65535",
            "manifests/csv.yaml:11: error [bundle-webhook]: package crane: the webhook `c` is served by the deployment `derrick`, which is not there",
            "manifests/csv.yaml:14: error [owned-api]: package crane: the API `v1.loads.example.org` is served by the deployment `derrick`, which is not there",
            "manifests/pod.yaml:1: error [bundle-kind]: package crane: a bundle may not bring objects of kind Pod: remove `p`, or let the operator create it",
        ],
    );
}
