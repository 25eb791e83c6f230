//! Sources of every form: their index, when they changed, and the content of their bundles.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::*;
use crate::store::tests::Layout;

const CSV: &str = "kind: ClusterServiceVersion\nmetadata: {name: NAME}\nspec: {version: 1.0.0, \
                   install: {spec: {deployments: []}}}\n";
const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: PACKAGE
  operators.operatorframework.io.bundle.channels.v1: stable
";
/// `{"kind":"ClusterServiceVersion","metadata":{"name":"b.v1"}}` and `{"kind":"ConfigMap"}`.
const OBJECTS: [&str; 2] = [
    "eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwibWV0YWRhdGEiOnsibmFtZSI6ImIudjEifX0=",
    "eyJraW5kIjoiQ29uZmlnTWFwIn0=",
];

fn directory(path: &Path) -> CatalogSource {
    let path = path.to_string_lossy().into_owned();
    CatalogSource { type_: CatalogSourceType::Directory, path, reference: String::new() }
}

fn layout(path: &Path, reference: &str) -> CatalogSource {
    let path = path.to_string_lossy().into_owned();
    CatalogSource { type_: CatalogSourceType::ImageLayout, path, reference: reference.to_owned() }
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a directory"))
            .expect("a directory");
        fs::write(&path, text).expect("a file");
    }
}

/// The paths of a bundle's files, or the error.
fn content(source: &CatalogSource, package: &str, bundle: &str) -> String {
    match bundle_content(source, package, bundle) {
        Ok(content) => {
            let paths: Vec<&str> = content.files.iter().map(|file| file.path.as_str()).collect();
            paths.join(" ")
        }
        Err(error) => error.to_string(),
    }
}

/// A file-based catalog with one bundle `b.v1` of package `b`.
fn file_based(image: &str, properties: &[Value]) -> String {
    let mut all = vec![json!({
        "type": "olm.package",
        "value": { "packageName": "b", "version": "1.0.0" },
    })];
    all.extend_from_slice(properties);
    let documents = [
        json!({ "schema": "olm.package", "name": "b", "defaultChannel": "s" }),
        json!({ "schema": "olm.channel", "package": "b", "name": "s",
            "entries": [{ "name": "b.v1" }] }),
        json!({ "schema": "olm.bundle", "package": "b", "name": "b.v1", "image": image,
            "properties": all }),
    ];
    documents.map(|it| it.to_string()).join("\n")
}

fn objects() -> [Value; 2] {
    OBJECTS.map(|data| json!({ "type": "olm.bundle.object", "value": { "data": data } }))
}

#[test]
fn a_tree_has_the_directory_of_each_bundle() {
    let root = tempfile::tempdir().expect("a directory");
    for (package, version) in [("a", "v1"), ("a", "v2"), ("ab", "v1")] {
        let csv = CSV.replace("NAME", &format!("{package}.{version}"));
        let annotations = ANNOTATIONS.replace("PACKAGE", package);
        let below = format!("{package}/{version}");
        write(
            root.path(),
            &[
                (&format!("{below}/manifests/csv.yaml"), &csv),
                (&format!("{below}/manifests/{version}.yaml"), "kind: ConfigMap\n"),
                (&format!("{below}/manifests/.hidden"), "{"),
                (&format!("{below}/metadata/annotations.yaml"), &annotations),
                (&format!("{below}/tests/scorecard/config.yaml"), "kind: X\n"),
            ],
        );
    }
    // The older layout: no metadata, a package manifest instead.
    write(
        root.path(),
        &[
            (
                "old/old.package.yaml",
                "packageName: old\nchannels: [{name: s, currentCSV: old.v1}]\n",
            ),
            ("old/1.0.0/csv.yaml", &CSV.replace("NAME", "old.v1")),
            ("old/1.0.0/map.yaml", "kind: ConfigMap\n"),
            ("old/1.0.0/README.md", "text"),
        ],
    );
    let source = directory(root.path());
    for (package, bundle, expected) in [
        ("a", "a.v1", "manifests/csv.yaml manifests/v1.yaml metadata/annotations.yaml"),
        ("a", "a.v2", "manifests/csv.yaml manifests/v2.yaml metadata/annotations.yaml"),
        ("ab", "ab.v1", "manifests/csv.yaml manifests/v1.yaml metadata/annotations.yaml"),
        ("old", "old.v1", "manifests/csv.yaml manifests/map.yaml metadata/annotations.yaml"),
        ("a", "ab.v1", "the catalog has no bundle `ab.v1` of package `a`"),
        ("a", "a.v3", "the catalog has no bundle `a.v3` of package `a`"),
        ("", "", "the catalog has no bundle `` of package ``"),
    ] {
        assert_eq!(content(&source, package, bundle), expected, "{package} {bundle}");
    }
    let opened = open_source(&source, None).expect("it can be read");
    assert_eq!(opened.index.package_names().collect::<Vec<_>>(), ["a", "ab", "old"]);
}

