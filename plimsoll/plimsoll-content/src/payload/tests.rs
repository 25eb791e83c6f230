//! What loads, in what order, and what each defect is called.

use super::{Directory, SourceFile, TemplateContext, parse};
use crate::Payload;

const METADATA: &str = r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0","previous":["0.9.0"],"metadata":{"url":"https://example.com/1.0.0","io.openshift.upgrades.graph.release.channels":"stable,,fast","release.openshift.io/architecture":"multi"}}"#;
const IMAGES: &str = r#"{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"1.0.0","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"tags":[{"name":"cli","from":{"kind":"DockerImage","name":"quay.io/cli@sha256:1"}},{"name":"other","from":{"kind":"ImageStreamTag","name":"x"}}]}}"#;

fn file(path: &str, bytes: impl Into<Vec<u8>>) -> SourceFile {
    let (directory, name) = path.split_once('/').unwrap();
    let directory = match directory {
        "manifests" => Directory::Manifests,
        _ => Directory::ReleaseManifests,
    };
    SourceFile { directory, name: name.to_owned(), bytes: bytes.into().into() }
}

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{name}\"\n  namespace: ns\n")
}

/// Loads files beside the two special ones, unless they are among them.
fn load(files: Vec<SourceFile>) -> Result<Payload, String> {
    let mut all = files;
    for (name, text) in [("release-metadata", METADATA), ("image-references", IMAGES)] {
        if !all.iter().any(|file| file.name == name) {
            all.push(file(&format!("release-manifests/{name}"), text));
        }
    }
    // A file named here without content is one to leave out.
    all.retain(|file| !file.bytes.is_empty());
    let context = TemplateContext {
        release_image: "quay.io/release".to_owned(),
        cluster_profile: "p".to_owned(),
    };
    parse(&all, &context).map_err(|errors| errors.to_string())
}

/// The documents of a payload as `file#document name`, then its warnings.
fn check(files: Vec<SourceFile>, expected: &str) {
    let lines = match load(files) {
        Ok(payload) => {
            let manifests = payload.manifests.iter().map(|manifest| {
                format!("{}#{} {}", manifest.file, manifest.document, manifest.key.name)
            });
            let warnings = payload.warnings.iter().map(ToString::to_string);
            manifests.chain(warnings).collect::<Vec<_>>().join("\n")
        }
        Err(errors) => errors,
    };
    assert_eq!(lines, expected);
}

#[test]
fn only_files_with_known_endings_are_read_in_byte_order() {
    check(
        vec![
            file("release-manifests/0000_10_a_file.yml", config_map("three")),
            file("release-manifests/0000_10_a_file.yaml", config_map("two")),
            file(
                "release-manifests/0000_10_a_file.json",
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}"#,
            ),
            file("release-manifests/README", "no: manifest"),
            file("release-manifests/0000_10_a_file", "no: manifest"),
            file("release-manifests/0000_10_a_file.YAML", "no: manifest"),
            file("release-manifests/0000_9_b_file.yaml", config_map("four")),
            file("manifests/0000_90_own_file.yaml", config_map("zero")),
        ],
        "0000_90_own_file.yaml#0 zero\n0000_10_a_file.json#0 one\n0000_10_a_file.yaml#0 two\n0000_10_a_file.yml#0 three\n0000_9_b_file.yaml#0 four",
    );
}

#[test]
fn the_release_says_what_it_is() {
    let release = load(vec![]).unwrap().release;
    assert_eq!(release.version, "1.0.0");
    assert_eq!(release.url, "https://example.com/1.0.0");
    assert_eq!(release.channels, ["fast", "stable"]);
    assert_eq!(release.architecture, "Multi");
    assert_eq!(release.previous, ["0.9.0"]);
    assert_eq!(release.created.as_deref(), Some("2026-01-02T03:04:05Z"));
    assert_eq!(release.images, [("cli".to_owned(), "quay.io/cli@sha256:1".to_owned())].into());
}

