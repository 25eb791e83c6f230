//! What stores list and what they refuse.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_content::hash::hexadecimal;
use plimsoll_content::payload::{Directory, SourceFile};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{OciLayout, PayloadDirectory, PayloadSet, PayloadStore, Signature};

pub(crate) fn files(version: &str) -> Vec<SourceFile> {
    let file = |name: &str, text: String| SourceFile {
        directory: Directory::ReleaseManifests,
        name: name.to_owned(),
        bytes: text.into(),
    };
    let images = json!({
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": { "name": version },
    });
    let metadata = json!({
        "kind": "cincinnati-metadata-v0",
        "version": version,
        "previous": ["0.9.0"],
    });
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a-{version}}}\n");
    vec![
        file("0000_10_a_01.yaml", map),
        file("image-references", images.to_string()),
        file("release-metadata", metadata.to_string()),
    ]
}

fn write(root: &Path, files: &[SourceFile]) {
    fs::create_dir_all(root.join("manifests")).unwrap();
    for file in files {
        let directory = root.join(file.directory.name());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(&file.name), &file.bytes).unwrap();
    }
}

/// Versions listed, then defects.
fn listed(store: &dyn PayloadStore) -> String {
    let listing = store.list().unwrap();
    let mut listed: Vec<String> =
        listing.releases.iter().map(|head| head.release.version.clone()).collect();
    listed.sort();
    listed.extend(listing.defects.iter().map(|_| "defect".to_owned()));
    listed.join(" ")
}

fn fetch(store: &dyn PayloadStore, image: &str) -> Result<Vec<SourceFile>, String> {
    let cancelled = AtomicBool::new(false);
    store.fetch(image, &cancelled).map(|it| it.files).map_err(|error| error.to_string())
}

#[test]
fn a_directory_of_payloads_is_listed_and_watched_for_changes() {
    let root = tempfile::tempdir().unwrap();
    let store = PayloadDirectory::new(root.path());
    assert_eq!(listed(&store), "");
    write(&root.path().join("a"), &files("1.0.0"));
    fs::create_dir(root.path().join("not a payload")).unwrap();
    assert_eq!(listed(&store), "1.0.0");
    write(&root.path().join("b"), &files("1.1.0"));
    write(&root.path().join("c"), &files("1.2.0")[..2]);
    assert_eq!(listed(&store), "1.0.0 1.1.0 defect");
    let head = store.list().unwrap().releases.remove(1);
    assert_eq!(head.release.previous, ["0.9.0"]);
    assert_eq!(fetch(&store, &head.image), Ok(files("1.1.0")));
    // By digest, whatever the name.
    let (_, digest) = head.image.split_once('@').unwrap();
    assert_eq!(fetch(&store, &format!("mirror.example/x@{digest}")), Ok(files("1.1.0")));
    // Another content is another release.
    fs::write(root.path().join("b/release-manifests/0000_20_b.yaml"), "kind: X\n").unwrap();
    let error = fetch(&store, &head.image).unwrap_err();
    assert_eq!(error, format!("the store has no release {:?}; it has 1.0.0, 1.1.0", head.image));
    // A payload directory is a store of one.
    assert_eq!(listed(&PayloadDirectory::new(root.path().join("a"))), "1.0.0");
    assert!(PayloadDirectory::new(root.path().join("nowhere")).list().is_err());
}

#[test]
fn what_is_cancelled_is_given_up() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &files("1.0.0"));
    let store = PayloadDirectory::new(root.path());
    let image = store.list().unwrap().releases.remove(0).image;
    let error = store.fetch(&image, &AtomicBool::new(true)).unwrap_err();
    assert_eq!(error.to_string(), "cancelled");
}

#[test]
fn a_set_in_memory_does_the_same() {
    let store = PayloadSet::new();
    let head = store.add(files("1.0.0"), Some("quay.io/x@sha256:1"), Signature::NotSigned).unwrap();
    assert_eq!(listed(&store), "1.0.0");
    assert_eq!(fetch(&store, &head.image), Ok(files("1.0.0")));
    assert_eq!(fetch(&store, "other/y@sha256:1"), Ok(files("1.0.0")));
    assert!(fetch(&store, "other/y@sha256:2").is_err());
    assert!(store.add(files("1.0.0")[..1].to_vec(), None, Signature::NotSigned).is_err());
}