#[test]
fn a_file_based_catalog_has_the_manifests_that_it_contains() {
    let constraint = json!({ "type": "olm.constraint", "value": { "failureMessage": "x" } });
    let other = json!({ "type": "olm.maxOpenShiftVersion", "value": "4.20" });
    let derived = [&objects()[..], &[constraint]].concat();
    let further = [&objects()[..], &[other]].concat();
    let broken = [json!({ "type": "olm.bundle.object", "value": { "data": "!" } })];
    let carried = "manifests/0001-clusterserviceversion.yaml manifests/0002-configmap.yaml metadata/annotations.yaml";
    for (image, properties, expected) in [
        ("", &derived[..], carried.to_owned()),
        ("x/y:1", &derived, carried.to_owned()),
        ("", &further, format!("{carried} metadata/properties.yaml")),
        ("", &broken, "bundle `b.v1`: property olm.bundle.object: data is not base64".into()),
        ("", &[], "the catalog has neither manifests nor an image of bundle `b.v1`".into()),
        (
            "quay.io/x/b:1",
            &[],
            "the content of bundle `b.v1` is in the image `quay.io/x/b:1`, which the catalog's \
             source does not have: copy the image into an image layout together with the catalog, \
             or use a catalog that contains the manifests, as `plimsoll catalog convert` makes one \
             of bundle directories"
                .into(),
        ),
    ] {
        let root = tempfile::tempdir().expect("a directory");
        let text = file_based(image, properties);
        write(root.path(), &[("a/notes.yaml", "x: y\n"), ("b/catalog.json", &text)]);
        let source = directory(root.path());
        assert_eq!(content(&source, "b", "b.v1"), expected, "{image} {properties:?}");
        let missing = "the catalog has no bundle `b.v2` of package `b`";
        assert_eq!(content(&source, "b", "b.v2"), missing);
        // As YAML, in one file, the same.
        let path = root.path().join("b/catalog.json");
        let yaml = text.replace('\n', "\n---\n");
        fs::write(&path, format!("---\n{yaml}\n")).expect("a file");
        assert_eq!(content(&directory(&path), "b", "b.v1"), expected, "{image} {properties:?}");
    }
}

#[test]
fn what_a_catalog_contains_is_what_its_directories_had() {
    let root = std::path::absolute("../../examples/bundles").expect("a working directory");
    let (documents, _) = super::super::documents(&root).expect("there are files");
    let copy = tempfile::tempdir().expect("a directory");
    let text: String = documents.iter().map(|it| format!("{it}\n")).collect();
    write(copy.path(), &[("catalog.json", &text)]);
    let values = |path: &Path| -> Vec<Value> {
        let files = bundle_content(&directory(path), "lantern", "lantern.v2.2.0");
        let files = files.expect("the bundle is there").files;
        let mut values: Vec<Value> = files
            .iter()
            .filter(|file| file.path.starts_with("manifests/"))
            .map(|file| {
                let text = std::str::from_utf8(&file.bytes).expect("text");
                plimsoll_content::yaml::read(text).expect("YAML")
            })
            .collect();
        values.sort_by_key(ToString::to_string);
        values
    };
    assert_eq!(values(&root), values(copy.path()));
    assert_eq!(values(&root).len(), 2);
}

/// Adds the image of bundle `b.v1`.
fn bundle_image(built: &Layout) -> Value {
    let annotations = ANNOTATIONS.replace("PACKAGE", "b");
    let bundle_layers = [built.layer(
        &[
            ("manifests/csv.yaml", CSV.as_bytes()),
            ("metadata/annotations.yaml", annotations.as_bytes()),
            ("root/buildinfo", b"x"),
        ],
        true,
    )];
    let labels = json!({ "operators.operatorframework.io.bundle.package.v1": "b" });
    built.labelled("example.com/b:1", &labels, &bundle_layers)
}