#[test]
fn the_special_files_must_be_there_and_agree() {
    let metadata = |text: &str| vec![file("release-manifests/release-metadata", text)];
    let images = |text: &str| vec![file("release-manifests/image-references", text)];
    let one = "the payload has 1 defect\n  release-manifests/";
    check(metadata(""), &format!("{one}release-metadata: the payload has no such file"));
    check(images(""), &format!("{one}image-references: the payload has no such file"));
    check(
        images(&IMAGES.replace("1.0.0", "1.0.1")),
        &format!(
            "{one}image-references: version from image-references (1.0.1) differs from release-metadata (1.0.0)"
        ),
    );
    check(
        metadata(&METADATA.replace("-v0", "-v1")),
        &format!(
            "{one}release-metadata: unrecognized Cincinnati metadata kind \"cincinnati-metadata-v1\", expected \"cincinnati-metadata-v0\""
        ),
    );
    check(
        metadata(r#"{"kind":"cincinnati-metadata-v0"}"#),
        &format!("{one}release-metadata: missing required Cincinnati metadata version"),
    );
    check(
        metadata(r#"{"kind":"cincinnati-metadata-v0","version":"v1"}"#),
        &format!(
            "{one}release-metadata: version \"v1\" is not a semantic version: unexpected character 'v' while parsing major version number"
        ),
    );
    check(
        metadata("{"),
        &format!(
            "{one}release-metadata: invalid JSON: EOF while parsing an object at line 1 column 1"
        ),
    );
    check(
        images(&config_map("x")),
        &format!(
            "{one}image-references: expected an ImageStream of image.openshift.io/v1, found ConfigMap of v1"
        ),
    );
    check(
        vec![
            file("release-manifests/release-metadata", b"\xff".as_slice()),
            file("release-manifests/image-references", "a: ["),
        ],
        "the payload has 2 defects\n  release-manifests/release-metadata: not UTF-8 text\n  release-manifests/image-references: line 1: invalid YAML: unclosed bracket '['",
    );
}

#[test]
fn image_references_may_be_yaml() {
    let text = "kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {name: 1.0.0}\n";
    check(vec![file("release-manifests/image-references", text)], "");
}

#[test]
fn bad_keys_of_the_metadata_are_warnings() {
    check(
        vec![file(
            "release-manifests/release-metadata",
            r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0","metadata":{"url":1,"release.openshift.io/architecture":"s390x","mine":{}}}"#,
        )],
        "release-manifests/release-metadata: warning [release-metadata]: metadata \"url\" is not a string but 1, ignored\n\
         release-manifests/release-metadata: warning [release-metadata]: metadata \"release.openshift.io/architecture\" is \"s390x\", ignored",
    );
    check(
        vec![file(
            "release-manifests/release-metadata",
            r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0","metadata":{"plimsoll.io/profiles":"all"}}"#,
        )],
        "release-manifests/release-metadata: warning [release-metadata]: metadata \"plimsoll.io/profiles\" is \"all\", ignored: only \"any\" counts",
    );
}

#[test]
fn the_metadata_say_whether_manifests_are_for_any_profile() {
    for (metadata, expected) in [("", false), (r#""plimsoll.io/profiles":"any""#, true)] {
        let metadata = format!(
            r#"{{"kind":"cincinnati-metadata-v0","version":"1.0.0","metadata":{{{metadata}}}}}"#
        );
        let files = vec![
            file("release-manifests/release-metadata", metadata),
            file("manifests/0000_00_a_b.yaml", config_map("x")),
            file("release-manifests/0000_10_a_b.yaml", config_map("y")),
        ];
        let payload = load(files).unwrap();
        let found: Vec<bool> = payload.manifests.iter().map(|it| it.any_profile).collect();
        assert_eq!(found, [expected; 2]);
    }
}

#[test]
fn templates_are_filled_in_in_manifests_only() {
    let template = config_map("x")
        + "data:\n  image: '{{.ReleaseImage}}'\n  cli: '{{index .Images \"cli\"}}'\n";
    let payload = load(vec![
        file("manifests/0000_00_a_b.yaml", template.clone()),
        file("release-manifests/0000_00_a_b.yaml", template),
    ])
    .unwrap();
    let images: Vec<_> = payload
        .manifests
        .iter()
        .map(|manifest| manifest.object()["data"]["image"].clone())
        .collect();
    assert_eq!(images, ["quay.io/release", "{{.ReleaseImage}}"]);
}

#[test]
fn a_template_made_for_another_version_is_left_out() {
    check(
        vec![
            file("manifests/0000_00_a_b.yaml", config_map("x") + "data: {a: '{{.Foo}}'}\n"),
            file("manifests/0000_00_a_c.yaml", config_map("y")),
        ],
        "0000_00_a_c.yaml#0 y\nmanifests/0000_00_a_b.yaml:6: error [template]: the file is left out: unknown field .Foo in {{.Foo}}",
    );
}

#[test]
fn duplicates_are_refused_within_a_file_and_allowed_across_files() {
    let twice = config_map("x") + "---\n" + &config_map("x");
    check(
        vec![file("release-manifests/0000_10_a_b.yaml", twice)],
        "the payload has 1 defect\n  release-manifests/0000_10_a_b.yaml:7 (document 1): duplicate resource: configmap \"ns/x\" is in document 0, too",
    );
    let other_version = config_map("x") + "---\n" + &config_map("x").replace(": v1", ": v2");
    assert!(load(vec![file("release-manifests/0000_10_a_b.yaml", other_version)]).is_err());
    check(
        vec![
            file("release-manifests/0000_10_a_b.yaml", config_map("x")),
            file("release-manifests/0000_20_a_b.yaml", config_map("x")),
        ],
        "0000_10_a_b.yaml#0 x\n0000_20_a_b.yaml#0 x",
    );
}

/// A definition of `Lamp`.
fn lamps(scope: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: lamps.x.io, namespace: ns}}\nspec: {{group: x.io, scope: {scope}, names: {{kind: Lamp, plural: lamps}}, versions: [{{name: v1, served: true, storage: true}}]}}\n"
    )
}