/// An OCI layout under construction.
pub(crate) struct Layout(tempfile::TempDir);

impl Layout {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("blobs/sha256")).unwrap();
        Self(root)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn blob(&self, bytes: &[u8], media_type: &str) -> Value {
        let hex = hexadecimal(&Sha256::digest(bytes));
        fs::write(self.0.path().join("blobs/sha256").join(&hex), bytes).unwrap();
        json!({
            "mediaType": format!("application/vnd.oci.image.{media_type}"),
            "digest": format!("sha256:{hex}"),
            "size": bytes.len(),
        })
    }

    pub(crate) fn layer(&self, files: &[(&str, &[u8])], gzip: bool) -> Value {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, path, *bytes).unwrap();
        }
        let bytes = archive.into_inner().unwrap();
        if !gzip {
            return self.blob(&bytes, "layer.v1.tar");
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).unwrap();
        self.blob(&encoder.finish().unwrap(), "layer.v1.tar+gzip")
    }

    pub(crate) fn image(&self, layers: &[Value]) -> Value {
        let manifest = json!({ "schemaVersion": 2, "layers": layers });
        self.blob(manifest.to_string().as_bytes(), "manifest.v1+json")
    }

    /// An image of a name with labels.
    pub(crate) fn labelled(&self, name: &str, labels: &Value, layers: &[Value]) -> Value {
        let config = json!({ "config": { "Labels": labels } });
        let config = self.blob(config.to_string().as_bytes(), "config.v1+json");
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": layers });
        let mut image = self.blob(manifest.to_string().as_bytes(), "manifest.v1+json");
        image["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
        image
    }

    pub(crate) fn index(&self, images: &[Value]) -> OciLayout {
        let index = json!({ "schemaVersion": 2, "manifests": images });
        fs::write(self.0.path().join("index.json"), index.to_string()).unwrap();
        OciLayout::new(self.0.path())
    }
}

/// The layers of a release: one that later ones partly take back, and one that is not ours.
fn layers(layout: &Layout, version: &str) -> Vec<Value> {
    let files = files(version);
    let paths: Vec<String> =
        files.iter().map(|file| format!("{}/{}", file.directory, file.name)).collect();
    let mut first: Vec<(&str, &[u8])> = vec![
        ("release-manifests/0000_99_old.yaml", b"kind: Old\n"),
        ("usr/bin/program", b"\x7fELF"),
        ("release-manifests/deep/0000_10_x.yaml", b"kind: X\n"),
    ];
    first.push((paths[0].as_str(), b"kind: Replaced\n"));
    let mut second: Vec<(&str, &[u8])> = vec![("release-manifests/.wh.0000_99_old.yaml", b"")];
    second.extend(paths.iter().zip(&files).map(|(path, file)| (path.as_str(), &*file.bytes)));
    vec![layout.layer(&first, true), layout.layer(&second, false)]
}

#[test]
fn an_oci_layout_is_read_layer_by_layer() {
    let layout = Layout::new();
    let mut image = layout.image(&layers(&layout, "1.0.0"));
    image["annotations"] = json!({ "org.opencontainers.image.ref.name": "quay.io/ocp/release:1" });
    let index = json!({ "manifests": [
        { "digest": format!("sha256:{}", "0".repeat(64)), "platform": { "architecture": "none" } },
        layout.image(&layers(&layout, "1.1.0")),
    ]});
    let mut index = layout.blob(index.to_string().as_bytes(), "index.v1+json");
    index["annotations"] = json!({ "org.opencontainers.image.ref.name": "latest" });
    let store = layout.index(&[image.clone()]);
    assert_eq!(listed(&store), "1.0.0");
    let head = store.list().unwrap().releases.remove(0);
    assert_eq!(head.image, format!("quay.io/ocp/release@{}", image["digest"].as_str().unwrap()));
    assert_eq!(fetch(&store, &head.image), Ok(files("1.0.0")));
    let store = layout.index(&[image, index]);
    // Of the index, the image that is for no other architecture.
    assert_eq!(listed(&store), "1.0.0 1.1.0");
}