/// Adds the image of a catalog with bundle `b.v1`, whose content is in another image.
fn catalog_image(
    built: &Layout,
    name: &str,
    image: &str,
    directory: &str,
    labels: &Value,
) -> Value {
    let text = file_based(image, &[]);
    let file = format!("{directory}/b/catalog.json");
    let ignore = format!("{directory}/.indexignore");
    let nested = format!("{directory}/b/.indexignore");
    let (notes, kept) = (format!("{directory}/b/notes"), format!("{directory}/b/x/kept"));
    let layer = built.layer(
        &[
            (&*file, text.as_bytes()),
            (&*ignore, b"*.txt\n"),
            (&*nested, b"notes\nx/**\n!x/kept\n"),
            (&*notes, b"- no catalog\n"),
            (&*kept, b"{\"schema\":\"olm.package\",\"name\":\"kept\"}\n"),
            (&*format!("{directory}/a.txt"), b"- no catalog\n"),
            ("bin/opm", b"\x7fELF"),
        ],
        true,
    );
    built.labelled(name, labels, &[layer])
}

#[test]
fn an_image_layout_has_catalogs_and_the_content_of_their_bundles() {
    let built = Layout::new();
    let bundle = bundle_image(&built);
    let digest = bundle["digest"].as_str().expect("a digest");
    let pinned = format!("example.com/b@{digest}");
    let moved = json!({ CONFIGS_LABEL: "/srv/configs/" });
    let images = [
        catalog_image(&built, "tagged", "example.com/b:1", "configs", &json!({})),
        catalog_image(&built, "x.io/c:v4.20", &pinned, "srv/configs", &moved),
        catalog_image(&built, "elsewhere", "example.com/other:1", "configs", &Value::Null),
        catalog_image(&built, "nothing", "example.com/b:1", "configs", &moved),
        bundle,
    ];
    built.index(&images);
    let elsewhere = "the content of bundle `b.v1` is in the image `example.com/other:1`, which the";
    for (reference, package, expected) in [
        ("tagged", "b", "manifests/csv.yaml metadata/annotations.yaml"),
        ("v4.20", "b", "manifests/csv.yaml metadata/annotations.yaml"),
        ("x.io/c:v4.20", "b", "manifests/csv.yaml metadata/annotations.yaml"),
        ("tagged", "c", "the catalog has no bundle `b.v1` of package `c`"),
        ("elsewhere", "b", elsewhere),
        ("nothing", "b", "has no files below /srv/configs"),
        ("other", "b", "the layout has no image \"other\"; it has elsewhere, example.com/b:1,"),
        ("", "b", "the layout has not one image: name the one that is meant; it has elsewhere,"),
    ] {
        let source = layout(built.path(), reference);
        let found = content(&source, package, "b.v1");
        assert!(found.contains(expected), "{reference} {package}: {found}");
    }
    let cache = tempfile::tempdir().expect("a directory");
    let cache = Cache::new(cache.path());
    let source = layout(built.path(), "tagged");
    let by_digest = layout(built.path(), images[0]["digest"].as_str().expect("a digest"));
    for source in [&source, &by_digest] {
        let opened = open_source(source, Some(&cache)).expect("it can be read");
        assert_eq!(opened.index.package_names().collect::<Vec<_>>(), ["b", "kept"]);
        assert_eq!(opened.digest, by_digest.reference);
        assert_eq!(version_of(source).expect("it can be read"), by_digest.reference);
    }
    // From the cache, without a look at its layers.
    let hex = |value: &Value| value["digest"].as_str().unwrap_or_default().replace("sha256:", "");
    let manifest: Value = serde_json::from_slice(
        &fs::read(built.path().join("blobs/sha256").join(hex(&images[0]))).expect("a manifest"),
    )
    .expect("JSON");
    fs::write(built.path().join("blobs/sha256").join(hex(&manifest["layers"][0])), "x")
        .expect("our own file");
    open_source(&source, Some(&cache)).expect("it is in the cache");
    let error = open_source(&source, None).expect_err("the layer is another one");
    assert!(error.to_string().contains("content does not match its digest"), "{error}");
    // The only image needs no reference.
    built.index(&images[1..2]);
    assert!(open_source(&layout(built.path(), ""), None).is_ok());
}