#[test]
fn a_namespace_that_a_kind_does_not_have_is_no_part_of_the_key() {
    let check = |api_version: &str, kind: &str, scope: &str, expected: &str| {
        let object = format!(
            "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a, namespace: ns}}\n"
        );
        let payload = load(vec![
            file("release-manifests/0000_10_a_b.yaml", object),
            file("release-manifests/0000_20_a_b.yaml", lamps(scope)),
        ]);
        let manifests = payload.unwrap().manifests;
        assert_eq!(manifests[0].key.namespace, expected, "{kind} where lamps are {scope}");
        let namespace = manifests[0].object()["metadata"]["namespace"].clone();
        assert_eq!(namespace.as_str().unwrap_or_default(), expected);
        assert_eq!(manifests[1].key.namespace, "");
    };
    check("v1", "ConfigMap", "Cluster", "ns");
    check("v1", "Namespace", "Namespaced", "");
    check("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "Namespaced", "");
    check("config.openshift.io/v1", "ClusterOperator", "Namespaced", "");
    check("x.io/v1", "Lamp", "Cluster", "");
    check("x.io/v1", "Lamp", "Namespaced", "ns");
    check("y.io/v1", "Lamp", "Cluster", "ns");
}

#[test]
fn an_object_is_a_duplicate_whatever_namespace_its_kind_does_not_have() {
    let object = |api_version: &str, kind: &str, namespace: &str| {
        format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a{namespace}}}\n")
    };
    let found = |api_version: &str, kind: &str, scope: &str| {
        let with = object(api_version, kind, ", namespace: ns");
        let text = format!("{with}---\n{}", object(api_version, kind, ""));
        let files = vec![
            file("release-manifests/0000_10_a_b.yaml", text),
            file("release-manifests/0000_20_a_b.yaml", lamps(scope)),
        ];
        load(files).err().unwrap_or_default()
    };
    for (api_version, kind, object) in
        [("v1", "Namespace", "namespace"), ("x.io/v1", "Lamp", "lamp.x.io")]
    {
        let found = found(api_version, kind, "Cluster");
        let expected = format!("duplicate resource: {object} \"a\" is in document 0, too");
        assert!(found.contains("the payload has 1 defect"), "{found}");
        assert!(found.contains(&expected), "{found}");
    }
    assert_eq!(found("x.io/v1", "Lamp", "Namespaced"), "");
}

#[test]
fn empty_documents_are_neither_read_nor_counted() {
    let text =
        format!("# comment\n---\n---\n{}---\nnull\n---\n{}---\n", config_map("x"), config_map("y"));
    check(
        vec![file("release-manifests/0000_10_a_b.yaml", text)],
        "0000_10_a_b.yaml#0 x\n0000_10_a_b.yaml#1 y",
    );
}

