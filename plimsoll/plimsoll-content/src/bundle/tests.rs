//! Directories of bundles and what becomes of them.

use serde_json::Value;

use super::{BundleFile, BundleObjects, ConvertedBundles, convert, convert_tree, is_bundles};
use crate::catalog::CatalogLoader;

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: a
  operators.operatorframework.io.bundle.channels.v1: s
";

fn csv(version: &str, more: &str) -> String {
    format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  \
         annotations: {{alm-examples: '[]'}}\n  name: a.v{version}\nspec:\n  version: {version}\n  \
         minKubeVersion: 1.30.0\n  installModes: [{{type: AllNamespaces, supported: true}}]\n  \
         displayName: A\n  install: {{spec: {{deployments: []}}}}\n{more}"
    )
}

fn converted(files: &[(&str, &str)]) -> ConvertedBundles {
    let file = |(path, text): &(&str, &str)| BundleFile {
        path: (*path).to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    convert(&files.iter().map(file).collect::<Vec<_>>())
}

/// What is said about a bundle with a ClusterServiceVersion and a file of dependencies.
fn said(csv: &str, dependencies: &str) -> String {
    let mut files = vec![("manifests/csv.yaml", csv), ("metadata/annotations.yaml", ANNOTATIONS)];
    if !dependencies.is_empty() {
        files.push(("metadata/dependencies.yaml", dependencies));
    }
    reported(&converted(&files))
}

fn reported(converted: &ConvertedBundles) -> String {
    let problems = converted.all_defects();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The properties of the only bundle that are requirements.
fn required(csv: &str, metadata: &[(&str, &str)]) -> Vec<String> {
    let mut files = vec![("manifests/csv.yaml", csv), ("metadata/annotations.yaml", ANNOTATIONS)];
    files.extend(metadata);
    let converted = converted(&files);
    let bundle = converted.documents.iter().find(|it| it.value["schema"] == "olm.bundle");
    let bundle = bundle.unwrap_or_else(|| panic!("no bundle: {:?}", converted.defects));
    let properties = bundle.value["properties"].as_array().into_iter().flatten();
    let is_required = |it: &&Value| it["type"].as_str().is_some_and(|it| it.ends_with("required"));
    properties.filter(is_required).map(Value::to_string).collect()
}

#[test]
fn all_forms_of_one_dependency_mean_the_same() {
    let plain = csv("1.0.0", "");
    let api = r#"{"type":"olm.gvk.required","value":{"group":"g.io","kind":"K","version":"v1"}}"#;
    let from_csv = csv(
        "1.0.0",
        "  customresourcedefinitions:\n    required: [{name: ks.g.io, version: v1, kind: K}]\n",
    );
    let from_service = csv(
        "1.0.0",
        "  apiservicedefinitions:\n    required: [{group: g.io, version: v1, kind: K}]\n",
    );
    let dependencies = |text: &'static str| [("metadata/d.yaml", text)];
    let property =
        "properties:\n- {type: olm.gvk.required, value: {group: g.io, kind: K, version: v1}}\n";
    let nested = "dependencies:\n- type: olm.gvk\n  value: {group: g.io, kind: K, version: v1}\n";
    let flat =
        "dependencies:\n- {type: olm.gvk, name: ks.g.io, group: g.io, kind: K, version: v1}\n";
    assert_eq!(required(&from_csv, &[]), [api]);
    assert_eq!(required(&from_service, &[]), [api]);
    assert_eq!(required(&plain, &dependencies(nested)), [api]);
    assert_eq!(required(&plain, &dependencies(flat)), [api]);
    assert_eq!(required(&plain, &[("metadata/properties.yaml", property)]), [api]);
    assert_eq!(required(&from_csv, &dependencies(nested)), [api], "twice is once");

    let package =
        r#"{"type":"olm.package.required","value":{"packageName":"b","versionRange":">1.0.0"}}"#;
    let nested =
        "dependencies:\n- type: olm.package\n  value: {packageName: b, version: '>1.0.0'}\n";
    let flat = "dependencies:\n- {type: olm.package, name: b, version: '>1.0.0'}\n";
    assert_eq!(required(&plain, &dependencies(nested)), [package]);
    assert_eq!(required(&plain, &dependencies(flat)), [package]);
    let label = "dependencies:\n- type: olm.label\n  value: {label: x}\n";
    assert_eq!(
        required(&plain, &dependencies(label)),
        [r#"{"type":"olm.label.required","value":{"label":"x"}}"#]
    );
}

#[test]
fn a_bundle_in_order_has_no_defects() {
    assert_eq!(said(&csv("1.0.0", ""), ""), "");
}

#[test]
fn defects_of_a_bundle_have_their_line() {
    let cases = [
        (
            csv(
                "1.0.0",
                "  customresourcedefinitions:\n    owned:\n    - {name: ks.g.io, version: v1, kind: K}\n",
            )
            .replace("[]'", "[{\"apiVersion\": \"g.io/v1\", \"kind\": \"K\"}]'"),
            "manifests/csv.yaml:14: error [owned-api]: package a: it owns g.io/v1 K, but brings no definition of it",
        ),
        (
            csv("1.0.0", "").replace("1.30.0", "1.30"),
            "manifests/csv.yaml:8: error [bundle-file]: package a: minKubeVersion is not a text, put it in quotes",
        ),
        (
            csv("1.0.0", "").replace("1.30.0", "'1.30'"),
            "manifests/csv.yaml:8: error [bundle-file]: package a: minKubeVersion `1.30` is not a full version, write 1.30.0",
        ),
        (
            csv("1.0.0", "").replace("supported: true", "supported: false"),
            "manifests/csv.yaml:9: error [bundle-file]: package a: no install mode is supported: it can be installed nowhere",
        ),
        (
            csv("1.0.0", "").replace("a.v1.0.0", "a"),
            "manifests/csv.yaml:5: warning [bundle-advice]: package a: the name a has not the form NAME.vVERSION",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(said(&text, ""), expected);
    }
    let found = said(&csv("1.0.0", ""), "dependencies:\n- type: olm.package\n  version: >0.27.0\n");
    assert!(found.contains("a range that begins with `>` has to be in quotes"), "{found}");
    let found = said(&csv("1.0.0", ""), "dependencies:\n- type: olm.pakage\n  value: {}\n");
    assert!(found.contains("metadata/dependencies.yaml:2: error [dependency]"), "{found}");
}

#[test]
fn a_number_where_a_version_or_a_channel_is_meant_is_an_error_that_says_to_quote_it() {
    const QUOTE: &str =
        "is the number 4.2, not text: write it in quotes, since 4.20 is the same number as 4.2";
    let plain = csv("1.0.0", "");
    let found = said(
        &plain,
        "dependencies:\n- type: olm.package\n  value: {packageName: b, version: 4.20}\n",
    );
    assert!(found.contains(&format!("olm.package: version {QUOTE}")), "{found}");
    let found = said(&plain.replace("version: 1.0.0", "version: 4.20"), "");
    assert!(found.contains(&format!("spec.version {QUOTE}")), "{found}");
    let annotations = ANNOTATIONS.replace("channels.v1: s", "channels.v1: 4.20");
    let found = reported(&converted(&[
        ("manifests/csv.yaml", &plain),
        ("metadata/annotations.yaml", &annotations),
    ]));
    assert!(found.contains(&format!("bundle.channels.v1 {QUOTE}")), "{found}");
    assert!(!found.contains("channels.v1 is missing"), "{found}");
    let properties = "properties:\n- {type: olm.maxOpenShiftVersion, value: 4.20}\n";
    let found = converted(&[
        ("manifests/csv.yaml", &plain),
        ("metadata/annotations.yaml", ANNOTATIONS),
        ("metadata/properties.yaml", properties),
    ]);
    assert!(
        reported(&found).contains(&format!("olm.maxOpenShiftVersion {QUOTE}")),
        "{}",
        reported(&found)
    );
}

#[test]
fn what_authors_write_wrongly_is_named() {
    let annotation = |text: &str| csv("1.0.0", "").replace("alm-examples: '[]'", text);
    let error = "manifests/csv.yaml:4: error [bundle-file]: package a: ";
    let cases = [
        (
            csv("1.0.0", "").replace("1.30.0", "v1.30"),
            "manifests/csv.yaml:8: error [bundle-file]: package a: minKubeVersion `v1.30` is not a full version, write 1.30.0".to_owned(),
        ),
        (
            annotation("alm-examples: '', olm.skiprange: '<1.0.0'"),
            format!("{error}the annotation olm.skiprange is not olm.skipRange, write it like this"),
        ),
        (
            annotation("alm-examples: '[{\"apiVersion\": \"g.io/v1\", \"kind\": \"Bulb\"}]'"),
            format!("{error}alm-examples has a Bulb of g.io/v1, which the bundle does not own"),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(said(&text, ""), expected);
    }
    let deployments = csv("1.0.0", "").replace(
        "deployments: []",
        "deployments: [{name: d, spec: {template: {spec: {serviceAccountName: keeper}}}}]",
    );
    let account =
        |name: &str| format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n");
    let with = |name: &str| {
        let account = account(name);
        reported(&converted(&[
            ("manifests/csv.yaml", &deployments),
            ("manifests/sa.yaml", &account),
            ("metadata/annotations.yaml", ANNOTATIONS),
        ]))
    };
    assert_eq!(with("other"), "");
    assert_eq!(
        with("keeper"),
        "manifests/sa.yaml:3: error [bundle-file]: package a: the service account keeper is that of a \
         deployment, for which it is created: remove the manifest, or rename it"
    );
}

#[test]
fn a_bundle_whose_dependencies_cannot_be_read_is_left_out_and_hides_no_other() {
    let (old, new) = (csv("1.0.0", ""), csv("2.0.0", ""));
    let converted = converted(&[
        ("a/1.0.0/manifests/csv.yaml", &old),
        ("a/1.0.0/metadata/annotations.yaml", ANNOTATIONS),
        ("a/2.0.0/manifests/csv.yaml", &new),
        ("a/2.0.0/metadata/annotations.yaml", ANNOTATIONS),
        ("a/2.0.0/metadata/dependencies.yaml", "dependencies: {}\n- x"),
    ]);
    let bundles: Vec<&str> = converted
        .documents
        .iter()
        .filter(|it| it.value["schema"] == "olm.bundle")
        .filter_map(|it| it.value["name"].as_str())
        .collect();
    assert_eq!(bundles, ["a.v1.0.0"]);
    assert_eq!(converted.defects[0].file, "a/2.0.0/metadata/dependencies.yaml");
}

/// The entries of the channel of three bundles, in a mode.
fn entries(mode: &str) -> String {
    let versions = ["1.0.0", "1.0.1", "1.1.0"];
    let csvs = versions.map(|version| csv(version, "  replaces: a.v0.9.0\n"));
    let ci = format!("updateGraph: {mode}\n");
    let paths = versions.map(|version| {
        [format!("a/{version}/manifests/c.yaml"), format!("a/{version}/metadata/a.yaml")]
    });
    let mut files = vec![("a/ci.yaml", ci.as_str())];
    for ([csv_path, annotations], csv) in paths.iter().zip(&csvs) {
        files.push((csv_path, csv));
        files.push((annotations, ANNOTATIONS));
    }
    let converted = converted(&files);
    let channel = converted.documents.iter().find(|it| it.value["schema"] == "olm.channel");
    let channel = channel.unwrap_or_else(|| panic!("no channel: {:?}", converted.defects));
    channel.value["entries"].to_string().replace(['"', '{', '}'], "")
}

#[test]
fn entries_follow_each_other_as_the_package_says() {
    assert_eq!(
        entries("replaces-mode"),
        "[name:a.v1.0.0,replaces:a.v0.9.0,name:a.v1.0.1,replaces:a.v0.9.0,name:a.v1.1.0,replaces:a.v0.9.0]"
    );
    assert_eq!(
        entries("semver-mode"),
        "[name:a.v1.0.0,name:a.v1.0.1,replaces:a.v1.0.0,name:a.v1.1.0,replaces:a.v1.0.1]"
    );
    assert_eq!(
        entries("semver-skippatch-mode"),
        "[name:a.v1.0.0,name:a.v1.0.1,skips:[a.v1.0.0],name:a.v1.1.0,replaces:a.v1.0.1]"
    );
}

#[test]
fn package_manifests_lead_from_their_heads_along_what_is_replaced() {
    let (first, second) = (csv("1.0.0", ""), csv("2.0.0", "  replaces: a.v1.0.0\n"));
    let converted = converted(&[
        ("a/a.package.yaml", "packageName: a\nchannels:\n- {name: s, currentCSV: a.v2.0.0}\n"),
        ("a/1.0.0/a.clusterserviceversion.yaml", &first),
        ("a/2.0.0/a.clusterserviceversion.yaml", &second),
    ]);
    assert_eq!(converted.defects, []);
    assert_eq!(converted.all_defects(), []);
    assert_eq!(converted.documents[0].value["defaultChannel"], "s");
    assert_eq!(converted.documents[1].value["entries"].as_array().map(Vec::len), Some(2));
}

#[test]
fn deprecations_stand_beside_the_bundles() {
    let csv = csv("1.0.0", "");
    let check = |deprecations: &str, schemas: &[&str], problems: &str| {
        let converted = converted(&[
            ("a/1/manifests/csv.yaml", &csv),
            ("a/1/metadata/a.yaml", ANNOTATIONS),
            ("a/deprecations.yaml", deprecations),
        ]);
        let written = converted.documents.iter().filter_map(|it| it.value["schema"].as_str());
        assert_eq!(written.collect::<Vec<_>>(), schemas, "{deprecations}");
        assert_eq!(reported(&converted), problems, "{deprecations}");
    };
    let package = ["olm.package", "olm.channel", "olm.bundle"];
    let entry = "entries: [{reference: {schema: olm.bundle, name: a.v1.0.0}, message: old}]\n";
    check(
        &format!("schema: olm.deprecations\npackage: a\n{entry}"),
        &[&package[..], &["olm.deprecations"]].concat(),
        "",
    );
    check(
        &format!("package: a\n{entry}"),
        &package,
        "a/deprecations.yaml:1: warning [bundle-advice]: not a document of schema olm.deprecations: \
         it is ignored",
    );
}

#[test]
fn trees_of_bundles_are_distinguished_from_catalogs() {
    let check = |names: &[&str], expected: bool| {
        assert_eq!(is_bundles(names.iter().copied()), expected, "{names:?}");
    };
    check(&["manifests/a.yaml", "metadata/annotations.yaml"], true);
    check(&["a/1.0.0/manifests/a.yaml", "a/1.0.0/metadata/annotations.yaml"], true);
    check(&["a/a.package.yaml"], true);
    check(&["a/catalog.yaml", "b/catalog.json"], false);
    check(&["manifests/catalog.yaml"], false);
}

#[test]
fn a_bundle_by_itself_need_not_be_in_the_default_channel() {
    let annotations =
        format!("{ANNOTATIONS}  operators.operatorframework.io.bundle.channel.default.v1: other\n");
    let csv = csv("1.0.0", "");
    let files = [("manifests/csv.yaml", csv.as_str()), ("metadata/a.yaml", &annotations)];
    let alone = converted(&files);
    assert_eq!(reported(&alone), "");
    assert_eq!(alone.documents[0].value["defaultChannel"], "s");
    // Of the package as a whole it is an error.
    let files = [("a/1/manifests/csv.yaml", csv.as_str()), ("a/1/metadata/a.yaml", &annotations)];
    let text = reported(&converted(&files));
    assert!(text.contains("error [default-channel]"), "{text}");
}

#[test]
fn a_bundle_inside_a_bundle_does_not_hide_it() {
    let csv = csv("1.0.0", "");
    for outer in ["", "a/1.0.0/"] {
        let paths = ["manifests/csv.yaml", "metadata/a.yaml"].map(|path| format!("{outer}{path}"));
        let inner =
            ["manifests/csv.yaml", "metadata/a.yaml"].map(|it| format!("{outer}bundle/{it}"));
        let converted = converted(&[
            (&paths[0], &csv),
            (&paths[1], ANNOTATIONS),
            (&inner[0], &csv),
            (&inner[1], ANNOTATIONS),
        ]);
        let within = if outer.is_empty() { "." } else { "a/1.0.0" };
        assert_eq!(
            reported(&converted),
            format!(
                "{}: warning [bundle-advice]: a bundle inside the bundle `{within}` is ignored",
                inner[0]
            )
        );
        let is_bundle = |it: &&super::BundleDocument| it.value["schema"] == "olm.bundle";
        assert_eq!(converted.documents.iter().filter(is_bundle).count(), 1);
    }
}

#[test]
fn rules_are_compiled_and_old_definitions_are_named() {
    let rule = |rule: &str| {
        let rule = format!(
            "dependencies:\n- type: olm.constraint\n  value: {{cel: {{rule: '{rule}'}}}}\n"
        );
        said(&csv("1.0.0", ""), &rule)
    };
    assert_eq!(rule("properties.exists(p, p.type == \"x\")"), "");
    let text = rule("properties.exists(p, p.kind == ");
    assert!(text.contains("error [dependency]: package a: bundle a.v1.0.0: olm.constraint: the CEL rule does not compile: "), "{text}");
    let text = rule("size(properties)");
    assert!(text.contains("its type is int, not bool"), "{text}");
    let owned = csv(
        "1.0.0",
        "  customresourcedefinitions:\n    owned: [{name: ks.g.io, version: v1, kind: K}]\n",
    )
    .replace("[]'", "[{\"apiVersion\": \"g.io/v1\", \"kind\": \"K\"}]'");
    let definition = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n\
                      metadata: {name: ks.g.io}\nspec: {group: g.io, version: v1, \
                      preserveUnknownFields: false, names: {kind: K, plural: ks}}\n";
    let converted = converted(&[
        ("manifests/csv.yaml", &owned),
        ("manifests/k.yaml", definition),
        ("metadata/annotations.yaml", ANNOTATIONS),
    ]);
    assert_eq!(
        reported(&converted),
        "manifests/k.yaml:1: error [bundle-file]: package a: Kubernetes 1.22 and later do not serve \
         apiextensions.k8s.io/v1beta1; write the definition in v1"
    );
}

#[test]
fn a_tree_is_read_one_bundle_at_a_time_for_the_same_index() {
    let (old, new) = (csv("1.0.0", "  displayName: A\n"), csv("2.0.0", "  description: long\n"));
    let files = [
        ("a/1/manifests/csv.yaml", old.as_str()),
        ("a/1/metadata/annotations.yaml", ANNOTATIONS),
        ("a/2/manifests/csv.yaml", &new),
        ("a/2/metadata/annotations.yaml", ANNOTATIONS),
        ("a/ci.yaml", "updateGraph: replaces-mode\n"),
    ];
    let names = files.map(|(name, _)| name);
    let mut read = Vec::new();
    let streamed = convert_tree(&names, BundleObjects::LeftOut, &mut |number| {
        read.push(number);
        Ok(files[number].1.as_bytes().to_vec())
    });
    assert_eq!(read, [4, 0, 1, 2, 3]);
    let index = |converted: &ConvertedBundles| {
        let mut loader = CatalogLoader::new();
        converted.load_into(&mut loader);
        loader.finish().index
    };
    assert_eq!(index(&streamed), index(&converted(&files)));
    let text = format!("{:?}", streamed.documents);
    assert!(!text.contains("long"), "what no index needs is not kept: {text}");
    let broken = convert_tree(&names, BundleObjects::LeftOut, &mut |_| Err("gone".to_owned()));
    assert!(broken.defects.iter().any(|defect| defect.message == "gone"), "{broken:?}");
}