#[test]
fn the_digest_of_a_bundle_is_that_of_its_image_or_of_its_files() {
    let built = Layout::new();
    let bundle = bundle_image(&built);
    let catalog = catalog_image(&built, "tagged", "example.com/b:1", "configs", &json!({}));
    built.index(&[catalog, bundle.clone()]);
    let digest = |source: &CatalogSource| {
        bundle_content(source, "b", "b.v1").expect("the bundle is there").digest
    };
    assert_eq!(bundle["digest"], digest(&layout(built.path(), "tagged")));
    let digest_of = |properties: &[Value]| {
        let root = tempfile::tempdir().expect("a directory");
        write(root.path(), &[("b/catalog.json", &file_based("", properties))]);
        digest(&directory(root.path()))
    };
    let of_files = digest_of(&objects());
    assert_eq!(of_files.len(), "sha256:".len() + 64, "{of_files}");
    assert_eq!(digest_of(&objects()), of_files);
    assert_ne!(digest_of(&objects()[..1]), of_files);
}

#[test]
fn what_is_no_layout_is_neither_followed_nor_quoted() {
    let built = Layout::new();
    built.index(&[bundle_image(&built)]);
    let outside = tempfile::tempdir().expect("a directory");
    let (index, secret) = (built.path().join("index.json"), outside.path().join("secret"));
    fs::write(&secret, "\"eyJhbGciOiJSUzI1NiJ9\"").expect("a file");
    let error = |expected: &str| {
        let error = version_of(&layout(built.path(), "")).expect_err("no layout").to_string();
        assert!(error.contains(expected) && !error.contains("eyJ"), "{error}");
    };
    fs::remove_file(&index).expect("our own file");
    symlink(&secret, &index).expect("a link");
    error("the symbolic link leads out of the layout");
    fs::remove_file(&index).expect("our own link");
    fs::copy(&secret, &index).expect("our own file");
    error("not of the form of a layout at line 1");
}

#[test]
fn a_directory_that_changes_while_it_is_read_is_read_again() {
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), &[("a.json", &file_based("i", &[])), ("b.txt", "{}")]);
    let path = root.path();
    type Change<'c> = &'c dyn Fn();
    let changes: [(Change<'_>, bool); 5] = [
        (&|| {}, false),
        (&|| write(path, &[("a.json", "{}")]), true),
        (&|| write(path, &[("c.json", "{}")]), true),
        (&|| fs::remove_file(path.join("b.txt")).expect("our own file"), true),
        (&|| fs::remove_dir_all(path).expect("our own directory"), true),
    ];
    for (number, (change, is_noticed)) in changes.iter().enumerate() {
        let result = unchanged(path, |_| {
            change();
            Ok(())
        });
        assert_eq!(matches!(result, Err(CatalogError::Changing(_))), *is_noticed, "{number}");
    }
    assert!(matches!(open_source(&directory(path), None), Err(CatalogError::Unreadable { .. })));
}

#[test]
fn the_version_and_the_digest_follow_the_files() {
    let root = tempfile::tempdir().expect("a directory");
    let write_catalog = |text: &str| write(root.path(), &[("catalog.json", text)]);
    let source = directory(root.path());
    let seen = || {
        let opened = open_source(&source, None).expect("it can be read");
        (version_of(&source).expect("it can be read"), opened.digest)
    };
    write_catalog(&file_based("i", &[]));
    let (first, digest) = seen();
    assert_eq!(seen(), (first.clone(), digest.clone()));
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    write_catalog(&file_based("other", &[]));
    let (second, other) = seen();
    assert!(first != second && digest != other);
    // The same content in other files.
    fs::remove_file(root.path().join("catalog.json")).expect("our own file");
    write_catalog(&file_based("i", &[]));
    assert_eq!(seen().1, digest);
}

#[test]
fn a_mounted_volume_is_read_once() {
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), &[("..2026_11/catalog.json", &file_based("i", &[]))]);
    symlink("..2026_11", root.path().join("..data")).expect("a link");
    symlink("..data/catalog.json", root.path().join("catalog.json")).expect("a link");
    for path in [root.path().to_owned(), root.path().join("..data")] {
        let opened = open_source(&directory(&path), None).expect("it can be read");
        assert_eq!(opened.index.counts().bundles, 1);
        assert_eq!(opened.index.defects().expect("it is whole"), []);
    }
}