#[test]
fn every_defect_is_reported_at_once() {
    let text = [
        "- a list\n",
        "text\n",
        "a: [\n",
        "metadata: {name: x}\n",
        "kind: A\n",
        "kind: A\nmetadata: {name: 1}\n",
        "kind: AList\nitems: []\n",
        "kind: A\nmetadata: {name: x, namespace: 1}\n",
        "kind: Fine\nmetadata: {name: x}\n",
    ]
    .join("---\n");
    let mut bad_bytes = config_map("x").into_bytes();
    bad_bytes.extend(b"data: {a: \xc3\x28}\n");
    let place = "\n  release-manifests/0000_10_a_b.yaml:";
    check(
        vec![
            file("release-manifests/0000_10_a_b.yaml", text),
            file("release-manifests/0000_10_a_a.yaml", bad_bytes),
            file(
                "release-manifests/0000_10_a_c.yaml",
                format!("kind: A\nmetadata: {{name: x}}\na: {}", "x".repeat(4 << 20)),
            ),
            file("release-manifests/0000_10_a_d.yaml", format!("a: {}", "x".repeat(10_000_000))),
        ],
        &format!(
            "the payload has 11 defects\n  release-manifests/0000_10_a_a.yaml:6: not UTF-8 text: bad byte at offset 79\
             {place}1 (document 0): the document is a list, a manifest must be a mapping\
             {place}3 (document 1): the document is a string, a manifest must be a mapping\
             {place}5 (document 2): invalid YAML: unclosed bracket '[', column 4\
             {place}7 (document 3): the document has no kind\
             {place}9 (document 4): the A has no name: metadata.name must be a non-empty string\
             {place}11 (document 5): the A has no name: metadata.name must be a non-empty string\
             {place}14 (document 6): lists such as AList are not taken apart, give each object a document of its own\
             {place}17 (document 7): metadata.namespace of the A is not a string\
             \n  release-manifests/0000_10_a_c.yaml:1 (document 0): the document is 4194347 bytes of JSON, at most 3145728 can be applied\
             \n  release-manifests/0000_10_a_d.yaml:1 (document 0): invalid YAML: document has 10000003 bytes, at most 8388608 are read, column 1",
        ),
    );
}

#[test]
fn the_digest_depends_on_content_and_not_on_order() {
    let files = |text: &str| {
        vec![
            file("release-manifests/0000_10_a_a.yaml", config_map("x")),
            file("release-manifests/0000_10_a_b.yaml", text),
        ]
    };
    let digest = |files: Vec<SourceFile>| load(files).unwrap().digest;
    let mut reversed = files(&config_map("y"));
    reversed.reverse();
    assert_eq!(digest(files(&config_map("y"))), digest(reversed));
    assert_ne!(digest(files(&config_map("y"))), digest(files(&(config_map("y") + "# comment\n"))));
}

#[test]
fn kinds_without_namespaces_are_known_from_kubernetes_and_the_payload() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x.io}\nspec: {group: x.io, scope: Cluster, names: {kind: A}, versions: [{name: v1, served: true}]}\n";
    let kinds =
        load(vec![file("release-manifests/0000_10_a_a.yaml", definition)]).unwrap().cluster_kinds();
    let names: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    assert!(names.contains(&"A.x.io".to_owned()) && names.contains(&"Namespace".to_owned()));
    assert!(!names.contains(&"ConfigMap".to_owned()));
}

#[test]
fn annotations_that_lint_calls_errors_keep_a_payload_from_being_loaded() {
    let rows = [
        (
            "delete: true",
            "the annotation release.openshift.io/delete is not a string but true: quote it",
        ),
        ("delete: 'false'", "release.openshift.io/delete=false is refused: only `true` is valid"),
        (
            "create-only: 'yes'",
            "release.openshift.io/create-only=yes has no effect: only `true` has",
        ),
        ("feature-set: Tech", "unknown feature set \"Tech\": no cluster includes the document"),
        (
            "major-version: '4'",
            "release.openshift.io/major-version is only allowed on CustomResourceDefinition and \
             FeatureGate",
        ),
    ];
    for (annotation, expected) in rows {
        let text = format!(
            "{}---\n{}  annotations:\n    include.release.openshift.io/p: 'true'\n    \
             release.openshift.io/{annotation}\n",
            config_map("before"),
            config_map("a"),
        );
        for directory in ["manifests", "release-manifests"] {
            let path = format!("{directory}/0000_10_a_b.yaml");
            check(
                vec![file(&path, text.clone())],
                &format!("the payload has 1 defect\n  {path}:14 (document 1): {expected}"),
            );
        }
    }
}