#[test]
fn a_layer_may_be_compressed_with_zstd() {
    let layout = Layout::new();
    let plain = layout.layer(
        &files("1.0.0")
            .iter()
            .map(|file| (format!("{}/{}", file.directory, file.name), file.bytes.to_vec()))
            .collect::<Vec<_>>()
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .collect::<Vec<_>>(),
        false,
    );
    let hex = plain["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
    let archive = fs::read(layout.path().join(hex)).unwrap();
    // Two frames, as programs write that compress in parallel.
    let (one, other) = archive.split_at(1000);
    let mut compressed = zstd::encode_all(one, 1).unwrap();
    compressed.extend(zstd::encode_all(other, 1).unwrap());
    let layer = layout.blob(&compressed, "layer.v1.tar+zstd");
    let store = layout.index(&[layout.image(&[layer])]);
    let image = store.list().unwrap().releases.remove(0).image;
    assert_eq!(fetch(&store, &image), Ok(files("1.0.0")));
}

#[test]
fn an_image_for_other_architectures_is_no_release() {
    let layout = Layout::new();
    let mut foreign = layout.image(&layers(&layout, "1.0.0"));
    foreign["platform"] = json!({ "architecture": "s390x", "os": "linux" });
    let index =
        layout.blob(json!({ "manifests": [foreign] }).to_string().as_bytes(), "index.v1+json");
    let store = layout.index(&[index, layout.image(&layers(&layout, "1.1.0"))]);
    assert_eq!(listed(&store), "1.1.0 defect");
    let problem = store.list().unwrap().defects.remove(0);
    assert!(problem.contains("only for linux/s390x"), "{problem}");
}

#[test]
fn an_image_without_an_index_is_for_the_architecture_of_its_configuration() {
    let layout = Layout::new();
    let built = |version: &str, architecture: &str| {
        let config = json!({ "architecture": architecture, "os": "linux" });
        let config = layout.blob(config.to_string().as_bytes(), "config.v1+json");
        let layers = layers(&layout, version);
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": layers });
        layout.blob(manifest.to_string().as_bytes(), "manifest.v1+json")
    };
    let own = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let store = layout.index(&[built("1.0.0", "s390x"), built("1.1.0", own), built("1.2.0", "")]);
    assert_eq!(listed(&store), "1.1.0 1.2.0 defect");
    let problem = store.list().unwrap().defects.remove(0);
    assert!(
        problem.contains("the image is for linux/s390x, as its configuration says"),
        "{problem}"
    );
}

#[test]
fn a_pipe_instead_of_a_blob_is_refused() {
    let layout = Layout::new();
    let layers = layers(&layout, "1.0.0");
    let store = layout.index(&[layout.image(&layers)]);
    let hex = layers[0]["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
    let blob = layout.0.path().join(hex);
    fs::remove_file(&blob).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&blob).status().unwrap().success());
    let problem = store.list().unwrap().defects.remove(0);
    assert!(problem.contains("a named pipe, not an ordinary file"), "{problem}");
}

#[test]
fn a_blob_that_is_not_what_its_digest_says_is_refused() {
    let layout = Layout::new();
    let layers = layers(&layout, "1.0.0");
    let image = layout.image(&layers);
    let store = layout.index(std::slice::from_ref(&image));
    let pullspec = store.list().unwrap().releases.remove(0).image;
    let hex = layers[0]["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
    fs::write(layout.0.path().join(hex), "something else").unwrap();
    let error = fetch(&store, &pullspec).unwrap_err();
    assert!(error.contains("content does not match its digest"), "{error}");
    // Nor is a path hidden in a digest followed.
    let store = layout.index(&[json!({ "digest": "sha256:../../../etc/passwd" })]);
    assert_eq!(listed(&store), "defect");
}
